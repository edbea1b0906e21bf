"""The numbers of a paper in the answer of another analysis: its own alone, few of them told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.analysis.printed.beside import beside
from hdica.report.answers import headline, told
from tests.analysis import papers, toy
from tests.report.shown import plain


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    papers.file(tmp_path / "reference/toy.yaml")


def _aggregate(*names: str) -> xr.DataTree:
    """A page whose answer is where the means end, beside some numbers of the paper."""
    numbers = {name: papers.ASKED[name] for name in names}
    asked: dict[str, Any] = {
        "compare": {"curves": ["run"], "variable": "Q"},
        "printed": {"file": "reference/toy.yaml", "numbers": numbers},
    }
    found = aggregate(toy.tree(papers.groups(), asked))
    found.attrs["study_yaml"] = json.dumps({"question": {"text": "How?", "analysis": "compare"}})
    return found


def _alone(tree: xr.DataTree) -> str:
    """The answer without anything beside it."""
    found = tree.copy()
    del found["printed"]
    return headline(found).html


def test_a_number_of_the_paper_stands_beside_ours_with_its_error() -> None:
    tree = _aggregate("rounded", "limit")
    found = headline(tree)
    alone = _alone(tree)
    assert found.html.startswith(alone.removesuffix("."))
    (text,) = plain([found.html])
    assert text.endswith(
        "; A paper &amp; more has 2.05 for “a number”, which is 2.000 ± 0.020 here."
    )
    assert found.verdict == ""
    assert told(tree).headline == found
    # The answer itself is not told a second time.
    assert alone not in told(tree).findings


def test_a_number_that_is_off_speaks_against_the_answer() -> None:
    found = headline(_aggregate("wrong"))
    assert found.verdict == "differs"
    assert "has 1.1 for" in plain([found.html])[0]


def test_a_corrected_number_is_told_with_its_correction() -> None:
    found = headline(_aggregate("repaired"))
    assert found.verdict == ""
    assert (
        "has 5, by its formula, corrected 2, for “a number”, which is 2.000 ± 0.020"
        in plain([found.html])[0]
    )


def test_of_several_numbers_the_one_that_is_furthest_off_is_told() -> None:
    (text,) = plain([headline(_aggregate("rounded", "repaired", "wrong")).html])
    assert "2 of 3 numbers that A paper &amp; more has for it agree; of them, the furthest" in text
    assert "off is 1.1 for “a number”" in text
    assert "5, by its formula" not in text


def test_numbers_that_were_found_apart_from_the_paper_are_none_of_it() -> None:
    tree = _aggregate("limit", "far_limit")
    assert beside(tree["printed"].to_dataset()) is None
    assert headline(tree).html == _alone(tree)


def test_where_all_of_several_agree_one_is_an_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdica.analysis.printed.beside.FEW", 1)
    (text,) = plain([headline(_aggregate("rounded", "repaired")).html])
    assert "all 2 numbers that A paper &amp; more has for it agree, such as" in text
