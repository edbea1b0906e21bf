"""The card of a report, made of what its page shows."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.show.answer import Answer
from hdica.analysis.show.panel import Panel
from hdica.report.answers import headline
from hdica.report.card import LETTERS, Card
from hdica.report.missing import missing
from hdica.report.thumbnail import thumbnail
from hdica.systems.registry import systems


def card_of(
    aggregate: xr.DataTree, sections: dict[str, list[Panel]], answer: Answer | None = None
) -> Card:
    """The card of a report, from what :func:`hdica.analysis.aggregate` returns and its panels.

    ``answer`` is the headline, for who has it already.
    """
    attrs, answer = aggregate.attrs, headline(aggregate) if answer is None else answer
    first = next((panel for found in sections.values() for panel in found), None)
    return Card(
        study=str(attrs["study"]),
        title=str(attrs["title"]),
        description=_cut(str(attrs.get("description", ""))),
        system=str(attrs["system"]),
        about=_about(str(attrs["system"])),
        headline=answer.html if len(answer.html) <= LETTERS else "",
        verdict=answer.verdict,
        missing=_cut(missing(aggregate["runs"].to_dataset())),
        created=str(attrs.get("created", "")),
        figure="" if first is None else first.key,
        figure_title="" if first is None else _cut(first.title.plain),
        thumbnail="" if first is None else thumbnail(first),
    )


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"


def _about(system: str) -> str:
    """What a system is, with its papers; empty if no plug-in that is loaded has it."""
    record = systems().get(system)
    if record is None:
        return ""
    papers = "; ".join(paper.cite for paper in record.papers)
    return _cut(f"{record.title} ({papers})" if papers else record.title)
