"""Simulations at finite n go where the limit says, for laws that a user may write down."""

import numpy as np
import pytest

import hdica
from hdica import OnlineICA, SparsePCA
from hdica.limits.mean_field.density.solve import solve
from hdica.systems.system import systems

TIMES = [0, 4.0, 10.0]
SOURCES = [
    ({"mixture": {"weights": [1, 1], "means": [-1, 2], "sds": [0.5, 0.2]}}, "x**3"),
    ({"scipy": "poisson", "mu": 0.3}, "tanh(x)"),
    ({"scipy": "binom", "n": 5, "p": 0.3}, "tanh(x) + x**2/4"),
]


def scores(seen, name, wanted):
    """Departures of the mean over seeds in standard errors, at all times but the first."""
    values = seen[name].values[:, 1:]
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return (values.mean(axis=0) - np.asarray(wanted)[1:]) / error


@pytest.mark.parametrize(("source", "f"), SOURCES, ids=["mixture", "poisson", "binom"])
def test_chains_of_a_source_follow_its_limit(source, f):
    n, seeds = 20_000, 48
    system = OnlineICA(tau=0.1, source=source, nonlinearity=f, start={"overlap": 0.6})
    limit = hdica.limit(system, times=TIMES, method="ode")
    seen = hdica.simulate(system, times=TIMES, n=n, seeds=seeds, method="chain")
    assert np.all(np.abs(scores(seen, "Q", limit.Q.values)) < 4)
    ratio = seen.Q.std("seed").values * np.sqrt(n) / limit.Q_sd.values
    assert ratio == pytest.approx(1, abs=4.5 / np.sqrt(2 * seeds))
    # Negative control: the limit of a source of another shape.
    wrong = hdica.limit(system.model_copy(update={"source": "gaussian"}), times=TIMES, method="ode")
    assert np.all(np.abs(scores(seen, "Q", wrong.Q.values)) > 5)


def path(slab, times):
    """The limit of a rule whose feature has a slab, to 1e-4: as a run of it alone takes seconds."""
    system = SparsePCA(
        tau=0.4,
        omega=1.5,
        prior={"slab": slab, "rho": 0.2},
        regularizer="0.3*sign(x)",
        start={"overlap": 0.4},
    )
    field = systems()["SparsePCA"].mean_field(system)
    return system, solve(field, np.array(times), tolerance=1e-4)


def test_a_feature_with_a_slab_follows_its_limit():
    times = [0, 1.0, 2.0]
    system, limit = path("laplace", times)
    seen = hdica.simulate(system, times=times, n=1500, seeds=48, method="vector")
    _, wrong = path("uniform", times)  # negative control: a slab of lighter tails
    for name, values in (("Q", limit.q), ("R", limit.r)):
        assert np.all(np.abs(scores(seen, name, values)) < 4.5)
    assert np.any(np.abs(scores(seen, "R", wrong.r)) > 5)
