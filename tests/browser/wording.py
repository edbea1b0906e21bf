"""What a page says, without a browser: names in their symbols, captions of what is drawn, ticks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

GREEK = "alpha|beta|delta|epsilon|eta|theta|kappa|lambda|mu|nu|xi|rho|sigma|tau|phi|psi|omega"
RAW = re.compile(
    rf"\b(?:{GREEK})\d?\b|\b[QR]0\b|\bR[1-9]{{2}}\b|\b\w+_\w+|\*\*|\w\s?\*\s?\w|\w\^"
    r"|\b(?:where|abs|sqrt)\(|\bconstants[ ._]\w+ =|<=|>=|->|\b(?:projection|source) = \d"
    r"|\b[op]de\b|(?<![\w.])\d+(?:\.\d+)?e[+-]?\d+\b|[\w)|] - [\w(|]|\)-\(|(?<=[(=] )-\w"
)
"""Names of parameters, formulas, numbers and comparisons as they are typed."""
UPRIGHT = re.compile(r"(?<![\w>;])[A-Za-z](?: = |<sub>)")
"""A letter in the place of a symbol that is not italic."""
LETTER = 0.04
"""Share of a level axis that a letter takes on a telephone."""
COLOURS = re.compile(r"\b(?:black|white|gr[ea]y|blue|red|green|orange|purple|pink|ink)\b", re.I)
TICK = re.compile(r"\d+(?:\.\d+)?|(?:\d+(?:\.\d+)?×)?10<sup>−?\d+</sup>")
"""The label of a logarithmic axis: a whole number."""
LINES = {"dash": r"\b[Dd]ashed\b", "dot": r"\b[Dd]otted\b", "dashdot": r"\b[Dd]ash-dotted\b"}
POINTS = r"(?:Markers|Points|Dots|Circles|Triangles|squares): "


class _Words(HTMLParser):
    """Words and labels that a reader meets, but for code and data."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.closed, self.found = 0, [""]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.closed += tag in SILENT
        self.found += [value for key, value in attrs if key == "aria-label" and value]
        if tag not in INLINE:
            self.found.append("")
        self.found[-1] += BREAK if tag in ("sub", "sup") else ""

    def handle_endtag(self, tag: str) -> None:
        self.closed -= tag in SILENT
        if tag not in INLINE:
            self.found.append("")

    def handle_data(self, data: str) -> None:
        if not self.closed:
            self.found[-1] += data


BREAK = "·"
"""Stands before what is below or above the line, which belongs to a symbol."""
SILENT = ("script", "style", "code", "pre")
INLINE = ("i", "b", "em", "sub", "sup", "span", "strong", "abbr")


def plain(html: str) -> str:
    """Text of HTML."""
    return unescape(re.sub(r"<[^>]+>", "", re.sub("<su[bp]>", BREAK, html)))


def figures(page: str) -> dict[str, dict[str, Any]]:
    """Plotly figures of a page, by their keys."""
    found = re.search(r'id="figure-data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1]) if found else {}


def captions(page: str) -> dict[str, str]:
    """Captions of a page, by the keys of their figures."""
    found = re.findall(r'id="plot-(\w+)".*?<figcaption>(.*?)</figcaption>', page, re.DOTALL)
    return {key: plain(re.sub(r'<span class="on-screen">.*', "", text)) for key, text in found}


def _texts(page: str) -> Iterator[str]:
    words = _Words()
    words.feed(page)
    yield from words.found
    for one in figures(page).values():
        layout = one["layout"]
        yield from (plain(trace.get("name") or "") for trace in one["data"])
        axes = (layout.get(name, {}) for name in ("xaxis", "yaxis"))
        yield from (plain(axis.get("title", {}).get("text", "")) for axis in axes)
        yield from (plain(note["text"]) for note in layout.get("annotations", []))


def raw_names(page: str, studies: set[str]) -> list[str]:
    """Names and formulas that are not typeset.

    Methods and studies have names of their own, which readers type; a processor, too.
    """
    own = studies | set(re.findall(r"<dt><code>(\w+)</code></dt>", page)) | {"x86_64"}
    found = []
    for text in _texts(page):
        some = {one for one in RAW.findall(text) if one.strip() not in own}
        found += [f"{sorted(some)} in {text.strip()[:120]!r}"] if some else []
    return found


def upright_symbols(page: str) -> list[str]:
    """Titles and legends of figures with symbols that are not italic, as those in the text are."""
    titles = re.findall(r"<h3>(.*?)</h3>", page)
    names = [trace.get("name") or "" for one in figures(page).values() for trace in one["data"]]
    return [f"upright: {text}" for text in (*titles, *names) if UPRIGHT.search(text)]


def faults_of_captions(page: str) -> list[str]:
    """Captions that name colours or what is not drawn, and marks that nothing names."""
    every, found = figures(page), []
    for key, text in captions(page).items():
        found += [f"{key}: {word}" for word in COLOURS.findall(text)]
        traces = [t for t in every[key]["data"] if _drawn(t)]
        shapes = every[key]["layout"].get("shapes", [])
        lines = [t for t in traces if t["type"] == "scatter" and "lines" in t["mode"]]
        dashes = {(t.get("line") or {}).get("dash") for t in lines}
        legend = {t["line"].get("dash") for t in lines if t.get("showlegend", True)}
        for dash, word in LINES.items():
            named = re.search(word, text) is not None
            if named and dash not in dashes | {s["line"].get("dash") for s in shapes}:
                found.append(f"{key}: no line is {dash}: {text}")
            if dash in dashes - legend and not (named or "dash by" in text):
                found.append(f"{key}: nothing names the lines that are {dash}: {text}")
        marked = any("markers" in t.get("mode", "") for t in traces)
        if re.search(POINTS, text) and not marked:
            found.append(f"{key}: no points are drawn: {text}")
    return found


def _drawn(trace: dict[str, Any]) -> bool:
    y = trace.get("y") or trace.get("z") or [1]
    return any(value is not None for value in y)


def faults_of_ticks(page: str) -> list[str]:
    """Logarithmic axes whose ticks are not all whole numbers."""
    found = []
    for key, one in figures(page).items():
        for name in ("xaxis", "yaxis"):
            axis = one["layout"].get(name, {})
            labels = axis.get("ticktext", [])
            if axis.get("type") == "log" and not (
                labels and all(TICK.fullmatch(label) for label in labels)
            ):
                found.append(f"{key}: {name} has the ticks {labels}")
            elif axis.get("type") == "log" and name == "xaxis" and _turned(axis):
                found.append(f"{key}: the ticks {labels} do not stand side by side")
    return found


def _turned(axis: dict[str, Any]) -> bool:
    """Whether labels below an axis have too little room on a telephone, where they are turned."""
    at = [math.log(value) for value in axis["tickvals"]]
    wide = [len(re.sub(r"<sup>.*?</sup>", "1", label)) for label in axis["ticktext"]]
    room = [LETTER * (a + b) / 2 for a, b in pairwise(wide)]
    return any(
        after - before < need * (at[-1] - at[0])
        for (before, after), need in zip(pairwise(at), room, strict=True)
    )


def faults(path: Path, studies: set[str]) -> list[str]:
    """Everything that is wrong with the words of a page."""
    page = path.read_text(encoding="utf-8")
    return [
        *raw_names(page, studies),
        *upright_symbols(page),
        *faults_of_captions(page),
        *faults_of_ticks(page),
    ]
