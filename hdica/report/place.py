"""Where the files of a report go, and how they take their places together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType

from hdica.store.files import made, stands, written

TITLE = "hdica figure "  # what the title of a figure's files begins with; its key follows
PAGE, DATA, FIGURES = "report.html", "aggregate.nc", "figures"
CARD, ALONE = "card.json", "report-alone.html"
"""What the gallery shows of the report, and the page as one file to send."""
HEAD = 2**12  # bytes at the beginning of a page among which it names its study
MOST = 2**26  # bytes of a figure, beyond which it is none of ours


def is_figure(name: str, content: bytes) -> bool:
    """Whether a file is a figure or a film of ours, under the name that it had then."""
    key = re.sub(r"\.(svg|pdf|gif|mp4)$", "", name)
    title = re.search(re.escape(TITLE.encode()) + rb"(\w+)(?:[<)\0]|\Z)", content)
    return key != name and title is not None and title[1] == key.encode()


def check(out: Path) -> None:
    """Refuse a folder that cannot take a report, before the work for it. Nothing is made."""
    if not stands(out):
        return
    with written(out), made(out) as top:
        for name in (PAGE, DATA, CARD, ALONE):
            top.check(name)
        top.try_out()
        if stands(out / FIGURES):
            with top.below(FIGURES) as below:
                below.try_out()


def place(
    out: Path,
    page: bytes,
    data: bytes,
    drawn: Mapping[str, bytes],
    others: Mapping[str, bytes] = MappingProxyType({}),
) -> list[Path]:
    """Put a report in its folder, when all its files are on disk; the files, the page first.

    ``others`` are the card, and the page as one file. What an earlier report has left of these and
    of figures goes. The folder itself is not exchanged for a new one: a web server or a shell may
    stand in it, a disk may be mounted there, and it may have files of somebody else.
    """
    with (
        written(out, "; what was there before is kept"),
        made(out) as top,
        top.below(FIGURES) as below,
        ExitStack() as new,
    ):
        top.remove_partials()
        below.remove_partials()
        for name in (CARD, ALONE):
            top.check(name)
        front = new.enter_context(top.beside(PAGE, page))
        numbers = new.enter_context(top.beside(DATA, data))
        figures = {k: new.enter_context(below.beside(k, v)) for k, v in drawn.items()}
        partials = {k: new.enter_context(top.beside(k, v)) for k, v in others.items()}
        with top.alone():
            if _study(top.read(PAGE, HEAD)) != _study(page):
                # Rather none for a moment than one beside the figures of another study.
                top.remove(PAGE)
            for name, partial in figures.items():
                below.place(partial, name)
            for name in below.names():  # of an earlier report; what is not ours stays
                if name not in drawn and is_figure(name, below.read(name, MOST)):
                    below.remove(name)
            below.sync()
            top.place(numbers, DATA)
            for name in (CARD, ALONE):
                if name in partials:
                    top.place(partials[name], name)
                else:
                    top.remove(name)
            top.place(front, PAGE)
            top.sync()
    named = [PAGE, DATA, *others]
    return [*(out / name for name in named), *(out / FIGURES / name for name in drawn)]


def _study(page: bytes) -> bytes | None:
    """The study whose report a page is, None if it does not say so."""
    study = re.search(rb'<meta name="study" content="([^"]*)">', page[:HEAD])
    return study[1] if study else None
