"""The best constant step size for a feature that moves, and which step sizes track it."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import hdica
from hdica.limits.mean_field.moving import best
from hdica.systems.online_ica.system import drift as ica_drift
from hdica.systems.sparse_pca.system import drift as pca_drift
from tests.systems.test_moving import ica, pca


def oja(omega, delta):
    """Best overlap and step size in closed form."""
    q = 1 + (delta - np.sqrt(delta**2 + 2 * delta * (1 + omega))) / omega
    return np.sqrt(q), omega * (1 - q) / (1 + omega * q)


@pytest.mark.parametrize(("omega", "delta"), [(1.5, 0.2), (1.5, 1e-4), (0.3, 0.04), (1.5, 1.1)])
def test_the_best_step_of_ojas_method_is_the_closed_form(omega, delta):
    found = hdica.best_step(pca({"exchange": delta}, omega=omega))
    q, tau = oja(omega, delta)
    assert float(found["best_Q"]) == pytest.approx(q, abs=1e-12)
    assert float(found["best_tau"]) == pytest.approx(tau, rel=1e-9)
    width = np.sqrt(omega**2 - 2 * delta)
    assert float(found["lowest_tau"]) == pytest.approx(omega - width, rel=1e-9)
    assert float(found["largest_tau"]) == pytest.approx(omega + width, rel=1e-9)
    assert float(found["largest_delta"]) == pytest.approx(omega**2 / 2, rel=1e-9)


STEADY = [
    pca({"exchange": 0.2}),
    ica({"exchange": 1e-3}),
    ica({"exchange": 5e-4}, source="laplace", nonlinearity="tanh(x)"),
    ica({"exchange": 1e-3}, start={"overlap": -0.85}),
]


@pytest.mark.deep
@pytest.mark.parametrize("system", STEADY, ids=["oja", "cubic", "tanh", "cubic, Q < 0"])
def test_the_best_step_is_that_of_golden_section_over_steady_states(system):
    found = hdica.best_step(system)

    def held(log_tau):
        states = hdica.fixed_points(system.model_copy(update={"tau": float(np.exp(log_tau))}))
        kept = np.abs(states["Q"].values[states["stable"].values.astype(bool)])
        return -float(kept.max())

    middle = np.log(float(found["best_tau"]))
    seen = minimize_scalar(held, bracket=(middle - 0.3, middle + 0.07, middle + 0.4), tol=1e-7)
    assert -seen.fun == pytest.approx(abs(float(found["best_Q"])), abs=1e-9)
    assert np.exp(seen.x) == pytest.approx(float(found["best_tau"]), rel=1e-3)
    # As a limit in time: a start near it stays, and other step sizes hold less.
    q, tau = float(found["best_Q"]), float(found["best_tau"])
    begin = {"overlap": q}
    long = [2000.0]
    stays = system.model_copy(update={"tau": tau, "start": begin})
    assert float(hdica.limit(stays, times=long, method="ode")["Q"][0]) == pytest.approx(q, abs=1e-6)
    for factor in (0.7, 1.4):
        other = stays.model_copy(update={"tau": factor * tau})
        less = float(hdica.limit(other, times=long, method="ode")["Q"][0])
        assert abs(less) < abs(q) - 1e-3


def test_slow_drifts_follow_the_square_root():
    cases = [
        (pca_drift(pca(omega=1.5)), 2.5, 1.5),
        (ica_drift(ica()), 27 / 7, 1.2),
        (ica_drift(ica(source="rademacher")), 1.0, 2.0),
    ]
    for drift, loss, gain in cases:
        for delta, off in ((1e-6, 0.02), (1e-8, 2e-3)):
            found = best(drift, delta)
            law = np.sqrt(2 * delta * loss) / gain
            assert 1 - found.q**2 == pytest.approx(law, rel=off)
            assert found.tau == pytest.approx(np.sqrt(2 * delta / loss), rel=off)


def test_faster_than_can_be_tracked():
    found = hdica.best_step(pca({"exchange": 1.2}))
    assert np.isnan(float(found["best_tau"]))
    assert float(found["largest_delta"]) == pytest.approx(1.125, rel=1e-9)
    states = hdica.fixed_points(pca({"exchange": 1.2}, tau=1.5))
    assert np.all(states["Q"].values == 0)


def test_step_sizes_that_track_are_the_folds_of_online_ica():
    system = ica({"exchange": 1e-3})
    folds = hdica.critical(system)
    ends = hdica.best_step(system)
    expected = [float(ends["largest_tau"]), float(ends["lowest_tau"])]
    assert folds["value"].values == pytest.approx(expected)
    for value, sign in zip(folds["value"].values, (1, -1), strict=True):
        inside, outside = (
            hdica.fixed_points(system.model_copy(update={"tau": value * (1 + s * sign * 1e-3)}))
            for s in (-1, 1)
        )
        assert inside.sizes["fixed_point"] == 5
        assert outside.sizes["fixed_point"] == 1
