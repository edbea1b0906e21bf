"""The explorer in a browser: a slider is moved, a cell is clicked, points appear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hdica.run.runner import run
from hdica.study.study import Study

pytestmark = [
    pytest.mark.deep,
    pytest.mark.browser,
    pytest.mark.timeout(600),
]
pytest.importorskip("panel", reason='needs Panel: pip install "hdica[explore]"')
sync_api = pytest.importorskip("playwright.sync_api", reason="needs: pip install playwright")
PATIENCE = 120_000


class Visitor:
    """A page of the explorer, with what its console has complained of."""

    def __init__(self, browser: Any, address: str, scheme: str = "light") -> None:
        self.page = browser.new_page(viewport={"width": 1400, "height": 1200}, color_scheme=scheme)
        self.complaints: list[str] = []
        self.page.on("console", self._told)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)
        self.address = address
        self.page.goto(address, timeout=PATIENCE)
        self.page.get_by_text("Single seeds at the chosen point").wait_for(timeout=PATIENCE)

    def _told(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.complaints.append(f"asked for {request.url}")

    def value(self, method: str) -> str:
        return self.page.locator("tr", has_text=method).locator("td").first.inner_text()

    def wait_until_not(self, method: str, before: str) -> str:
        cell = self.page.locator("tr", has_text=method).locator("td").first
        sync_api.expect(cell).not_to_have_text(before, timeout=PATIENCE)
        return cell.inner_text()


@pytest.fixture(scope="module")
def address(whole: Path) -> Iterator[str]:
    from hdica.explore.feed import Feed
    from hdica.explore.server import serving
    from hdica.explore.surfaces import Surfaces
    from hdica.explore.view.start import page_of

    feed, surfaces = Feed(whole), Surfaces()
    with serving(lambda: page_of(feed, surfaces)) as found:
        yield found


def test_a_slider_moves_the_time(chromium: Any, address: str) -> None:
    visitor = Visitor(chromium, address)
    before = visitor.value("line")
    times = visitor.page.get_by_text(re.compile(r"^t: ")).first
    assert times.inner_text() == "t: 2"
    handle = (
        visitor.page.locator(".bk-input-group, .bk-Slider", has_text=re.compile(r"^t: "))
        .locator(".noUi-handle")
        .first
    )
    handle.focus()
    handle.press("ArrowLeft")
    after = visitor.wait_until_not("line", before)
    assert times.inner_text() == "t: 0.5"
    assert float(after) == pytest.approx(0.25 + 0.13 * 0.5)
    assert visitor.complaints == []


def test_a_click_on_a_cell_chooses_its_point(chromium: Any, address: str) -> None:
    visitor = Visitor(chromium, address)
    before = visitor.value("line")
    box = visitor.page.locator(".bk-Figure").first.bounding_box()
    assert box is not None
    # Right of the middle and above it: the last but one of four step sizes, the upper start.
    visitor.page.mouse.click(box["x"] + box["width"] * 0.75, box["y"] + box["height"] * 0.3)
    after = visitor.wait_until_not("line", before)
    values = {0.5 + tau * 2 for tau in (0.17, 0.2)}
    assert any(float(after) == pytest.approx(value) for value in values)
    assert (
        visitor.page.get_by_text("Q₀: 0.5").count() or visitor.page.get_by_text("Q0: 0.5").count()
    )
    assert visitor.complaints == []


def test_what_has_no_value_is_told_with_the_reason(chromium: Any, address: str) -> None:
    visitor = Visitor(chromium, address, "dark")
    text = visitor.page.locator("tr", has_text="walk").inner_text()
    assert "6 failed" in text
    assert "step size 0.13" in text
    assert "diverged: 24" in visitor.page.locator("li", has_text="diverged").inner_text()
    color = visitor.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert color == "rgb(22, 25, 29)"
    assert visitor.complaints == []


def test_points_appear_while_a_run_goes_on(chromium: Any, study: Study, tmp_path: Path) -> None:
    from hdica.explore.feed import Feed
    from hdica.explore.server import serving
    from hdica.explore.surfaces import Surfaces
    from hdica.explore.view.start import page_of

    out = tmp_path / "toy.zarr"
    run(study, out, shard=(0, 3), progress=False, block=4)
    feed, surfaces = Feed(out), Surfaces()
    with serving(lambda: page_of(feed, surfaces)) as found:
        visitor = Visitor(chromium, found)
        told = visitor.page.locator("p", has_text="points are computed")
        before = told.inner_text()
        run(study, out, progress=False, block=4)
        assert feed.look()
        sync_api.expect(told).not_to_have_text(before, timeout=PATIENCE)
        assert "112 of 112" in told.inner_text()
        assert visitor.complaints == []
