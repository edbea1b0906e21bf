"""The explorer of a page in a browser: what is chosen and said, against the means."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import xarray as xr

from hdica.report import drawn as reports
from hdica.report.page import panels, render
from tests.browser.shipped import unwritten

pytestmark = [
    pytest.mark.deep,
    pytest.mark.browser,
    pytest.mark.timeout(600),
]
sync_api = pytest.importorskip("playwright.sync_api", reason="needs: pip install playwright")
PATIENCE = 120_000


class Reader:
    """A reader of a page, with what its console has complained of."""

    def __init__(self, browser: Any, path: Path, **screen: Any) -> None:
        viewport = {"width": screen.pop("width", 1280), "height": 900}
        self.page = browser.new_page(viewport=viewport, **screen)
        self.complaints: list[str] = []
        self.page.on("console", self._told)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri(), timeout=PATIENCE)
        self.section = self.page.locator("#explore")
        self.drawn("course")

    def _told(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def drawn(self, name: str) -> Any:
        place = self.page.locator(f"#explore-{name}.js-plotly-plot")
        place.wait_for(timeout=PATIENCE)
        return place

    @property
    def point(self) -> dict[str, int]:
        found: dict[str, int] = json.loads(self.section.get_attribute("data-point"))
        return found

    def slider(self, axis: str) -> Any:
        return self.section.locator(f'input[type=range][data-axis="{axis}"]')

    @property
    def said(self) -> str:
        return str(self.page.locator("#explore-said").inner_text())

    def value(self) -> tuple[float, float]:
        """The value that is said, and its error."""
        text = self.page.locator("#explore-value").inner_text().replace("−", "-")
        value, _, error = text.partition(" ± ")
        return float(value), float(error or "nan")

    def expect_point(self, **wanted: int) -> None:
        for _ in range(600):
            if all(self.point[name] == at for name, at in wanted.items()):
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"{self.point}, not {wanted}")

    def click_cell(self, plot: str, across: float, up: float) -> None:
        """Click where a heat map has some shares of its width and height, from its lower left."""
        area = self.page.locator(f"{plot} .nsewdrag").first
        area.scroll_into_view_if_needed()
        box = area.bounding_box()
        x, y = box["x"] + across * box["width"], box["y"] + (1 - up) * box["height"]
        self.page.mouse.move(x - 2, y - 2)
        self.page.mouse.move(x, y)
        self.page.wait_for_timeout(300)
        self.page.mouse.click(x, y)


def agrees(reader: Reader, aggregate: xr.DataTree, method: str, variable: str) -> None:
    """What is said is what the aggregate has at the point that the section names."""
    data = aggregate["points"][method].to_dataset()
    at = {k: v for k, v in reader.point.items() if k in data[variable].dims}
    value, error = reader.value()
    mean = float(data[variable].isel(at))
    assert value == pytest.approx(mean, rel=2e-5, abs=_half_digit(reader))
    if f"{variable}_error" in data and np.isfinite(error):
        known = float(data[f"{variable}_error"].isel(at))
        assert error == pytest.approx(known, rel=0.1)


def _half_digit(reader: Reader) -> float:
    """Half of the last digit in which the value is written."""
    text = reader.page.locator("#explore-value").inner_text().split(" ± ")[0]
    decimals = len(text.partition(".")[2])
    return 0.51 * 10.0**-decimals


@pytest.fixture(scope="module")
def laws(aggregated_laws: xr.DataTree, tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Nothing looks at figures for print, which take most of the time.
    with patch.object(reports, "files", unwritten):
        return reports.write_aggregate(aggregated_laws, tmp_path_factory.mktemp("laws"))[0]


def test_sliders_move_by_the_keyboard(
    chromium: Any, written: list[Path], aggregated: xr.DataTree
) -> None:
    reader = Reader(chromium, written[0])
    agrees(reader, aggregated, "chain", "Q")
    for axis in ("tau", "Q0", "n", "time"):
        slider, before = reader.slider(axis), reader.said
        at = int(slider.input_value())
        assert at == reader.point[axis]
        slider.focus()
        slider.press("ArrowLeft" if at else "ArrowRight")
        reader.expect_point(**{axis: at - 1 if at else 1})
        output = slider.locator("xpath=preceding-sibling::output").inner_text()
        assert slider.get_attribute("aria-valuetext") == output
        assert reader.said != before
        agrees(reader, aggregated, "chain", "Q")
    assert reader.complaints == []


def test_a_click_on_the_map_chooses_a_point(
    chromium: Any, written: list[Path], aggregated: xr.DataTree
) -> None:
    reader = Reader(chromium, written[0])
    reader.drawn("map")
    for across, up, wanted in ((0.8, 0.8, (1, 1)), (0.2, 0.7, (0, 1)), (0.8, 0.2, (1, 0))):
        reader.click_cell("#explore-map", across, up)
        reader.expect_point(tau=wanted[0], Q0=wanted[1])
        assert int(reader.slider("tau").input_value()) == wanted[0]
        agrees(reader, aggregated, "chain", "Q")
    assert reader.complaints == []


def test_a_click_on_the_phase_diagram_leads_to_its_point(
    chromium: Any, written: list[Path], aggregated: xr.DataTree
) -> None:
    reader = Reader(chromium, written[0], reduced_motion="reduce")
    reader.slider("tau").press("Home")
    reader.expect_point(tau=0)
    reader.click_cell("#plot-phase_success", 0.8, 0.3)
    reader.expect_point(tau=1, Q0=0)
    assert reader.page.evaluate("document.activeElement.id") == "explore-said"
    box = reader.page.locator("#explore-said").bounding_box()
    assert 0 <= box["y"] <= 900
    agrees(reader, aggregated, "chain", "Q")
    assert reader.complaints == []


def test_other_methods_and_variables_are_shown(
    chromium: Any, written: list[Path], aggregated: xr.DataTree
) -> None:
    reader = Reader(chromium, written[0], color_scheme="dark")
    point = reader.point
    reader.page.locator("#explore-method").select_option("ode")
    assert reader.section.get_attribute("data-method") == "ode"
    assert {k: v for k, v in reader.point.items() if k in point} == {
        k: v for k, v in point.items() if k != "n"
    }
    agrees(reader, aggregated, "ode", "Q")
    for method in reader.page.locator("#explore-method option").all():
        reader.page.locator("#explore-method").select_option(method.get_attribute("value"))
        for name in reader.page.locator("#explore-variable option").all():
            value = name.get_attribute("value")
            reader.page.locator("#explore-variable").select_option(value)
            assert reader.section.get_attribute("data-variable") == value
            shown = reader.page.locator("#explore-value").inner_text()
            if shown != "–":
                agrees(reader, aggregated, reader.section.get_attribute("data-method"), value)
    reader.page.wait_for_timeout(1000)
    assert reader.complaints == []


def test_densities_play_to_their_end_with_axes_at_rest(chromium: Any, laws: Path) -> None:
    reader = Reader(chromium, laws)
    place = reader.drawn("density")
    last = int(reader.slider("snapshot").get_attribute("max"))
    assert last >= 1
    assert reader.point["snapshot"] == 0
    axes = "place => JSON.stringify([place.layout.xaxis.range, place.layout.yaxis.range])"
    drawn = "place => JSON.stringify(place.data.map((trace) => Array.from(trace.y)))"
    before = place.evaluate(axes)
    first = place.evaluate(drawn)
    button = reader.page.locator("#explore-play")
    button.click()
    reader.expect_point(snapshot=last)
    sync_api.expect(button).to_have_text("Play", timeout=PATIENCE)
    for _ in range(100):
        after = place.evaluate(drawn)
        if after != first:
            break
        reader.page.wait_for_timeout(100)
    assert after != first
    assert place.evaluate(axes) == before
    assert reader.complaints == []


def test_densities_are_those_of_the_results(
    chromium: Any, laws: Path, aggregated_laws: xr.DataTree
) -> None:
    reader = Reader(chromium, laws)
    place = reader.drawn("density")
    curves = place.evaluate(
        "place => place.data.filter((t) => t.showlegend).map((t) => [t.meta.key, Array.from(t.y)])"
    )
    assert len(curves) >= 2
    for key, drawn in curves:
        method, variable = key.split("/")
        data = aggregated_laws["points"][method].to_dataset()[variable]
        at = {k: v for k, v in reader.point.items() if k in data.dims}
        at |= {d: -1 for d in data.dims if d not in at and d != data.attrs["along"]}
        np.testing.assert_allclose(
            np.array(drawn, float), data.isel(at).values, rtol=2.0**-16, atol=1e-30
        )


@pytest.mark.parametrize("width", [400])
def test_a_page_as_one_file_explores_alike(
    chromium: Any, aggregated: xr.DataTree, tmp_path: Path, width: int
) -> None:
    path = tmp_path / "alone.html"
    path.write_text(render(aggregated, panels(aggregated), None), encoding="utf-8")
    reader = Reader(chromium, path, width=width)
    reader.drawn("cut")
    agrees(reader, aggregated, "chain", "Q")
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= width
    assert reader.complaints == []


def test_a_page_that_saves_itself_has_its_explorer(
    chromium: Any, written: list[Path], aggregated: xr.DataTree, tmp_path: Path
) -> None:
    reader = Reader(chromium, written[0])
    with reader.page.expect_download(timeout=PATIENCE) as waiting:
        reader.page.locator("#alone").click()
    saved = tmp_path / "saved.html"
    waiting.value.save_as(saved)
    again = Reader(chromium, saved)
    agrees(again, aggregated, "chain", "Q")
    assert again.point == reader.point
    assert again.complaints == []


def test_on_paper_there_are_figures_and_no_controls(chromium: Any, written: list[Path]) -> None:
    reader = Reader(chromium, written[0])
    reader.drawn("cut")
    reader.page.emulate_media(media="print")
    sync_api.expect(reader.page.locator("#explore-controls")).to_be_hidden()
    sync_api.expect(reader.page.locator("#explore-course")).to_be_visible()
    sync_api.expect(reader.page.locator("#explore-said")).to_contain_text(re.compile("Q = "))
    assert reader.complaints == []
