"""The gallery: one page with a card for every report of a folder, and the script that they share.

It is made of the cards that lie beside the reports: no store is opened, and it is made anew
whenever a report is written, under a lock of the folder, so that of reports written at once none is
lost.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from hdica.errors import HdicaError
from hdica.report import script
from hdica.report.card import MOST, Card
from hdica.report.environment import source, template
from hdica.report.place import ALONE, CARD, DATA, FIGURES, PAGE
from hdica.store.files import Folder, made, read_regular, stands, written

INDEX = "index.html"
OURS = b'<meta name="generator" content="hdica gallery">'
"""What the index says of itself, so that nobody else's is replaced."""
HEAD = 2**12
"""Bytes at the beginning of an index among which it says so."""
FILM = r"\w{1,200}\.(gif|mp4)"
"""Names of animations."""
FEW = 6
"""Up to so many cards need no search."""


@dataclass(frozen=True)
class Shown:
    """A card and where its report lies.

    Parameters
    ----------
    card
        What is shown.
    folder
        Address of the report's folder as seen from the gallery, with a slash at its end; empty if
        it is the gallery's own.
    alone
        Whether the page lies there as one file, too.
    films
        Names of the files of its first animation among the figures; empty for none.
    """

    card: Card
    folder: str
    alone: bool
    films: tuple[str, ...] = ()


def gallery_of(out: Path, store: Path | None) -> Path:
    """Folder of the gallery to which the report in ``out`` belongs.

    That is the folder above, if the store lies in it, too, or if it has a gallery. Any other report
    has a gallery of its own.
    """
    above = Path(os.path.abspath(out)).parent
    beside = store is not None and Path(os.path.abspath(store)).parent == above
    index = above / INDEX
    if _is_ours(index) or (beside and not os.path.lexists(index)):
        return out.parent if out.name not in ("", "..") else above
    return out


def assets(out: Path, gallery: Path) -> str:
    """Address of what pages share, as seen from the page of a report."""
    own = os.path.abspath(out) == os.path.abspath(gallery)
    return f"{script.ASSETS}/" if own else f"../{script.ASSETS}/"


def check_gallery(gallery: Path) -> None:
    """Refuse a folder that cannot take a gallery, before the work for it. Nothing is made."""
    if not stands(gallery):
        return
    with written(gallery), made(gallery) as top:
        _check_index(top)
        top.try_out()


def _check_index(top: Folder) -> None:
    if top.check(INDEX) is not None and OURS not in top.read(INDEX, HEAD):
        raise HdicaError(
            f"{top.path / INDEX} was not written by hdica (move it away, or take another folder)"
        )


def place_script(gallery: Path) -> Path:
    """Put the script that pages share in its place, unless it is there."""
    name, content = script.file_name(), script.shared()
    with (
        written(gallery),
        made(gallery) as top,
        top.below(script.ASSETS) as below,
    ):
        below.remove_partials()
        if below.check(name) is None or below.read(name, len(content) + 1) != content:
            with below.beside(name, content) as partial:
                below.place(partial, name)
            below.sync()
        return below.path / name


def update(gallery: Path) -> Path:
    """Make the index of a folder anew from the cards that lie there; where it is."""
    with written(gallery), made(gallery) as top:
        top.remove_partials()
        with top.alone():
            _check_index(top)
            with top.beside(INDEX, index(list(_cards(top))).encode()) as partial:
                top.place(partial, INDEX)
            top.sync()
    return gallery / INDEX


def _cards(top: Folder) -> Iterator[Shown]:
    """Cards of the reports in a folder, its own and those one below; links are not followed."""
    if (own := _card(top, "")) is not None:
        yield own
    for name in top.names():
        with suppress(OSError), top.inside(name) as below:
            if (found := _card(below, f"{quote(name)}/")) is not None:
                yield found


def _card(folder: Folder, address: str) -> Shown | None:
    """The card of the report in a folder; None without its page, which comes last."""
    names = set(folder.names())
    if not {CARD, PAGE} <= names:
        return None
    card = Card.read(folder.read(CARD, MOST))
    return None if card is None else Shown(card, address, ALONE in names, _films(folder))


def _films(folder: Folder) -> tuple[str, ...]:
    """Files of the first animation of a report."""
    with suppress(OSError), folder.inside(FIGURES) as below:
        found = sorted(name for name in below.names() if re.fullmatch(FILM, name))
        return tuple(name for name in found if Path(name).stem == Path(found[0]).stem)
    return ()


def index(shown: list[Shown]) -> str:
    """The page of a gallery, by system and then by name of the study."""
    ordered = sorted(shown, key=lambda one: (one.card.system, one.card.study, one.folder))
    behaviour = source("index.js")
    return template("index.html.j2").render(
        shown=ordered,
        search=len(ordered) > FEW,
        page=PAGE,
        alone=ALONE,
        data=DATA,
        figures=FIGURES,
        style=source("base.css") + source("index.css"),
        script=behaviour,
        digest=script.digest(behaviour),
    )


def _is_ours(index: Path) -> bool:
    """Whether a file is the index of a gallery."""
    with suppress(OSError, HdicaError):
        return OURS in (read_regular(index) or b"")[:HEAD]
    return False
