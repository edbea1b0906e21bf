"""The explorer's server in a browser: a slider is moved, a cell is clicked, points appear."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hdica.explore.answers import Answers
from hdica.explore.feed import Feed
from hdica.explore.server import serving
from hdica.run.runner import run
from hdica.study.study import Study
from tests.browser import judge, look

# Judges of pages, where a browser is.
from tests.browser.conftest import axe  # noqa: F401

pytestmark = [
    pytest.mark.deep,
    pytest.mark.browser,
    pytest.mark.timeout(600),
]
sync_api = pytest.importorskip("playwright.sync_api", reason="needs: pip install playwright")
PATIENCE = 120_000
FIGURES = ("map", "course", "cut", "density", "seeds")


class Visitor:
    """A page of the explorer, with what its console has complained of."""

    def __init__(
        self, browser: Any, address: str, scheme: str = "light", width: int = 1400
    ) -> None:
        viewport = {"width": width, "height": 1200}
        self.page = browser.new_page(viewport=viewport, color_scheme=scheme)
        self.complaints: list[str] = []
        self.page.on("console", self._told)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)
        self.address = address
        self.page.goto(address, timeout=PATIENCE)
        self.drawn(*FIGURES)

    def _told(self, message: Any) -> None:
        if message.type in ("error", "warning") and "willReadFrequently" not in message.text:
            self.complaints.append(message.text)

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.complaints.append(f"asked for {request.url}")

    def drawn(self, *names: str) -> None:
        for name in names:
            self.page.locator(f"#explore-{name}.js-plotly-plot").wait_for(timeout=PATIENCE)

    @property
    def said(self) -> str:
        return str(self.page.locator("#explore-said").inner_text())

    def value(self) -> float:
        return float(self.page.locator("#explore-value").inner_text().partition(" ± ")[0])

    def other(self, method: str) -> float:
        """The value of another method at the chosen point."""
        found = re.search(rf"; {method}: ([\d.]+)", self.said)
        assert found is not None, self.said
        return float(found[1])

    def point(self) -> dict[str, int]:
        found: dict[str, int] = json.loads(self.page.get_attribute("#explore", "data-point"))
        return found

    def expect_point(self, **wanted: int) -> None:
        self.page.wait_for_function(
            """wanted => {
              const point = JSON.parse(document.getElementById("explore").dataset.point);
              return Object.entries(wanted).every(([name, at]) => point[name] === at);
            }""",
            arg=wanted,
            timeout=PATIENCE,
        )

    def slider(self, axis: str) -> Any:
        return self.page.locator(f'#explore input[type=range][data-axis="{axis}"]')

    def click_cell(self, across: float, up: float) -> None:
        """Click where the map has some shares of its width and height, from its lower left."""
        area = self.page.locator("#explore-map .nsewdrag").first
        area.scroll_into_view_if_needed()
        box = area.bounding_box()
        x, y = box["x"] + across * box["width"], box["y"] + (1 - up) * box["height"]
        self.page.mouse.move(x - 2, y - 2)
        self.page.mouse.move(x, y)
        self.page.wait_for_timeout(300)  # Plotly knows what is under the pointer by then
        self.page.mouse.click(x, y)


@pytest.fixture(scope="module")
def address(whole: Path) -> Iterator[str]:
    with serving(Answers(Feed(whole))) as found:
        yield found


def test_a_slider_moves_the_time(chromium: Any, address: str) -> None:
    visitor = Visitor(chromium, address)
    assert visitor.point() == {"tau": 1, "Q0": 0, "n": 1, "time": 2, "snapshot": 0, "feature": 0}
    assert visitor.other("line") == pytest.approx(0.25 + 0.13 * 2)
    slider = visitor.slider("time")
    output = slider.locator("xpath=preceding-sibling::output")
    assert output.inner_text() == "2"
    slider.focus()
    slider.press("ArrowLeft")
    visitor.expect_point(time=1)
    assert output.inner_text() == slider.get_attribute("aria-valuetext") == "0.5"
    assert visitor.other("line") == pytest.approx(0.25 + 0.13 * 0.5)
    assert visitor.complaints == []


def test_a_click_on_a_cell_chooses_its_point(chromium: Any, address: str) -> None:
    visitor = Visitor(chromium, address)
    for across, up, tau, q0 in ((0.88, 0.75, 3, 1), (0.62, 0.25, 2, 0), (0.12, 0.75, 0, 1)):
        visitor.click_cell(across, up)
        visitor.expect_point(tau=tau, Q0=q0)
        step, start = (0.1, 0.13, 0.17, 0.2)[tau], (0.25, 0.5)[q0]
        assert visitor.other("line") == pytest.approx(start + step * 2)
    assert visitor.complaints == []


def test_what_has_no_value_is_told_with_the_reason(chromium: Any, address: str) -> None:
    visitor = Visitor(chromium, address, "dark")
    assert "6 of 6 runs failed: ZeroDivisionError: step size 0.13" in visitor.said
    key = visitor.page.locator("#explore-key li").all_inner_texts()
    assert key == ["diverged: 24", "failed: 24"]
    fills = visitor.page.evaluate(
        "document.getElementById('explore-map').data.filter((one) => one.type === 'heatmap')"
        ".map((one) => Array.from(one.z, (row) => Array.from(row, (v) => v ?? null)))"
    )
    assert fills[0] == [[None, 1, 0, None]] * 2
    assert [[value is None for value in row] for row in fills[1]] == [
        [False, True, True, False]
    ] * 2
    color = visitor.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert color == "rgb(18, 20, 23)"
    theory = visitor.page.evaluate(
        "document.getElementById('explore-course').data.filter((one) => one.meta?.ink)"
        ".map((one) => one.line.color)"
    )
    assert theory == ["#e9ebee"] * 2
    assert visitor.complaints == []


def test_single_seeds_are_a_histogram_with_theory(chromium: Any, address: str, whole: Path) -> None:
    from hdica.store.results import open_results

    visitor = Visitor(chromium, address)
    visitor.slider("tau").press("End")
    visitor.expect_point(tau=3)
    visitor.page.wait_for_function(
        "() => document.getElementById('explore-seeds').data.some((one) => one.type === 'bar'"
        " && one.y.length > 3)",
        timeout=PATIENCE,
    )
    traces = visitor.page.evaluate(
        "document.getElementById('explore-seeds').data.map((one) => [one.type, Array.from(one.x),"
        " Array.from(one.y), one.width])"
    )
    values = open_results(whole)["walk"]["Q"].sel(tau=0.2, Q0=0.25, n=30).isel(time=2).to_numpy()
    (_, centres, counts, width), *lines = traces
    edges = centres[0] - width / 2 + width * np.arange(len(centres) + 1)
    expected, _ = np.histogram(values, np.linspace(values.min(), values.max(), 6))
    assert counts == expected.tolist()
    assert (edges[0], edges[-1]) == pytest.approx((values.min(), values.max()), rel=1e-5)
    assert len(lines) == 2
    assert lines[0][1][0] == pytest.approx(0.25 + 0.2 * 2)
    bins = visitor.page.evaluate("hdicaExplore.bins([2, 2, 2])")
    assert bins == pytest.approx([1.9, 1.9667, 2.0333, 2.1], abs=1e-4)
    many = visitor.page.evaluate("hdicaExplore.bins(hdicaExplore.range(100))")
    assert (many[0], many[-1], len(many)) == (0, 99, 16)
    assert visitor.complaints == []


def test_other_variables_and_sides_are_shown_and_densities_play(
    chromium: Any, address: str
) -> None:
    visitor = Visitor(chromium, address)
    page = visitor.page
    for name in ("method", "variable", "x", "y", "along"):
        for value in page.locator(f"#explore-{name} option").evaluate_all(
            "all => all.map((one) => one.value)"
        ):
            page.locator(f"#explore-{name}").select_option(value)
            if name in ("method", "variable"):
                sync_api.expect(page.locator("#explore")).to_have_attribute(
                    f"data-{name}", value, timeout=PATIENCE
                )
    button = page.locator("#explore-play")
    button.click()
    visitor.expect_point(snapshot=1)
    sync_api.expect(button).to_have_text("Play", timeout=PATIENCE)
    assert page.locator("#explore-trouble").is_hidden()
    assert visitor.complaints == []


@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_is_fine(chromium: Any, address: str, axe: Any, width: int) -> None:  # noqa: F811
    visitor = Visitor(chromium, address, width=width)
    shown = look.Opened(visitor.page, look.View("served", width))
    look.wait_for_plots(visitor.page)
    # Of an odd number of figures the last takes the place of two.
    wide = visitor.page.locator("#explore figure.wide").all()
    assert [one.locator(".plot").get_attribute("id") for one in wide] == ["explore-seeds"]
    look.fine([*shown.faults(), *judge.severe(axe, visitor.page), *visitor.complaints])


def test_a_server_that_has_ended_is_told(chromium: Any, whole: Path) -> None:
    with serving(Answers(Feed(whole))) as found:
        visitor = Visitor(chromium, found)
    visitor.slider("time").press("ArrowLeft")
    trouble = visitor.page.locator("#explore-trouble")
    sync_api.expect(trouble).to_contain_text("hdica explore does not answer", timeout=PATIENCE)


def test_points_appear_while_a_run_goes_on(chromium: Any, study: Study, tmp_path: Path) -> None:
    out = tmp_path / "toy.zarr"
    run(study, out, shard=(0, 3), progress=False, block=4)
    feed = Feed(out)
    with serving(Answers(feed)) as found:
        visitor = Visitor(chromium, found)
        told = visitor.page.locator("#explore-computed")
        assert visitor.page.locator("#explore-progress").is_visible()
        assert "of 112 points are computed" in told.inner_text()
        slider = visitor.slider("tau").element_handle()
        run(study, out, progress=False, block=4)
        assert feed.look()
        sync_api.expect(told).to_contain_text("112 of 112", timeout=PATIENCE)
        sync_api.expect(visitor.page.locator("#explore-key")).to_contain_text("failed: 24")
        # The controls are the same as before: a reader may be moving one.
        assert slider.evaluate("one => one.isConnected")
        (out.with_suffix(".work") / "study.json").write_text("{")
        feed.look()
        trouble = visitor.page.locator("#explore-trouble")
        sync_api.expect(trouble).to_contain_text("study.json", timeout=PATIENCE)
        assert visitor.complaints == []
