import json
from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial import Chebyshev

from hdica.ingredients.schedules import make_schedule
from hdica.limits.overlap.drift import Drift, _integrate, solve
from hdica.limits.overlap.fixed_points import find_fixed_points, find_folds

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/online_ica.json").read_text())
Q = Chebyshev([0.0, 1.0])
# dQ/dt = -tau^2 Q/2 (no learning) has Q = Q0 exp(-int tau^2/2).
DECAY = Drift(Chebyshev([0.0]), -0.5 * Q, lambda: (1 - Q * Q, Chebyshev([0.0]), Chebyshev([0.0])))


@pytest.mark.parametrize(
    ("tau", "integral"),
    [
        (0.5, lambda t: 0.25 * t),
        ("1/(1 + t)", lambda t: 1 - 1 / (1 + t)),
        (
            {"steps": {"times": [1.0, 2.5], "values": [1.0, 0.5, 2.0]}},
            lambda t: np.minimum(t, 1) + 0.25 * np.clip(t - 1, 0, 1.5) + 4 * np.maximum(t - 2.5, 0),
        ),
    ],
)
def test_schedules_are_integrated_through_their_jumps(tau, integral):
    times = np.array([0.0, 0.5, 1.0, 2.0, 2.5, 4.0])
    path = solve(DECAY, make_schedule(tau), 0.8, 0.0, times)
    assert path.q == pytest.approx(0.8 * np.exp(-integral(times) / 2), abs=1e-10)
    assert path.control == pytest.approx(0.8 * np.exp(-1.02 * integral(times) / 2), abs=1e-9)


def test_variance_follows_its_linear_equation():
    # S' = -S/4 + (1 - Q^2)/4 with Q = 0 all along: S = 1 - exp(-t/4).
    times = np.linspace(0, 10, 6)
    path = solve(DECAY, make_schedule(0.5), 0.0, 0.0, times)
    assert path.spread**2 == pytest.approx(1 - np.exp(-times / 4), abs=1e-10)


def test_error_falls_with_the_tolerance_and_is_reported_honestly():
    drift = Drift(0.2 * Q**3 - 0.2 * Q**5, -0.5 * Q + 0.2 * Q**3)
    times, schedule = np.linspace(0, 60, 7), make_schedule(0.3)

    def followed(tolerance):
        states, _ = _integrate(drift, schedule, 0.9, 0.0, times, tolerance)
        return states[0]

    exact = followed(1e-13)
    errors = [np.abs(followed(tol) - exact).max() for tol in (1e-4, 1e-6, 1e-8)]
    assert errors[1] < errors[0] / 5
    assert errors[2] < errors[1] / 5
    path = solve(drift, schedule, 0.9, 0.0, times)
    assert np.all(np.abs(path.q - exact) <= path.error)
    assert np.all(np.isnan(path.spread))


def test_fixed_points_of_a_known_polynomial():
    # (Q^2 - 0.04)(Q^2 - 0.49) Q up to sign, split into the two orders of tau at tau = 1.
    learning = -(Q**5) + 0.53 * Q**3
    drift = Drift(learning, -0.0196 * Q)
    found = find_fixed_points(drift, 1.0)
    assert found.q == pytest.approx([-0.7, -0.2, 0.0, 0.2, 0.7], abs=1e-12)
    assert found.stable.tolist() == [True, False, True, False, True]


def test_folds_are_the_extrema_of_the_step_size():
    # tau = T(Q) = Q^2 (1 - Q^2): one fold at Q^2 = 1/2, tau = 1/4, with its mirror image.
    folds = find_folds(Drift(Q**3 - Q**5, -1 * Q))
    assert np.sort(folds.q) == pytest.approx([-np.sqrt(0.5), np.sqrt(0.5)], abs=1e-12)
    assert folds.tau == pytest.approx([0.25, 0.25], abs=1e-13)
    assert find_fixed_points(Drift(Q**3 - Q**5, -1 * Q), 0.2501).q.tolist() == [0.0]
