"""Fixed points of several features against plain NumPy: roots, flows from many starts, symmetry."""

import itertools

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(8)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
LAWS = {
    "rademacher": (np.array([-1.0, 1.0]), np.array([0.5, 0.5])),
    "skewed": (np.array([-2.0, 0.5]), np.array([0.2, 0.8])),
    "uniform": None,
}
_LEGENDRE = np.polynomial.legendre.leggauss(6)
LAWS["uniform"] = (np.sqrt(3) * _LEGENDRE[0], _LEGENDRE[1] / 2)
SPECS = {
    "rademacher": "rademacher",
    "uniform": "uniform",
    "skewed": {"discrete": {"values": [-2.0, 0.5], "weights": [0.2, 0.8]}},
}


def flow(names, f, tau, q):
    """dQ/dt at overlaps of shape (points, M), averages summed over all values of the sources."""
    grids = np.array(list(itertools.product(*(LAWS[k][0] for k in names))))
    weights = np.prod(np.array(list(itertools.product(*(LAWS[k][1] for k in names)))), axis=1)
    s = np.sqrt(np.maximum(0.0, 1 - np.sum(q**2, axis=1)))
    u = np.einsum("pm,gm->pg", q, grids)[..., None] + s[:, None, None] * NODES
    w = weights[:, None] * WEIGHTS
    value = f(u)
    along = np.einsum("pgz,gz,gm->pm", value, w, grids)
    mean_u, square = np.einsum("pgz,gz->p", u * value, w), np.einsum("pgz,gz->p", value**2, w)
    return -tau * (along - q * mean_u[:, None]) - tau**2 / 2 * square[:, None] * q


def listed(names, text, tau):
    system = hdica.SeveralICA(
        tau=tau,
        sources=[SPECS[k] for k in names],
        nonlinearity=text,
        start={"overlap": [0.3] * len(names)},
    )
    return hdica.fixed_points(system)


CASES = [
    (("uniform", "uniform"), "x**3", lambda u: u**3, 0.01),
    (("rademacher", "uniform"), "x**3", lambda u: u**3, 0.02),
    (("rademacher", "skewed"), "0.3*x**3 + 0.2*x**2", lambda u: 0.3 * u**3 + 0.2 * u**2, 0.1),
]


@pytest.mark.deep
@pytest.mark.parametrize(("names", "text", "f", "tau"), CASES)
def test_every_fixed_point_is_one_and_every_flow_ends_at_a_stable_one(names, text, f, tau):
    found = listed(names, text, tau)
    q, stable = found.Q.values, found.stable.values
    slope = np.abs(flow(names, f, 1.02 * tau, q)).max()
    assert np.abs(flow(names, f, tau, q)).max() < 1e-12 * tau
    # The control: a step size that is wrong by 2 % has other fixed points.
    assert slope > 1e-4 * tau
    for one, settled in zip(q, stable, strict=True):
        step = 1e-5 * np.eye(len(one))
        wide = flow(names, f, tau, one + step) - flow(names, f, tau, one - step)
        rates = np.linalg.eigvals(wide.T / 2e-5).real
        assert settled == (rates.max() < 0)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((60, len(names)))
    x *= (rng.random((60, 1)) ** 0.5) / np.linalg.norm(x, axis=1)[:, None]
    for _ in range(4000):
        h = 0.15 / tau
        k1 = flow(names, f, tau, x)
        x = x + h * flow(names, f, tau, x + h / 2 * k1)
        if np.abs(k1).max() < 1e-11 * tau:
            break
    gap = np.abs(x[:, None, :] - q[stable]).max(axis=2)
    near = gap.argmin(axis=1)
    settled = np.abs(flow(names, f, tau, x)).max(axis=1) < 1e-9 * tau
    assert settled.mean() > 0.98
    assert gap.min(axis=1)[settled].max() < 1e-6
    assert set(near[settled].tolist()) == set(range(int(stable.sum())))


@pytest.mark.parametrize("many", [1, 2, 3])
def test_equal_features_have_the_states_of_their_symmetry(many):
    found = listed(("uniform",) * many, "x**3", 0.01)
    one = listed(("uniform",), "x**3", 0.01)
    informative = found.stable.values & (found.kind.values == "informative")
    # A feature each, with either sign, with the overlap that one feature alone has.
    assert informative.sum() == 2 * many
    q = found.Q.values[informative]
    assert np.sort(np.abs(q).max(axis=1)) == pytest.approx(float(one.Q.max()), abs=1e-12)
    assert np.all((np.abs(q) > 1e-9).sum(axis=1) == 1)
    if many > 1:
        # Saddles between features: every listed state under every sign and exchange is listed.
        every = {tuple(np.round(row, 8) + 0.0) for row in found.Q.values}
        mixed = [row for row in every if sum(abs(v) > 1e-6 for v in row) > 1]
        assert mixed
        for row in every:
            assert tuple(np.array(row[::-1]) + 0.0) in every
            assert tuple(-np.array(row) + 0.0) in every


def test_one_feature_is_online_ica():
    for source in ("uniform", "rademacher", {"chi2": 3}):
        sign = "-" if isinstance(source, dict) else ""
        several = hdica.SeveralICA(
            tau=0.02, sources=[source], nonlinearity=f"{sign}x**3", start={"overlap": [0.5]}
        )
        single = hdica.OnlineICA(
            tau=0.02, source=source, nonlinearity=f"{sign}x**3", start={"overlap": 0.5}
        )
        found, other = hdica.fixed_points(several), hdica.fixed_points(single)
        order = np.argsort(found.Q.values[:, 0])
        assert found.Q.values[order, 0] == pytest.approx(other.Q.values, abs=1e-9)
        assert np.array_equal(found.stable.values[order], other.stable.values)


def test_what_has_no_list_is_refused():
    system = hdica.SeveralICA(tau={"steps": {"times": [1], "values": [0.1, 0.05]}})
    with pytest.raises(HdicaError, match="give a constant one"):
        hdica.fixed_points(system)
    many = hdica.SeveralICA(tau=0.1, sources=["uniform"] * 7, start={"overlap": [0.1] * 7})
    with pytest.raises(HdicaError, match="at most 6"):
        hdica.fixed_points(many)
