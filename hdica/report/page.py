"""The page: one HTML file, which shares its plotting script with others or has it inside."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import xarray as xr
from ruamel.yaml import YAML

from hdica.analysis.account.account import sharing, table
from hdica.analysis.findings import Summary, summary
from hdica.analysis.reading import study
from hdica.analysis.record import Analysis
from hdica.analysis.registry import analyses
from hdica.report import export, script
from hdica.report.environment import source, template
from hdica.report.explored import Explored, explored
from hdica.report.interactive import figure
from hdica.report.missing import missing
from hdica.report.packed import packed
from hdica.show.marks import bands
from hdica.show.panel import Panel, Pictures
from hdica.show.terms import speaking_of
from hdica.show.wording import listed, table_of
from hdica.show.words import count, symbol
from hdica.store.provenance import several

STYLES = ("base.css", "page.css", "explore.css")
"""Style sheets of the page, in this order."""
EXPLORER = ("explore_data.js", "explore_figures.js", "explore.js")
"""Scripts of the explorer, in the order in which they are run, before that of the page."""


def _kinds(around: Explored | None) -> dict[str, Any]:
    """Whether the explorer has means over seeds and whether it has theory, and its caption."""
    tables = around.tables if around else ()
    runs, theory = any(t.seeds for t in tables), any(not t.seeds for t in tables)
    return {"runs_shown": runs, "theory_shown": theory, "bands": bands(runs, theory)}


def panels(aggregate: xr.DataTree) -> dict[str, list[Panel]]:
    """All panels of a report by section, in reading order."""
    with speaking_of(str(aggregate.attrs.get("system", ""))):
        found = {
            section: _saying_n(
                section.draw(aggregate[analysis.name].to_dataset()), aggregate, analysis
            )
            for analysis in analyses().values()
            if analysis.name in aggregate
            for section in analysis.sections
        }
    return {s.name: found[s] for s in sorted(found, key=lambda s: s.rank) if found[s]}


def _saying_n(drawn: list[Panel], aggregate: xr.DataTree, analysis: Analysis) -> list[Panel]:
    """Panels of a section; where they name some n and not all, the first says which they lack."""
    items = [item for panel in drawn for item in panel.items if not isinstance(item, Pictures)]
    texts = [panel.title.plain for panel in drawn] + [item.label.plain for item in items]
    texts += [re.sub(r"<[^>]+>", "", panel.caption) for panel in drawn]
    every = _sizes(aggregate, analysis.name)
    shown = [n for n in every if re.search(rf"n = {count(n)}(?![\d\u202f])", " ".join(texts))]
    left = [count(n) for n in every if n not in shown]
    if not shown or not left:
        return drawn
    text = f"Not drawn, but in the data: {symbol('n').html} = {listed(left)}."
    return [replace(drawn[0], caption=f"{drawn[0].caption} {text}".lstrip()), *drawn[1:]]


def _sizes(aggregate: xr.DataTree, name: str) -> list[int]:
    """Dimensions of the methods that the settings of an analysis name; of all if they name none."""
    if "runs" not in aggregate:
        return []
    settings = (study(aggregate).get("analysis") or {}).get(name)
    named = json.dumps(settings) if settings else ""
    runs = aggregate["runs"].to_dataset()
    pairs = zip(runs["method"].values, runs["n"].values, strict=True)
    texts = [str(text) for method, text in pairs if not named or f'"{method}"' in named]
    return sorted({int(n) for text in texts for n in re.findall(r"\d+(?=,|$)", text)})


def headings() -> dict[str, str]:
    """Headings of all sections by their names."""
    return {s.name: s.heading for one in analyses().values() for s in one.sections}


def render(
    aggregate: xr.DataTree,
    sections: dict[str, list[Panel]],
    assets: str | None = f"{script.ASSETS}/",
    content: Summary | None = None,
    films: Sequence[tuple[str, list[str]]] = (),
) -> str:
    """The whole page as text, of what :func:`hdica.analysis.aggregate` returns and its panels.

    ``assets`` is the address of the folder with the script that pages share, as seen from the page,
    and ends with a slash; None for a page that has it inside and needs nothing else. ``content`` is
    the summary of the aggregate, which is made here if it is None; ``films`` are titles and file
    names of animations among the figures.

    Everything a user wrote is escaped. Scripts run only if their digest is in the page's content
    security policy, which also forbids every request but that for the shared script. That one is
    known by a nonce which depends on all of the page: even text that escaped the escaping could
    neither run nor load anything.
    """
    content = summary(aggregate) if content is None else content
    records = {"findings": export.of_findings(content.findings)}
    kept, left = export.within_budget(records | export.tables(aggregate))
    figures = {p.key: figure(p) for found in sections.values() for p in found}
    heading = headings()
    runs, behaviour = aggregate["runs"].to_dataset(), source("page.js")
    around = explored(aggregate)
    looking = around is not None and bool(around.tables)
    scripts = [behaviour, *(["\n".join(map(source, EXPLORER))] if looking else [])]
    parts = {
        "attrs": aggregate.attrs,
        "sections": [(name, heading[name], found) for name, found in sections.items()],
        "summary": content,
        "missing": missing(runs),
        "findings": table_of([one for some in content.findings.values() for one in some]),
        "runs": table(runs),
        "sharing": sharing(runs),
        "equations": _equations(runs),
        "study": _yaml(aggregate.attrs["study_yaml"]),
        "versions": json.loads(aggregate.attrs.get("package_versions") or "{}"),
        "processors": several(str(aggregate.attrs.get("processors", ""))),
        "left": left,
        "films": list(films),
        "figures": _embedded(figures),
        "data": _embedded(kept),
        "script": behaviour,
        "explored": around,
        "explored_data": packed(around, aggregate) if around and around.tables else "",
        "explorer": scripts[1:],
        "explorable": _explorable(figures) if looking else frozenset(),
        **_kinds(around),
        "style": "".join(map(source, STYLES)),
        "digests": [script.plotting_digest(), *map(script.digest, scripts)],
        **_plotting(assets),
    }
    page = template("page.html.j2")
    if assets is None:
        return page.render(**parts, nonce="")
    # Nobody can write a text into a page that holds what is made of that page.
    nonce = hashlib.sha256(page.render(**parts, nonce="").encode()).hexdigest()[:32]
    return page.render(**parts, nonce=nonce)


def _explorable(figures: dict[str, dict[str, Any]]) -> frozenset[str]:
    """Figures on whose cells a reader can click to look at the point."""
    return frozenset(k for k, one in figures.items() if "cells" in one["layout"]["meta"])


def _plotting(assets: str | None) -> dict[str, str]:
    """Where the plotting script is: its address, or itself."""
    if assets is None:
        return {"shared": "", "packed": script.packed(), "index": ""}
    above = assets.removesuffix(f"{script.ASSETS}/")
    return {"shared": assets + script.file_name(), "packed": "", "index": f"{above}index.html"}


def _equations(data: xr.Dataset) -> list[tuple[str, str, str]]:
    columns = (data[name].values.tolist() for name in ("method", "equations", "kernel"))
    return list(zip(*columns, strict=True))


def _yaml(text: str) -> str:
    """The study as the user would write it, without settings left empty."""
    study = {k: v for k, v in json.loads(text).items() if v not in (None, {}, "")}
    if isinstance(study.get("analysis"), dict):
        study["analysis"] = {k: v for k, v in study["analysis"].items() if v is not None}
    writer, out = YAML(typ="safe", pure=True), io.StringIO()
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.default_flow_style = None
    writer.allow_unicode = True
    writer.dump(study, out)
    return out.getvalue()


def _embedded(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text
