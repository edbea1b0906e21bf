"""An aggregate as the files of its report: the page, figures with captions, films, and its card."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from PIL import Image  # which Matplotlib needs anyway

from hdica.analysis.aggregate import Summary, record, summary
from hdica.analysis.registry import analyses
from hdica.report import gallery
from hdica.report.gallery import LETTERS, ROWS, Card
from hdica.report.page import headings, missing, panels, render
from hdica.report.parts import data_address
from hdica.report.place import ALONE, CARD, place
from hdica.report.printed import HEIGHT, draw, files, own_style
from hdica.show.panel import Film, Panel
from hdica.show.terms import speaking_of_results
from hdica.systems.system import lookup

CAPTIONS = "captions.rst"  # in the folder of the figures; no figure has this ending
ENDINGS = (".gif", ".mp4")

Shown = tuple[str, list[str]]  # what a film shows, HTML, and the names of its files
DPI = 150  # dots an inch: 510 wide, twice what a card shows
COLOURS = 64  # of the picture, which then weighs about 10 kB


def write_aggregate(
    aggregate: xr.DataTree,
    out: Path,
    top: Path | None = None,
    *,
    one_file: bool = False,
    animate: bool = False,
) -> list[Path]:
    """Write the report of an aggregate; ``top`` is the gallery's folder, ``out`` by default."""
    top = out if top is None else top
    drawn: dict[str, bytes] = {}
    with speaking_of_results(aggregate.attrs):
        sections = panels(aggregate)
        content = summary(aggregate)
        shown: list[Shown] = []
        if animate:
            from hdica.report import animated  # only now, for its imports take long

            for film in films(aggregate):
                movies = animated.files(film)
                drawn.update(movies)
                shown.append((film.title.html, list(movies)))
        page = render(aggregate, sections, gallery.assets(out, top), content, shown).encode()
        others = {CARD: card_of(aggregate, sections, content).written()}
        if one_file:
            others[ALONE] = render(aggregate, sections, None, content).encode()
        drawn[CAPTIONS] = captions(str(content.headline), sections, headings())
        for panel in (panel for section in sections.values() for panel in section):
            drawn.update(files(panel))
    # In memory: HDF5 would lock the file, and say of a full disk what it was doing when it failed.
    data = bytes(aggregate.to_netcdf(engine="h5netcdf"))
    shared = gallery.place_script(top)
    return [*place(out, page, data, drawn, others), shared, gallery.update(top)]


def captions(
    answer: str, sections: Mapping[str, Sequence[Panel]], headings: Mapping[str, str]
) -> bytes:
    """Content of the file, of the headline, the panels by section and the headings of sections."""
    blocks = [_block("/", f"<p>The study's answer: {answer}</p>" if answer else "")]
    for section, some in sections.items():
        for panel in some:
            about = f".. {panel.key}: {_line(headings[section])}: {_line(panel.title.plain)}\n"
            caption = f"<p><strong>{panel.title.html}.</strong> {panel.caption}</p>"
            blocks.append(about + _block(panel.key, caption))
    return "\n".join(blocks).encode()


def _block(key: str, html: str) -> str:
    body = f".. raw:: html\n\n   {_line(html)}\n\n" if html else ""
    return f".. [{key}]\n\n{body}.. [/{key}]\n"


def _line(text: str) -> str:
    return " ".join(text.split())


def titles(content: str) -> dict[str, tuple[str, str]]:
    """Heading of the section and title of every figure, by key, from the file."""
    entries = re.findall(r"^\.\. (\w+): (.*?): (.*)$", content, re.MULTILINE)
    return {key: (heading, title) for key, heading, title in entries}


def films(aggregate: xr.DataTree) -> list[Film]:
    """Everything that has a time in what :func:`hdica.analysis.aggregate` returns."""
    return [
        film
        for one in analyses().values()
        if one.name in aggregate
        for section in one.sections
        if section.films is not None
        for film in section.films(aggregate[one.name].to_dataset())
    ]


def film_notes(written: Iterable[Path]) -> list[str]:
    """What there is to say of the animations among the files of a report."""
    from hdica.report.animated import NO_PROGRAM, has_program

    made = [path for path in written if path.suffix in ENDINGS]
    if not made:
        return ["no animation: nothing here keeps densities at two or more snapshots"]
    missing = [] if has_program() else [f"no MP4: {NO_PROGRAM}"]
    return [*(f"animation: {path}" for path in made), *missing]


def card_of(
    aggregate: xr.DataTree, sections: dict[str, list[Panel]], content: Summary | None = None
) -> Card:
    """The card of a report, from an aggregate and its panels, with its summary if that is made."""
    attrs, content = aggregate.attrs, summary(aggregate) if content is None else content
    first = next((panel for some in sections.values() for panel in some), None)
    every = [record(name, one) for name, some in content.findings.items() for one in some]
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
        # JSON has no NaN: None stands for it.
        findings=[
            {k: v if isinstance(v, str) or np.isfinite(v) else None for k, v in one.items()}
            for one in every[:ROWS]
        ],
    )


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"


def _about(system: str) -> str:
    """Title of a system, with its papers; empty if no plug-in that is loaded has it."""
    if (record := lookup(system)) is None:
        return ""
    papers = "; ".join(paper.cite for paper in record.papers)
    return _cut(f"{record.title} ({papers})" if papers else record.title)


def thumbnail(panel: Panel) -> str:
    """A panel as the address of a small picture: the printed figure without title and legend."""
    out = io.BytesIO()
    with own_style():
        drawn = draw(panel)
        for legend in drawn.legends:
            legend.remove()
        for axes in drawn.axes:
            axes.set_title("", loc="left")
        drawn.set_figheight(HEIGHT)
        drawn.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    picture = Image.open(out).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    return data_address(picture, optimize=True)
