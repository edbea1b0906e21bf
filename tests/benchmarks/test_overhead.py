"""Every route computes the same points; how fast each is, no test decides."""

from contextlib import closing

import numpy as np
import pytest

from benchmarks import overhead
from benchmarks.harness import Contestant, compare
from benchmarks.rivals.bare_points import Bare


@pytest.fixture(scope="module")
def expected():
    with closing(Bare(overhead.content(3), 2)) as kernels:
        first = kernels()
        assert kernels() == first
        return first


@pytest.mark.deep
@pytest.mark.parametrize("route", [overhead.in_process, *overhead.OURS.values()])
def test_a_route_computes_what_the_bare_kernels_compute(route, expected):
    assert route(3) == pytest.approx(expected, rel=1e-12)


@pytest.mark.deep
def test_a_longer_study_has_more_seeds_for_both_processes():
    few, many = overhead.seeds_for(0.01), overhead.seeds_for(5.0)
    assert 2 <= few < many
    assert few % 2 == many % 2 == 0


def test_the_first_call_of_a_route_is_small():
    calls = []
    route = overhead._ready(lambda: calls.append("small"), lambda: calls.append("full"))
    for _ in range(3):
        route()
    assert calls == ["small", "full", "full"]


def test_a_command_that_fails_says_why(tmp_path):
    with pytest.raises(RuntimeError, match="does not exist"):
        overhead._call([overhead._program("hdica"), "query", "absent.zarr"], tmp_path)


def test_what_is_added_is_told_as_a_multiple_of_the_bare_kernels():
    names = ["hdica run", "hdica in snakemake", "bare kernels"]
    entered = [Contestant(name, float) for name in names]
    found = compare("overhead", "a study", entered, np.array([[3.0], [4.0], [2.0]]), "s")
    said = "hdica run: 1.500 of the bare kernels; hdica in snakemake: 2.000 of the bare kernels"
    assert overhead.added(found) == said
