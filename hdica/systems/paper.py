"""What is cited: papers by the name that sentences give them, and their entries of BibTeX."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Paper:
    """What a system or a method comes from.

    Parameters
    ----------
    cite
        Authors and year, as ``"Wang and Lu 2017"``; methods whose ``equations`` say it rest on it.
    title
        Title alone.
    entry
        Its entry of BibTeX, in ASCII, without a line break at its end; of its title alone if none
        is given.
    named
        What else ``equations`` call it, such as the names of an algorithm.
    """

    cite: str
    title: str
    entry: str = ""
    named: tuple[str, ...] = ()

    @property
    def bibtex(self) -> str:
        """Its entry, in ASCII, without a line break at its end."""
        key = re.sub(r"[^a-z0-9]", "", self.cite.lower())
        return self.entry or f"@misc{{{key},\n  title = {{{{{self.title}}}}}\n}}"

    @property
    def key(self) -> str:
        """Key of its entry."""
        return self.bibtex[self.bibtex.index("{") + 1 : self.bibtex.index(",")]

    def named_in(self, equations: str) -> bool:
        """Whether the ``equations`` of a method say that it rests on this."""
        return any(name in equations for name in (self.cite, *self.named))


@cache
def works() -> dict[str, Paper]:
    """The papers of ``works.bib`` by the name that cites them, in the order of the file."""
    text = files("hdica.systems").joinpath("works.bib").read_text(encoding="ascii")
    papers = {}
    for names, entry in re.findall(r"^% ([^\n]+)\n(@\w+\{.*?\n\})$", text, re.M | re.S):
        cite, *named = names.split("; ")
        title = re.search(r"^  title = \{\{(.*)\}\}", entry, re.M)
        papers[cite] = Paper(cite, title[1] if title else "", entry, tuple(named))
    return papers


def work(cite: str) -> Paper:
    """A paper of ``works.bib`` by the name that cites it."""
    return works()[cite]
