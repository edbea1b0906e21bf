import math
from dataclasses import replace

import numpy as np
import pytest

from hdica.verdict.cells import CLEAR, judged
from hdica.verdict.ladder import Ladder, contrast
from hdica.verdict.survival import ENOUGH, EscapeTimes, hazard_of, judge_escapes
from hdica.verdict.trajectory import judge, seeds_that_decide
from tests.analysis.known import LIMIT, NO_ERROR, PROFILE, Law

N = [300, 1000, 3000]
WRONG = LIMIT + 0.006 * PROFILE
LEVEL = 0.01


def judged_often(seeds, repeats, shift=0.0):
    rng, law = np.random.default_rng(5), Law(shift=shift)
    return [judge(law.draw(rng, N, seeds), LIMIT, NO_ERROR, WRONG, LEVEL) for _ in range(repeats)]


@pytest.mark.deep
def test_so_many_seeds_decide_19_times_in_20():
    few = judged_often(8, 100)
    needed = [v.seeds_needed for v in few if v.verdict == "undecided"]
    assert len(needed) > 50
    enough = math.ceil(np.mean(needed))
    assert 20 < enough < 100
    share = np.mean([v.control_rejected for v in judged_often(enough, 100)])
    # The most telling time alone is counted, and the window may drop the smallest n.
    assert share > 0.9
    half = np.mean([v.control_rejected for v in judged_often(enough // 2, 60)])
    assert half < 0.9


@pytest.mark.deep
def test_the_error_of_the_number_is_its_scatter():
    found = [v for v in judged_often(12, 100) if np.isfinite(v.seeds_needed) and v.n_count == 3]
    scatter = np.std([v.seeds_needed for v in found])
    assert np.mean([v.seeds_needed_error for v in found]) == pytest.approx(scatter, rel=0.4)


def test_what_is_smaller_than_the_solver_error_no_number_of_seeds_decides():
    rng = np.random.default_rng(0)
    found = judge(Law().draw(rng, N, 8), LIMIT, 0.05 + NO_ERROR, WRONG, LEVEL)
    assert found.verdict == "undecided"
    assert found.seeds_needed == math.inf


def test_what_is_decided_or_lacks_no_seeds_has_no_number():
    assert all(np.isnan(v.seeds_needed) for v in judged_often(100, 10) if v.verdict == "agrees")
    rng = np.random.default_rng(0)
    nothing = np.full_like(LIMIT, np.nan)
    assert np.isnan(judge(Law().draw(rng, N, 8), LIMIT, NO_ERROR, nothing, LEVEL).seeds_needed)
    empty = judge(Ladder(np.zeros(0), ()), LIMIT, NO_ERROR, WRONG, LEVEL)
    assert np.isnan(empty.seeds_needed)


@pytest.mark.deep
def test_a_rejection_near_the_level_says_so_and_what_would_settle_it():
    found = judged_often(16, 120, 0.006)
    near = [v for v in found if LEVEL / CLEAR <= v.p_value < LEVEL]
    clear = [v for v in found if v.p_value < LEVEL / CLEAR]
    assert len(near) > 10
    assert len(clear) > 5
    assert {v.verdict for v in near} == {"undecided"}
    assert {v.verdict for v in clear} == {"differs"}
    assert all("may be chance" in v.why for v in near)
    assert not any("may be chance" in v.why for v in clear)
    assert all(16 < v.seeds_needed < 300 for v in near)
    assert all(np.isnan(v.seeds_needed) for v in clear)


def test_more_seeds_never_need_more_seeds_than_the_scatter_says():
    runs = Law().draw(np.random.default_rng(3), N, 8)
    test = contrast(runs, np.array([0.0, 0.0, 1.0]), LIMIT, NO_ERROR)
    needed, spread = seeds_that_decide(test, 0.01 * PROFILE, LEVEL, 8)
    # A variance of so many degrees of freedom, at one of the times.
    assert np.abs(spread / needed - np.sqrt(2 / test.dof)).min() < 1e-12
    error, dof = test.error * (8 / needed) ** 0.5, test.dof * (needed - 1) / 7
    then = replace(test, error=error, dof=dof)
    assert then.power(0.01 * PROFILE, LEVEL) == pytest.approx(0.95, abs=1e-3)


def test_open_escape_verdicts_say_how_many_runs_would_do():
    hazard = hazard_of(np.array([0.1, 1.0, 10.0]), np.exp([-0.1, -1.0, -10.0]), 1.0)
    few = judge_escapes(EscapeTimes(np.full(20, 0.1), np.arange(20) < 2), hazard, LEVEL)
    assert few.verdict == "undecided"
    assert few.seeds_needed == pytest.approx(20 * ENOUGH / few.expected)
    close = judge_escapes(EscapeTimes(np.full(200, 0.1), np.arange(200) < 34), hazard, LEVEL)
    assert LEVEL / CLEAR < close.p_value < LEVEL
    assert "may be chance" in close.why
    assert 200 < close.seeds_needed < 2000


def test_no_number_of_seeds_moves_what_lies_within_the_tolerance() -> None:
    """Means of |Q| about a state without overlap are of the size that is allowed for at this n."""
    found = judged(np.array([0.036]), np.array([0.0035]), 0.0926, 59.0, tolerance=0.0671)
    assert (found.whole, found.seeds.item()) == ("undecided", np.inf)
    nearer = judged(np.array([0.012]), np.array([0.0105]), 0.0926, 59.0, tolerance=0.0671)
    assert nearer.whole == "undecided"
    assert 1 < nearer.seeds.item() < 30
