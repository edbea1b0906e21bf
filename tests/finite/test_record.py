"""The recording loop: step sizes once for all that share them, and kernels that draw alone."""

import numpy as np
import pytest

from hdica.finite.random.streams import run_length
from hdica.finite.record import Observation, Track, record
from hdica.ingredients.schedules import make_schedule

TIMES = np.array([0.0, 30.0, 1000.0])
BREAKING = {"steps": {"times": [300.5], "values": [0.3, 0.1]}}


def counted(spec):
    """A schedule, and the sizes of all that is asked of it."""
    plain, asked = make_schedule(spec), []

    def value(t):
        asked.append(np.size(t))
        return plain.value(t)

    return plain._replace(value=value), asked


def run(schedules, draws, n=1, columns=None):
    """All sources and step sizes that the kernel sees, shape (steps, columns)."""
    seen = []

    def advance(source, tau):
        seen.append((source.copy(), tau.copy()))
        return np.full(source.shape[1], len(source))

    tracks = [
        Track(Observation(dict), draw, one) for one, draw in zip(schedules, draws, strict=True)
    ]
    assert all(not why for _, why in record(advance, tracks, TIMES, n, columns))
    source, tau = (np.concatenate(parts) for parts in zip(*seen, strict=True))
    return source, tau


def normal(seed):
    return np.random.default_rng(seed).standard_normal


@pytest.mark.parametrize("spec", ["0.1/(1 + t/50)", BREAKING, 0.2])
def test_points_that_share_a_schedule_have_the_step_sizes_of_each_alone(spec):
    shared = [make_schedule(spec), make_schedule("0.3/(1 + t)")]
    order = [0, 1, 0, 0, 1]
    source, tau = run([shared[k] for k in order], [normal(k) for k in range(5)], n=2)
    for column, k in enumerate(order):
        one = run([shared[k]], [normal(column)], n=2)
        assert source[:, column].tobytes() == one[0][:, 0].tobytes()
        assert tau[:, column].tobytes() == one[1][:, 0].tobytes()
        assert np.array_equal(one[1][:, 0], shared[k].value(np.arange(2000) / 2))


def test_a_schedule_is_computed_once_for_all_points_that_share_it():
    one, asked = counted("0.1/(1 + t/50)")
    run([one] * 6, [normal(k) for k in range(6)])
    runs, step = [], 0
    while step < 1000:
        runs.append(run_length(step))
        step += runs[-1]
    assert asked == runs
    constant, asked = counted(0.2)
    run([constant] * 6, [normal(k) for k in range(6)])
    assert asked == []


def test_a_kernel_that_draws_for_itself_sees_zeros():
    schedule = make_schedule("0.1/(1 + t/50)")
    source, tau = run([schedule] * 3, [None, normal(1), None], columns=5)
    assert not source[:, [0, 2, 3, 4]].any()
    assert source[:, 1].tobytes() == run([schedule], [normal(1)])[0][:, 0].tobytes()
    assert np.array_equal(tau[:, 0], tau[:, 2])
    assert not tau[:, 3:].any()
