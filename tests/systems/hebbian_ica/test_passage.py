"""First passages: the chain's own path, any grouping, and means that other code has found."""

import json
from pathlib import Path

import numpy as np
import pytest

from hdica.systems.hebbian_ica.passage import passages
from hdica.systems.hebbian_ica.rule import run_chains
from hdica.systems.hebbian_ica.system import rule
from tests.systems.hebbian_ica.cases import hebbian, stream_of

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/hebbian_simulation.json").read_text())
RACE = hebbian(sources=["rademacher"], nu=2.0, start="random")
PAIR = hebbian(
    sources=["rademacher"] * 2, projections=2, sigma=[-1, -1], nu=1.0, start="random", alpha=0.4
)


def first_passage(system, n, stream, threshold, most):
    return passages(rule(system), n, [stream], threshold, most)[0]


def streams(count, n=20):
    return [stream_of(seed, n) for seed in range(count)]


TALL = hebbian(sources=["rademacher"], projections=2, sigma=[-1, -1], nu=1.0, start="random")
WIDE = hebbian(sources=["rademacher"] * 2, nu=1.0, start="random")


@pytest.mark.parametrize(
    "system", [RACE, PAIR, TALL, WIDE], ids=["K1 M1", "K2 M2", "K2 M1", "K1 M2"]
)
def test_a_passage_is_the_first_of_the_chain_s_own_path(system):
    n, level, problem = 20, 0.7, rule(system)
    found = passages(problem, n, streams(5), level, 400_000)
    for seed, passage in enumerate(found):
        times = np.arange(passage.last + 1) / n
        ((values, _),) = run_chains([problem], times, n, [stream_of(seed, n)])
        k, m = problem.shape
        nearest = np.abs(values["R"]).max(axis=2 if k <= m else 1)
        assert passage.first == np.flatnonzero(nearest.max(axis=1) >= level)[0]
        assert passage.last == np.flatnonzero(nearest.min(axis=1) >= level)[0]
        assert passage.steps == passage.last
        assert passage.overlaps.tobytes() == values["R"][-1].tobytes()


@pytest.mark.parametrize("system", [RACE, PAIR], ids=["K1 M1", "K2 M2"])
def test_a_passage_does_not_depend_on_the_chains_beside_it(system):
    many = passages(rule(system), 20, streams(21), 0.7, 5000)
    assert 0 < sum(passage.last < 0 for passage in many) < 21
    for seed, one in enumerate(many):
        alone = first_passage(system, 20, stream_of(seed, 20), 0.7, 5000)
        assert one[:2] == alone[:2]
        assert one[3:] == alone[3:]
        assert one.overlaps.tobytes() == alone.overlaps.tobytes()


def test_who_is_there_at_the_start_and_who_never_comes():
    there = first_passage(hebbian(nu=1.0), 20, stream_of(0), 0.5, 10)
    assert (there.first, there.last, there.steps) == (0, 0, 0)
    assert there.overlaps.tolist() == [[0.6]]
    never = first_passage(hebbian(nu=0.01), 20, stream_of(0), 0.9, 300)
    assert (never.first, never.last, never.steps) == (-1, -1, 300)
    none = first_passage(hebbian(nu=0.01), 20, stream_of(0), 0.9, 0)
    assert (none.first, none.steps, none.overlaps.tolist()) == (-1, 0, [[0.6]])


def test_a_chain_that_diverges_says_so_and_others_go_on():
    found = passages(
        rule(hebbian(sources=["laplace"], sigma=[1], eta=0.1)), 20, streams(12), 1e200, 500
    )
    ends = [passage.diverged for passage in found]
    assert all(why.startswith("the update was not finite at step ") for why in ends)
    assert all(f"at step {p.steps} " in p.diverged for p in found)
    assert all(np.isnan(passage.overlaps).all() for passage in found)
    assert all(passage.last == -1 for passage in found)


def test_a_chain_that_is_through_has_not_diverged_whatever_comes_after():
    system = hebbian(sources=["laplace"], sigma=[1], eta=0.1)
    for passage in passages(rule(system), 20, streams(12), 0.5, 500):
        assert (passage.last, passage.steps, passage.diverged) == (0, 0, "")
    for passage in passages(rule(system), 20, streams(12), 1e9, 500):
        assert passage.diverged == ""
        assert passage.last == passage.steps > 0
        assert abs(passage.overlaps[0, 0]) >= 1e9


@pytest.mark.deep
@pytest.mark.parametrize(
    ("source", "n", "nu", "count"),
    [("uniform", 100, 1.0, 64), ("rademacher", 100, 4.0, 24), ("rademacher", 50, 2.0, 96)],
)
def test_mean_escape_times_agree_with_those_of_other_code(source, n, nu, count):
    """In n^3 steps, within four combined standard errors (of 9 to 22 % here)."""
    known = [c for c in GOLDEN["escape"] if (c["src"], c["N"], c["nu"]) == (source, n, nu)]
    weights = np.array([1 / c["se"] ** 2 for c in known])
    mean = float(np.sum(weights * [c["mean"] for c in known]) / weights.sum())
    system = hebbian(sources=[source], nu=nu, start="random")
    found = passages(rule(system), n, streams(count, n), 0.8, 60 * n**3)
    times = np.array([passage.first for passage in found]) / n**3
    assert np.all(times > 0)
    error = times.std(ddof=1) / np.sqrt(count)
    assert abs(times.mean() - mean) < 4 * np.hypot(error, weights.sum() ** -0.5)
    assert error < 0.25 * mean


def test_the_first_of_two_sources_is_found_in_half_the_time():
    """K = 1, M = 2: 0.371(25) n^3 against 0.778(44) for one source, Rademacher, n = 100, nu = 2."""
    known = GOLDEN["escape_of_several"]["K1M2"]
    system = hebbian(sources=["rademacher"] * 2, nu=2.0, start="random")
    found = passages(rule(system), 100, streams(64, 100), 0.8, 20_000_000)
    times = np.array([passage.first for passage in found]) / 1e6
    error = times.std(ddof=1) / 8
    assert abs(times.mean() - known["first"]) < 4 * np.hypot(error, known["se"])


@pytest.mark.deep
def test_two_projections_of_figure_3_find_one_source_long_before_both():
    """n = 100, nu = 1, uniform, K = M = 2: 4.5e5 and 1.95e6 steps in 40 runs of other code."""
    known = GOLDEN["figure_3"]["cases"]["K2M2nu1.0"]
    system = hebbian(sources=["uniform"] * 2, projections=2, sigma=[-1, -1], nu=1.0, start="random")
    found = passages(rule(system), 100, streams(32, 100), 0.8, 30_000_000)
    first, both = (np.array([p[k] for p in found]) for k in (0, 1))
    assert np.all(both > first)
    for times, mean in ((first, known["mean_first"]), (both, known["mean_all"])):
        # The known runs, nearly exponential, have a standard error of about mean/sqrt(40).
        error = np.hypot(times.std(ddof=1) / np.sqrt(32), mean / np.sqrt(40))
        assert abs(times.mean() - mean) < 4 * error


def test_large_step_sizes_stay_trapped():
    """n = 100, nu = 4: no escape in 10^7 steps of other code; the mean is 5.85e8."""
    system = hebbian(sources=["uniform"], nu=4.0, start="random")
    found = passages(rule(system), 100, streams(4, 100), 0.8, 1_000_000)
    assert [passage.first for passage in found] == [-1] * 4
