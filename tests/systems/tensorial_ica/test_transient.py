"""The limit of small steps in closed form, against integration, and sums of step sizes."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from hdica.ingredients.schedules import make_schedule
from hdica.systems.tensorial_ica.transient import (
    drift,
    elapsed,
    solve,
    steps_sum,
    tan2_of,
    time_to,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tensorial_ica.json").read_text())


def unit(v):
    return np.asarray(v, dtype=float) / np.linalg.norm(v)


STARTS = {
    "random": unit(np.random.default_rng(1).standard_normal(12)),
    "tied": unit([0.6, -0.6, 0.5, 0.1]),
    "nearly tied": unit([0.6, 0.6 * (1 - 1e-9), 0.3, 0.0]),
    "tiny": unit([1.0, 1e-7, 0.999, -1e-3]),
    "two": unit([0.8, 0.79]),
}


def integrated(v0, times, rtol):
    found = solve_ivp(
        lambda _, v: drift(v), (0, times[-1]), v0, "DOP853", times, rtol=rtol, atol=rtol * 1e-3
    )
    return found.y.T


def test_golden_path_and_time():
    known = GOLDEN["lj_ode"]
    found = solve(np.array(known["v0"]), np.array(known["bt"], dtype=float))
    assert found.v == pytest.approx(np.array(known["v"]), abs=1e-9)
    assert float(time_to(np.array(known["v0"]), 1 / 3)) == pytest.approx(
        known["bt_warm_third"], abs=1e-9
    )


@pytest.mark.parametrize("name", STARTS)
def test_agrees_with_integration_the_more_the_finer(name):
    times = np.array([0.0, 0.5, 2.0, 5.0, 12.0])
    exact = solve(STARTS[name], times).v
    off = [
        np.abs(integrated(STARTS[name], times, rtol) - exact).max() for rtol in (1e-4, 1e-8, 1e-12)
    ]
    assert off[0] > 10 * off[2]
    assert off[1] < 1e-6
    # Integration amplifies its rounding as the path leaves a tie.
    assert off[2] < 1e-9


def test_error_estimate_covers_two_halves_of_a_path():
    v0 = STARTS["random"]
    whole, first = solve(v0, np.array([6.0])), solve(v0, np.array([2.5]))
    second = solve(first.v[0], np.array([3.5]))
    off = np.abs(second.v - whole.v).max()
    # What the first half misses grows by exp(2 x) at most.
    assert off <= whole.error[0] + second.error[0] + np.exp(7.0) * first.error[0]
    assert whole.error[0] < 1e-13


@pytest.mark.parametrize("k", [1, 2, 7])
def test_critical_points_stay(k):
    v = np.zeros(7)
    v[:k] = k**-0.5 * (-1.0) ** np.arange(k)
    found = solve(v, np.array([0.0, 1.0, 1e6, np.inf])).v
    assert found == pytest.approx(np.tile(v, (4, 1)), abs=1e-15)
    assert np.isfinite(time_to(v, 1 / 3)) == (k == 1)


def test_long_after_only_the_largest_remains_with_its_sign():
    v0 = -STARTS["random"]
    m = int(np.argmax(np.abs(v0)))
    found = solve(v0, np.array([60.0, 1e4, 1e200, np.inf])).v
    assert found[:, m] == pytest.approx(np.full(4, np.sign(v0[m])), abs=1e-15)
    late = solve(v0, np.array([60.0, 61.0])).v
    others = np.delete(late, m, axis=1)
    # exp(-x), with full relative accuracy long after a difference from 1 would have rounded away.
    assert others[1] / others[0] == pytest.approx(np.full(11, np.exp(-1.0)), rel=1e-12)


@pytest.mark.parametrize("level", [0.9, 1 / 3, 1e-3, 1e-30, 1e-200])
def test_time_to_a_level_is_when_the_path_is_there(level):
    rng = np.random.default_rng(2)
    starts = rng.standard_normal((50, 30))
    times = time_to(starts, level)
    assert np.all((times > 0) & np.isfinite(times))
    for v, x in zip(starts, times, strict=True):
        path = solve(unit(v), np.array([x, x + 1e-12, max(x - 1e-12, 0)])).v
        there, after, before = tan2_of(path)
        assert there == pytest.approx(level, rel=2e-13 * (1 + x))
        assert after <= there <= before


def test_time_to_a_level_of_special_starts():
    starts = np.array([[1.0, 0, 0], [1.0, 1.0, 0], [1.0, 1.0, 0.5], [1.0, 1 - 1e-15, 0]])
    assert time_to(starts, 1 / 3)[[0, 1, 2]].tolist() == [0.0, np.inf, np.inf]
    assert 30 < time_to(starts, 1 / 3)[3] < 40
    # Two that are tied keep tan^2 = 1, and come below 1.1 when the third has gone.
    x = time_to(starts, 1.1)[2]
    assert tan2_of(solve(unit(starts[2]), np.array([x])).v) == pytest.approx([1.1], rel=1e-12)


def test_the_basin_is_that_of_the_largest_component():
    rng = np.random.default_rng(3)
    for v in rng.standard_normal((100, 6)):
        end = solve(unit(v), np.array([1e3])).v[0]
        assert np.argmax(np.abs(end)) == np.argmax(np.abs(v))


SCHEDULES = [
    0.01,
    "1/(2*(t + 100))",
    "0.01*(1 + 0.9*sin(t))",
    {"steps": {"times": [10.5, 4000], "values": [1e-2, 2e-3, 1e-4]}},
]


@pytest.mark.parametrize("spec", SCHEDULES, ids=str)
@pytest.mark.parametrize("direct", [1 << 22, 3000])
def test_elapsed_is_the_sum_over_steps(spec, direct, monkeypatch):
    monkeypatch.setattr("hdica.systems.tensorial_ica.transient._DIRECT", direct)
    monkeypatch.setattr("hdica.systems.tensorial_ica.transient._BLOCK", 1024)
    schedule, times = make_schedule(spec), np.array([0.0, 0.9, 1.0, 11.0, 10.7, 3999.5, 2e4])
    sums = np.concatenate([[0.0], np.cumsum(schedule.value(np.arange(2e4)))])
    expected = 2.0 * sums[np.floor(times).astype(int)]
    assert 2.0 * steps_sum(schedule, times) == pytest.approx(expected, rel=1e-9)
    begun = 2.0 * (times - np.floor(times)) * schedule.value(np.floor(times))
    assert elapsed(schedule, 2.0, times) == pytest.approx(expected + begun, rel=1e-9)
    squares = np.sum(schedule.value(np.arange(2e4)) ** 2)
    assert steps_sum(schedule, times[-1:], power=2) == pytest.approx([squares], rel=1e-9)


def test_between_steps_time_goes_on_evenly():
    times = np.array([0.25, 2.0, 2.5, 1234.75])
    assert elapsed(make_schedule(0.1), 2.0, times) == pytest.approx(0.2 * times, rel=1e-14)
    steps = make_schedule({"steps": {"times": [2], "values": [0.1, 0.3]}})
    assert elapsed(steps, 1.0, times[:3]) == pytest.approx([0.025, 0.2, 0.35], rel=1e-14)
