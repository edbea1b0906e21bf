"""The checks of pages can fail: each finds the fault that is made for it, and not its like."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser import judge, look, wording

pytestmark = [pytest.mark.browser]
LIGHT, DARK, NARROW, PRINT = look.VIEWS
HEAD = (
    '<!DOCTYPE html><html lang="en"><head><title>page</title><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<style>body { margin: 0 } .plot { width: 300px; height: 200px } a { outline: none }"
    "</style></head><body><main><h1>Page</h1>"
)
WIDE = f"<table><tr>{'<td>measured number</td>' * 9}</tr></table>"


def svg(inner: str) -> str:
    """A plot as Plotly leaves it."""
    return (
        '<div class="plot js-plotly-plot" id="plot-one"><svg class="main-svg" width="300" '
        f'height="200" font-size="13">{inner}</svg></div>'
    )


def tick(x: float, words: str, turn: float = 0.0, y: float = 150) -> str:
    """A label of the lower axis."""
    turned = f'transform="rotate({turn},{x},{y})"' if turn else ""
    return f'<g class="xtick"><text x="{x}" y="{y}" {turned}>{words}</text></g>'


def said(browser: Any, folder: Path, body: str, view: look.View, *names: str) -> list[str]:
    """What the checks say of a page."""
    page = folder / "one" / "report.html"
    page.parent.mkdir(exist_ok=True)
    page.write_text(HEAD + body + "</main></body></html>")
    with look.opened(browser, page, look.View(view.name, view.width)) as shown:
        return shown.faults(*names)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("check", "bad", "good"),
    [
        ("overflow", '<p style="width: 500px">wide</p>', '<p style="width: 380px">wide</p>'),
        ("tables", WIDE, f'<div style="overflow-x: auto">{WIDE}</div>'),
        ("ticks", svg(tick(50, "0.125") + tick(70, "0.150")), svg(tick(50, "0.1") + tick(99, "1"))),
        (
            "ticks",
            svg(tick(50, "0.125", 40) + tick(53, "0.150", 40)),
            svg(tick(50, "0.125", 40) + tick(80, "0.150", 40)),
        ),
        (
            "ticks",
            svg(tick(50, "0.5") + tick(99, "1").replace("<text", '<text style="opacity: 0"')),
            svg(tick(50, "0.5") + tick(99, "1")),
        ),
        ("clipped", svg(tick(280, "0.125")), svg(tick(240, "0.125"))),
        (
            "crowded",
            svg(tick(50, "0.125") + '<text class="xtitle" x="50" y="152">time</text>'),
            svg(tick(50, "0.125") + '<text class="xtitle" x="50" y="180">time</text>'),
        ),
        ("folded", "<details><p>more</p></details>", "<details open><p>more</p></details>"),
    ],
)
def test_a_fault_is_found_and_its_like_is_none(
    check: str, bad: str, good: str, chromium: Any, tmp_path: Path
) -> None:
    found = said(chromium, tmp_path, bad, NARROW, check)
    assert [one.split(":")[1].strip() for one in found] == [check]
    assert said(chromium, tmp_path, good, NARROW, check) == []


def test_a_plot_that_is_not_drawn_is_found(chromium: Any, tmp_path: Path) -> None:
    note = '<div class="plot" id="plot-one"></div><p id="no-plots">none</p>'
    assert "is not drawn" in said(chromium, tmp_path, note, LIGHT, "drawn")[0]


def test_axe_finds_pale_words_and_a_field_without_a_name(
    chromium: Any, axe: Any, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    page.write_text(
        HEAD + '<p style="color: #aaa">pale</p><input type="text"></main></body></html>'
    )
    with look.opened(chromium, page, LIGHT) as shown:
        found = judge.severe(axe, shown.page)
    assert {re.findall(r"axe: ([\w-]+)", one)[0] for one in found} == {"color-contrast", "label"}


def test_a_heading_at_the_foot_of_a_sheet_is_found(chromium: Any, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    for space, orphans in ((912, 1), (700, 0)):
        page.write_text(
            f"{HEAD}<style>@page {{ size: A4; margin: 15mm }} h1 {{ margin: 0 }}</style>"
            f'<div style="height: {space}px"></div><h2 style="break-after: auto">Last</h2>'
            '<div style="break-inside: avoid; height: 400px">what it heads</div></main>'
        )
        with look.opened(chromium, page, LIGHT) as shown:
            printed = shown.paper(tmp_path / "page.pdf")
        assert [one.title for one in look.headings(printed)] == ["Page", "Last"]
        assert len(look.orphaned(printed)) == orphans


@pytest.mark.deep
def test_a_focus_that_is_not_seen_is_found(chromium: Any, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(HEAD + '<a href="#one">one</a><button>two</button></main></body></html>')
    with look.opened(chromium, page, LIGHT) as shown:
        found = judge.stops(shown.page)
    assert (found[0].what.split()[0], found[0].shown) == ("a", False)


def test_errors_of_the_console_and_requests_elsewhere_are_kept(
    chromium: Any, tmp_path: Path
) -> None:
    page = tmp_path / "one" / "report.html"
    page.parent.mkdir()
    script = (
        "<script>console.error('wrong'); fetch('file:///etc/hostname').catch(() => {})</script>"
    )
    page.write_text(HEAD + script + "</main></body></html>")
    with look.opened(chromium, page, LIGHT) as shown:
        shown.page.wait_for_timeout(200)
        assert any("wrong" in one for one in shown.complaints)
        assert any("asked for file:///etc/hostname" in one for one in shown.complaints)


def worded(caption: str, dash: str = "dot", axis: str = "{}", name: str = "") -> str:
    """A page with one figure of one line that is not in the legend."""
    trace = (
        '{"type": "scatter", "mode": "lines", "y": [1], "showlegend": false, '
        f'"name": "{name}", "line": {{"dash": "{dash}"}}}}'
    )
    return (
        f'<div id="plot-one"></div><figcaption>{caption}</figcaption><script id="figure-data">'
        f'{{"one": {{"data": [{trace}], "layout": {{"xaxis": {axis}}}}}}}</script>'
    )


def log_axis(*labels: str) -> str:
    """A logarithmic axis with ticks at powers of ten."""
    at = [10.0**k for k in range(len(labels))]
    return json.dumps({"type": "log", "ticktext": labels, "tickvals": at})


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        (worded("Dashed: theory."), worded("Dotted: theory.")),
        (worded("Theory."), worded("Dotted: theory.")),
        (worded("Dotted, in black: theory."), worded("Dotted: theory.")),
        (worded("Markers: runs.", "solid"), worded("Runs.", "solid")),
        (
            worded("", "solid", log_axis("5", "10<sup>3</sup>", "2 ")),
            worded("", "solid", log_axis("500", "10<sup>3</sup>")),
        ),
        (worded("", "solid", name="constants beta = 2"), worded("", "solid", name="β = 2")),
        (
            worded("", "solid", name="projection = 0"),
            worded("", "solid", name="<i>R</i><sub>11</sub>"),
        ),
        (worded("", "solid", name="limit (pde)"), worded("", "solid", name="limit (PDE)")),
        (
            worded("", "solid", log_axis(*["100000"] * 6)),
            worded("", "solid", log_axis(*["100000"] * 3)),
        ),
        (worded("", "solid", name="n = 2"), worded("", "solid", name="<i>n</i> = 2")),
        ("<h3>Q<sub>0</sub></h3>", "<h3><i>Q</i><sub>0</sub></h3>"),
        ("<p>dQ/dt = -tau Q^2</p>", "<p>dQ/dt = −τ Q²</p>"),
        ("<p>to 1e-12</p>", "<p>to 10⁻¹²</p>"),
        ("<p>max(7 - x, 0)</p>", "<p>max(7 − x, 0)</p>"),
        ("<p>eq. (1)-(2)</p>", "<p>eq. (1)–(2)</p>"),
        ("<p>where(abs(x) < 2, x, 0)</p>", "<p><code>where(abs(x) < 2, x, 0)</code></p>"),
    ],
)
def test_words_that_are_wrong_are_found(bad: str, good: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    for text, right in ((bad, False), (good, True)):
        page.write_text(text)
        assert (wording.faults(page, set()) == []) is right, text
