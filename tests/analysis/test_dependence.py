"""Means along a swept parameter beside theory: intervals, predictions, figures and findings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from pydantic import ValidationError

from hdica.analysis.dependence import Dependence
from hdica.analysis.dependence.dependence import dependence as compute
from hdica.analysis.dependence.dependence import findings, with_verdicts
from hdica.analysis.dependence.dependence import panels as drawn
from hdica.show.finding import Finding, Form, verdict_of
from hdica.show.panel import Line, Points
from hdica.status import FAILED
from tests.analysis import powers, toy

SIGMA = 0.5
MEAN = np.exp(SIGMA**2 / 2)
"""Mean of a log-normal factor of median 1."""


def found(groups: dict[str, xr.Dataset] | None = None, **asked: Any) -> xr.Dataset:
    given = {"theory": "bounds", **asked}
    own = {
        "training": powers.training(np.random.default_rng(7), 64, SIGMA),
        "bounds": powers.theory(3.0 * MEAN),
    }
    settings = Dependence(**{**powers.ALONG, **given})
    return compute(toy.tree({**own, **(groups or {})}, {}), settings)


def test_means_have_student_intervals_over_seeds_and_a_difference_to_theory():
    data = found()
    runs = powers.training(np.random.default_rng(7), 64, SIGMA)["tan2"]
    here = data.sel(simulation="training", output="tan2")
    np.testing.assert_allclose(here["mean"], runs.mean("seed"))
    np.testing.assert_allclose(here["se"], runs.std("seed", ddof=1) / 8)
    np.testing.assert_allclose((here["high"] - here["mean"]) / here["se"], 1.998, atol=1e-3)
    np.testing.assert_allclose(here["difference"], here["mean"] - powers.law() * MEAN)
    assert (here["seeds"] == 64).all()


@pytest.mark.deep
def test_intervals_cover_the_truth_as_often_as_they_say():
    hits = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        data = found({"training": powers.training(rng, 12, 0.1)}, theory=None)
        truth = powers.law() * np.exp(0.1**2 / 2)
        here = data.sel(simulation="training", output="tan2")
        hits.append((here["low"].values <= truth) & (truth <= here["high"].values))
    share = np.mean(hits)
    assert abs(share - 0.95) < 4 * np.sqrt(0.95 * 0.05 / np.size(hits))


def test_failed_runs_are_left_out_and_counted():
    data = powers.training(np.random.default_rng(1), 8, SIGMA)
    data["status"][0, 0, :7] = FAILED
    out = found({"training": data})
    here = out.sel(simulation="training", output="tan2").isel(d=0, T=0)
    assert int(here["seeds"]) == 1
    assert np.isnan(float(here["se"]))
    assert int(here["diverged"]) == 7
    alone = next(one for one in findings(out) if one.place == {"d": 10, "T": 1e3})
    assert (alone.verdict, alone.evidence) == ("undecided", "one seed has no error")


def test_further_outputs_have_panels_and_theories_of_their_own():
    data = powers.training(np.random.default_rng(7), 16, SIGMA)
    data = data.assign(half=data["tan2"] / 2)
    theory = powers.theory(3.0 * MEAN)
    theory = theory.assign(below=theory["tan2"] / 2)
    out = found({"training": data, "bounds": theory}, beside="half", predicted=["tan2", "below"])
    np.testing.assert_allclose(
        out["difference"].sel(output="half"), out["difference"].sel(output="tan2") / 2
    )
    assert [panel.key for panel in drawn(out)] == [
        "dependence_tan2", "dependence_difference_tan2",
        "dependence_half", "dependence_difference_half",
    ]  # fmt: skip


def test_titles_begin_with_a_capital_letter_unless_with_a_symbol():
    data = powers.training(np.random.default_rng(7), 16, SIGMA)
    data = data.assign(correlation=data["tan2"])
    out = found({"training": data}, beside="correlation", predicted=["tan2", "tan2"])
    assert [panel.title.plain.split(" against")[0] for panel in drawn(out)[::2]] == [
        "tan² ∠",
        "Correlation",
    ]


def test_a_theory_that_all_curves_share_has_the_colour_of_none():
    def colours(theory: xr.Dataset) -> list[str]:
        panel = drawn(found({"bounds": theory}))[0]
        return [item.color for item in panel.items if isinstance(item, Line)]

    theory = powers.theory(3.0 * MEAN)
    assert len(set(colours(theory)) - {"ink"}) == len(powers.D) > 1
    law = theory["tan2"]
    shared = law.isel(d=0, drop=True).broadcast_like(law).transpose(*law.dims)
    assert colours(theory.assign(tan2=shared)) == ["ink"]


def test_what_is_drawn_is_what_was_computed():
    data = found(levels={"chance": 0.25})
    data.attrs |= {k: data.attrs[k][0] for k in ("levels", "level_names")}  # as read from a file
    panel, difference = drawn(data)
    points = [item for item in panel.items if isinstance(item, Points)]
    lines = [item for item in panel.items if isinstance(item, Line)]
    assert len(points) == len(powers.D)
    assert len(lines) == len(powers.D) + 1
    assert panel.log_x
    assert panel.log_y
    np.testing.assert_allclose(points[0].y, data["mean"].isel(d=0).values.ravel())
    np.testing.assert_allclose(points[0].x, powers.T)
    level = next(line for line in lines if line.label.plain == "chance")
    np.testing.assert_allclose(level.y, 0.25)
    assert not difference.log_y


def test_every_point_is_a_finding_with_its_prediction_and_a_wrong_theory_differs():
    data = found()
    first, *_ = right = findings(data)
    assert len(right) == len(powers.D) * len(powers.T)
    here = data.sel(simulation="training", output="tan2", d=10, T=1e3)
    assert first.place == {"d": 10, "T": 1e3}
    assert first.quantity.plain == "mean tan² ∠"
    assert (first.value, first.error) == (float(here["mean"]), float(here["se"]))
    assert first.predicted == pytest.approx(powers.law(3.0 * MEAN)[0, 0])
    assert "differs" not in {one.verdict for one in right}
    wrong = findings(found({"bounds": powers.theory(30.0)}))
    assert {one.verdict for one in wrong} == {"differs"}


def test_without_theory_both_ends_of_every_curve_are_findings():
    data = found(theory=None)
    ends = findings(data)
    places = [one.place for one in ends]
    assert places == [{"d": d, "T": t} for d in powers.D for t in (powers.T[0], powers.T[-1])]
    assert {one.verdict for one in ends} == {""}
    assert ends[0].value == data["mean"].isel(d=0, T=0).item()
    assert findings(data.assign(mean=data["mean"] * np.nan)) == []


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"theory": None, "predicted": "tan2"}, "theory is missing"),
        ({"beside": ["tan2"]}, "an output twice"),
        ({"predicted": ["a", "b"]}, "predicted has 2 outputs, not one or 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(asked, why):
    with pytest.raises(ValidationError, match=why):
        Dependence(**{**powers.ALONG, "theory": "bounds", **asked})


def test_without_a_parameter_it_takes_the_one_with_most_values():
    assert found(over=None).attrs["over"] == "d"
    alone = powers.training(np.random.default_rng(7), 8, SIGMA).isel(d=[0], T=[0])
    asked = Dependence(**{**powers.ALONG, "over": None})
    assert compute(toy.tree({"training": alone}, {}), asked) is None


def _means(difference: np.ndarray, error: float = 0.01, seeds: int = 50) -> xr.Dataset:
    """Means over x = 1 ... about a prediction of 0.5."""
    dims = ("output", "simulation", "x")
    mean = (0.5 + difference)[None, None]
    full = {k: (dims, np.full_like(mean, v)) for k, v in {"se": error, "predicted": 0.5}.items()}
    data = xr.Dataset(
        {"mean": (dims, mean), **full, "seeds": (dims, np.full(mean.shape, seeds))},
        {"output": ["R"], "simulation": ["runs"], "x": np.arange(1.0, 1 + len(difference))},
        {"over": "x", "variable": "R"},
    )
    return data.assign(difference=data["mean"] - data["predicted"])


def _judged(data: xr.Dataset, where: dict[str, str] | None = None) -> list[Finding]:
    return findings(with_verdicts(data, 0.1, where or {}))


def test_a_mean_agrees_with_its_prediction_where_wrong_ones_are_rejected() -> None:
    right = _judged(_means(np.array([0.01, -0.012, 0.004, 0.0])))
    assert [one.verdict for one in right] == ["agrees"] * 4
    assert "a prediction off by 0.05 is rejected" in right[0].evidence
    wrong = _judged(_means(np.array([0.3, 0.2, 0.3, 0.25])))
    assert [one.verdict for one in wrong] == ["differs"] * 4


def test_no_part_is_chosen_after_looking_and_a_study_may_claim_one_before() -> None:
    late = _means(np.array([0.3, 0.2, 0.01, -0.004, 0.002]))
    assert [one.verdict for one in _judged(late)] == ["differs"] * 2 + ["agrees"] * 3
    claimed = _judged(late, {"x": ">= 3"})
    assert verdict_of(claimed) == "agrees"
    outside = [one for one in claimed if not one.verdict]
    assert [one.place["x"] for one in outside] == [1.0, 2.0]
    assert {one.quantity.plain for one in outside} == {"mean R outside the claimed part"}
    assert outside[0].off == pytest.approx(0.3)
    assert verdict_of(_judged(late, {"x": ">= 2"})) == "differs"


def test_few_seeds_agree_with_nothing_and_as_many_as_needed_do() -> None:
    few = _judged(_means(np.array([0.01, 0.02]), error=0.05, seeds=3))
    assert [one.verdict for one in few] == ["undecided"] * 2
    assert "a prediction off by 0.05 would not be rejected" in few[0].evidence
    needed = int(max(one.seeds for one in few))
    more = _means(np.array([0.01, 0.02]), 0.05 * (3 / needed) ** 0.5, needed)
    assert verdict_of(_judged(more)) == "agrees"


def test_the_control_is_off_by_a_share_of_what_is_claimed_and_of_each_on_a_logarithmic_axis():
    data = _means(np.array([0.06, -0.06, 0.0]), error=0.05)
    data["predicted"][..., -1] = data["mean"][..., -1] = 200.0
    assert [one.verdict for one in _judged(data)] == ["agrees"] * 3  # 0.06 is little beside 20
    assert [one.verdict for one in _judged(data, {"x": "<= 2"})] == ["undecided"] * 2 + [""]
    log = _judged(data.assign_attrs(log="both"))
    assert [one.verdict for one in log] == ["undecided"] * 2 + ["agrees"]


def _ladder(offs: dict[int, float], method: str) -> xr.Dataset:
    """Means of a method at some n."""
    n = xr.DataArray(list(offs), dims="n", name="n")
    data = xr.concat([_means(np.full(3, off)) for off in offs.values()], n)
    return data.assign_coords(simulation=[method])


def test_a_method_is_judged_at_its_own_largest_n() -> None:
    methods = [_ladder({100: 0.3, 200: 0.0}, "runs"), _ladder({100: 0.3}, "small")]
    both = xr.concat(methods, "simulation", join="outer").assign_attrs(methods[0].attrs)
    found = _judged(both.transpose("output", "simulation", "n", "x"))
    assert [one.place["n"] for one in found] == [200] * 3 + [100] * 3
    assert [one.verdict for one in found] == ["agrees"] * 3 + ["differs"] * 3


def test_a_point_with_theory_and_without_a_mean_is_open() -> None:
    data = _means(np.array([0.0, 0.0, np.nan]))
    assert verdict_of(_judged(data)) == "undecided"
    (missing,) = [one for one in _judged(data) if one.verdict == "undecided"]
    assert missing.value == 1
    assert verdict_of(_judged(data, {"x": "<= 2"})) == "agrees"


def _sides(difference: float) -> xr.Dataset:
    """Means at two spaces over x, with standard errors of 0.01 and no prediction."""
    data = _means(np.zeros(3)).expand_dims(space=["all", "few"]).transpose("output", ..., "x")
    shift = xr.DataArray([0.0, difference], dims="space")
    nothing = data["predicted"] * np.nan
    mean = (data["mean"] + shift).transpose(*data["mean"].dims)
    return data.assign(mean=mean, predicted=nothing, difference=nothing)


def test_the_change_between_two_words_is_a_finding_with_its_error() -> None:
    change = findings(_sides(-0.2))[:3]
    assert [one.place for one in change] == [{"x": x} for x in (1.0, 2.0, 3.0)]
    assert {one.quantity.plain for one in change} == {
        "the change of mean R from space = all to space = few"
    }
    assert change[0].value == pytest.approx(-0.2)
    assert change[0].error == pytest.approx(0.01 * np.sqrt(2))
    rest = findings(_sides(-0.2))[3:]
    assert [one.place["space"] for one in rest] == ["all", "all", "few", "few"]


@pytest.mark.parametrize(
    ("top", "error", "near"), [(2.0, 0.001, False), (2.0, 0.2, True), (1.0, 0.001, False)]
)
def test_the_largest_mean_is_found_with_its_place_and_what_rivals_it(
    top: float, error: float, near: bool
) -> None:
    data = _sides(0.1)
    bump = 0.1 * (abs(data["x"] - top) < 0.5)
    theory = xr.where(data["x"] == 3.0, 0.9, 0.5).broadcast_like(data["mean"])
    changed = {"mean": data["mean"] + bump, "se": data["se"] * 0 + error, "predicted": theory}
    data = data.assign({k: v.transpose(*data["mean"].dims) for k, v in changed.items()})
    assert Form.LARGEST not in {one.form for one in findings(data)}
    first, *_ = findings(data.assign_attrs(extreme="largest"))
    assert (first.form, first.place) == (Form.LARGEST, {"space": "few", "x": top})
    assert first.value == pytest.approx(0.7)
    assert first.quantity.plain == "mean R"
    assert first.predicted == 0.5
    assert "from the largest with space = all" in first.evidence
    assert ("within errors of" in first.evidence) == near
    assert ("at an end of the swept range" in first.evidence) == (top == 1.0)
    assert "largest in theory at <i>x</i> = 3" in first.evidence
    least, *_ = findings(data.assign_attrs(extreme="smallest"))
    assert (least.form, least.place["space"]) == (Form.SMALLEST, "all")
    assert least.value == pytest.approx(0.5)


def test_an_extreme_is_sought_for_each_value_of_a_swept_number() -> None:
    data = _sides(0.1).assign_coords(space=[1, 2]).assign_attrs(extreme="largest")
    some = [one for one in findings(data) if one.form is Form.LARGEST]
    assert [one.place["space"] for one in some] == [2, 1]
    assert {one.quantity.plain for one in some} == {"mean R for each space"}
