"""What is cited: a paper, and how BibTeX writes it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

_VENUE = {
    "article": "journal", "inproceedings": "booktitle", "book": "publisher",
    "unpublished": "note", "software": "note",
}  # fmt: skip
"""Kinds of entries, and the field of each that says where it was published."""
_ACCENTS = {
    "\u0300": r"\`", "\u0301": r"\'", "\u0302": r"\^", "\u0303": r"\~", "\u0304": r"\=",
    "\u0308": r"\"", "\u030a": r"\r ", "\u030b": r"\H ", "\u030c": r"\v ", "\u0327": r"\c ",
    "\u0328": r"\k ",
}  # fmt: skip
_LETTERS = {
    "ø": r"{\o}", "Ø": r"{\O}", "ł": r"{\l}", "Ł": r"{\L}", "ß": r"{\ss}", "æ": r"{\ae}",
    "ı": r"{\i}", "–": "--", "—": "---", "’": "'", "&": r"\&", "%": r"\%", "$": r"\$",
    "#": r"\#", "_": r"\_",
}  # fmt: skip


@dataclass(frozen=True)
class Paper:
    """What a system or a method comes from.

    Parameters
    ----------
    cite
        Authors and year, as ``"Wang and Lu 2017"``; methods whose ``equations`` say it rest on it.
    title
        Title alone.
    authors
        Each as ``"Family, Given"``; a name without a comma is one that is not taken apart.
    year
        Year of publication.
    venue
        Journal, proceedings or publisher; of what is unpublished, what is known of it.
    kind
        ``"article"``, ``"inproceedings"``, ``"book"``, ``"unpublished"`` or ``"software"``.
    more
        Further fields of BibTeX, such as ``{"volume": "14", "pages": "421--435"}``.
    named
        What else ``equations`` call it, such as the names of an algorithm.
    """

    cite: str
    title: str
    authors: tuple[str, ...] = ()
    year: int | None = None
    venue: str = ""
    kind: str = "article"
    more: Mapping[str, str] = field(default_factory=dict, hash=False)
    named: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Key of its entry: family name, year and the first long word of the title."""
        first = self.authors[0] if self.authors else self.cite
        family = _plain(first.partition(",")[0] if "," in first else self.cite.split()[0])
        if self.year is None:
            return family
        words = [_plain(word) for word in re.findall(r"\w+", self.title) if len(word) > 3]
        return f"{family}{self.year}{next((word for word in words if word != family), '')}"

    def named_in(self, equations: str) -> bool:
        """Whether the ``equations`` of a method say that it rests on this."""
        return any(name in equations for name in (self.cite, *self.named))

    def bibtex(self) -> str:
        """Its entry, in ASCII, without a line break at its end."""
        fields = {
            "author": " and ".join(n if "," in n else f"{{{n}}}" for n in self.authors),
            "title": f"{{{self.title}}}",
            _VENUE[self.kind]: self.venue,
            "year": "" if self.year is None else str(self.year),
            **self.more,
        }
        lines = [f"  {name} = {{{_tex(text, name)}}}" for name, text in fields.items() if text]
        return ",\n".join([f"@{self.kind}{{{self.key}", *lines]) + "\n}"


def _plain(text: str) -> str:
    """Lower-case ASCII letters and digits of a text, without accents."""
    bare = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]", "", bare.lower())


def _tex(text: str, name: str) -> str:
    """A text as TeX writes it with ASCII alone; addresses as they are."""
    if name in ("doi", "url", "eprint"):
        return text
    parts: list[str] = []
    for character in unicodedata.normalize("NFD", text):
        if character in _ACCENTS and parts:
            parts.append(f"{{{_ACCENTS[character]}{parts.pop()}}}")
        else:
            parts.append(_LETTERS.get(character, character))
    return "".join(parts)
