"""Runs of every n on one curve: what is found where it holds, and where powers of n are others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hdica.analysis.powers.collapse import (
    RIGHT,
    WRONG,
    Powers,
    findings,
    means,
    mirrored,
    panels,
    shares,
)
from hdica.errors import HdicaError
from hdica.show.finding import verdict_of
from hdica.show.panel import Line, Points
from tests.analysis import collapses, toy

KINDS = ("fold", "separatrix", "pitchfork")
STREAMS = 30
collapse = toy.computed("collapse")


def found(kind: str, more: dict | None = None, **changes):
    return collapse(collapses.store(kind, **changes), collapses.settings(kind, **(more or {})))


@pytest.mark.parametrize("kind", KINDS)
def test_points_of_the_law_itself_are_on_it(kind: str) -> None:
    data = found(kind)
    law, y = data["law"].values, data["y"].values
    # On the law within its error, and not at it by construction.
    half = (data["y_high"] - data["y_low"]).values / 2
    assert np.mean(np.abs(y - law) <= half * 1.05) > 0.75
    assert np.abs(y - law).max() > 1e-4
    whole, farthest = findings(data)[:2]
    assert whole.verdict == farthest.verdict == "agrees"
    assert whole.value == float(data["chi2"])
    assert whole.predicted == int(data["points"])
    assert whole.error == pytest.approx((2 * whole.predicted) ** 0.5)
    assert farthest.value == float(abs(data["score"]).max())
    assert farthest.value == abs(float(data["score"].sel(farthest.place)))


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_the_p_value_of_right_points_is_uniform(kind: str) -> None:
    p = [float(found(kind, stream=k)["p_value"]) for k in range(STREAMS)]
    # Of two tests of which the smaller counts twice: at most even, and not piled up at 0.
    assert np.mean(np.array(p) < 0.1) < 0.1 + 3 * (0.1 * 0.9 / STREAMS) ** 0.5
    assert np.mean(np.array(p) < 0.5) > 0.2


@pytest.mark.parametrize("kind", KINDS)
def test_points_that_share_their_noise_have_no_chi_square(kind: str) -> None:
    store = collapses.store(kind)
    runs = collapses.settings(kind)["simulation"]
    store[runs].attrs["noise"] = "shared"
    data = collapse(store, collapses.settings(kind))
    assert int(data["points"]) == 0
    assert float(data["p_value"]) == float(data["worst"])
    assert findings(data)[0].quantity.plain == "the largest distance of a point from its prediction"


@pytest.mark.parametrize("kind", KINDS)
def test_controls_are_rejected_and_few_runs_cannot_reject_them(kind: str) -> None:
    data, few = found(kind), found(kind, seeds=8)
    for control in ("p_control", "p_opposite"):
        assert float(data[control]) < 1e-5
        assert float(few[control]) > float(data[control])


@pytest.mark.parametrize("kind", KINDS)
def test_runs_with_powers_wrong_to_either_side_differ(kind: str) -> None:
    right = RIGHT[kind]
    for wrong, control in (
        (WRONG[kind], "p_control"),
        (mirrored(right, WRONG[kind]), "p_opposite"),
    ):
        shifted = (wrong.window - right.window, wrong.size - right.size)
        data = found(kind, wrong=shifted)
        assert verdict_of(findings(data)) == "differs"
        # And these are the powers of that control.
        assert float(data[control]) > 0.001


def test_the_second_control_is_wrong_by_as_much_to_the_other_side() -> None:
    assert mirrored(Powers(0.5, 0.25), Powers(1.0, 0.0)) == Powers(0.0, 0.5)


@pytest.mark.parametrize("control", ["p_control", "p_opposite"])
def test_nothing_agrees_unless_both_controls_are_rejected(control: str) -> None:
    data = found("fold")
    assert verdict_of(findings(data)) == "agrees"
    for p in (1e-3, np.nan):  # rejected, but not clearly at a level of 0.01; and not tested
        data[control].values[...] = p
        assert verdict_of(findings(data)) == "undecided"
    assert all("not rejected either" in one.evidence for one in findings(data) if one.verdict)


def test_a_rejection_near_the_level_is_undecided() -> None:
    data = found("fold")
    data["worst"].values[...] = 0.002  # twice that, of two tests, is below the level of 0.01
    whole, farthest = findings(data)[:2]
    assert (whole.verdict, farthest.verdict) == ("agrees", "undecided")
    assert "too close to the level" in farthest.evidence
    data["worst"].values[...] = 1e-4
    assert findings(data)[1].verdict == "differs"


def test_controls_with_the_right_powers_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WRONG, "fold", RIGHT["fold"])
    data = found("fold")
    assert float(data["p_control"]) == pytest.approx(float(data["p_value"]))
    assert float(data["p_opposite"]) == pytest.approx(float(data["p_value"]))
    assert verdict_of(findings(data)) == "undecided"


def test_what_the_prediction_has_beyond_the_curve_is_a_finding_at_both_ends_of_n() -> None:
    first, last = findings(found("fold"))[2:]
    assert [one.place["n"] for one in (first, last)] == [collapses.SIZES[0], collapses.SIZES[-1]]
    assert first.value == pytest.approx(abs(collapses.OFFSET["fold"]))
    first, last = findings(found("separatrix"))[2:]
    assert last.value == pytest.approx(collapses.SHIFT["separatrix"])


def test_means_are_those_of_the_runs() -> None:
    runs, data = collapses.runs("fold"), found("fold")
    first = runs["first"].sel(tau=0.01, n=1000).values
    here = data.sel(tau=0.01, n=1000)
    assert float(here["measured"]) == pytest.approx(first.mean())
    assert float(here["se"]) == pytest.approx(first.std(ddof=1) / 200**0.5)
    assert float(here["offset"]) == pytest.approx(collapses.OFFSET["fold"])
    assert here["measured"].attrs["units"] == "samples per dimension"


def test_the_steady_mean_leaves_out_what_comes_before() -> None:
    runs, data = collapses.runs("pitchfork"), found("pitchfork")
    square = (runs["Q"].sel(tau=0.0, n=100).values ** 2)[:, 1:].mean(axis=1)
    assert float(data["measured"].sel(tau=0.0, n=100)) == pytest.approx(square.mean())
    late = found("pitchfork", {"since": 4.0})["measured"].sel(tau=0.0, n=100)
    last = runs["Q"].sel(tau=0.0, n=100).values[:, -1] ** 2
    assert float(late) == pytest.approx(last.mean())
    with pytest.raises(HdicaError, match=r"collapse\.since = 5 is not allowed"):
        found("pitchfork", {"since": 5.0})


def test_cells_with_runs_that_have_not_fallen_have_no_mean() -> None:
    data = found("fold", end=150.0)
    still = data["open"].values > 0
    assert still.any()
    assert not still.all()
    assert np.isnan(data["measured"].values[still]).all()
    assert np.isfinite(data["measured"].values[~still]).all()
    assert findings(data)[-1].value == still.sum()
    assert "without a mean" in findings(data)[-1].quantity.plain


def test_a_store_without_a_cell_has_a_page_that_decides_nothing() -> None:
    data = found("fold", end=1e-6)
    assert not findings(data)
    assert np.isnan(data["measured"].values).all()
    assert all(np.isfinite(data["curve"].values))
    for panel in panels(data):
        assert any(isinstance(item, Line) for item in panel.items)


def test_figures_have_the_points_of_every_n_and_the_law() -> None:
    for kind in KINDS:
        right, control = panels(found(kind))
        for panel in (right, control):
            marks = [item for item in panel.items if isinstance(item, Points)]
            lines = [item for item in panel.items if isinstance(item, Line)]
            assert len(marks) == len(collapses.SIZES)
            assert len(lines) == 1
            assert np.isfinite(lines[0].y).all()
        assert "n" in right.caption


def test_scores_of_shares_are_exact_where_few_are_expected() -> None:
    hits, runs = np.array([0.0, 3.0, 50.0]), np.array([100.0, 100.0, 100.0])
    fit = shares(hits, runs, np.array([0.0, 1e-4, 0.5]))
    assert fit.points == 1
    assert fit.score[0] == pytest.approx(0.0)
    assert fit.score[2] == pytest.approx(0.0)
    assert fit.score[1] > 4
    assert fit.p_value < 1e-4
    sure = shares(np.array([1.0]), np.array([100.0]), np.array([0.0]))
    assert sure.p_value < 1e-100


def test_means_of_few_skewed_times_are_judged_by_their_predicted_scatter() -> None:
    rng, runs = np.random.default_rng(8), 12
    times = rng.exponential(size=(4000, runs))
    mean, se = times.mean(axis=1), times.std(axis=1, ddof=1) / runs**0.5
    many, one = np.full(4000, float(runs)), np.ones(4000)
    fit = means(mean, se, many, one, one)
    for level in (-2.0, -1.0, 1.0, 2.0):
        share = stats.norm.cdf(level)
        assert abs(np.mean(fit.score < level) - share) < 4 * (share * (1 - share) / 4000) ** 0.5
    # By the scatter of the runs themselves far too many lie below.
    student = means(mean, se, many, one)
    assert np.mean(student.score < -2) > 2 * stats.norm.cdf(-2)
