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

    ``rank`` is the place of its findings among those of others, the least first; ``findings(data)
    -> [Finding, ...]``, the answer to the question first; ``notes(data) -> [sentence, ...]``, HTML
    about what has no number, under ``topic``, by default the heading of the first section.
    """

    rank: float = 100
    findings: Callable[..., Sequence[Finding]] | None = None
    notes: Callable[..., Sequence[str]] | None = None
    topic: str = ""


@dataclass(frozen=True)
class Analysis:
    """A question to a published store, and how its answer is shown.

    ``name`` is that in studies and of its group in the aggregate. ``compute(tree, settings)`` gives
    a Dataset, or None where there is nothing to show; an analysis that is computed for every study
    has no ``settings`` and ``compute(tree)``. ``sections`` are figures, ``answer`` is a sentence.
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


def lazy(home: str, name: str) -> Callable[..., Any]:
    """A function of a module, or with ``name`` = "module:function" of one beside it, imported late.

    The module is below the package ``home``, which a record knows as its ``__name__``.
    """
    module, _, function = name.rpartition(":")

    def call(*given: Any) -> Any:
        return getattr(import_module(f"{home}.{module}"), function)(*given)

    call.__name__ = call.__qualname__ = function
    return call


def question(
    package: str,
    name: str,
    settings: type[Settings] | None,
    heading: str,
    rank: float | None,
    answer: float = 100,
    *,
    module: str = "",
    lead: str = "",
    panels: str = "panels",
    findings: str = "findings",
    notes: str = "",
    films: str = "",
) -> Analysis:
    """The record of an analysis of which every function stands in a module of its folder.

    ``package`` is the ``__name__`` of the module in which the record stands; ``module``, by default
    of the name of the analysis, has the function of that name, which computes it, and ``panels``,
    ``findings``, ``notes`` and ``films``, whose names begin with ``lead`` where several analyses
    share the module, or are "module:function" in another one, and empty if there is none.
    ``heading`` and ``rank`` are those of the section, None for what draws nothing, and ``answer``
    is the rank of the findings.
    """

    def function(given: str) -> Callable[..., Any] | None:
        own = given if ":" in given else f"{module or name}:{lead}{given}"
        return lazy(package, own) if given else None

    compute, says = lazy(package, f"{module or name}:{name}"), (function(findings), function(notes))
    if rank is None:
        return Analysis(name, compute, settings, answer=Answer(answer, *says, heading))
    draw = lazy(package, panels if ":" in panels else f"{module or name}:{lead}{panels}")
    shown = Section(name, heading, draw, rank, function(films))
    return Analysis(name, compute, settings, (shown,), Answer(answer, *says))
