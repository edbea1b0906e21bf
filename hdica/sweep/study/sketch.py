"""A first study of a system, of a size that takes seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from hdica.analysis.registry import analyses, asked_for
from hdica.errors import HdicaError, suggestion
from hdica.sweep.study.fitting import Asked, asked, unchosen
from hdica.sweep.study.segment import segments_of
from hdica.sweep.study.study import Study, study_from
from hdica.systems.system import System

SECONDS = 40.0
"""What a sketch costs at most on one core, as its methods' cost models say, if it can."""
LADDER = (100, 400, 1600)
"""Dimensions over which simulations are compared with their limit."""
NUMBERS = ((9, 16), (7, 12), (5, 8), (4, 4), (3, 3), (2, 2))
"""Values of a swept parameter, and seeds: the first that cost little enough."""
BESIDE = 2
"""Values of a parameter that is swept although the question is not about it."""
SAVE = {
    "x": {"start": -4, "stop": 4, "num": 81}, "thresholds": {"start": 0.25, "stop": 2, "num": 8}
}  # fmt: skip
"""Points of the densities and thresholds of support recovery, where the question is about them."""
LACKING = "a method that it needs, or a parameter that a first study sweeps"
Content = dict[str, Any]
"""A study as a study file holds it."""


@dataclass(frozen=True)
class Sizes:
    """How large a study is; None for what is chosen so that it costs little.

    Parameters
    ----------
    n
        Dimensions of the data.
    seeds
        Seeds of a stochastic method.
    points
        Values of a swept parameter.
    until
        The last output time.
    """

    n: tuple[int, ...] | None = None
    seeds: int | None = None
    points: int | None = None
    until: float | None = None


LEAST = Sizes(points=2, seeds=2)


def questions(record: System) -> dict[str, str]:
    """What can be asked of a system, in words, by the name of the analysis that answers it.

    Those that suit the system come first, the others by their place in a report.
    """
    known = asked_for()
    ranked = sorted(known, key=lambda name: (name not in record.analyses, analyses()[name].rank))
    return {name: _words(name) for name in ranked if _possible(record, name) is not None}


def _words(analysis: str) -> str:
    """The docstring of an analysis's settings, which is the question."""
    return " ".join(str(asked_for()[analysis].__doc__).split("\n\n")[0].split())


def sketch(record: System, analysis: str, name: str, sizes: Sizes | None = None) -> Content:
    """A study that asks one question of a system.

    Parameters
    ----------
    record
        The system.
    analysis
        One of :func:`questions`.
    name
        Name of the study.
    sizes
        Sizes that are given; the others are the largest of a few that cost less than
        :data:`SECONDS`, or the least.

    Raises
    ------
    HdicaError
        If it cannot be asked of the system, or a size is not allowed.
    """
    found, given = _possible(record, analysis), sizes or Sizes()
    if found is None:
        why = _refusal(record, analysis) + suggestion(analysis, questions(record))
        raise HdicaError(f"--ask {analysis} is not allowed for {record.name} ({why})")
    content: Content = {}
    # The largest dimension is left out only where the fewest numbers at it cost too much.
    ladders = (LADDER, LADDER[:-1]) if found.over_n and given.n is None else (given.n,)
    for n, (points, seeds) in product(ladders, NUMBERS):
        points = given.points or (points if found.swept else BESIDE)
        chosen = Sizes(n, given.seeds or seeds, points, given.until)
        content = _content(record, found, chosen, name)
        if seconds_of(study_from(content)) <= SECONDS:
            break
    return content


def seconds_of(study: Study) -> float:
    """Cost of all points of a study on one core, as the methods' cost models say."""
    return sum(segment.size * segment.seconds_per_point for segment in segments_of(study))


def _possible(record: System, analysis: str) -> Asked | None:
    """How an analysis is asked for, with the first of the examples with which it is a study."""
    kind = asked_for().get(analysis)
    if kind is None:
        return None
    for found in asked(record, analysis, kind):
        try:
            study_from(_content(record, found, LEAST, "sketch"))
        except HdicaError:
            continue
        return found
    return None


def _refusal(record: System, analysis: str) -> str:
    """Why an analysis that is known cannot be asked for; empty for any other word."""
    kind = asked_for().get(analysis)
    if kind is None:
        return ""
    if keys := unchosen(kind):
        return f"a study has to set its {' and '.join(keys)}; "
    found = next(asked(record, analysis, kind), None)
    if found is None:
        return f"{record.name} lacks {LACKING}; "
    try:
        study_from(_content(record, found, LEAST, "sketch"))
    except HdicaError as exc:
        return str(exc).removeprefix("study 'sketch': ") + "; "
    return ""


def _content(record: System, found: Asked, sizes: Sizes, name: str) -> Content:
    """The study of some sizes."""
    n = list(sizes.n or (LADDER if found.over_n else LADDER[1:2]))
    until = record.horizon if sizes.until is None else sizes.until
    timed = any("time" in output.dims for method in found.methods for output in method.outputs)
    words = _words(found.analysis)
    grid = {key: span.axis(sizes.points or BESIDE) for key, span in found.axes.items()}
    methods: dict[str, Mapping[str, Any]] = {
        method.name: {
            **({"n": n} if method.takes_n else {}),
            **({"seeds": sizes.seeds} if method.stochastic else {}),
        }
        for method in found.methods
    }
    return {
        "study": name,
        "title": f"{record.name}: {words[0].lower()}{words[1:].rstrip('.')}",
        "system": record.name,
        "parameters": dict(found.fixed),
        **({"grid": grid} if grid else {}),
        **({"times": {"stop": until, "num": 41}} if timed else {}),
        "methods": methods,
        **({"save": SAVE | {"snapshots": [0, until]}} if found.saves else {}),
        "analysis": {found.analysis: dict(found.settings)},
    }
