"""The gallery: one page with a card for every report of a folder, and the script that they share.

It is made of the cards that lie beside the reports, anew whenever a report is written, under a lock
of the folder, so that of reports written at once none is lost. Anybody may have changed cards on
the disk: what is not as it was written makes no card, and of the headline's marks only those stay
that can do no harm.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from pydantic import StringConstraints, TypeAdapter

from hdica.errors import HdicaError
from hdica.report import parts
from hdica.report.place import ALONE, CARD, DATA, FIGURES, PAGE
from hdica.store.files import Folder, made, read_regular, stands, written

INDEX = "index.html"
OURS = b'<meta name="generator" content="hdica gallery">'
"""What the index says of itself, so that nobody else's is replaced."""
HEAD = 2**12  # bytes at the beginning of an index among which it says so
FILM = r"\w{1,200}\.(gif|mp4)"  # names of animations
FEW = 6  # up to so many cards need no search
CARD_BYTES = 2**20  # bytes of a card
LETTERS = 5_000  # of any text of a card but its picture
ROWS = 200  # findings of a card; the page's data have all
MARKS = frozenset({"i", "em", "b", "strong", "sub", "sup", "code", "abbr"})
"""Marks that a headline may have, without attributes."""
PICTURE = rf"^({re.escape(parts.START)}[A-Za-z0-9+/]+=*)?$"
Short = Annotated[str, StringConstraints(max_length=LETTERS)]


@dataclass(frozen=True)
class Card:
    """What is shown of a report; texts are empty where there is nothing to say."""

    study: Short
    title: Short
    description: Short
    system: Short
    about: Short  # title of the system, with its papers
    headline: Short  # the answer, one sentence of HTML
    verdict: Annotated[str, StringConstraints(pattern=r"^(agrees|differs|undecided)?$")]
    missing: Short  # what is not computed yet
    created: Short
    figure: Annotated[str, StringConstraints(pattern=r"^\w*$", max_length=200)]  # key of the panel
    figure_title: Short
    thumbnail: Annotated[str, StringConstraints(pattern=PICTURE)]  # an address that holds its data
    findings: list[dict[str, str | int | float | None]]  # the first ones

    def written(self) -> bytes:
        """Content of its file."""
        return (json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n").encode()

    @staticmethod
    def read(raw: bytes) -> Card | None:
        """A card from its file; None if it is none."""
        try:
            card = _CARDS.validate_json(raw)
        except ValueError:
            return None
        return replace(card, headline=harmless(card.headline))


_CARDS = TypeAdapter(Card)


class _Harmless(HTMLParser):
    """Text with the marks of :data:`MARKS` alone, each closed where it was opened."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in MARKS:
            self.open.append(tag)
            self.out.append(f"<{tag}>")

    def handle_endtag(self, tag: str) -> None:
        while tag in self.open:
            self.out.append(f"</{(last := self.open.pop())}>")
            if last == tag:
                break

    def handle_data(self, data: str) -> None:
        self.out.append(escape(data))


def harmless(html: str) -> str:
    """HTML of which nothing but text and a few plain marks is left."""
    parser = _Harmless()
    parser.feed(html)
    parser.close()
    return "".join(parser.out) + "".join(f"</{tag}>" for tag in reversed(parser.open))


@dataclass(frozen=True)
class Shown:
    """A card and where its report lies."""

    card: Card
    folder: str  # as seen from the gallery, with a slash at its end; empty for the gallery's own
    alone: bool  # whether the page lies there as one file, too
    films: tuple[str, ...] = ()  # files of its first animation


def gallery_of(out: Path, store: Path | None) -> Path:
    """Folder of a report's gallery: that above with the store or a gallery, else its own."""
    above = Path(os.path.abspath(out)).parent
    has_store = store is not None and Path(os.path.abspath(store)).parent == above
    index, is_ours = above / INDEX, False
    with suppress(OSError, HdicaError):
        is_ours = OURS in (read_regular(index) or b"")[:HEAD]
    if is_ours or (has_store and not os.path.lexists(index)):
        return out.parent if out.name not in ("", "..") else above
    return out


def assets(out: Path, gallery: Path) -> str:
    """Address of what pages share, as seen from the page of a report."""
    own = os.path.abspath(out) == os.path.abspath(gallery)
    return f"{parts.ASSETS}/" if own else f"../{parts.ASSETS}/"


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
    name, content = parts.file_name(), parts.shared()
    with written(gallery), made(gallery) as top, top.below(parts.ASSETS) as below:
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
    yield from _card(top, "")
    for name in top.names():
        with suppress(OSError, HdicaError), top.below(name, made=False) as below:
            yield from _card(below, f"{quote(name)}/")


def _card(folder: Folder, address: str) -> Iterator[Shown]:
    """The card of the report in a folder; none without its page, which comes last."""
    names = set(folder.names())
    card = Card.read(folder.read(CARD, CARD_BYTES)) if {CARD, PAGE} <= names else None
    if card is None:
        return
    films: list[str] = []
    with suppress(OSError, HdicaError), folder.below(FIGURES, made=False) as below:
        films = sorted(name for name in below.names() if re.fullmatch(FILM, name))
    first = tuple(name for name in films if Path(name).stem == Path(films[0]).stem)
    yield Shown(card, address, ALONE in names, first)


def index(shown: list[Shown]) -> str:
    """The page of a gallery, by system and then by name of the study."""
    behaviour = parts.joined("index.js")
    return parts.template("index.html.j2").render(
        page=PAGE,
        alone=ALONE,
        data=DATA,
        figures=FIGURES,
        shown=sorted(shown, key=lambda one: (one.card.system, one.card.study, one.folder)),
        search=len(shown) > FEW,
        style=parts.joined("base.css", "index.css"),
        script=behaviour,
        digest=parts.digest(behaviour),
    )
