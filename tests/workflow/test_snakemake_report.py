"""Snakemake's own report: figures by system and study, each with the caption of what is drawn."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import snakemake

from hdica.report.drawn import CAPTIONS, titles
from tests.workflow.conftest import Checkout

pytestmark = pytest.mark.deep

MOST = 10_000_000
"""Bytes of the report of the default studies."""
FIGURES = 4_000_000
"""Bytes of their figures, at most: 3.3 MB as they are."""


def variable(text: str, name: str) -> Any:
    """A variable of the page's script."""
    found = re.search(rf"\bvar {name} = " + r'(?=\{")', text)
    assert found is not None
    return json.JSONDecoder().raw_decode(text[found.end() :])[0]


@pytest.fixture(scope="module")
def page(pristine: Checkout) -> str:
    # It is written into the folder that others copy, beside what they look at.
    if not (Path(snakemake.__file__).parent / "assets/data").is_dir():
        pytest.skip("Snakemake lacks the scripts of its report: install it from a wheel")
    done = pristine.snakemake("--report", "snakemake.html")
    assert done.returncode == 0, done.stdout
    return (pristine.folder / "snakemake.html").read_text()


def drawn(pristine: Checkout, study: str) -> dict[str, Path]:
    folder = pristine.folder / "results" / study / "figures"
    return {f"results/{study}/figures/{path.name}": path for path in folder.glob("*.svg")}


def test_figures_lie_by_system_and_study(page: str, pristine: Checkout) -> None:
    found = variable(page, "categories")
    assert list(found) == ["OnlineICA"]
    for study in ("first", "second"):
        assert set(found["OnlineICA"][study]) == set(drawn(pristine, study))
    assert drawn(pristine, "first")


def test_captions_say_what_is_drawn_and_the_answer(page: str, pristine: Checkout) -> None:
    results = variable(page, "results")
    for study in ("first", "second"):
        folder = pristine.folder / "results" / study
        listed = titles((folder / "figures" / CAPTIONS).read_text())
        answer = json.loads((folder / "card.json").read_text())["headline"]
        assert answer
        for path, figure in drawn(pristine, study).items():
            heading, title = listed[figure.stem]
            one = results[path]
            assert one["labels"] == {"figure": title, "topic": heading}
            assert one["mime_type"] == "image/svg+xml"
            assert f"answer: {answer}</p>" in one["caption"]
            assert f">{study}</" in one["caption"]
            assert "system-message" not in one["caption"]
    bias = results["results/first/figures/bias.svg"]["caption"]
    assert "<p><strong>Bias" in bias
    assert "Fluctuation" not in bias


def test_nothing_is_loaded_from_elsewhere_and_ten_studies_fit(
    page: str, pristine: Checkout
) -> None:
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="http', page)
    studies = ("first", "second")
    sizes = [path.stat().st_size for s in studies for path in drawn(pristine, s).values()]
    without = len(page) - 4 / 3 * sum(sizes)  # base64
    assert without > 2_000_000
    assert without + 4 / 3 * FIGURES < MOST
