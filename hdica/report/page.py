"""The page: one HTML file, which shares its plotting script with others or has it inside."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.account.account import sharing, table
from hdica.analysis.aggregate import COLUMNS, Summary, record, summary
from hdica.analysis.reading import study
from hdica.analysis.record import Analysis
from hdica.analysis.registry import analyses
from hdica.inputs.plain_yaml import written_yaml
from hdica.report import parts
from hdica.report.explored import explored, kinds, packed
from hdica.report.interactive import figure
from hdica.show.panel import Panel, Pictures
from hdica.show.terms import speaking_of_results
from hdica.show.wording import listed, table_of
from hdica.show.words import count, plural, symbol
from hdica.store.provenance import several

Table = dict[str, Any]  # columns of equal length, and their long names
DIGITS = 6  # significant digits in the page's tables; the netCDF file has all
BUDGET = 2_500_000  # most numbers times characters, roughly bytes, that the page embeds


EQUATIONS = ("method", "equations", "kernel")  # columns of the account of what was run


def panels(aggregate: xr.DataTree) -> dict[str, list[Panel]]:
    """All panels of a report by section, in reading order."""
    with speaking_of_results(aggregate.attrs):
        drawn = {
            section: _saying_n(
                section.draw(aggregate[analysis.name].to_dataset()), aggregate, analysis
            )
            for analysis in analyses().values()
            if analysis.name in aggregate
            for section in analysis.sections
        }
    return {s.name: drawn[s] for s in sorted(drawn, key=lambda s: s.rank) if drawn[s]}


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
    assets: str | None = f"{parts.ASSETS}/",
    content: Summary | None = None,
    films: Sequence[tuple[str, list[str]]] = (),
) -> str:
    """The whole page as text, of what :func:`hdica.analysis.aggregate` returns and its panels.

    ``assets`` is the address of the folder with the script that pages share, and ends with a slash;
    None for a page that has it inside. ``content`` is the summary of the aggregate, which is made
    here if it is None; ``films`` are titles and file names of animations among the figures.

    Everything a user wrote is escaped. Scripts run only if their digest is in the page's content
    security policy, which also forbids every request but that for the shared script, which has a
    nonce that depends on all of the page: even text that escaped the escaping could neither run nor
    load anything.
    """
    content = summary(aggregate) if content is None else content
    rows = [record(name, one) for name, some in content.findings.items() for one in some]
    columns = {name: _plain(np.array([row[name] for row in rows])) for name in COLUMNS}
    findings = {"findings": {"columns": columns, "long_name": {}}}
    embedded, left = _within_budget(findings | tables_of(aggregate))
    figures = {p.key: figure(p) for some in sections.values() for p in some}
    clickable = frozenset(k for k, one in figures.items() if "cells" in one["layout"]["meta"])
    heading = headings()
    runs, behaviour = aggregate["runs"].to_dataset(), parts.joined("plots.js", "page.js")
    around = explored(aggregate)
    tables = around.tables if around else ()
    scripts = [behaviour, *([parts.joined(*parts.EXPLORER)] if tables else [])]
    content_of_page = {
        "attrs": aggregate.attrs,
        "sections": [(name, heading[name], some) for name, some in sections.items()],
        "summary": content,
        "missing": missing(runs),
        "findings": table_of([one for some in content.findings.values() for one in some]),
        "runs": table(runs),
        "sharing": sharing(runs),
        "equations": list(zip(*(runs[k].values.tolist() for k in EQUATIONS), strict=True)),
        "study": _yaml(aggregate.attrs["study_yaml"]),
        "versions": json.loads(aggregate.attrs.get("package_versions") or "{}"),
        "processors": several(str(aggregate.attrs.get("processors", ""))),
        "left": left,
        "films": list(films),
        "figures": _embedded(figures),
        "data": _embedded(embedded),
        "downloads": {
            name: (len(next(iter(one["columns"].values()), ())), len(one["columns"]))
            for name, one in embedded.items()
        },
        "script": behaviour,
        "explored": around,
        "explored_data": packed(around) if around and tables else "",
        "explorer": scripts[1:],
        "served": False,
        "explorable": clickable if tables else frozenset(),
        **kinds(tables),
        "style": parts.joined(*parts.STYLES),
        "digests": [parts.digest(parts.plotly()), *map(parts.digest, scripts)],
        "shared": "" if assets is None else assets + parts.file_name(),
        "packed": parts.packed_plotly() if assets is None else "",
        "index": "" if assets is None else f"{assets.removesuffix(f'{parts.ASSETS}/')}index.html",
    }
    page = parts.template("page.html.j2")
    whole = page.render(**content_of_page, nonce="")
    if assets is None:
        return whole
    # Nobody can write a text into a page that holds what is made of that page.
    nonce = hashlib.sha256(whole.encode()).hexdigest()[:32]
    return page.render(**content_of_page, nonce=nonce)


def _yaml(text: str) -> str:
    """The study as the user would write it, without settings left empty."""
    study = {k: v for k, v in json.loads(text).items() if v not in (None, {}, "")}
    if isinstance(study.get("analysis"), dict):
        study["analysis"] = {k: v for k, v in study["analysis"].items() if v is not None}
    return written_yaml(study, width=80)


def _embedded(value: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def missing(runs: xr.Dataset) -> str:
    """Sentences on pending points, in plain text, of the account of runs over ``method``."""
    total, open_ = int(runs["points"].sum()), int(runs["pending"].sum())
    if not open_:
        return ""
    columns = (runs[name].values for name in ("method", "pending", "points"))
    of = [
        f"{method} {count(int(many))} of {count(int(points))}"
        for method, many, points in zip(*columns, strict=True)
        if many
    ]
    are = "is" if open_ == 1 else "are"
    return (
        f"This run has not finished: {count(open_)} of {plural(total, 'point')} {are} pending "
        f"({listed(of)}). What follows is of the points that are done."
    )


def tables_of(aggregate: xr.DataTree) -> dict[str, Table]:
    """Flat tables of every analysis, the smallest first, NaN as None.

    Variables with the same dimensions share a table, of columns of equal length, coordinates first:
    ``{"convergence by n, time": {"columns": {name: list}, "long_name": {name: text}}}``.
    """
    out: dict[str, Table] = {}
    for name, node in aggregate.children.items():
        data = node.to_dataset()
        by_dims: dict[tuple[str, ...], list[str]] = {}
        for variable, values in data.data_vars.items():
            by_dims.setdefault(tuple(map(str, values.dims)), []).append(str(variable))
        for dims, members in by_dims.items():
            key = f"{name} by {', '.join(dims)}" if dims else name
            out[key] = _flat(data, dims, members)
    return dict(sorted(out.items(), key=lambda item: _size(item[1])))


def _within_budget(every: dict[str, Table]) -> tuple[dict[str, Table], list[str]]:
    """The tables that fit into a page, and the names of those that do not."""
    used = accumulate(map(_size, every.values()))
    fits = [name for name, size in zip(every, used, strict=True) if size <= BUDGET]
    return {name: every[name] for name in fits}, [name for name in every if name not in fits]


def _flat(data: xr.Dataset, dims: tuple[str, ...], members: list[str]) -> Table:
    shape = tuple(data.sizes[d] for d in dims)
    columns = {
        d: _plain(data[d].values[grid.ravel()])
        for d, grid in zip(dims, np.indices(shape), strict=True)
    } | {member: _plain(data[member].values.ravel()) for member in members}
    return {
        "columns": columns,
        "long_name": {m: str(data[m].attrs.get("long_name", "")) for m in members},
    }


def _plain(values: np.ndarray) -> list[Any]:
    """JSON values: numbers to a few digits, None for NaN, text as it is."""
    if values.dtype.kind in "iub":
        return [int(v) for v in values]
    if values.dtype.kind == "f":
        return parts.rounded(values, DIGITS)
    return [str(v) for v in values]


def _size(table: Table) -> int:
    return sum(8 * len(column) for column in table["columns"].values())
