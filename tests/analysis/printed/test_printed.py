"""Results beside a paper's numbers: verdicts of known means, selections, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from hdica.analysis.aggregate import aggregate
from hdica.analysis.printed.answer import answer
from hdica.analysis.printed.beside import beside
from hdica.analysis.printed.figure import printed as draw
from hdica.analysis.printed.say import printed as say
from hdica.analysis.printed.say import table
from hdica.errors import HdicaError
from hdica.inputs.place import place
from hdica.report.page import panels, render
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
        "nothing": "agrees",
    }
    assert found["corrected_verdict"].sel(number="repaired") == "agrees"
    assert set(found["corrected_verdict"].values) == {"", "agrees"}


def test_the_error_of_the_paper_counts_and_the_level_is_shared() -> None:
    found = _found().sel(number="right")
    assert float(found["printed_error"]) == 0.01
    papers_file = papers.NUMBERS["right"]
    shifted = {**papers_file, "value": 1.05}
    spread = np.hypot(0.02, 0.01)
    freedom = 24 / (0.02**2 / spread**2) ** 2
    p = 2 * stats.t.sf(0.05 / spread, freedom)
    path = place("reference/toy.yaml")
    path.write_text(path.read_text().replace("value: 1.0\n", f"value: {shifted['value']}\n"))
    again = _found(level=0.9).sel(number="right")
    assert float(again["p_value"]) == pytest.approx(p, rel=1e-9)
    assert again["verdict"] == ("differs" if p < 0.9 / len(papers.ASKED) else "agrees")


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


def test_one_sentence_a_panel_and_a_table_with_what_differs_first() -> None:
    found = _found()
    assert say(found) == [
        "5 of 7 numbers agree with ours, of A paper &amp; more (3 of 4 that it prints or whose "
        "formula it does, the others found apart from this code), 1 of them only as corrected by "
        "an erratum; these differ: a number; a number."
    ]
    rows = table(found).rows
    assert [row[0] for row in rows[:2]] == ["2", "6"]  # of the study: wrong and far_limit
    assert len(rows) == len(papers.ASKED)
    (panel,) = draw(found)
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
    assert found["verdict"].values.tolist() == [*[words] * 4, "agrees", "differs", "agrees"]
    assert found["corrected_verdict"].sel(number="repaired") == words
    (text,) = say(found)
    clause = beside(found)
    assert clause is not None
    assert clause.verdict == ""
    lost = {"pending": "pending", "no result": "without a result, as all runs diverged or failed"}
    assert text.startswith("2 of 3 numbers agree")
    assert text.endswith(f"this differs: a number; 4 are {lost[words]}.")
    assert clause.html.endswith(f"has 0 for “a number”, which is 0.5 here; 3 are {lost[words]}")
    assert [row[5] for row in table(found).rows].count(words) == 4
    nothing = found.isel(number=slice(4))
    assert say(nothing) == [
        f"No number of A paper &amp; more has a result here; 4 are {lost[words]}."
    ]
    assert (answer(nothing), beside(nothing)) == (None, None)


def test_the_page_says_what_its_verdicts_mean() -> None:
    tree = aggregate(papers.store())
    page = render(tree, panels(tree))
    assert "Numbers beside ours" in page
    assert "at a level that all numbers of the table share" in page
    assert "The same test along a distribution function" not in page


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
