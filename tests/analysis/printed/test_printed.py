"""Results beside a paper's numbers: verdicts of known means, findings, selections, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from hdica.analysis.aggregate import aggregate
from hdica.analysis.printed.printed import cited, findings, notes
from hdica.analysis.printed.printed import panels as draw
from hdica.errors import HdicaError
from hdica.inputs.place import place
from hdica.show.finding import verdict_of
from tests.analysis import papers, toy


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    papers.file(tmp_path / "reference/toy.yaml")


def _found(**changes: Any) -> Any:
    return aggregate(papers.store(**changes))["printed"].to_dataset()


def test_verdicts_are_those_of_students_t_beyond_rounding_and_error() -> None:
    found = _found()
    here = found.sel(number="wrong")
    assert float(here["ours"]) == pytest.approx(1.0, abs=1e-14)
    assert float(here["se"]) == pytest.approx(0.1 / 5, rel=1e-12)
    assert int(here["count"]) == papers.SEEDS
    expected = 2 * stats.t.sf(0.1 / 0.02, papers.SEEDS - 1)
    assert float(here["p_value"]) == pytest.approx(expected, rel=1e-9)
    assert dict(zip(found["number"].values, found["verdict"].values, strict=True)) == {
        "right": "agrees",
        "wrong": "differs",
        "rounded": "agrees",
        "repaired": "differs",
        "limit": "agrees",
        "far_limit": "differs",
        "nothing": "undecided",  # its rounding hides a number that is off by a tenth
    }
    assert found["corrected_verdict"].sel(number="repaired") == "agrees"
    assert set(found["corrected_verdict"].values) == {"", "agrees"}


def test_the_error_of_the_paper_counts() -> None:
    found = _found().sel(number="right")
    assert float(found["printed_error"]) == 0.01
    path = place("reference/toy.yaml")
    path.write_text(path.read_text().replace("value: 1.0\n", "value: 1.05\n"))
    again = _found(level=0.9).sel(number="right")
    spread = np.hypot(0.02, 0.01)
    freedom = 24 / (0.02**2 / spread**2) ** 2
    p = 2 * stats.t.sf(0.05 / spread, freedom)
    assert float(again["p_value"]) == pytest.approx(p, rel=1e-9)
    assert (found["verdict"], again["verdict"]) == ("agrees", "undecided")
    assert (_found(level=0.001).sel(number="wrong")["verdict"]) == "undecided"


@pytest.mark.parametrize(("seeds", "verdict"), [(1, "undecided"), (2, "undecided"), (25, "agrees")])
def test_a_mean_of_few_seeds_agrees_with_nothing(seeds: int, verdict: str) -> None:
    groups = papers.groups()
    groups["run"] = groups["run"].isel(seed=slice(seeds))
    asked = {"file": "reference/toy.yaml", "numbers": {"rounded": papers.ASKED["rounded"]}}
    tree = aggregate(toy.tree(groups, {"printed": asked}))
    data = tree["printed"].to_dataset()
    assert data["verdict"].item() == verdict
    (one,) = findings(data)
    assert one.verdict == verdict
    assert (one.seeds > 2) == (seeds == 2)


def test_the_largest_n_and_the_last_time_are_meant_if_not_said() -> None:
    one = {"right": {**papers.RUN, "sel": {"tau": 10, "n": 50, "time": 0}}}
    assert float(_found(numbers=one)["ours"].item()) == pytest.approx(3.0)
    assert float(_found().sel(number="right")["ours"]) == pytest.approx(1.0)


def test_a_relative_error_is_of_the_number() -> None:
    groups = papers.groups()
    limit = groups["limit"].rename(Q_error="error")
    limit["error"].attrs["long_name"] = "relative error of Q"
    for error, verdict in ((0.045, "agrees"), (0.035, "differs")):
        limit["error"][-1] = error
        tree = {**groups, "limit": limit.copy(deep=True)}
        asked = {"far_limit": papers.LIMIT}
        whole = toy.tree(tree, {"printed": {"file": "reference/toy.yaml", "numbers": asked}})
        assert aggregate(whole)["printed"]["verdict"].item() == verdict


def test_magnitudes_are_of_each_seed() -> None:
    tree = papers.groups()
    signs = np.where(np.arange(papers.SEEDS) % 2, 1.0, -1.0)
    tree["run"]["Q"] = tree["run"]["Q"] * xr.DataArray(signs, dims="seed")
    asked = {"right": {**papers.RUN, "sel": {"tau": 10}, "magnitude": True}}
    whole = toy.tree(tree, {"printed": {"file": "reference/toy.yaml", "numbers": asked}})
    assert float(aggregate(whole)["printed"]["ours"].item()) == pytest.approx(1.0)


def test_every_number_is_a_finding_with_whoever_has_it() -> None:
    data = _found()
    every = findings(data)
    assert len(every) == len(papers.ASKED)
    by_theory: dict[str, list[float]] = {}
    for one in every:
        by_theory.setdefault(one.theory.plain, []).append(one.predicted)
    assert by_theory == {
        "a simulation independent of this code": [1.0],
        "A paper & more": [1.1, 2.05, 0.0],
        "A paper & more as corrected": [2.0],
        "a derivation independent of this code": [0.5, 0.52],
    }
    repaired = next(one for one in every if one.theory.plain.endswith("as corrected"))
    assert repaired.verdict == "agrees"
    assert "the paper has 5, erratum (3): a sign" in repaired.evidence
    assert {one.quantity.plain for one in every} == {"a number"}
    nothing = next(one for one in every if one.predicted == 0.0)
    assert (nothing.verdict, nothing.evidence) == (
        "undecided",
        "its error and rounding hide a difference of 10 %",
    )
    wrong = next(one for one in every if one.predicted == 1.1)
    assert (wrong.value, wrong.error) == pytest.approx((1.0, 0.02))
    assert (wrong.verdict, verdict_of(every)) == ("differs", "differs")
    assert notes(data) == []


def test_where_a_number_is_follows_what_it_is() -> None:
    what = "the overlap of f = x^3 with N(0, 1), tau = 0.02, ν = 2e-05, contrast exp, t = 10"
    (one,) = findings(_found(numbers={"limit": papers.LIMIT}).assign(what=("number", [what])))
    assert one.quantity.plain == "the overlap of f = x³ with N(0, 1), contrast exp"
    assert one.place == {"tau": 0.02, "nu": 2e-5, "t": 10.0}


def test_papers_are_cited_by_names_and_year() -> None:
    assert cited('C. Wang and Y. M. Lu, "The limit", NIPS 2017') == "Wang & Lu 2017"
    assert cited('"Reduce: and conquer", 2025') == "“Reduce” 2025"
    assert cited("A paper & more") == "A paper & more"


def test_one_panel_has_all_ratios() -> None:
    (panel,) = draw(_found())
    theirs, corrected, ours = panel.items
    # What is printed as 0 has no ratio.
    assert theirs.x.size == ours.x.size == len(papers.ASKED) - 1
    assert corrected.y.tolist() == [2.0 / 5.0]
    assert ours.y[1] == pytest.approx(1 / 1.1)


@pytest.mark.parametrize(("status", "words"), [(0, "pending"), (3, "no result")])
def test_a_number_without_a_result_neither_agrees_nor_differs(status: int, words: str) -> None:
    groups = papers.groups()
    # Of the larger n, which is meant; the smaller one has another mean.
    groups["run"]["status"].loc[{"n": 100}] = status
    asked = {"file": "reference/toy.yaml", "numbers": papers.ASKED}
    found = aggregate(toy.tree(groups, {"printed": asked}))["printed"].to_dataset()
    assert found["verdict"].values.tolist() == [*[words] * 4, "agrees", "differs", "undecided"]
    assert found["corrected_verdict"].sel(number="repaired") == words
    endings = {"pending": "pending", "no result": "without a result: all runs diverged or failed"}
    assert notes(found) == [f"4 numbers of the paper are {endings[words]}."]
    assert sorted(one.verdict for one in findings(found)) == ["agrees", "differs", "undecided"]
    assert findings(found.isel(number=slice(4))) == []


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"rihgt": papers.ASKED["right"]}, "'rihgt' is not in .*did you mean 'right'"),
        ({"right": papers.RUN}, r"right\.sel lacks tau \(one of 10, 20"),
        ({"right": {**papers.RUN, "sel": {"tau": 11}}}, r"sel\.tau = 11 is not allowed"),
        ({"right": {**papers.RUN, "sel": {"mu": 1}}}, r"sel\.mu is not known \(allowed: tau, n"),
        ({"right": {**papers.RUN, "variable": "P"}}, "has no variable 'P'"),
        ({"right": {"method": "run"}}, "variable is missing"),
        ({}, "numbers"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_sentence(
    numbers: dict[str, Any], words: str
) -> None:
    with pytest.raises(HdicaError, match=words) as caught:
        _found(numbers=numbers)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", ["/etc/passwd", "../toy.yaml", "reference/none.yaml"])
def test_numbers_outside_the_folder_of_data_are_refused(file: str) -> None:
    with pytest.raises(HdicaError, match="is not allowed"):
        _found(file=file)
