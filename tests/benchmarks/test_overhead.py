"""The benchmark compares like with like; how fast each is, it prints and no test decides."""

import pytest

from benchmarks.overhead import bare, measure, pipeline


def test_both_routes_compute_the_same_points():
    assert pipeline(50) == pytest.approx(bare(50), rel=1e-12)


def test_every_repeat_of_each_route_is_timed():
    seconds = measure(20, 2)
    assert {name: len(values) for name, values in seconds.items()} == {"bare": 2, "pipeline": 2}
    assert all(value > 0 for values in seconds.values() for value in values)
