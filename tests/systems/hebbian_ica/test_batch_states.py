"""Fixed points with batches against plain NumPy, and against where the limit goes."""

import numpy as np
import pytest
from scipy.optimize import brentq

import hdica

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(12)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def rate(r, mu, batch):
    """(17) for y^3, sigma = -1 and one source of +-1, whose mean over a batch divides mu^2."""
    signs = np.array([-1.0, 1.0])[:, None]
    y = r * signs + np.sqrt(max(0.0, 1 - r * r)) * NODES
    phi, weight = y**3, 0.5 * WEIGHTS
    phi_s, phi_y, square = (np.sum(weight * phi * v) for v in (signs, y, phi))
    return -mu * (phi_s - r * phi_y) - mu**2 / batch * square * r / 2


def roots(mu, batch):
    grid = np.linspace(0.01, 0.9999, 800)
    values = [rate(r, mu, batch) for r in grid]
    return [
        brentq(rate, grid[i], grid[i + 1], args=(mu, batch), xtol=1e-14)
        for i in range(grid.size - 1)
        if values[i] * values[i + 1] < 0
    ]


def system(mu, batch, **others):
    given = {"sources": ["rademacher"], "start": {"overlap": 0.9}, **others}
    return hdica.HebbianICA(mu=mu, batch=batch, nonlinearity="x**3", **given)


@pytest.mark.parametrize(("mu", "batch"), [(0.05, 1), (0.2, 4), (0.6, 7)])
def test_fixed_points_are_the_roots_of_the_rate_with_its_batch(mu, batch):
    found = hdica.fixed_points(system(mu, batch))
    r = found.R.values[:, 0, 0]
    listed = np.sort(np.abs(r[np.abs(r) > 1e-9]))
    assert listed == pytest.approx(roots(mu, batch), abs=1e-10)
    assert listed.size == 2
    for one, slope, stable in zip(r, found.eigenvalue.values, found.stable.values, strict=True):
        step = 1e-5
        exact = (rate(one + step, mu, batch) - rate(one - step, mu, batch)) / (2 * step)
        assert slope == pytest.approx(exact, rel=1e-5, abs=1e-8)
        assert stable == (exact < 0)
    # The control: a batch that is one larger has other states.
    assert np.abs(listed - roots(mu, batch + 1)).max() > 1e-4


@pytest.mark.deep
def test_the_limit_ends_where_two_projections_of_a_batch_rest():
    both = {
        "sources": ["rademacher", "uniform"],
        "projections": 2,
        "start": {"overlap": [[0.8, 0.1], [0.1, 0.7]]},
    }
    one = system(0.1, 5, **both)
    end = hdica.limit(one, times=[0, 4000], method="ode").R.values[-1]
    found = hdica.fixed_points(one)
    stable = found.R.values[found.stable.values]
    gap = np.abs(np.abs(stable) - np.abs(end)).max(axis=(1, 2))
    assert gap.min() < 1e-7
    alone = hdica.fixed_points(system(0.1, 1, **both))
    others = alone.R.values[alone.stable.values]
    assert np.abs(np.abs(others) - np.abs(end)).max(axis=(1, 2)).min() > 1e-3
