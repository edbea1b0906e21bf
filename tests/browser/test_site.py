"""Every page of the site that ``make docs`` has built, opened as a file and without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parents[2] / "build/docs/html"
pytestmark = [
    pytest.mark.deep,
    pytest.mark.browser,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="needs the site: make docs"),
]
ABOUT = """() => ({
    wider: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    pictures: [...document.images]
        .filter(one => !one.complete || !one.naturalWidth).map(one => one.src),
    links: [...document.links].map(one => one.href),
    names: [...document.querySelectorAll("[id]")].map(one => one.id),
    equations: [...document.querySelectorAll("math")]
        .filter(one => !one.getBoundingClientRect().width).length,
})"""


@pytest.fixture
def opened(chromium: Any) -> Iterator[Any]:
    """A function from a page and a width to what the page has, and what the console said."""
    context = chromium.new_context(offline=True)
    page, complaints = context.new_page(), list[str]()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))

    def look(file: Path, width: int) -> tuple[dict[str, Any], list[str]]:
        complaints.clear()
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(file.as_uri())
        for picture in page.locator("img[loading=lazy]").all():
            picture.scroll_into_view_if_needed()
        return page.evaluate(ABOUT), list(complaints)

    yield look
    context.close()


@pytest.mark.parametrize("width", [1400, 400])
def test_every_page_fits_its_window_and_every_link_leads_somewhere(opened: Any, width: int) -> None:
    pages = {file: opened(file, width) for file in sorted(SITE.rglob("*.html"))}
    assert len(pages) > 30
    faults = list[str]()
    for file, (about, complaints) in pages.items():
        name = file.relative_to(SITE).as_posix()
        faults += [f"{name}: {one}" for one in [*complaints, *about["pictures"]]]
        faults += [f"{name}: {about['wider']} px too wide"] * (about["wider"] > 0)
        faults += [f"{name}: {about['equations']} empty equations"] * (about["equations"] > 0)
        for link in about["links"]:
            parts = urlsplit(link)
            if parts.scheme == "file":
                target = Path(unquote(parts.path))
                there = pages.get(target)
                if not target.is_file():
                    faults.append(f"{name}: no {link}")
                elif parts.fragment and there and unquote(parts.fragment) not in there[0]["names"]:
                    faults.append(f"{name}: no place {link}")
    assert not faults, "\n".join(faults[:40])


def test_the_search_needs_no_network(chromium: Any) -> None:
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.goto(f"{(SITE / 'search.html').as_uri()}?q=errata")
    page.wait_for_selector("#search-results ul.search li a", timeout=30_000)
    found = page.locator("#search-results ul.search li a").all_inner_texts()
    assert any("errata" in text.lower() for text in found), found
    page.goto(f"{(SITE / 'search.html').as_uri()}?q=qwertzuiop")
    page.wait_for_timeout(2000)
    assert page.locator("#search-results ul.search li a").count() == 0
    context.close()
