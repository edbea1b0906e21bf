"""What the gallery shows of one report: a small file beside its page.

Cards are read back from disk, where anybody may have changed them: what is not as it was written
makes no card, and of the headline's marks only those stay that can do no harm.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from html import escape
from html.parser import HTMLParser
from typing import Any, Self

MOST = 2**20
"""Bytes of a card."""
LETTERS = 5_000
"""Of any text of a card but its picture."""
ROWS = 200
"""Findings of a card; the page's data have all."""
VERDICTS = ("", "agrees", "differs", "undecided")
MARKS = frozenset({"i", "em", "b", "strong", "sub", "sup", "code", "abbr"})
"""Marks that a headline may have, without attributes."""
START = "data:image/png;base64,"
"""Of the address of a picture that holds its data."""
KEY = re.compile(r"\w{0,200}")
PICTURE = re.compile(re.escape(START) + r"[A-Za-z0-9+/]+=*")


@dataclass(frozen=True)
class Card:
    """What is shown of a report.

    Parameters
    ----------
    study, title, description, system
        As the study says them.
    about
        What the system is, with the papers that it comes from; empty if it is not known.
    headline
        The answer, one sentence of HTML.
    verdict
        ``"agrees"``, ``"differs"``, ``"undecided"`` or empty.
    missing
        What is not computed yet; empty if nothing is.
    created
        When the results were published.
    figure
        Key of the panel in the picture; empty if the report has none.
    figure_title
        What it shows, in plain text.
    thumbnail
        The picture, an address that holds its data; empty for none.
    findings
        The first findings, records of texts and numbers.
    """

    study: str
    title: str
    description: str
    system: str
    about: str
    headline: str
    verdict: str
    missing: str
    created: str
    figure: str
    figure_title: str
    thumbnail: str
    findings: list[dict[str, str | float | None]]

    def written(self) -> bytes:
        """Content of its file."""
        return (json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n").encode()

    @classmethod
    def read(cls, raw: bytes) -> Self | None:
        """A card from its file; None if it is none."""
        try:
            content = json.loads(raw)
        except (ValueError, RecursionError):
            return None
        names = {field.name for field in fields(cls)}
        if not isinstance(content, dict) or not names <= content.keys():
            return None
        texts = {name: content[name] for name in names - {"findings"}}
        if not _records(content["findings"]):
            return None
        if not all(isinstance(text, str) for text in texts.values()):
            return None
        picture = texts["thumbnail"]
        if any(len(text) > LETTERS for name, text in texts.items() if name != "thumbnail"):
            return None
        if texts["verdict"] not in VERDICTS or not KEY.fullmatch(texts["figure"]):
            return None
        if picture and not PICTURE.fullmatch(picture):
            return None
        headline = harmless(texts["headline"])
        return cls(**texts | {"headline": headline, "findings": content["findings"]})


def _records(rows: Any) -> bool:
    """Whether something is a list of flat records."""
    return isinstance(rows, list) and all(
        isinstance(row, dict)
        and all(v is None or isinstance(v, str | int | float) for v in row.values())
        for row in rows
    )


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
