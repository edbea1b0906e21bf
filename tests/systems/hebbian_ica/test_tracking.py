"""The best step size for a source that drifts, against the limit and brute force over steps."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from hdica import HebbianICA, best_step, limit
from hdica.errors import HdicaError


def turning(drift, **given):
    known = {"mu": 0.1, "sources": ["rademacher"], "sigma": [-1], "motion": {"drift": drift}}
    return HebbianICA(**known | given)


def held(mu, drift, batch):
    """Minus the largest steady R of x^3 and Rademacher signs, from closed forms of the averages."""
    r = np.linspace(1.0, 0.3, 7001)
    learning = 2 * r**3 * (1 - r * r)
    power = 15 - 30 * r**4 + 16 * r**6

    def flow(r, learning, power):
        return mu * learning - mu**2 / batch * power * r / 2 - drift * r

    above = np.flatnonzero(flow(r, learning, power) > 0)
    if not above.size:
        return 0.0
    at = above[0]

    def exact(x):
        return flow(x, 2 * x**3 * (1 - x * x), 15 - 30 * x**4 + 16 * x**6)

    return -brentq(exact, r[at], r[at - 1], xtol=1e-14)


@pytest.mark.parametrize(("drift", "batch"), [(1e-4, 1), (1e-3, 1), (1e-3, 6), (0.01, 1)])
def test_no_step_size_holds_more(drift, batch):
    best = best_step(turning(drift, batch=batch))
    mu = float(best["best_mu"])
    found = minimize_scalar(
        held, bounds=(0.2 * mu, 3 * mu), args=(drift, batch), method="bounded",
        options={"xatol": 1e-12},
    )  # fmt: skip
    assert float(best["best_R"]) == pytest.approx(-found.fun, abs=1e-8)
    assert mu == pytest.approx(found.x, rel=1e-3)
    # A negative control: a tenth more holds less.
    assert -held(1.1 * mu, drift, batch) < float(best["best_R"]) - 1e-6


def test_the_limit_stays_there():
    system = turning(1e-3)
    best = best_step(system)
    start = {"mu": float(best["best_mu"]), "start": {"overlap": 0.9}}
    end = limit(system.model_copy(update=start), times=[4000.0])["R"].values.ravel()[-1]
    assert end == pytest.approx(float(best["best_R"]), abs=1e-9)


def test_slow_drifts_have_the_powers_that_are_told():
    """Xi = 2 and <phi(s)^2> = 1: mu = sqrt(2 drift m), 1 - R^2 = sqrt(2 drift/m)/2."""
    for batch in (1, 4):
        best = best_step(turning(1e-8, batch=batch))
        assert float(best["best_mu"]) == pytest.approx(np.sqrt(2e-8 * batch), rel=2e-3)
        assert 1 - float(best["best_R"]) ** 2 == pytest.approx(np.sqrt(2e-8 / batch) / 2, rel=2e-3)


def test_no_step_size_holds_a_source_that_drifts_faster_than_the_largest_drift():
    fastest = float(best_step(turning(1e-3))["largest_drift"])
    assert fastest == pytest.approx(0.0154, abs=1e-4)
    assert best_step(turning(0.999 * fastest))["best_R"] > 0.5
    beyond = best_step(turning(1.001 * fastest))
    assert np.isnan(beyond["best_R"])
    assert float(beyond["largest_drift"]) == pytest.approx(fastest)


def test_between_the_lowest_and_the_largest_step_size_the_source_is_tracked():
    found = best_step(turning(1e-3))
    for name, side in (("lowest_mu", 1), ("largest_mu", -1)):
        edge = float(found[name])
        assert held(edge * (1 + 1e-3 * side), 1e-3, 1) < -0.3
        assert held(edge * (1 - 1e-3 * side), 1e-3, 1) == 0.0


@pytest.mark.parametrize(
    ("system", "sentence"),
    [
        (turning(0.1, projections=2, sigma=[1, 1]), "one of each: of others no closed form"),
        (turning(0.0), r"motion = .* is not allowed for the best step size \(\{drift: rate > 0\}"),
        (HebbianICA(mu=0.1), "motion = None is not allowed for the best step size"),
        (turning(0.1, sigma="adaptive"), "sigma = 'adaptive' with batch = 1 is not allowed"),
        (turning(0.1, batch="full"), "batch = 'full' is not allowed"),
    ],
)
def test_what_it_is_not_for_is_refused(system, sentence):
    with pytest.raises(HdicaError, match=sentence):
        best_step(system)
