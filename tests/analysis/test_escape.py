"""Escape times of known laws, with runs that end too early, and theories right and wrong."""

import numpy as np
import pytest
from scipy import stats

from hdica.analysis.aggregate import aggregate
from hdica.analysis.escape.figure import findings
from hdica.errors import HdicaError
from hdica.show.finding import Form
from hdica.verdict.survival import EscapeTimes, count_p, hazard_of, judge_escapes
from tests.analysis import escapes, toy
from tests.analysis.escapes import LADDER, NUS, mean

escape = toy.computed("escape")


@pytest.fixture(scope="module")
def many():
    """Four hundred runs a cell, observed for 6 n^3 steps."""
    return escape(escapes.store(runs=400), escapes.SIMULATED).sel(simulation="escape_times")


def truth(like):
    return like.copy(data=[[mean(nu, n) for n in LADDER] for nu in NUS])


def test_means_agree_within_their_errors_where_runs_escape(many):
    some = many.sel(nu=[0.5, 1.0, 2.0])
    known = truth(many["mean"]).sel(nu=[0.5, 1.0, 2.0])
    error = some["mean"] / np.sqrt(some["escapes"])  # 5 to 7 %
    assert (abs(some["mean"] - known) / error).max() < 3.5
    assert ((some["mean_low"] < some["mean"]) & (some["mean"] < some["mean_high"])).all()
    assert some["escapes"].min() < 300  # censoring matters
    naive = (some["exposure"] / some["runs"] - known) / error
    assert naive.mean() < -3  # the plain mean of the times is too short everywhere


@pytest.mark.parametrize(("runs", "near"), [(400, "within errors of ν = 0.5"), (20_000, "")])
def test_a_least_mean_names_those_that_runs_cannot_tell_from_it(runs, near):
    """The means at ν = 0.5 and 1 differ by 8 %: four hundred runs have errors of 5 %."""
    data = escape(escapes.store(runs=runs), escapes.SIMULATED)
    least = next(one for one in findings(data) if one.form is Form.SMALLEST)
    assert least.place == {"nu": 1.0, "n": 200}
    assert least.evidence == near


def test_medians_and_restricted_means_need_no_law(many):
    some = many.sel(nu=[0.5, 1.0])
    known = truth(many["mean"]).sel(nu=[0.5, 1.0])
    inside = (some["median_low"] <= np.log(2) * known) & (np.log(2) * known <= some["median_high"])
    assert inside.mean() > 0.7  # 95 % intervals, four cells
    restricted = known * (1 - np.exp(-some["longest"] / known))
    error = (some["restricted_high"] - some["restricted"]) / stats.norm.isf(0.025)
    assert (abs(some["restricted"] - restricted) / error).max() < 3.5


def test_no_escape_bounds_the_mean_from_below(many):
    none = many.sel(nu=10.0, n=100)
    assert int(none["escapes"]) == 0
    assert np.isinf(none["mean"])
    exposure = 400 * escapes.END
    assert float(none["mean_low"]) == pytest.approx(2 * exposure / stats.chi2.isf(0.025, 2))
    assert float(none["mean_low"]) < mean(10.0, 100)
    assert np.isinf(none["median"])
    assert none["exponential_p"].isnull()


def test_survival_follows_the_law_inside_its_band(many):
    curve = many["survival"].sel(nu=1.0, n=100)
    law = np.exp(-curve["elapsed"] / mean(1.0, 100))
    error = np.sqrt(law * (1 - law) / 400)
    assert (abs(curve - law) / error).where(law < 0.99).max() < 4.0
    low, high = (many[f"survival_{end}"].sel(nu=1.0, n=100) for end in ("low", "high"))
    inside = ((low <= law) & (law <= high)).where(law < 0.99)
    assert inside.sum() / inside.notnull().sum() > 0.8
    theory = many["theory_survival"].sel(nu=1.0, n=100, limit="escape_diffusion")
    assert theory.values == pytest.approx(law.values, abs=2e-4)


def test_the_rate_is_constant_and_is_said_to_be(many):
    p = many["exponential_p"].sel(nu=[0.5, 1.0, 2.0]).values
    assert p.min() > 0.01 / p.size


def test_a_right_theory_agrees_and_few_expected_escapes_are_undecided(many):
    found = many["verdict"].sel(limit="escape_diffusion")
    assert (found.sel(nu=[0.5, 1.0, 2.0]) == "agrees").all()
    assert (found.sel(nu=10.0) == "undecided").all()
    assert many["expected"].sel(limit="escape_diffusion", nu=10.0).max() < 5


def test_theory_for_infinite_n_is_rejected_where_n_matters(many):
    assert many["at_n"].values.tolist() == [1, 0]
    found = many["verdict"].sel(limit="escape")
    assert found.sel(nu=2.0, n=100) == "differs"
    assert "more slowly" in str(many["why"].sel(limit="escape", nu=2.0, n=100).item())
    assert many.attrs["tests"] == 16


@pytest.mark.parametrize(("error", "word"), [(1.4, "more slowly"), (0.7, "faster")])
def test_a_wrong_theory_is_rejected(error, word):
    found = escape(escapes.store(runs=800, error=error), escapes.SIMULATED).isel(simulation=0)
    here = found.sel(limit="escape_diffusion", nu=[0.5, 1.0, 2.0])
    assert (here["verdict"] == "differs").all()
    assert all(word in why for why in here["why"].values.ravel())


def test_far_too_many_escapes_are_a_difference_even_if_few_were_expected():
    found = escape(escapes.store(error=1e-3), escapes.SIMULATED).isel(simulation=0)
    here = found.sel(limit="escape_diffusion", nu=10.0)
    assert (here["expected"] < 5).all()
    assert (here["verdict"] == "differs").all()


def test_diverged_runs_are_no_runs():
    store = escapes.store()
    store["escape_times"]["status"].values[0, 0, :7] = 2
    store["escape_times"]["first"].values[0, 0, :7] = np.nan
    here = escape(store, escapes.SIMULATED).isel(simulation=0, nu=0, n=0)
    assert (int(here["runs"]), int(here["diverged"])) == (escapes.RUNS - 7, 7)
    left = store["escape_times"]["first"].values[0, 0, 7:]
    assert float(here["exposure"]) == pytest.approx(left.sum())


def test_a_cell_without_a_run_is_undecided():
    store = escapes.store()
    store["escape_times"]["status"].values[1] = 2
    here = escape(store, escapes.SIMULATED).isel(simulation=0, nu=1)
    assert (here["verdict"] == "undecided").all()
    assert set(here["why"].values.ravel()) == {"no run is done"}
    assert here["mean"].isnull().all()
    assert here["survival"].isnull().all()
    assert (here["runs"] == 0).all()


def test_a_run_that_begins_beyond_the_threshold_takes_one_step():
    store = escapes.store()
    store["escape_times"]["first"].values[0, 0, :] = 0.0
    store["escape_times"]["first_seen"].values[0, 0, :] = 1.0
    here = escape(store, escapes.SIMULATED).isel(simulation=0, nu=0, n=0)
    assert float(here["mean"]) == pytest.approx(100.0**-3)


def test_the_last_escape_has_a_mean_but_no_law_in_theory():
    settings = {**escapes.SIMULATED, "event": "last"}
    found = escape(escapes.store(runs=400), settings).isel(simulation=0)
    assert (found["verdict"] == "undecided").all()
    assert "the results have no law of this escape by theory" in found["why"].values.ravel()
    here = found.sel(nu=0.5, n=200)
    assert float(here["theory"].sel(limit="escape_diffusion")) == 3 * mean(0.5, 200)
    ends = escapes.times(runs=400)["last"].sel(nu=0.5, n=200)
    assert float(here["restricted"]) == pytest.approx(float(ends.mean()))
    assert float(here["exponential_p"]) < 1e-3  # the last of two is not exponential
    assert "kramers" not in found


def _with_the_law_of_the_last(**settings):
    """A store whose theories know the larger of two exponential times, of mean 3/2 of one."""
    groups = escapes.groups(runs=400, end=200.0, **settings)
    law = 2 * np.exp(-1.5 * escapes.AGES) - np.exp(-3 * escapes.AGES)
    for name in ("escape_diffusion", "escape"):
        first = groups[name]["survival"]
        groups[name]["survival_last"] = first.copy(data=np.broadcast_to(law, first.shape).copy())
    return toy.tree(groups, {})


def test_the_last_escape_is_compared_with_its_law_where_theory_knows_it():
    settings = {**escapes.SIMULATED, "event": "last"}
    right = escape(_with_the_law_of_the_last(), settings).isel(simulation=0)
    here = right.sel(nu=0.5, n=200, limit="escape_diffusion")
    at = here["elapsed"].values
    m = mean(0.5, 200)
    assert here["theory_survival"].values == pytest.approx(
        2 * np.exp(-at / (2 * m)) - np.exp(-at / m), abs=2e-3
    )
    known = right.sel(nu=[0.5, 1.0, 2.0], limit="escape_diffusion")
    assert (known["verdict"] == "agrees").all()
    wrong = escape(_with_the_law_of_the_last(error=1.4), settings).isel(simulation=0)
    assert (wrong.sel(nu=[0.5, 1.0, 2.0], limit="escape_diffusion")["verdict"] == "differs").all()


def test_the_mean_of_the_last_escape_supposes_no_law():
    settings = {"x": "nu", "simulation": "escape_times", "event": "last"}
    long = escape(escapes.store(runs=400, end=200.0), settings).isel(simulation=0)
    here, known = long.sel(nu=0.5, n=200), 3 * mean(0.5, 200)
    error = float(here["mean_high"] - here["mean"]) / stats.norm.isf(0.025)
    assert int(here["escapes"]) == 400
    assert abs(float(here["mean"]) - known) / error < 3.5
    short = escape(escapes.store(runs=400), settings).isel(simulation=0).sel(nu=0.5, n=200)
    assert np.isinf(short["mean"])
    assert float(short["mean_low"]) == float(short["restricted_low"]) < known
    # The rate of the last of two escapes grows: exposure over escapes would be far off.
    wrong = float(short["exposure"] / short["escapes"])
    assert abs(wrong - known) > 5 * known / np.sqrt(float(short["escapes"]))


def test_of_one_projection_the_last_escape_is_the_first():
    groups = escapes.groups(runs=400)
    for name in ("escape_diffusion", "escape"):
        groups[name] = groups[name].isel(projection=[0])
        groups[name]["mean_last"] = groups[name]["mean"]
    data = groups["escape_times"]
    groups["escape_times"] = data.assign(last=data["first"], last_seen=data["first_seen"])
    store = toy.tree(groups, {})
    first = escape(store, escapes.SIMULATED)
    last = escape(store, {**escapes.SIMULATED, "event": "last"})
    assert last["p_value"].values == pytest.approx(first["p_value"].values)


def test_kramers_is_that_of_the_pair_that_escapes_first(many):
    known = [2 * mean(nu) for nu in NUS]
    assert many["kramers"].values == pytest.approx(known)
    assert many["printed"].values == pytest.approx(np.sqrt(known))


def test_theory_alone_and_simulation_alone():
    alone = escape(escapes.store(), {"x": "nu", "limits": ["escape"]})
    assert alone["theory"].dims == ("limit", "nu")
    assert "runs" not in alone
    assert "verdict" not in alone
    bare = escape(escapes.store(), {"x": "nu", "simulation": "escape_times"})
    assert "theory" not in bare
    assert "verdict" not in bare
    assert bare.attrs["tests"] == 0


def test_a_theory_without_one_n_of_the_runs_is_silent_there():
    groups = escapes.groups()
    groups["escape_diffusion"] = escapes.theory("escape_diffusion", [200])
    found = escape(toy.tree(groups, {}), escapes.SIMULATED).isel(simulation=0)
    here = found.sel(limit="escape_diffusion", nu=1.0)
    assert str(here["why"].sel(n=100).item()) == "the results have no law of this escape by theory"
    assert str(here["verdict"].sel(n=200).item()) == "agrees"
    assert found.attrs["tests"] == 12


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"x": "mu"}, "'mu' is not a swept parameter"),
        ({"x": None}, "analysis.escape.x is missing"),
        ({"simulation": "chain"}, "no method 'chain'"),
    ],
)
def test_refusals_are_one_sentence(settings, words):
    with pytest.raises(HdicaError, match=words):
        escape(escapes.store(), {**escapes.SIMULATED, **settings})


def test_words_on_the_axis_are_refused():
    wordy = escapes.times().assign_coords(nu=list("abcd"))
    with pytest.raises(HdicaError, match="its values must be numbers"):
        escape(toy.tree({"escape_times": wordy}, {}), {"x": "nu", "simulation": "escape_times"})


def test_hazards_between_and_beyond_the_ages():
    law = stats.gamma(2.0, scale=0.5)  # mean 1
    hazard = hazard_of(escapes.AGES, law.sf(escapes.AGES), 3.0)
    times = np.geomspace(0.02, 24, 60)
    assert np.exp(-hazard(times)) == pytest.approx(law.sf(times / 3), abs=2e-4)
    assert hazard(np.array([0.0])) == 0
    beyond = np.array([24.0, 30.0, 36.0])
    steps = np.diff(hazard(beyond))
    assert steps[0] == pytest.approx(steps[1])  # a constant rate
    assert steps[0] == pytest.approx(6 / 3 * 2 * 8 / 8.5, rel=0.01)


def test_hazards_of_nothing():
    assert hazard_of(escapes.AGES, np.exp(-escapes.AGES), np.nan) is None
    assert hazard_of(escapes.AGES, np.full(escapes.AGES.size, np.nan), 1.0) is None
    never = hazard_of(escapes.AGES, np.full(escapes.AGES.size, np.nan), np.inf)
    assert never(np.array([1e9])) == 0
    runs = EscapeTimes(np.ones(9), np.zeros(9, bool))
    assert judge_escapes(runs, never, 0.01).verdict == "undecided"
    seen = EscapeTimes(np.ones(9), np.arange(9) < 1)
    assert judge_escapes(seen, never, 0.01).verdict == "differs"
    swift = hazard_of(escapes.AGES, np.exp(-escapes.AGES), 1e-9)  # beyond float64's survival
    assert judge_escapes(runs, swift, 0.01).verdict == "differs"


def test_counts_of_complete_runs_have_exact_p_values():
    for observed, expected in ((7, 4.0), (7, 7.0), (7, 12.0)):
        tails = stats.gamma(observed).cdf(expected), stats.gamma(observed).sf(expected)
        assert count_p(observed, expected, True) == pytest.approx(2 * min(tails))
    assert count_p(0, 0.0, False) == 1.0


@pytest.mark.parametrize("end", [0.3, 1.0])
def test_counts_of_censored_runs_reject_no_more_often_than_they_say(end):
    rng, level, trials = np.random.default_rng(3), 0.05, 4000
    drawn = rng.exponential(size=(trials, 30))
    escaped, clock = drawn <= end, np.minimum(drawn, end).sum(axis=1)
    p = [count_p(int(e.sum()), float(c), False) for e, c in zip(escaped, clock, strict=True)]
    rate, error = np.mean(np.array(p) < level), np.sqrt(level * (1 - level) / trials)
    assert 0.2 * level < rate < level + 3 * error


def test_the_study_asks_for_it():
    found = aggregate(escapes.store())
    assert found["escape"].attrs["x"] == "nu"
    for values in found["escape"].data_vars.values():
        assert values.attrs["long_name"]
    assert found["escape"]["mean"].attrs["units"] == "n^3 steps"
    assert found["escape"]["p_value"].attrs["units"] == "1"
