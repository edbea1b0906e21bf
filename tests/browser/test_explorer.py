"""The explorer of shipped pages: sliders by the keyboard, cells by a click, in every view."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser import judge, look

pytestmark = [pytest.mark.deep, pytest.mark.browser, pytest.mark.timeout(600)]
LIGHT, DARK, NARROW, PRINT = look.VIEWS
Report = Callable[[str], Path]
SLIDERS = "#explore input[type=range]"


def explored(shown: look.Opened) -> Any:
    """The section of the explorer; skipped where a page has none."""
    section = shown.page.locator("#explore")
    if not section.count():
        pytest.skip("this page has no explorer")
    return section


def point(shown: look.Opened) -> dict[str, int]:
    """The chosen point, a position along each axis."""
    found: dict[str, int] = json.loads(shown.page.get_attribute("#explore", "data-point"))
    return found


def wait_for_point(shown: look.Opened, axis: str, at: int) -> None:
    """Wait until another position along an axis is chosen."""
    shown.page.wait_for_function(
        "([axis, at]) => JSON.parse(document.getElementById('explore').dataset.point)[axis] === at",
        arg=[axis, at],
        timeout=look.PATIENCE,
    )


@pytest.mark.parametrize("view", [NARROW], ids=lambda view: view.name)
def test_every_slider_chooses_by_the_keyboard(
    view: look.View, report: Report, chromium: Any, axe: Any
) -> None:
    with look.opened(chromium, report("tiny"), view) as shown:
        explored(shown)
        axes = shown.page.eval_on_selector_all(SLIDERS, "all => all.map((one) => one.dataset.axis)")
        assert {"tau", "Q0", "n"} <= set(axes)
        for axis in axes:
            slider = shown.page.locator(f"{SLIDERS}[data-axis='{axis}']")
            before, said = point(shown)[axis], shown.page.inner_text("#explore-said")
            words = slider.get_attribute("aria-valuetext")
            assert words == slider.locator("xpath=..").locator("output").inner_text()
            step = -1 if before == int(slider.get_attribute("max")) else 1
            slider.focus()
            slider.press("ArrowLeft" if step < 0 else "ArrowRight")
            wait_for_point(shown, axis, before + step)
            assert slider.get_attribute("aria-valuetext") != words
            assert shown.page.inner_text("#explore-said") != said
        look.wait_for_plots(shown.page)
        look.fine([*shown.faults(), *judge.severe(axe, shown.page), *shown.complaints])


@pytest.mark.parametrize("plot", ["#explore-map", "#plot-phase_overlap"])
def test_a_click_on_a_cell_chooses_its_point(plot: str, report: Report, chromium: Any) -> None:
    with look.opened(chromium, report("tiny"), LIGHT) as shown:
        explored(shown)
        area = shown.page.locator(f"{plot} .nsewdrag").first
        for across, up in ((0.1, 0.1), (0.9, 0.9)):
            area.scroll_into_view_if_needed()
            box = area.bounding_box()
            at = {"x": across * box["width"], "y": (1 - up) * box["height"]}
            area.hover(position={"x": at["x"] + 3, "y": at["y"]})
            area.hover(position=at)
            shown.page.wait_for_timeout(300)  # Plotly knows what is under the pointer by then
            area.click(position=at)
            wanted = 0 if across < 0.5 else 2
            wait_for_point(shown, "tau", wanted)
            wait_for_point(shown, "Q0", wanted)
        look.fine(shown.complaints)


def test_another_method_and_variable_are_shown(report: Report, chromium: Any) -> None:
    with look.opened(chromium, report("tiny"), LIGHT) as shown:
        section = explored(shown)
        for name in ("method", "variable"):
            choice = shown.page.locator(f"select#explore-{name}")
            for value in choice.locator("option").evaluate_all("all => all.map((o) => o.value)"):
                choice.select_option(value)
                assert section.get_attribute(f"data-{name}") == value
        look.fine(shown.complaints)


def test_densities_play(report: Report, chromium: Any) -> None:
    with look.opened(chromium, report("wang2016_fig1"), LIGHT) as shown:
        explored(shown)
        shown.page.locator("#explore-density.js-plotly-plot").wait_for(timeout=look.PATIENCE)
        button = shown.page.locator("#explore-play")
        before = button.inner_text()
        button.click()
        shown.page.wait_for_function(
            "before => document.getElementById('explore-play').textContent === before",
            arg=before,
            timeout=look.PATIENCE,
        )
        look.fine(shown.complaints)


def test_on_paper_there_are_no_sliders(report: Report, chromium: Any) -> None:
    with look.opened(chromium, report("tiny"), PRINT) as shown:
        explored(shown)
        assert shown.page.locator(SLIDERS).count() > 0
        assert shown.page.locator(f"{SLIDERS}:visible").count() == 0
        look.fine(shown.faults())
