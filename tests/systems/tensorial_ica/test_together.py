"""Paths of online tensorial ICA beside each other, output times, threads, ends: the same bits."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from hdica.ingredients.schedules import Schedule
from hdica.systems.tensorial_ica.paths import run_observed, run_vessel
from hdica.systems.tensorial_ica.rule import run_together
from tests.systems.tensorial_ica.cases import SOURCES, near_axis, rule_of, stream_of

TIMES = np.array([0.0, 0.5, 7.0, 1500.0])
KEEP = frozenset({"v"})
LATE = {"steps": {"times": [1234], "values": [1e-3, 1e200]}}


def eight(source, d):
    """Points that have nothing in common but dimension and source."""
    return [
        rule_of(source, d, 1e-3),
        rule_of(source, d, 5e-2, sign=None),
        rule_of(source, d, "0.1/(1 + t)", sign=None),
        rule_of(source, d, LATE),
        rule_of(source, d, 1e-4, start=near_axis(d, 0.3)),
        rule_of(source, d, 1e200),
        rule_of(source, d, 3.0),
        rule_of(source, d, {"steps": {"times": [100], "values": [0.3, 1e-3]}}, sign=1.0),
    ]


def same(one, other):
    assert one[1] == other[1]
    assert one[0].keys() == other[0].keys()
    for name, values in one[0].items():
        assert values.tobytes() == other[0][name].tobytes(), name


def alone(rules):
    return [run_together([r], TIMES, [stream_of(k)], KEEP)[0] for k, r in enumerate(rules)]


@pytest.mark.parametrize("d", [3, 70])
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_a_path_does_not_depend_on_the_paths_beside_it(source, d):
    rules = eight(source, d)
    expected = alone(rules)
    assert [k for k, (_, why) in enumerate(expected) if why] == [3, 5]
    for order in (range(8), range(8)[::-1], [4, 5], [3, 2, 1], [6, 5, 0, 3]):
        found = run_together([rules[k] for k in order], TIMES, [stream_of(k) for k in order], KEEP)
        for k, one in zip(order, found, strict=True):
            same(one, expected[k])


@pytest.mark.parametrize("rule", range(8))
@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_a_path_does_not_depend_on_when_it_is_recorded(source, rule):
    problem = eight(source, 9)[rule]
    few, many = np.array([0.0, 1500.0, 2300.0]), np.arange(0, 2301.0, 4)
    chosen = [0, 375, 575]
    ((one, end),) = run_together([problem], few, [stream_of(rule)], KEEP)
    ((other, other_end),) = run_together([problem], many, [stream_of(rule)], KEEP)
    assert end == other_end
    for key, values in one.items():
        assert values.tobytes() == other[key][chosen].tobytes()
    observed = [run_observed(problem, None, t, stream_of(rule), KEEP) for t in (few, many)]
    assert observed[0][1] == observed[1][1]
    for key, values in observed[0][0].items():
        assert values.tobytes() == observed[1][0][key][chosen].tobytes()


def test_every_step_may_be_recorded():
    problem = rule_of("rademacher", 30, 1e-3)
    ((dense, _),) = run_together([problem], np.arange(1101.0), [stream_of(1)], KEEP)
    ((last, _),) = run_together([problem], np.array([1023.0, 1024.0, 1100.0]), [stream_of(1)], KEEP)
    for key, values in last.items():
        assert values.tobytes() == dense[key][[1023, 1024, 1100]].tobytes()


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_a_path_does_not_depend_on_the_threads_that_run_beside_it(source):
    rules = eight(source, 40)
    expected = alone(rules)

    def together(_):
        return run_together(rules, TIMES, [stream_of(k) for k in range(8)], KEEP)

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(together, range(8)):
            for one, other in zip(found, expected, strict=True):
                same(one, other)


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_divergence_is_recorded_with_step_and_time(source):
    d, times = 8, np.array([0.0, 1234.0, 1235.0, 5000.0])
    late, never = rule_of(source, d, LATE), rule_of(source, d, 1e-3)
    streams = [stream_of(0), stream_of(1)]
    (values, why), (calm, end) = run_together([late, never], times, streams, KEEP)
    assert why == "the update was not finite at step 1234 (t = 1234)"
    assert end == ""
    for name in values:
        assert np.all(np.isfinite(values[name][:2]))
        assert np.all(np.isnan(values[name][2:]))
        assert np.all(np.isfinite(calm[name]))
    found, observed = run_observed(late, None, times, streams[0])
    assert observed == why
    assert np.all(np.isnan(found["tan2"][2:]))
    np.testing.assert_allclose(found["tan2"][:2], values["tan2"][:2], rtol=1e-9)


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_the_first_step_that_diverges_is_told(source):
    """A schedule that becomes infinite for good stops its lane at every step from then on."""
    infinite = Schedule(lambda t: np.where(np.asarray(t) < 3, 1e-3, np.inf), None)
    rule = replace(rule_of(source, 8), schedule=infinite)
    for times in (np.array([40.0]), np.arange(41.0)):
        ((_, why),) = run_together([rule], times, [stream_of(0)])
        assert why == "the update was not finite at step 3 (t = 3)"


def test_a_step_that_leaves_nothing_diverges():
    """At d = 1 with eta = 1 and sgn = -1 a sign of length one is taken off itself."""
    problem = rule_of("rademacher", 1, 1.0)
    ((_, why),) = run_together([problem], np.array([3.0]), [stream_of(0)])
    assert why == "the update was not finite at step 0 (t = 0)"
    assert run_observed(problem, None, np.array([3.0]), stream_of(0))[1] == why


def test_shapes_are_those_asked_for():
    rules = [rule_of("uniform", 5)] * 3
    for keep in (frozenset(), KEEP):
        for values, _ in run_together(rules, TIMES, [stream_of(k) for k in range(3)], keep):
            assert values.keys() == {"tan2", "nearest", "update_sign", *keep}
            assert values["tan2"].shape == values["nearest"].shape == (4,)
            assert values["update_sign"].tolist() == [-1.0] * 4
            if keep:
                assert values["v"].shape == (4, 5)


def test_the_vessel_does_not_depend_on_when_it_is_recorded():
    rule = rule_of("rademacher", 10, 5e-3, start=near_axis(10, 0.5))
    few, many = np.array([10.0, 1100.0]), np.arange(0, 1101.0, 5)
    for seed in range(6):
        one, other = (run_vessel(rule, stream_of(seed), times) for times in (few, many))
        assert one[1] == other[1] == ""
        for key, values in one[0].items():
            assert values.tobytes() == other[0][key][[2, 220]].tobytes()
