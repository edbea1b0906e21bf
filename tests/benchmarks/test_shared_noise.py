"""The race is between the same points with shared noise and with noise of their own."""

import numpy as np
import pytest

import hdica
from benchmarks.shared_noise import POINTS, PROBLEMS, block, reduction


@pytest.mark.parametrize("label", PROBLEMS)
def test_both_compute_the_same_points_by_the_sweep_s_function(label: str) -> None:
    systems = PROBLEMS[label]()
    assert len({s.model_dump_json() for s in systems}) == POINTS
    for noise in ("shared", "own"):
        contestant = block(systems[:3], noise, 64, 10)
        assert contestant.name == f"hdica, {noise} noise"
        assert contestant.work == 3 * 64 * 10
        for system, result in zip(systems[:3], contestant.run(), strict=True):
            times = [0, 10 / 64]
            alone = hdica.simulate(system, n=64, times=times, method="vector", noise=noise)
            assert np.array_equal(result.values["Q"], alone.Q.values[0])
            assert alone.step.values[-1] == 10


@pytest.mark.parametrize("label", PROBLEMS)
def test_differences_vary_less_with_shared_noise(label: str) -> None:
    systems = PROBLEMS[label]()
    assert reduction(systems, n=64, seeds=32) > 2
    assert reduction([systems[0], systems[1]], n=64, seeds=32) > 20
