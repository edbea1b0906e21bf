"""The best step size for a source that drifts, against the limit and brute force over steps."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from hdica import HebbianICA, OnlineICA, limit, tracking
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
    best = tracking(turning(drift, batch=batch))
    mu = float(best["mu"])
    found = minimize_scalar(
        held, bounds=(0.2 * mu, 3 * mu), args=(drift, batch), method="bounded",
        options={"xatol": 1e-12},
    )  # fmt: skip
    assert float(best["R"]) == pytest.approx(-found.fun, abs=1e-8)
    assert mu == pytest.approx(found.x, rel=1e-3)
    # A negative control: a tenth more holds less.
    assert -held(1.1 * mu, drift, batch) < float(best["R"]) - 1e-6


def test_the_limit_stays_there():
    system = turning(1e-3)
    best = tracking(system)
    start = {"mu": float(best["mu"]), "start": {"overlap": 0.9}}
    end = limit(system.model_copy(update=start), times=[4000.0])["R"].values.ravel()[-1]
    assert end == pytest.approx(float(best["R"]), abs=1e-9)


def test_slow_drifts_have_the_powers_that_are_told():
    """Xi = 2 and <phi(s)^2> = 1: mu = sqrt(2 drift m), 1 - R^2 = sqrt(2 drift/m)/2."""
    for batch in (1, 4):
        best = tracking(turning(1e-8, batch=batch))
        assert float(best["mu"]) == pytest.approx(np.sqrt(2e-8 * batch), rel=2e-3)
        assert 1 - float(best["R"]) ** 2 == pytest.approx(np.sqrt(2e-8 / batch) / 2, rel=2e-3)


def test_a_drift_that_is_too_fast_is_refused():
    fastest = float(tracking(turning(1e-3))["drift_critical"])
    assert tracking(turning(0.999 * fastest))["R"] > 0.5
    with pytest.raises(HdicaError, match=r"drift = .*no step size holds the source from 0.0154 on"):
        tracking(turning(1.001 * fastest))


@pytest.mark.parametrize(
    ("system", "sentence"),
    [
        (OnlineICA(tau=0.1), "tracking needs HebbianICA with one projection and one source"),
        (turning(0.1, projections=2, sigma=[1, 1]), "one projection and one source"),
        (turning(0.0), r"motion = .* is not allowed for tracking \(\{drift: rate > 0\} alone\)"),
        (HebbianICA(mu=0.1), "motion = None is not allowed for tracking"),
        (turning(0.1, sigma="adaptive"), "sigma = 'adaptive' with batch = 1 is not allowed"),
        (turning(0.1, batch="full"), "batch = 'full' is not allowed"),
    ],
)
def test_what_it_is_not_for_is_refused(system, sentence):
    with pytest.raises(HdicaError, match=sentence):
        tracking(system)
