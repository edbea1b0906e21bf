"""Where runs succeed: shares, the boundary of even odds, its power, and what bounds neither."""

import numpy as np
import pytest
import xarray as xr
from scipy import special, stats

from hdica.analysis.phase.success import _laws, event, findings, panels
from hdica.errors import HdicaError
from hdica.show.finding import Form
from hdica.show.panel import Heat, Line, Points
from hdica.show.words import symbol
from hdica.status import DIVERGED, PENDING
from hdica.verdict.cells import WRONG
from hdica.verdict.odds import _crossing, even_odds
from tests.analysis import powers, toy
from tests.report.shown import of

EVEN = f"{symbol('kappa').plain} at which half of the runs have {symbol('tan2').plain} ≤ 1/3"
LAWS = {"flat": 0.0, "right": powers.BOUNDARY, "<b>steep</b>": 1.0}

success = toy.computed("success")


def measured(data, **changes):
    return success(toy.tree({"start": data}, {}), {**powers.EVENT, **changes})


@pytest.fixture(scope="module")
def runs():
    return powers.start(np.random.default_rng(4))


@pytest.fixture(scope="module")
def found(runs):
    return measured(runs)


def test_shares_have_wilson_intervals(runs, found):
    k = (runs["tan2"].values < 1 / 3).sum(axis=-1)
    assert (found["successes"].values == k).all()
    assert (found["trials"] == 24).all()
    ci = stats.binomtest(int(k[1, 4]), 24).proportion_ci(0.95, method="wilson")
    assert float(found["probability_low"][1, 4]) == pytest.approx(ci.low)
    assert float(found["probability_high"][1, 4]) == pytest.approx(ci.high)


@pytest.mark.deep
@pytest.mark.parametrize("seeds", [12, 48])
def test_intervals_cover_the_boundary_and_its_power_and_not_others(seeds):
    rng = np.random.default_rng(21)
    truth = np.array(powers.D, dtype=float) ** powers.BOUNDARY
    at, power, wrong = [], [], []
    for _ in range(60):
        data = measured(powers.start(rng, seeds))
        low, high = (data[f"boundary_{end}"].values for end in ("low", "high"))
        at.append((low <= truth) & (truth <= high))
        ends = [float(data[f"exponent_{end}"]) for end in ("low", "high")]
        power.append(ends[0] <= powers.BOUNDARY <= ends[1])
        wrong.append(ends[0] <= powers.BOUNDARY + 1 <= ends[1])
    assert np.mean(at) > 0.95 - 3 * (0.95 * 0.05 / 240) ** 0.5
    assert np.mean(power) > 0.95 - 3 * (0.95 * 0.05 / 60) ** 0.5
    assert np.mean(wrong) < 0.05


@pytest.mark.parametrize(("steep", "seeds"), [(1.0, 12), (2.0, 96), (6.0, 24), (40.0, 12)])
def test_even_odds_are_covered_for_flat_and_for_steep_rises(steep, seeds):
    rng = np.random.default_rng(22)
    z = np.log(np.geomspace(0.1, 10.0, 9))
    truth = rng.uniform(-1.2, 1.2, 300)
    hits = rng.binomial(seeds, special.expit(steep * (z - truth[:, None])))
    odds = even_odds(z, hits, np.full_like(hits, seeds))
    known = np.isfinite(odds.at)
    assert known.mean() > 0.95
    miss = np.abs(odds.at - truth)[known] / odds.error[known]
    assert np.mean(miss < 1.96) > 0.95 - 3 * (0.95 * 0.05 / 300) ** 0.5
    # A jump between two values may be anywhere between them.
    assert np.median(odds.error[known]) < (0.25 if steep > 1 else 0.5)


@pytest.mark.parametrize("seeds", [24, 96])
def test_even_odds_are_covered_for_rises_that_are_not_symmetric(seeds):
    rng = np.random.default_rng(24)
    z = np.log(np.geomspace(0.1, 10.0, 9))
    truth = rng.uniform(-1.2, 1.2, 300)
    p = np.exp(-np.log(2) * np.exp(-0.7 * (z - truth[:, None])))
    hits = rng.binomial(seeds, p)
    trials = np.full_like(hits, seeds)
    odds = even_odds(z, hits, trials)
    known = np.isfinite(odds.at)
    covered = (np.abs(odds.at - truth) < 1.96 * odds.error)[known].mean()
    assert covered > 0.88
    # A straight line would be sure of a place that is wrong.
    at, variance, *_ = _crossing(z, hits.astype(float), trials.astype(float), 2)
    assert (np.abs(at - truth) < 1.96 * np.sqrt(variance)).mean() < covered - 0.02


def test_a_falling_share_has_even_odds_too():
    z = np.linspace(-2.0, 2.0, 9)
    hits = np.round(40 * special.expit(-3 * (z - 0.4)))[None]
    odds = even_odds(z, hits, np.full_like(hits, 40))
    assert float(odds.at[0]) == pytest.approx(0.4, abs=0.05)
    assert float(odds.slope[0]) == pytest.approx(-3.0, rel=0.25)


@pytest.mark.parametrize(
    "shares",
    [[0, 0, 0, 0, 0.3], [0.6, 0.9, 1, 1, 1], [0.5, 0.5, 0.5, 0.5, 0.5], [0.6, 0.4, 0.6, 0.4, 0.55]],
)
def test_even_odds_are_not_claimed_where_the_shares_do_not_bracket_them(shares):
    hits = np.round(20 * np.array([shares]))
    odds = even_odds(np.arange(5.0), hits, np.full_like(hits, 20))
    assert np.isnan([odds.at[0], odds.error[0], odds.slope[0]]).all()


def test_shares_that_no_curve_fits_widen_the_error():
    z = np.arange(9.0)
    smooth = np.round(100 * special.expit(1.5 * (z - 4.2)))[None]
    rough = smooth.copy()
    rough[0, 6:] = 70
    errors = [even_odds(z, hits, np.full_like(hits, 100)).error[0] for hits in (smooth, rough)]
    assert errors[1] > 1.5 * errors[0]


def test_values_without_runs_change_nothing():
    z = np.arange(6.0)
    hits = np.array([[0.0, 2, 5, 9, 12, 12]])
    full = even_odds(z, hits, np.full_like(hits, 12))
    more = np.insert(z, 3, 2.5)
    trials = np.insert(np.full_like(hits, 12), 3, 0, axis=1)
    part = even_odds(more, np.insert(hits, 3, 0, axis=1), trials)
    assert part.at == pytest.approx(full.at)
    assert part.error == pytest.approx(full.error)


def test_diverged_runs_are_failures_and_pending_ones_are_none(runs, found):
    part = runs.copy(deep=True)
    part["tan2"].values[0, 8, :10] = np.nan
    part["status"].values[0, 8, :10] = DIVERGED
    part["tan2"].values[1, 8, :6] = np.nan
    part["status"].values[1, 8, :6] = 0
    data = measured(part)
    good = (runs["tan2"].values < 1 / 3)[:, 8]
    assert int(data["successes"][0, 8]) == good[0, 10:].sum()
    assert int(data["trials"][0, 8]) == 24
    assert int(data["trials"][1, 8]) == 18
    assert int(data["diverged"].sum()) == 10
    assert "Diverged runs count as failures." in panels(data)[0].caption
    assert "Diverged" not in panels(found)[0].caption


def test_the_power_of_the_boundary_comes_first_and_then_its_values(found):
    first, *others = findings(found)
    assert (first.quantity.plain, first.base.plain) == (f"the {EVEN}", "d")
    assert (first.form, first.verdict) == (Form.POWER, "")
    assert (first.value, first.error) == (float(found["exponent"]), float(found["exponent_error"]))
    assert [one.quantity.plain for one in others] == [f"the {EVEN}"] * 4
    assert [one.place for one in others] == [{"d": d} for d in powers.D]
    assert [one.value for one in others] == found["boundary"].values.tolist()
    error = found["boundary"] * found["boundary_error"]
    assert [one.error for one in others] == pytest.approx(error.values)


@pytest.mark.parametrize(("seeds", "verdict"), [(400, "agrees"), (12, "undecided")])
def test_the_nearest_law_is_judged_with_a_control_half_way_to_the_next(seeds, verdict):
    data = measured(powers.start(np.random.default_rng(7), seeds), powers=LAWS)
    laws = {one.theory.plain: one for one in findings(data) if one.theory.plain in LAWS}
    assert {name: one.predicted for name, one in laws.items()} == LAWS
    assert laws["right"].verdict == verdict
    assert laws["<b>steep</b>"].verdict == ""
    assert "standard errors off" in laws["<b>steep</b>"].evidence
    assert "<b>" not in laws["<b>steep</b>"].theory.html
    assert "control: a power off by 0.15" in laws["right"].evidence
    assert laws["right"].quantity.plain == f"the power of d in the {EVEN}"


def test_the_truth_half_way_between_two_laws_is_neither():
    laws = {"wrong": 0.0, "other": 2 * powers.BOUNDARY}  # the truth is half-way between the two
    data = measured(powers.start(np.random.default_rng(8), 200), powers=laws)
    assert "agrees" not in {one.verdict for one in findings(data)}


@pytest.mark.parametrize(
    ("least", "verdict"), [(0.4, "agrees"), (0.0, "agrees"), (-0.4, "differs")]
)
def test_a_law_that_says_at_most_is_off_only_where_the_power_is_larger(least, verdict):
    bounds = {"law 0": f"<= {powers.BOUNDARY + least:.2f}"}
    bounds |= {"law 1": "<= 1"} if least >= 0 else {}  # the nearest of several is judged
    data = measured(powers.start(np.random.default_rng(7), 400), powers=bounds)
    laws = [one for one in findings(data) if one.theory.plain.startswith("law")]
    assert [one.verdict for one in laws] == [verdict, *[""] * (len(bounds) - 1)]
    number = f"{powers.BOUNDARY + least:.3g}".replace("-", "−")
    assert laws[0].theory.plain == f"law 0 (at most {number})"
    assert np.isnan(laws[0].predicted)


@pytest.mark.parametrize("wrong", ["<", "<= d", ">= 1"])
def test_a_law_is_a_number_or_at_most_one(wrong):
    with pytest.raises(HdicaError, match=r"is not allowed \(a number, or '<= 0'"):
        measured(powers.start(np.random.default_rng(7), 4), powers={"law": wrong})


def test_values_of_x_without_a_boundary_are_counted(runs):
    part = runs.copy(deep=True)
    part["tan2"].values[0] = 5.0
    part["tan2"].values[3] = 0.1
    *others, missing = findings(measured(part))
    assert missing.quantity.plain == "the number of values of d, of 4, without even odds"
    assert missing.value == 2
    assert {one.place.get("d") for one in others} == {None, 20, 40}
    part["tan2"].values[:] = 5.0
    part["tan2"].values[1, 2, :6] = 0.1
    nowhere = measured(part)
    largest, least, missing = findings(nowhere)
    assert (largest.form, least.form) == (Form.LARGEST, Form.SMALLEST)
    assert largest.place == {"d": 20, "kappa": powers.KAPPAS[2]}
    assert (largest.value, least.value, missing.value) == (0.25, 0.0, 4)
    assert largest.low < 0.25 < largest.high
    assert len(panels(nowhere)) == 2
    assert np.isnan(float(nowhere["exponent"]))


def test_what_is_not_done_and_what_is_not_settled_is_neither_failure_nor_success(runs):
    part = runs.copy(deep=True)
    part["status"].values[0] = PENDING
    assert findings(measured(part))[-1].value == 1
    part["status"].values[:] = PENDING
    (missing,) = findings(measured(part))
    assert missing.value == 4
    assert findings(measured(runs.isel(seed=[0])))[-1].value == 4


def test_above_is_the_opposite_of_below_and_time_is_the_last(runs, found):
    late = runs.copy(deep=True)
    late["tan2"] = late["tan2"].expand_dims(time=[0.0, 7.0], axis=-1).copy()
    late["tan2"].values[..., 0] = 99.0
    timed = measured(late)
    assert timed["successes"].equals(found["successes"])
    assert timed.attrs["time"] == 7
    above = measured(runs, below=None, above=1.0)
    assert (above["successes"] == 24 - found["successes"]).all()
    assert above["boundary"].values == pytest.approx(found["boundary"].values, rel=1e-6)
    assert event(above).plain == f"{symbol('tan2').plain} ≥ 1"


def test_a_dimension_n_changes_nothing_and_other_parameters_have_a_map_each(runs, found):
    data = measured(powers.with_n(runs))
    assert data["boundary"].isel(n=0).values == pytest.approx(found["boundary"].values)
    assert findings(data)[0].place == {"n": 100}
    again = runs.expand_dims(T=[10.0, 20.0]).transpose("d", "kappa", "T", "seed")
    both = measured(again.assign_attrs(runs.attrs))
    assert both["exponent"].dims == ("T",)
    assert [p.key for p in panels(both)] == [
        *("success_1", "success_slices_1", "success_2", "success_slices_2"),
    ]


def test_every_map_is_judged_however_many_are_drawn():
    rng = np.random.default_rng(5)
    many = [powers.start(rng, 100) for _ in range(5)]
    for k in (1, 3):
        many[k] = many[k].assign_coords(d=many[k]["d"].values[::-1]).sortby("d")
    five = xr.concat(many, xr.DataArray(np.arange(5.0), dims="T", name="T"))
    five = five.transpose("d", "kappa", "T", "seed").assign_attrs(many[0].attrs)
    data = measured(five, powers={"right": powers.BOUNDARY})
    judged = [one.verdict for one in findings(data) if one.theory.plain == "right"]
    assert [one == "differs" for one in judged] == [False, True, False, True, False]
    assert len(panels(data)) == 6


def test_the_order_of_values_does_not_matter(runs, found):
    mixed = runs.isel(kappa=[3, 0, 8, 1, 2, 7, 6, 4, 5], d=[2, 0, 3, 1])
    data = measured(mixed)
    assert data["boundary"].values == pytest.approx(found["boundary"].values)
    assert data["probability"].equals(found["probability"])


@pytest.mark.deep
def test_shared_noise_has_errors_over_whole_seeds():
    rng = np.random.default_rng(23)
    at, power = [], []
    truth = np.array(powers.D, dtype=float) ** powers.BOUNDARY
    for _ in range(30):
        data = powers.start(rng, 24)
        luck = rng.random(24)  # of a seed, the same at every point
        data["tan2"].values[:] = np.where(luck < powers.probability()[..., None], 0.1, 5.0)
        data.attrs["noise"] = "shared"
        one = measured(data)
        at.append((one["boundary_low"].values <= truth) & (truth <= one["boundary_high"].values))
        power.append(float(one["exponent_error"]))
    assert np.mean(at) > 0.75  # four boundaries of one seed's luck rise and fall together
    own = measured(powers.start(rng, 24))
    assert np.nanmedian(power) < float(own["exponent_error"])


def test_the_map_has_numbers_a_boundary_and_its_bars(found):
    chart, slices = panels(found)
    assert (chart.key, slices.key) == ("success", "success_slices")
    heat = of(chart, Heat)[0]
    assert heat.z == pytest.approx(found["probability"].values.T)
    assert heat.written[8][0] == f"{float(found['probability'][0, 8]):.2f}"
    (dots,) = of(chart, Points)
    assert dots.y == pytest.approx(found["boundary"].values)
    law, bars = of(chart, Line)
    assert bars.y[:2] == pytest.approx([float(found[f"boundary_{e}"][0]) for e in ("low", "high")])
    assert np.isnan(bars.y[2])
    slope = np.diff(np.log(law.y)) / np.diff(np.log(law.x))
    assert slope == pytest.approx(np.full(3, float(found["exponent"])))
    marks, curves = of(slices, Points), of(slices, Line)
    assert [m.label.plain for m in marks] == ["d = 10", "d = 20", "d = 40", "d = 80"]
    half = np.interp(0.5, curves[0].y, np.log(curves[0].x))
    assert half == pytest.approx(np.log(float(found["boundary"][0])), abs=0.02)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"above": 1.0}, "exactly one"),
        ({"below": None}, "exactly one"),
        ({"y": "d"}, "it is x already"),
        ({"y": "T"}, "'T' is not a swept parameter"),
    ],
)
def test_what_cannot_be_asked_is_refused(runs, changes, message):
    with pytest.raises(HdicaError, match=message):
        measured(runs, **changes)


def test_half_way_between_two_laws_the_nearer_is_rarely_said_to_agree():
    rng, many = np.random.default_rng(0), 500
    about = {"laws": '{"one": 0.0, "other": 0.5}', "x": "d", "y": "kappa"}
    about |= {"variable": "tan2", "below": 0.3}
    agreed = 0
    for _ in range(many):
        runs = {"exponent": 0.25 + 0.1 * rng.standard_normal(), "exponent_error": 0.1, "trials": 9}
        data = xr.Dataset({k: ("p", [v]) for k, v in runs.items()}, {"p": [0]}, about)
        agreed += any(one.verdict == "agrees" for one in _laws(data, [{"p": 0}]))
    assert agreed / many < WRONG + 3 * (WRONG * (1 - WRONG) / many) ** 0.5
