"""Without a mouse: Tab leads to everything that can be operated, and one sees where it stands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hdica.report.gallery import update
from tests.browser import judge, look

pytestmark = [pytest.mark.deep, pytest.mark.browser]
LIGHT = look.VIEWS[0]
FEW = (
    "tiny",
    "wang2017_fig1b",
    "rattray2002_fig2",
    "li2021_circle",
    "li2021_landscape",
    "li2021_thousand",
    "li2021_stages",
)
"""Studies that compute in a moment, more than a gallery needs to have a search."""


def hidden(stops: list[judge.Stop]) -> list[str]:
    """Stops of the keyboard that nobody sees."""
    return [f"the focus is not seen on {stop.what}" for stop in stops if not stop.shown]


@pytest.mark.parametrize("view", look.VIEWS[2:3], ids=lambda view: view.name)
def test_tab_leads_through_a_page(
    view: look.View, report: Callable[[str], Path], chromium: Any
) -> None:
    with look.opened(chromium, report("tiny"), view) as shown:
        found = judge.stops(shown.page)
        kinds = {stop.what.split()[0] for stop in found}
        assert found[0].what.startswith("a  Skip to the findings")
        assert {"a", "summary", "button"} <= kinds
        look.fine(hidden(found) + judge.unreached(shown.page, found))


def test_the_skip_link_leads_past_the_head(report: Callable[[str], Path], chromium: Any) -> None:
    with look.opened(chromium, report("tiny"), LIGHT) as shown:
        shown.page.keyboard.press("Tab")
        shown.page.keyboard.press("Enter")
        assert shown.page.evaluate("location.hash") == "#findings"
        shown.page.keyboard.press("Tab")
        assert shown.page.evaluate("!!document.activeElement.closest('#findings')")


def test_enter_unfolds_a_topic(report: Callable[[str], Path], chromium: Any) -> None:
    with look.opened(chromium, report("tiny"), LIGHT) as shown:
        topic = shown.page.locator("details.topic:not([open])").first
        said = topic.locator("li, p").first
        assert not said.is_visible()
        summary = shown.page.locator("details.topic:not([open]) > summary").first.element_handle()
        summary.focus()
        shown.page.keyboard.press("Enter")
        assert summary.evaluate("one => one.parentElement.open")


def test_a_gallery_is_searched_and_left_by_the_keyboard(
    report: Callable[[str], Path], chromium: Any
) -> None:
    pages = [report(name) for name in FEW]
    with look.opened(chromium, update(pages[0].parents[1]), LIGHT) as shown:
        page = shown.page
        found = judge.stops(page)
        look.fine(hidden(found) + judge.unreached(page, found))
        page.keyboard.press("Home")
        cards = page.locator(".card:visible")
        before = cards.count()
        assert before >= len(FEW)
        page.get_by_label("Search").focus()
        page.keyboard.type("few seconds")
        assert 0 < cards.count() < before
        assert page.locator("#found").inner_text() == f"{cards.count()} of {before}"
        page.keyboard.press("Tab")
        assert page.evaluate("!!document.activeElement.closest('.card:not([hidden])')")
        page.keyboard.press("Enter")
        page.wait_for_url("**/tiny/report.html")
        assert shown.complaints == []


def test_the_links_of_every_card_lead_to_files(report: Any, chromium: Any) -> None:
    """But for figures for print, which these reports lack."""
    pages = [report(name) for name in FEW[2:4]]
    top = pages[0].parents[1]
    with look.opened(chromium, update(top), LIGHT) as shown:
        links = shown.page.eval_on_selector_all(
            ".card a", "all => all.map((one) => one.getAttribute('href').split('#')[0])"
        )
        own = [link for link in links if Path(link).parts[0] in FEW[2:4]]
        own = [link for link in own if Path(link).suffix not in (".svg", ".pdf")]
        assert {Path(link).name for link in own} >= {"report.html", "aggregate.nc"}
        assert [link for link in own if not (top / link).is_file()] == []
        shown.page.locator(".card .picture").first.click()
        shown.page.wait_for_url("**/report.html")
