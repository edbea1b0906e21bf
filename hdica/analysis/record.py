"""The record of an analysis: what the study, the report and the manual read.

A record names functions of its folder without importing them: a study is checked in a fraction of
a second, without SciPy and without anything that draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hdica.analysis.settings import Settings

if TYPE_CHECKING:
    from hdica.show.finding import Finding


def lazy(package: str, name: str) -> Callable[..., Any]:
    """A function ``"module:function"`` of a package, imported when it is first called.

    The package of a record is the ``__name__`` of the module in which it stands.
    """
    module, _, function = name.partition(":")

    def call(*given: Any) -> Any:
        home = import_module(f"{package}.{module}")
        return getattr(home, function)(*given)

    call.__name__ = call.__qualname__ = function
    return call


@dataclass(frozen=True)
class Section:
    """Panels of a report, ``draw(data) -> [Panel, ...]``, under a heading of their own.

    ``name`` is the anchor on the page, and ``rank`` the place in reading order, the least first.
    ``films(data) -> [Film, ...]`` is what it shows over time, where an animation is asked for.
    """

    name: str
    heading: str
    draw: Callable[..., Any]
    rank: float
    films: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Answer:
    """What a report says of an analysis.

    Parameters
    ----------
    rank
        Place of the findings among those of other analyses, the least first.
    findings
        ``findings(data) -> [Finding, ...]``, the answer to the question first.
    notes
        ``notes(data) -> [sentence, ...]``: HTML about what has no number.
    topic
        Heading of the notes; by default that of the first section.
    """

    rank: float = 100
    findings: Callable[..., Sequence[Finding]] | None = None
    notes: Callable[..., Sequence[str]] | None = None
    topic: str = ""


@dataclass(frozen=True)
class Analysis:
    """A question to a published store, and how its answer is shown.

    Parameters
    ----------
    name
        In studies, and of its group in the aggregate.
    compute
        ``compute(tree, settings) -> Dataset``; without settings ``compute(tree)``, None where
        there is nothing to say.
    settings
        The class of its settings; None for what is computed whether or not a study asks for it.
    sections
        What a report draws of it.
    answer
        What a report says of it.
    """

    name: str
    compute: Callable[..., Any]
    settings: type[Settings] | None = None
    sections: tuple[Section, ...] = ()
    answer: Answer = Answer()

    @property
    def heading(self) -> str:
        """What its notes are about."""
        return self.answer.topic or next((one.heading for one in self.sections), self.name)
