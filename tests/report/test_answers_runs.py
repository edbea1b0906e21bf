"""Answers about runs of known laws: the figure, its error and its verdict, and how they change."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.analysis.registry import analyses
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.words import count
from hdica.report.answers import told
from hdica.status import DONE, PENDING
from tests.analysis import bifurcation, ensembles, escapes, laws, powers, toy, waves
from tests.report.shown import plain

MEASURED = r"(-?[\d.]+) ± ([\d.]+)"


def answered(tree: xr.DataTree, name: str) -> Answer | None:
    """The answer of one analysis of a store."""
    found: Answer | None = analyses()[name].answer(aggregate(tree)[name].to_dataset())
    return found


def text(tree: xr.DataTree, name: str) -> str:
    found = answered(tree, name)
    assert found is not None
    return plain([found.html])[0]


def numbers(said: str, before: str = "") -> list[tuple[float, float]]:
    """Figures with their errors, after some words."""
    part = said.split(before, 1)[1] if before else said
    return [(float(a), float(b)) for a, b in re.findall(MEASURED, part.replace("−", "-"))]


def test_escape_is_fastest_where_it_is_and_theory_stands_beside_it() -> None:
    said = text(escapes.store(runs=400), "escape")
    pattern = r"ν = 1: ([\d.]+) \[([\d.]+), ([\d.]+)\]"
    mean, low, high = map(float, re.search(pattern, said).groups())
    assert low < escapes.mean(1.0, 200) < high
    assert low < mean < high
    assert f"theory says {escapes.mean(1.0, 200):.3g} at that n" in said
    assert "it takes longest at ν = 10" in said
    right, wrong = (
        answered(escapes.store(runs=400, error=e, end=1e9), "escape") for e in (1.0, 1.5)
    )
    assert (right.verdict, wrong.verdict) == ("agrees", "differs")


@pytest.mark.parametrize("follows", [True, False])
def test_a_theory_of_large_n_is_judged_at_the_largest_and_what_differs_below_is_told(
    follows: bool,
) -> None:
    asked = {"escape": {**escapes.SIMULATED, "limits": ["escape"]}}
    tree = escapes.store(asked, runs=400, end=1e9, stream=1)
    if follows:
        slower = [escapes.mean(nu, escapes.LADDER[-1]) / escapes.mean(nu) for nu in escapes.NUS]
        tree["escape_times"]["first"].values[:, -1] /= np.array(slower)[:, None]
    assert answered(tree, "escape").verdict == ("agrees" if follows else "differs")
    clause = (
        "; at n = 200 runs follow theory for n → ∞ in 4 of 4 comparisons; below it 4 of 4 differ "
        "(at n = 100): n is not yet large there."
    )
    assert text(tree, "escape").endswith(clause) == follows


EXTREME = re.compile(
    r"\b(largest|smallest(?! p)|fastest|f[ua]rthest|nowhere|at most|is least|all \d|both)\b"
)


def _critical() -> xr.DataTree:
    found = bifurcation.critical().expand_dims(rho=[0.1, 0.2, 0.3, 0.4]).copy(deep=True)
    found["value"].values[:, 0] = [0.3, 0.3, 0.2, 0.25]
    found = found.assign_attrs(bifurcation.critical().attrs)
    return toy.tree({"critical": found}, {"transition": {"x": "rho"}})


STORES = {
    "escape": lambda: escapes.store(runs=40),
    "convergence and phase": toy.store,
    "steady": bifurcation.store,
    "distances": laws.store,
    "transition": _critical,
}


@pytest.mark.parametrize("name", STORES)
def test_extremes_are_of_the_points_that_are_done_where_others_are_missing(name: str) -> None:
    tree = STORES[name]()
    whole = told(aggregate(tree))
    every = [node["status"].values for node in tree.children.values()]
    every[0].flat[0] = PENDING
    done, total = sum(int((one == DONE).sum()) for one in every), sum(one.size for one in every)
    part = told(aggregate(tree))
    clause = f"among the {count(done)} of {count(total)} points that are done"
    for said, has in ((whole, False), (part, True)):
        left = [text for topic in said.topics for text in topic.sentences]
        sentences = plain([said.headline.html, *said.findings, *left])
        extreme = [text for text in sentences if EXTREME.search(text)]
        assert extreme
        assert not [text for text in extreme if (clause in text) != has]


def test_where_runs_differ_from_theory_at_their_n_is_told_with_the_factor() -> None:
    assert "runs follow theory" not in text(escapes.store(runs=400), "escape")
    tree = escapes.store(runs=400, end=1e9)
    tree["escape_times"]["first"].values[1:3, 0] *= [[2.0], [3.0]]
    assert answered(tree, "escape").verdict == "differs"
    said = text(tree, "escape")
    clause = "in 6 of 8 comparisons and differ from it in 2, at n = 100 with ν = 1 to 2, where they"
    assert clause in said
    pattern = r"([\d.]+) \[([\d.]+), ([\d.]+)\]"
    ends = re.findall(pattern, said.split("where they take")[1])
    for found, factor in zip(ends, (2.0, 3.0), strict=True):
        mean, low, high = map(float, found)
        assert low < mean < high
        assert mean == pytest.approx(factor, rel=4 / 20)


ALLOWED = [(1.0, 0.0, "agrees"), (1.3, 0.0, "differs"), (1.3, 0.5, "agrees"), (1.3, 0.1, "differs")]


@pytest.mark.parametrize(("factor", "within", "verdict"), [*ALLOWED, (1.3, 0.235, "undecided")])
def test_a_study_says_how_much_of_a_prediction_may_be_missed(
    factor: float, within: float, verdict: str
) -> None:
    groups = ensembles.groups(runs=400)
    groups["traversal"]["middle"] = groups["traversal"]["middle"] * factor
    settings = {**ensembles.SETTINGS, "within": within}
    found = answered(toy.tree(groups, {"ensemble": settings}), "ensemble")
    assert found.verdict == verdict
    said = f"up to {100 * within:.3g} % off counts as agreement"
    assert (said in plain([found.html])[0]) == (within > 0)


def test_where_no_run_escapes_the_mean_is_bounded() -> None:
    tree = escapes.store(runs=400)
    tree["escape_times"]["first_seen"].values[-1] = 0.0
    assert re.search(r"longest at ν = 10: above [\d.]+, as no run escapes", text(tree, "escape"))
    tree["escape_times"]["status"].values[...] = PENDING
    found = answered(tree, "escape")
    assert found.html.startswith("In theory")
    assert found.verdict == ""


@pytest.mark.parametrize("seen", [[], [1], [0, 1]])
def test_where_hardly_a_run_escapes_it_is_told_where_and_what_the_others_bound(
    seen: list[int],
) -> None:
    tree = escapes.store(runs=400)
    trapped = [k for k in range(len(escapes.NUS)) if k not in seen]
    # As after a short time: bounds lie below the means that are known.
    tree["escape_times"]["first"].values[trapped] = escapes.END / 1e6
    tree["escape_times"]["first_seen"].values[trapped] = 0.0
    said = text(tree, "escape")
    bound = float(re.search(r"the mean escape time is above (0\.\d+) n³ steps\.$", said)[1])
    # No event of a constant rate in a time T: the mean is above T / 3.69, at 2.5 %.
    assert bound == pytest.approx(400 * escapes.END / 1e6 / 3.689, rel=0.01)
    if not seen:
        assert said.startswith("No run escapes at n = 200: the mean")
    else:
        where = "only at" if len(seen) == 1 else "fastest where they do, at"
        figures = r"ν = 1, after ([\d.]+) \[([\d.]+), ([\d.]+)\] n³ steps"
        mean, low, high = map(float, re.search(f"{where} {figures}", said).groups())
        assert low < escapes.mean(1.0, 200) < high
        assert low < mean < high
        assert f"theory says {escapes.mean(1.0, 200):.3g} at that n" in said


def test_the_median_run_arrives_when_theory_says() -> None:
    found = answered(ensembles.store(runs=400), "ensemble")
    said = plain([found.html])[0]
    (first, error), (second, other) = numbers(said)[:2]
    assert abs(first - ensembles.crossing(1.0)) < 4 * error
    assert abs(second - ensembles.crossing(2.0)) < 4 * other
    assert found.verdict == "agrees"
    groups = ensembles.groups(runs=400)
    groups["traversal"]["middle"] = groups["traversal"]["middle"] * 1.3
    wrong = answered(toy.tree(groups, {"ensemble": ensembles.SETTINGS}), "ensemble")
    assert wrong.verdict == "differs"
    ratios = numbers(plain([wrong.html])[0], "at rate = 2,")
    assert all(abs(ratio - 1 / 1.3) < 4 * se for ratio, se in ratios)


def test_one_run_has_no_error_and_no_verdict() -> None:
    found = answered(ensembles.store(runs=1), "ensemble")
    assert found.verdict == ""
    assert "±" not in found.html


def test_bounds_are_told_over_the_median() -> None:
    settings = {**ensembles.SETTINGS, "crossings": [], "times": None, "stages": []}
    tree = toy.tree(ensembles.groups(runs=400), {"ensemble": settings})
    said = text(tree, "ensemble")
    assert "; the bounds are " in said
    assert said.startswith("After 30 steps the median of tan2")
    data = aggregate(tree)["ensemble"].to_dataset()
    largest = float(data["looseness"].max())
    assert f"{float(f'{largest:.3g}'):g}" in said


def test_exponents_have_their_standard_errors_and_theory_its_verdict() -> None:
    tree = powers.store(32)
    data = aggregate(tree)["exponents"].to_dataset().squeeze()
    said = text(tree, "exponents")
    for (value, error), exact, stored in zip(
        numbers(said), powers.EXPONENTS, data["exponent_error"].values, strict=False
    ):
        assert abs(value - exact) < 4 * error
        assert error == pytest.approx(float(stored), abs=0.006)
    # Student's interval is wider than the normal one of the same error.
    half = (data["exponent_high"] - data["exponent_low"]) / 2
    assert (half > 1.959 * data["exponent_error"]).all()
    assert answered(tree, "exponents").verdict == "agrees"
    wrong = answered(powers.store(32, bounds=powers.theory(6.0)), "exponents")
    assert wrong.verdict == "differs"
    assert "11 of 12 values differ from theory" in plain([wrong.html])[0]


def test_a_few_seeds_widen_students_interval_not_the_error() -> None:
    data = aggregate(powers.store(3))["exponents"].to_dataset().squeeze()
    ratio = (data["exponent_high"] - data["exponent_low"]) / (2 * data["exponent_error"])
    assert (ratio > 2.0).all()


def test_one_seed_fixes_no_exponent() -> None:
    assert answered(powers.store(1), "exponents") is None


def test_the_boundary_moves_with_its_power_and_laws_are_told_apart() -> None:
    rng = np.random.default_rng(7)
    groups = {"start": powers.start(rng, seeds=200)}
    laws = {"flat": 0.0, "right": powers.BOUNDARY, "<b>steep</b>": 1.0}
    tree = toy.tree(groups, {"success": {**powers.EVENT, "powers": laws}})
    said = text(tree, "success")
    ((value, error),) = numbers(said)[:1]
    assert abs(value - powers.BOUNDARY) < 4 * error
    names = re.findall(r"\((\S+)\) by", said)
    assert names[0] == "right"
    assert names[-1] == "&lt;b&gt;steep&lt;/b&gt;"
    assert "<b>steep" not in answered(tree, "success").html
    far = [float(one) for one in re.findall(r"by ([\d.]+)", said)]
    assert far == sorted(far)


def test_shares_that_tell_no_boundary_leave_it_open() -> None:
    runs = powers.start(np.random.default_rng(7), seeds=4)
    runs["tan2"].values[...] = 1.0
    runs["tan2"].values[0, 0, 0] = 0.0
    said = text(toy.tree({"start": runs}, {"success": powers.EVENT}), "success")
    points = runs["tan2"].values[..., 0].size
    assert said == (
        f"Where runs reach tan2 ∠ ≤ 1/3 with even odds is open: 0 to 25 % do at {points} points."
    )
    runs["status"].values[...] = PENDING
    assert answered(toy.tree({"start": runs}, {"success": powers.EVENT}), "success") is None


def test_what_rises_first_is_told_with_its_place() -> None:
    assert text(waves.store(), "curves") == (
        "Early is half-way before the others in both cases, at 4 steps; late at 8 follows."
    )
    one = waves.walk().isel(pace=[0])
    said = text(toy.tree({"walk": one.assign_attrs(waves.walk().attrs)}, {"curves": {
        **waves.SETTINGS, "theory": None,
    }}), "curves")  # fmt: skip
    assert "cases" not in said


def test_the_power_of_the_decay_and_its_end() -> None:
    groups = escapes.overlaps()
    asked = {"decay": {"curves": list(groups), "variable": "R"}}
    said = text(toy.tree(groups, asked), "decay")
    ((power, error),) = numbers(said)[:1]
    assert abs(power + escapes.POWERS[0]) < 5 * error
    slower = {k: data.assign(R=1 - (1 - data["R"]) ** 0.5) for k, data in groups.items()}
    slower = {k: data.assign_attrs(groups[k].attrs) for k, data in slower.items()}
    ((half, se),) = numbers(text(toy.tree(slower, asked), "decay"))[:1]
    assert abs(half + escapes.POWERS[0] / 2) < 5 * se


def test_barriers_are_told_from_the_lowest_to_the_highest() -> None:
    tree = toy.tree({"trapping": escapes.trap()}, {"trapping": {}})
    data = aggregate(tree)["trapping"].to_dataset()
    own = data["barrier"].isel(projection=0, source=0).values
    said = text(tree, "trapping")
    assert f"is {min(own):.3g} D high" in said
    assert f"and {max(own):.3g} D" in said
    tree["trapping"]["barrier"].values[...] = np.nan
    assert answered(tree, "trapping") is None
