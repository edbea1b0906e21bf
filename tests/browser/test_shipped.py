"""Shipped pages: on a wide screen, on a telephone and on paper.

Pages that together have every analysis are seen in a browser and judged by axe, and those with more
than curves also in the dark, printed and on a telephone; pages that together have every method as
well are read. Those of a gallery are all read, and seen on a wide screen at least.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hdica.report.gallery import update
from tests.browser import judge, look, shipped, wording

pytestmark = [pytest.mark.deep, pytest.mark.timeout(600)]
LIGHT, DARK, NARROW, PRINT = look.VIEWS
Report = Callable[[str], Path]
Place = Callable[[str], Path | None]


@pytest.mark.browser
@pytest.mark.parametrize("name", shipped.every() if shipped.GALLERY else shipped.judged())
def test_on_a_screen_on_paper_and_on_a_telephone(
    name: str, report: Report, chromium: Any, axe: Any, kept: Place
) -> None:
    with look.opened(chromium, report(name), LIGHT) as shown:
        shown.picture(kept(f"{name}-light.png"))
        faults = shown.faults()
        if name in shipped.judged():
            faults += judge.severe(axe, shown.page)
        if name in shipped.turned():
            shown.turn(DARK)
            shown.picture(kept(f"{name}-dark.png"))
            faults += [*shown.faults(), *judge.severe(axe, shown.page, judge.CONTRAST)]
            shown.turn(LIGHT)
            faults += look.orphaned(shown.paper(kept(f"{name}.pdf")))
            shown.turn(PRINT)
            shown.picture(kept(f"{name}-print.png"))
            faults += shown.faults()
            shown.turn(NARROW)
            shown.picture(kept(f"{name}-narrow.png"))
            faults += [*shown.faults(), *judge.severe(axe, shown.page, judge.LAYOUT)]
        look.fine(faults + shown.complaints)


@pytest.mark.parametrize("name", shipped.names())
def test_names_are_typeset_and_captions_are_of_what_is_drawn(name: str, report: Report) -> None:
    look.fine(wording.faults(report(name), set(shipped.every())))


@pytest.mark.browser
@pytest.mark.parametrize("view", look.VIEWS, ids=lambda view: view.name)
def test_the_gallery_of_them_all(
    view: look.View, report: Report, chromium: Any, axe: Any, kept: Place
) -> None:
    pages = [report(name) for name in shipped.names()]
    top = pages[0].parents[1]
    index = top / "index.html" if shipped.GALLERY else update(top)
    with look.opened(chromium, index, view) as shown:
        shown.picture(kept(f"index-{view.name}.png"))
        faults = [*shown.faults("overflow"), *judge.severe(axe, shown.page)]
        assert shown.page.locator(".card").count() >= len(pages)
        if view.media == "print":
            faults += look.orphaned(shown.paper(kept("index.pdf")))
        look.fine(faults + shown.complaints)
