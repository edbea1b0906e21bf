"""What hdica has to know of an analysis: one record, read by the study, the report and the manual.

A record names functions of its folder without importing them: a study is checked in a fraction of
a second, without SciPy and without anything that draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hdica.analysis.settings import Settings
from hdica.analysis.show.answer import Answer


def lazy(record: str, name: str) -> Callable[..., Any]:
    """A function ``"module:function"`` beside a record, imported when it is first called.

    The record is told by the ``__name__`` of its module.
    """
    module, _, function = name.partition(":")

    def call(*given: Any) -> Any:
        found = import_module(f"{record.rpartition('.')[0]}.{module}")
        return getattr(found, function)(*given)

    call.__name__ = call.__qualname__ = function
    return call


@dataclass(frozen=True)
class Section:
    """Panels of a report under a heading of their own.

    Parameters
    ----------
    name
        Anchor on the page.
    heading
        Above the panels.
    draw
        ``draw(data) -> [Panel, ...]``.
    rank
        Place in reading order, the least first.
    films
        ``films(data) -> [Film, ...]``: what it shows over time, where an animation is asked for.
    """

    name: str
    heading: str
    draw: Callable[..., Any]
    rank: float
    films: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Verdicts:
    """A table of verdicts, on the page below the figures.

    Parameters
    ----------
    caption
        Above the table.
    build
        ``build(data) -> Table``.
    whole
        Whether verdicts are on means over seeds, as the words on the page explain them, and not
        on a law.
    note
        What its verdicts mean, HTML; empty where the words on the page do.
    """

    caption: str
    build: Callable[..., Any]
    whole: bool = False
    note: str = ""


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
    say
        ``say(data) -> [sentence, ...]``, HTML; None if there is nothing to say.
    rank
        Place of its answer among the answers, and of its sentences among the findings, the least
        first.
    verdicts
        Its table of verdicts, if it has any.
    answer
        ``answer(data) -> Answer | None``: one sentence with its figure and error, None where the
        data do not bear any; without it the first of its sentences is its answer.
    topic
        Heading of its sentences, of its first section if empty.
    beside
        ``beside(data) -> Answer | None``: a clause that stands in the answer of another analysis,
        with ``"differs"`` if it speaks against it.
    judges
        Whether its answer judges what it shows. Of one that shows simulation and limit side by side
        and leaves the verdict to others it does not.
    decides
        ``decides(data) -> Answer | None``: a clause with a verdict, which ends the answer of an
        analysis that does not judge.
    suits
        ``suits(store) -> settings | None``: settings, as plain data, that suit the methods and the
        grid of a store whose study asks for no analysis; None if it does not suit them.
    """

    name: str
    compute: Callable[..., Any]
    settings: type[Settings] | None = None
    sections: tuple[Section, ...] = ()
    say: Callable[..., Any] | None = None
    rank: float = 100
    verdicts: Verdicts | None = None
    answer: Callable[..., Answer | None] | None = None
    topic: str = ""
    beside: Callable[..., Answer | None] | None = None
    judges: bool = True
    decides: Callable[..., Answer | None] | None = None
    suits: Callable[..., Mapping[str, Any] | None] | None = None

    @property
    def heading(self) -> str:
        """What its sentences are about."""
        return self.topic or next((one.heading for one in self.sections), self.name)
