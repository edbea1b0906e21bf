"""What a page does in a browser: its own script and no other, plots, saving, what it says."""

from __future__ import annotations

import base64
import gzip
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from hdica.report.page import panels, render
from tests.browser import look

pytestmark = [pytest.mark.deep, pytest.mark.browser]
LIGHT, DARK, NARROW, _ = look.VIEWS


def drawn(shown: look.Opened) -> int:
    """How many plots a page has, all of them drawn."""
    look.fine(shown.faults("drawn"))
    return int(shown.page.locator(".plot.js-plotly-plot").count())


def stolen(shown: look.Opened) -> bool:
    """Whether a script that is not the page's own has run."""
    return bool(shown.page.evaluate("document.body.id === 'stolen'"))


def test_hostile_text_does_not_run(written: list[Path], chromium: Any) -> None:
    with look.opened(chromium, written[0], LIGHT) as shown:
        assert drawn(shown) >= 7
        assert shown.page.get_by_role("button", name="CSV").count() >= 5
        assert not stolen(shown)
        assert shown.complaints == []


def test_a_script_that_is_not_the_pages_own_does_not_run(
    written: list[Path], chromium: Any, tmp_path: Path
) -> None:
    text = written[0].read_text(encoding="utf-8")
    changed = tmp_path / "report" / "changed.html"
    shutil.copytree(written[0].parent, changed.parent)
    extra = '<script>document.body.id = "stolen"</script></body>'
    changed.write_text(text.replace("</body>", extra), encoding="utf-8")
    with look.opened(chromium, changed, LIGHT) as shown:
        assert not stolen(shown)
        assert any("Content Security Policy" in line for line in shown.complaints)


def test_a_page_as_one_file_draws_with_nothing_beside_it(
    aggregated: xr.DataTree, chromium: Any, tmp_path: Path
) -> None:
    alone = tmp_path / "alone.html"
    alone.write_text(render(aggregated, panels(aggregated), None), encoding="utf-8")
    with look.opened(chromium, alone, LIGHT) as shown:
        assert drawn(shown) >= 7
        assert shown.complaints == []


def test_a_page_saves_itself_as_one_file(
    written: list[Path], chromium: Any, tmp_path: Path
) -> None:
    with look.opened(chromium, written[0], LIGHT) as shown:
        places = drawn(shown)
        with shown.page.expect_download() as saving:
            shown.page.get_by_role("button", name="Save this page as one file").click()
        saving.value.save_as(tmp_path / "saved.html")
    with look.opened(chromium, tmp_path / "saved.html", LIGHT) as shown:
        assert drawn(shown) == places
        assert shown.complaints == []


def test_numbers_are_saved_as_csv(written: list[Path], chromium: Any, tmp_path: Path) -> None:
    with look.opened(chromium, written[0], LIGHT) as shown:
        line = shown.page.locator("#tables li").first
        rows, columns = re.findall(r"(\d+) (?:row|column)", line.inner_text())
        with shown.page.expect_download() as saving:
            line.get_by_role("button").click()
        saving.value.save_as(tmp_path / "table.csv")
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert len(lines) == int(rows) + 1
    assert len(lines[0].split(",")) == int(columns)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, r"assets/plotly-.*js is not there"),
        (b'globalThis.hdicaPlotly="H4sI";', r"assets/plotly-.*js is not what it was"),
    ],
)
def test_a_page_without_its_script_says_so_and_shows_the_rest(
    written: list[Path], chromium: Any, tmp_path: Path, content: bytes | None, said: str
) -> None:
    folder = tmp_path / "report"
    shutil.copytree(written[0].parent, folder)
    (script,) = (folder / "assets").iterdir()
    if content is None:
        script.unlink()
    else:
        script.write_bytes(content)
    with look.opened(chromium, folder / "report.html", LIGHT) as shown:
        note = shown.page.locator("#no-plots")
        note.wait_for()
        assert re.search(f"The plots are not drawn: {said}", note.inner_text())
        assert shown.page.locator(".plot.js-plotly-plot").count() == 0
        assert shown.page.get_by_role("button", name="CSV").count() >= 5


def test_another_script_in_the_shared_file_does_not_run(
    written: list[Path], chromium: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "report"
    shutil.copytree(written[0].parent, folder)
    (script,) = (folder / "assets").iterdir()
    other = base64.b64encode(gzip.compress(b"globalThis.Plotly = 1; document.body.id = 'stolen'"))
    script.write_text(f'globalThis.hdicaPlotly="{other.decode()}";')
    with look.opened(chromium, folder / "report.html", LIGHT) as shown:
        assert not stolen(shown)
        assert "is not what it was" in shown.page.locator("#no-plots").inner_text()


def test_printing_unfolds_the_findings_and_folds_them_again(
    written: list[Path], chromium: Any, tmp_path: Path
) -> None:
    folded = "document.querySelectorAll('details:not([open]):not(.long)').length"
    with look.opened(chromium, written[0], LIGHT) as shown:
        before = shown.page.evaluate(folded)
        assert before > 0
        shown.page.evaluate(
            "addEventListener('beforeprint', () => { window.atPrint = " + folded + " })"
        )
        shown.paper(tmp_path / "page.pdf")
        assert shown.page.evaluate("window.atPrint") == 0
        shown.page.wait_for_function(f"{folded} === {before}", timeout=look.PATIENCE)


def test_the_dark_has_light_words_and_paper_has_dark_ones(
    written: list[Path], chromium: Any
) -> None:
    ink = "getComputedStyle(document.querySelector('.plot .xtitle')).fill"
    with look.opened(chromium, written[0], DARK) as shown:
        assert shown.page.evaluate(ink) == "rgb(233, 235, 238)"
        shown.turn(look.View("paper", look.SHEET, scheme="dark", media="print"))
        assert shown.page.evaluate(ink) == "rgb(22, 24, 29)"
