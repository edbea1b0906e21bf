import numpy as np
import pytest

from hdica.verdict.ladder import Ladder
from hdica.verdict.trajectory import BLIND, FIXED, STILL, judge
from tests.analysis.known import LIMIT, NO_ERROR, PROFILE, Law

N = [100, 300, 1000, 3000]
WRONG = LIMIT + 0.02 * PROFILE


def verdicts(law, n, seeds, control, repeats, level=0.01):
    rng = np.random.default_rng(11)
    draws = [law.draw(rng, n, seeds) for _ in range(repeats)]
    return [judge(d, LIMIT, NO_ERROR, control, level) for d in draws]


@pytest.mark.deep
@pytest.mark.parametrize(("n", "seeds"), [(N, 10), (N, 48), ([1000], 10)])
def test_false_alarms_are_as_rare_as_stated(n, seeds):
    law = Law(c=3.0 if len(n) > 1 else 0.0)
    p = np.array([v.p_value for v in verdicts(law, n, seeds, WRONG, 300)])
    # Three binomial standard errors above the level.
    for level in (0.05, 0.2):
        assert (p < level).mean() < level + 3 * np.sqrt(level * (1 - level) / 300)


def test_truth_agrees_and_its_control_is_rejected():
    found = verdicts(Law(), N, 32, WRONG, 40)
    assert sum(v.verdict == "agrees" for v in found) >= 38
    assert min(v.power for v in found) > 0.9


def test_a_simulation_that_tends_elsewhere_differs():
    found = verdicts(Law(shift=0.02), N, 32, LIMIT + 0.04 * PROFILE, 20)
    assert all(v.verdict == "differs" for v in found)


def test_too_few_seeds_cannot_tell():
    found = verdicts(Law(), N, 6, LIMIT + 0.002 * PROFILE, 20, level=1e-4)
    assert all(v.verdict == "undecided" for v in found)
    assert all("would not have been rejected" in v.why for v in found)
    assert max(v.power for v in found) < 0.2


def test_power_is_the_share_of_rejected_controls():
    control = LIMIT + 0.006 * PROFILE
    found = verdicts(Law(), N, 24, control, 200)
    rejected = np.mean([v.control_rejected for v in found])
    power = np.mean([v.power for v in found])
    assert 0.1 < rejected < 0.98
    assert power - 0.15 < rejected < power + 0.3  # power counts the most telling time alone


def test_a_single_n_cannot_prove_a_difference():
    rng = np.random.default_rng(1)
    found = judge(Law(shift=0.1).draw(rng, [1000], 16), LIMIT, NO_ERROR, WRONG, 0.01)
    assert found.verdict == "undecided"
    assert "single n" in found.why


def test_no_control_no_agreement():
    rng = np.random.default_rng(1)
    nothing = np.full_like(LIMIT, np.nan)
    found = judge(Law().draw(rng, N, 16), LIMIT, NO_ERROR, nothing, 0.01)
    assert found.verdict == "undecided"
    assert np.isnan(found.control_p)


def test_no_finished_seeds_is_undecided():
    found = judge(Ladder(np.zeros(0), ()), LIMIT, NO_ERROR, WRONG, 0.01)
    assert (found.verdict, found.n_count) == ("undecided", 0)


def test_the_finite_n_term_is_recovered():
    found = verdicts(Law(c=20.0), [300, 1000, 3000], 32, WRONG, 60)
    z = [
        (v.coefficient - 20 * PROFILE)[1:] / v.coefficient_error[1:]
        for v in found
        if v.n_count == 3
    ]
    assert np.abs(np.mean(z)) < 0.35
    assert 0.85 < np.std(z) < 1.15


def test_small_n_beyond_the_expansion_are_dropped_not_blamed_on_the_limit():
    rng = np.random.default_rng(4)
    good = Law(sigma=0.2).draw(rng, [1000, 3000, 10000, 30000], 24)
    bad = Law(c=0.0, shift=0.3, sigma=0.2).draw(rng, [20, 50, 100], 24)
    runs = Ladder(np.concatenate([bad.n, good.n]), (*bad.runs, *good.runs))
    found = judge(runs, LIMIT, NO_ERROR, WRONG, 0.01)
    assert found.n_from > 20
    assert found.verdict == "agrees"


def test_solver_error_is_granted():
    rng = np.random.default_rng(2)
    runs = Law(shift=0.01, sigma=0.05).draw(rng, N, 16)
    assert judge(runs, LIMIT, NO_ERROR, WRONG, 0.01).p_value < 1e-6
    assert judge(runs, LIMIT, 0.012 + NO_ERROR, WRONG, 0.01).p_value > 0.01


def at_one_value(off):
    """Runs that scatter about their limit at all times but the last, where all have one value."""
    runs = Law().draw(np.random.default_rng(5), N, 32)
    for values in runs.runs:
        values[:, -1] = LIMIT[-1] + off
    return judge(runs, LIMIT, NO_ERROR, WRONG, 0.01)


def test_runs_that_do_not_scatter_agree_with_nothing_from_which_they_are_off():
    assert at_one_value(0.0).verdict == "agrees"
    near, far = at_one_value(1e-5), at_one_value(0.3)  # within a term of order 1/n, and beyond it
    assert (near.verdict, near.why) == ("undecided", FIXED)
    assert (far.verdict, far.p_value) == ("differs", 0.0)


def test_what_no_drift_moves_is_told_from_what_a_limit_cannot_tell():
    runs = Law().draw(np.random.default_rng(5), N, 32)
    assert judge(runs, LIMIT, NO_ERROR, LIMIT, 0.01).why == STILL
    unsure = judge(runs, LIMIT, np.ones_like(LIMIT), WRONG, 0.01)
    assert (unsure.verdict, unsure.why) == ("undecided", BLIND)
    assert np.isinf(unsure.seeds_needed)
