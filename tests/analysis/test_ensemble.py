"""All runs in time: quantiles, first passages and theory, with known laws."""

from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from hdica.analysis.aggregate import aggregate
from hdica.analysis.ensemble.compute import findings
from hdica.analysis.ensemble.figure import ensemble as draw
from hdica.errors import HdicaError
from hdica.report import printed
from hdica.report.interactive import figure
from hdica.show.finding import verdict_of
from hdica.show.words import measurement, symbol, with_error
from hdica.status import PENDING
from hdica.study.study import study_from
from hdica.systems.system import systems
from tests.analysis import ensembles, escapes, toy
from tests.analysis.ensembles import END, LEVEL, RATES, SETTINGS, TIMES, VALUE, crossing
from tests.sweep import toy as cheap

ensemble = toy.computed("ensemble")
PLAIN = {"simulation": "walk", "variable": "tan2"}
WRITTEN = symbol("tan2").plain


def about(data: xr.Dataset, quantity: str) -> list[Any]:
    """Findings whose quantity begins with these words."""
    return [one for one in findings(data) if one.quantity.plain.startswith(quantity)]


@pytest.fixture(scope="module")
def found() -> xr.Dataset:
    return ensemble(ensembles.store(runs=400), SETTINGS)


def test_medians_and_bands_are_those_of_the_runs(found):
    runs = ensembles.walk(runs=400)["tan2"]
    known = runs.median("seed")
    assert found["quantile"].sel(share=0.5).values == pytest.approx(known.values)
    inside = (runs >= found["quantile"].sel(share=0.05)) & (
        runs <= found["quantile"].sel(share=0.95)
    )
    assert float(inside.mean("seed").min()) > 0.89
    assert (found["count"] == 400).all()
    assert found["mean"].values == pytest.approx(runs.mean("seed").values)


def test_first_passages_agree_with_their_law(found):
    for rate in RATES:
        here = found.sel(rate=rate, crossing=VALUE)
        error = (float(here["passage"].sel(share=0.5)) - crossing(rate)) / float(
            here["passage_se"].sel(share=0.5)
        )
        assert abs(error) < 3.5
        wait = ensembles.WAIT * np.exp(ensembles.SPREAD**2 / 2)
        mean = wait + np.log(ensembles.START / VALUE) / rate
        assert abs(float(here["passage_mean"]) - mean) / float(here["passage_mean_se"]) < 3.5
        assert int(here["never"]) == 0


@pytest.mark.deep
def test_intervals_of_first_passages_cover():
    hits = []
    for stream in range(40):
        here = ensemble(
            toy.tree({"walk": ensembles.walk(40, stream)}, {}), {**PLAIN, "crossings": VALUE}
        ).sel(crossing=VALUE)
        for rate in RATES:
            for share in (0.25, 0.5, 0.75):
                at = here.sel(rate=rate, share=share)
                hits.append(
                    float(at["passage_low"]) <= crossing(rate, share) <= float(at["passage_high"])
                )
    error = np.sqrt(0.95 * 0.05 / 80)  # the three quantiles of a draw are not independent
    assert 0.95 - 3 * error < np.mean(hits) < 0.995


def test_a_run_that_never_gets_there_is_later_than_all_others():
    time = TIMES[TIMES <= 7.0]
    short = ensembles.walk(400, time=time)
    here = ensemble(toy.tree({"walk": short}, {}), {**PLAIN, "crossings": [VALUE]}).sel(
        rate=1.0, crossing=VALUE
    )
    late = stats.lognorm(ensembles.SPREAD, scale=ensembles.WAIT).sf(
        7.0 - crossing(1.0) + ensembles.WAIT
    )
    never = int(here["never"])
    assert abs(never - 400 * late) < 3.5 * np.sqrt(400 * late * (1 - late))
    assert never > 60
    score = (float(here["passage"].sel(share=0.5)) - crossing(1.0)) / float(
        here["passage_se"].sel(share=0.5)
    )
    assert abs(score) < 3.5
    # Leaving out those that have not arrived would make the median too early.
    at = here["passed_at"].values
    naive = float(np.nanmedian(at))
    assert naive < crossing(1.0) - 3.5 * float(here["passage_se"].sel(share=0.5))
    assert np.isinf(here["passage_mean"])
    assert np.isinf(here["passage"].sel(share=0.95))


def test_theory_is_within_the_runs_and_wrong_theory_is_not(found):
    end = found.sel(limit="path")
    assert (abs(end["ratio"] - 1) / end["ratio_se"]).max() < 3.5
    assert found["predicted_passage"].sel(limit="path").values.ravel() == pytest.approx(
        [crossing(rate) for rate in RATES], rel=1e-6
    )
    passed = ("passed_by_low", "passed_by_high")
    low, high = (end[name].values.ravel() for name in passed)
    assert ((low < 0.5) & (high > 0.5)).all()
    groups = ensembles.groups(runs=400)
    groups |= {"path": ensembles.path(1.3 * ensembles.WAIT), "still": ensembles.still(1.2 * LEVEL)}
    wrong = ensemble(toy.tree(groups, {}), SETTINGS)
    low = wrong["passed_by_low"].sel(limit="path").values
    assert (low > 0.5).all()
    level = wrong.sel(limit="still, level")
    assert (abs(level["ratio"] - 1) / level["ratio_se"]).min() > 3.5


def test_a_predicted_time_has_the_share_of_runs_that_are_there(found):
    here = found.sel(stage="middle")
    assert ((here["stage_passed_by_low"] < 0.5) & (here["stage_passed_by_high"] > 0.5)).all()
    assert (found["stage_crossing"] == VALUE).all()


def test_bounds_are_raised_to_their_power(found):
    assert (found["bounded"].sel(term="first") == 1.0).all()
    assert found["bounded"].sel(term="second").isel(time=0).values == pytest.approx([0.01, 0.04])
    known = 1.0 / found["quantile"].sel(share=0.5).isel(time=-1)
    assert found["looseness"].sel(term="first").values == pytest.approx(known.values)


def test_a_method_with_n_is_shown_at_its_largest(found):
    groups = {**ensembles.groups(runs=400)}
    groups["walk"] = ensembles.with_n(groups["walk"])
    here = ensemble(toy.tree(groups, {}), SETTINGS)
    assert here.attrs["n"] == 400
    assert "n" not in here.dims
    xr.testing.assert_equal(here["quantile"], found["quantile"])
    groups["path"] = groups["path"].expand_dims(n=[100]).transpose("rate", "n", ...)
    groups["path"].attrs = ensembles.path().attrs
    without = ensemble(toy.tree(groups, {}), SETTINGS)
    assert without["ratio"].sel(limit="path").isnull().all()  # theory for another n is none


def test_diverged_runs_are_no_runs():
    groups = ensembles.groups()
    data = groups["walk"]
    data["status"].values[0, :7] = 2
    data["tan2"].values[0, :7] = np.nan
    data["status"].values[1] = 2
    data["tan2"].values[1] = np.nan
    found = ensemble(toy.tree(groups, {}), SETTINGS)
    assert found["count"].values.tolist() == [ensembles.RUNS - 7, 0]
    assert found["diverged"].values.tolist() == [7, ensembles.RUNS]
    assert found["quantile"].sel(rate=2.0).isnull().all()
    known = ensembles.walk()["tan2"].isel(rate=0, seed=slice(7, None)).median("seed")
    assert found["quantile"].sel(rate=1.0, share=0.5).values == pytest.approx(known.values)
    assert len(draw(found)) == 2
    assert "7 more runs diverged" in draw(found)[0].caption
    assert all(one.place["rate"] == 1.0 for one in findings(found))


def test_many_times_are_thinned_and_passages_are_not():
    time = np.linspace(0.0, END, 3001)
    groups = {"walk": ensembles.walk(time=time), "path": ensembles.path(time=time)}
    given = {**PLAIN, "theory": "path", "crossings": VALUE}
    found = ensemble(toy.tree(groups, {}), given)
    assert found.sizes["time"] == 500
    assert float(found["time"][-1]) == END
    assert found["predicted_passage"].values.ravel() == pytest.approx([crossing(r) for r in RATES])


def test_the_arrival_of_the_median_run_comes_first_and_then_its_end(found):
    first = findings(found)[0]
    assert first.quantity.plain == f"the time after which the median run reaches {WRITTEN} ≤ 1/3"
    assert (first.place, first.unit.plain) == ({"rate": 1.0}, "steps")
    here = found.sel(rate=1.0, crossing=VALUE, share=0.5)
    assert (first.value, first.error) == (float(here["passage"]), float(here["passage_se"]))
    assert first.predicted == pytest.approx(crossing(1.0))
    (end, _) = about(found, f"the median of {WRITTEN}")
    assert end.place == {"rate": 1.0, "t": END}
    assert abs(end.value - LEVEL) < 4 * end.error
    assert end.predicted == pytest.approx(LEVEL)
    (level, _) = about(found, f"the ratio of the median of {WRITTEN} to the prediction (level)")
    assert level.value == float(found["ratio"].sel(rate=1.0, limit="still, level"))
    (bound, _) = about(found, "the ratio of the bound (mean u²)")
    assert bound.value == float(found["looseness"].sel(rate=1.0, term="second"))


ALLOWED = [(1.0, 0.0, "agrees"), (1.3, 0.0, "differs"), (1.3, 0.5, "agrees"), (1.3, 0.1, "differs")]


@pytest.mark.parametrize(("factor", "within", "verdict"), [*ALLOWED, (1.3, 0.235, "undecided")])
def test_a_prediction_may_be_missed_by_what_the_study_allows(factor, within, verdict):
    groups = ensembles.groups(runs=400)
    groups["traversal"]["middle"] = groups["traversal"]["middle"] * factor
    data = ensemble(toy.tree(groups, {}), {**SETTINGS, "within": within})
    arrivals = about(data, "the time after which")
    assert verdict_of(arrivals) == verdict
    assert all(abs(one.value * factor / one.predicted - 1) < 4 * one.error for one in arrivals)
    assert (f"{100 * within:.3g} % off counts as agreement" in arrivals[0].evidence) == (within > 0)


def test_a_theory_wrong_by_the_control_is_not_called_right():
    called = []
    for stream in range(2):
        for runs in (3, 8, 32):
            groups = {"walk": ensembles.walk(runs, stream), "traversal": ensembles.traversal()}
            groups["traversal"]["middle"] = groups["traversal"]["middle"] * 1.11
            asked = {**PLAIN, "crossings": VALUE, "times": "traversal", "stages": "middle"}
            data = ensemble(toy.tree(groups, {}), asked)
            called.append(verdict_of(about(data, "the time after which")))
    assert "agrees" not in called
    assert "undecided" in called


def test_few_runs_decide_nothing_and_say_how_many_would():
    few = findings(ensemble(ensembles.store(runs=20), SETTINGS))
    judged = [one for one in few if one.verdict]
    assert {one.verdict for one in judged} == {"undecided"}
    assert all(20 < one.seeds < 1000 for one in judged)
    alone = findings(ensemble(ensembles.store(runs=1), SETTINGS))
    assert {one.verdict for one in alone if one.verdict} == {"undecided"}
    assert not any(one.error > 0 for one in alone)


def test_without_theory_the_last_level_is_not_judged():
    found = findings(ensemble(toy.tree({"walk": ensembles.walk()}, {}), PLAIN))
    assert [one.quantity.plain for one in found] == [f"the median of {WRITTEN}"] * 2
    assert [one.value for one in found] == pytest.approx([LEVEL] * 2, rel=0.2)
    assert not any(one.verdict for one in found)


def test_several_bounds_are_the_answer_where_nothing_is_timed():
    settings = {**SETTINGS, "crossings": [], "times": None, "stages": []}
    found = findings(ensemble(ensembles.store(), settings))
    assert found[0].quantity.plain.startswith("the ratio of the bound (time of the first passage)")


def test_one_time_has_its_level_and_no_path():
    found = ensemble(toy.tree({"walk": ensembles.walk(time=np.array([30.0]))}, {}), PLAIN)
    assert draw(found) == []
    assert len(findings(found)) == len(RATES)


def test_runs_that_do_not_get_there_leave_their_time_open():
    groups = {**ensembles.groups(), "walk": ensembles.walk(time=TIMES[:60])}
    asked = {**PLAIN, "crossings": [VALUE, 1e-9], "times": "traversal"}
    asked["stages"] = ["middle", "middle"]
    groups["traversal"]["middle"] = 0.9 * groups["traversal"]["middle"]  # before the last time
    data = ensemble(toy.tree(groups, {}), asked)
    shares = about(data, f"the share of runs that reach {WRITTEN} ≤ 1/3")
    reached = data["reached"].sel(rate=1.0, crossing=VALUE)
    assert 0 < reached < 30
    assert shares[0].value == float(reached / 60)
    assert shares[0].low < shares[0].value < shares[0].high
    assert (shares[0].verdict, shares[0].place["rate"]) == ("undecided", 1.0)
    none = about(data, f"the share of runs that reach {WRITTEN} ≤ 10⁻⁹")
    assert [one.value for one in none] == [0.0, 0.0]


def test_times_without_a_unit_of_their_own_are_scaled():
    data = ensembles.walk()
    data["time"].attrs = {"units": "samples per dimension"}
    found = ensemble(toy.tree({"walk": data}, {}), {**PLAIN, "crossings": VALUE})
    assert not findings(found)[0].unit
    assert draw(found)[0].x_label.plain == "t = k/n"


def test_measurements_are_written_to_the_digits_of_their_errors():
    assert measurement(1703456.0, 10234.0) == "(1.703 ± 0.010) × 10⁶"
    assert measurement(1703456.0, 0.0) == "1.703 × 10⁶"
    assert measurement(-0.0001234, 2e-6) == "(−1.234 ± 0.020) × 10⁻⁴"
    assert measurement(12.3456, 0.12) == "12.35 ± 0.12"
    assert measurement(0.00096, 0.003) == "0.0010 ± 0.0030"
    assert measurement(12.3456, np.nan) == "12.35"
    assert measurement(0.0, 0.0) == "0"
    assert measurement(0.7, 5e-17) == "0.7"
    assert with_error(-1e-16, 3e-14) == "−1 × 10⁻¹⁶"
    assert with_error(2.0, 3e-12) == "2.0000000000000 ± 0.0000000000030"
    assert measurement(np.inf, 1.0) == "–"


@pytest.mark.deep
@pytest.mark.parametrize("log", [True, False, "both"])
def test_panels_are_drawn_on_any_axes(found, log):
    here = found.assign_attrs(log=str(log).lower())
    panels = draw(here)
    assert [p.key for p in panels] == ["ensemble_1", "passages_1", "ensemble_2", "passages_2"]
    assert panels[0].log_y == (log is not False)
    assert panels[0].log_x == (log == "both")
    assert panels[0].x_label.plain == "t (steps)"
    for panel in panels[:2]:
        assert printed.files(panel)
        assert figure(panel)
        for item in panel.items:
            drawn = item.y[np.isfinite(item.y)]
            assert not panel.log_y or (drawn > 0).all()
            assert not panel.log_x or (item.x > 0).all()
    labels = [item.label.plain for item in panels[0].items if item.listed]
    for text in (
        "single runs",
        "median, 25–75 %",
        "theory: path",
        "bound: time of the first passage",
        "<cold>",
    ):
        assert text in labels
    assert "&lt;cold&gt;" in [item.label.html for item in panels[0].items]


@pytest.mark.parametrize("log", [True, "both"])
def test_what_a_logarithmic_axis_cannot_show_is_left_out(log):
    groups = {**ensembles.groups(runs=3), "still": ensembles.still(-1.0)}
    down = {**groups, "path": groups["path"].assign(tan2=-groups["path"]["tan2"])}
    both = {**PLAIN, "theory": ["path", "still"], "predicted": ["tan2", "level"], "runs": 0}
    panel = draw(ensemble(toy.tree(down, {}), {**both, "log": log}))[0]
    assert panel.log_y
    assert [item.label.plain for item in panel.items] == ["5–95 % of runs", "median, 25–75 %"]
    never = {**groups, "walk": groups["walk"].assign(tan2=-groups["walk"]["tan2"])}
    panel = draw(ensemble(toy.tree(never, {}), {**both, "log": log}))[0]
    assert not panel.log_y
    assert len(panel.items) == 4
    assert printed.draw(panel)


@pytest.mark.parametrize("times", [[0.0, 30.0], [1.0, 30.0]])
def test_few_times_are_drawn_where_they_are(times):
    time = np.array(times)
    groups = ensembles.groups(runs=5, time=time)
    groups |= {"path": ensembles.path(time=time), "above": ensembles.above(time=time)}
    panel = draw(ensemble(toy.tree(groups, {}), {**SETTINGS, "log": "both"}))[0]
    assert panel.log_x
    shown = {t for t in times if t > 0 or not panel.log_x}
    assert {float(t) for item in panel.items for t in item.x} == shown
    assert printed.draw(panel)


def test_a_level_that_is_not_computed_everywhere_is_a_level():
    level = np.full((2, TIMES.size), LEVEL)
    data = xr.Dataset({"level": (("rate", "time"), level)}, {"rate": RATES, "time": TIMES})
    still = escapes.group(data, "still", {"time"})
    still["status"][0] = PENDING
    here = ensemble(
        toy.tree({**ensembles.groups(runs=3), "still": still}, {}),
        {**PLAIN, "theory": "still", "predicted": "level", "crossings": [VALUE]},
    )
    assert not here["moving"].any()
    assert "predicted_passage" not in here


def test_theory_far_away_does_not_squeeze_the_runs(found):
    groups = {**ensembles.groups(), "still": ensembles.still(1e-30)}
    panel = draw(ensemble(toy.tree(groups, {}), SETTINGS))[0]
    assert panel.y_range is not None
    assert 1e-6 < panel.y_range[0] < LEVEL


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"terms": []}, "terms is missing"),
        ({"bound": None}, "bound is missing"),
        ({"stages": []}, "stages is missing"),
        ({"stages": ["middle", "middle"]}, "stages has 2 outputs, not 1"),
        ({"theory": [], "predicted": ["tan2"]}, "theory is missing"),
        ({"predicted": ["tan2", "level", "tan2"]}, "predicted has 3 outputs"),
        ({"crossings": [1.0, 1.0]}, "a value twice"),
        ({"variable": "tan", "predicted": ["level", "level"]}, "no variable 'tan'"),
        ({"terms": ["third"]}, "no variable 'third'"),
        ({"simulation": "run"}, "no method 'run'"),
    ],
)
def test_refusals_are_one_sentence(settings, words):
    with pytest.raises(HdicaError, match=words):
        ensemble(ensembles.store(), {**SETTINGS, **settings})


def _asked(**settings: Any) -> Any:
    return study_from(cheap.study(analysis={"ensemble": settings})).analysis.ensemble


def test_what_a_study_names_is_checked_before_anything_runs(monkeypatch):
    monkeypatch.setitem(systems(), "Toy", cheap.record(cheap.make()))
    found = _asked(simulation="walk", theory="line", predicted=["Q", "twice"], crossings=0.5)
    assert found.variable == "Q"
    assert found.predictions() == [("line", "Q"), ("line", "twice")]
    assert _asked(simulation="walk", theory="line").predictions() == [("line", "Q")]
    for settings, words in (
        ({"theory": "line", "predicted": "thrice"}, r"theory = 'line' is not allowed \(it has no"),
        ({"bound": "line", "terms": ["Q", "root"]}, "bound = 'line' is not allowed .*'root'"),
        ({"times": "line", "stages": "Q", "crossings": 1}, "it has no 'Q' over no dimension"),
        ({"theory": "walk"}, "one without seeds is needed"),
        ({"simulation": "line"}, "a stochastic method is needed"),
    ):
        with pytest.raises(HdicaError, match=words):
            _asked(**{"simulation": "walk", **settings})


def test_the_study_asks_for_it():
    found = aggregate(ensembles.store())["ensemble"].to_dataset()
    assert all(values.attrs["long_name"] for values in found.data_vars.values())
    assert found["passage"].attrs["units"] == "steps"
    assert found["quantile"].attrs["units"] == "1"
