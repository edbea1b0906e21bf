"""The card of a report, made of what its page shows."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.findings import Summary, record, summary
from hdica.report.card import LETTERS, ROWS, Card
from hdica.report.missing import missing
from hdica.report.thumbnail import thumbnail
from hdica.show.panel import Panel
from hdica.systems.registry import lookup


def card_of(
    aggregate: xr.DataTree, sections: dict[str, list[Panel]], content: Summary | None = None
) -> Card:
    """The card of a report, from what :func:`hdica.analysis.aggregate` returns and its panels.

    ``content`` is the summary of the aggregate, which is made here if it is None.
    """
    attrs, content = aggregate.attrs, summary(aggregate) if content is None else content
    first = next((panel for found in sections.values() for panel in found), None)
    return Card(
        study=str(attrs["study"]),
        title=str(attrs["title"]),
        description=_cut(str(attrs.get("description", ""))),
        system=str(attrs["system"]),
        about=_about(str(attrs["system"])),
        headline=str(content.headline) if len(content.headline) <= LETTERS else "",
        verdict=content.verdict,
        missing=_cut(missing(aggregate["runs"].to_dataset())),
        created=str(attrs.get("created", "")),
        figure="" if first is None else first.key,
        figure_title="" if first is None else _cut(first.title.plain),
        thumbnail="" if first is None else thumbnail(first),
        findings=_records(content),
    )


def _records(content: Summary) -> list[dict[str, str | float | None]]:
    """The first findings as plain data; JSON has no NaN, so that None stands for it."""
    every = [record(name, one) for name, some in content.findings.items() for one in some]
    return [
        {k: v if isinstance(v, str) or np.isfinite(v) else None for k, v in one.items()}
        for one in every[:ROWS]
    ]


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"


def _about(system: str) -> str:
    """What a system is, with its papers; empty if no plug-in that is loaded has it."""
    record = lookup(system)
    if record is None:
        return ""
    papers = "; ".join(paper.cite for paper in record.papers)
    return _cut(f"{record.title} ({papers})" if papers else record.title)
