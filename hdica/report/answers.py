"""What a report says, the answer first: for the head of its page and for the gallery."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import xarray as xr
from markupsafe import Markup

from hdica.analysis.record import Analysis
from hdica.analysis.registry import analyses
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.sentences import of_points
from hdica.analysis.terms import speaking_of

RUNS = "runs"
"""The analysis that counts points: said where there is something missing, and below the rest."""
FEW = 3
"""Findings that stand under the answer; the others are folded."""


@dataclass(frozen=True)
class Topic:
    """Folded findings under a heading."""

    heading: str
    sentences: tuple[Markup, ...]


@dataclass(frozen=True)
class Told:
    """Everything that a report says, in the order in which a page has it.

    Parameters
    ----------
    headline
        The answer.
    missing
        What was not computed, diverged or failed; nothing if all points are done.
    findings
        At most three sentences under the answer.
    topics
        All other sentences by what they are about.
    account
        How many points are done.
    """

    headline: Answer
    missing: tuple[Markup, ...]
    findings: tuple[Markup, ...]
    topics: tuple[Topic, ...]
    account: tuple[Markup, ...]


def headline(aggregate: xr.DataTree) -> Answer:
    """The answer of an aggregate to the question of its study.

    That of the analysis that the study names in ``question.analysis``; else the first, by the rank
    in their records, of the analyses that the study asks for and that have an answer. An answer
    that does not judge takes the verdict of the first of the others that decides. What others have
    beside it, such as a paper's own number, ends the sentence. Without any it is empty.
    """
    with _about(aggregate):
        return _opening(aggregate, _answers(aggregate))


def findings(aggregate: xr.DataTree) -> list[Markup]:
    """All sentences of HTML of a report beside its headline, most important first."""
    with _about(aggregate):
        return [text for analysis in _ranked(aggregate) for text in _said(aggregate, analysis)]


def told(aggregate: xr.DataTree) -> Told:
    """What a report says: its headline, what is missing, findings, and the rest by topic."""
    with _about(aggregate):
        answers = _answers(aggregate)
        opening = _opening(aggregate, answers)
        by_analysis = {one.name: _said(aggregate, one) for one in _ranked(aggregate)}
    account = by_analysis.pop(RUNS, [])
    first = answers[0][1] if answers else Answer("")
    best = _best(answers, by_analysis, first)
    shown = {first.html, *best}
    topics: dict[str, list[Markup]] = {}
    for name, sentences in by_analysis.items():
        left = [text for text in sentences if text not in shown]
        if left:
            topics.setdefault(analyses()[name].heading, []).extend(left)
    done, total = _points(aggregate)
    whole = done == total
    return Told(
        opening,
        () if whole else tuple(account),
        tuple(best),
        tuple(Topic(heading, tuple(left)) for heading, left in topics.items()),
        tuple(account) if whole else (),
    )


@contextmanager
def _about(aggregate: xr.DataTree) -> Iterator[None]:
    """Sentences with the names of its system, which say how many of its points are done."""
    with speaking_of(str(aggregate.attrs.get("system", ""))), of_points(*_points(aggregate)):
        yield


def _opening(aggregate: xr.DataTree, answers: list[tuple[str, Answer]]) -> Answer:
    """The first answer, with the clauses that other analyses have beside it."""
    if not answers:
        return Answer("")
    name, first = answers[0]
    first = _decided(aggregate, name, first)
    others = {one.name: one.beside for one in _ranked(aggregate) if one.beside}
    found = [say(aggregate[k].to_dataset()) for k, say in others.items() if k != name]
    clauses = [clause for clause in found if clause is not None]
    if not clauses:
        return first
    text = "; ".join([first.html.removesuffix("."), *(clause.html for clause in clauses)])
    off = any(clause.verdict == "differs" for clause in clauses)
    return replace(first, html=f"{text}.", verdict="differs" if off else first.verdict)


def _decided(aggregate: xr.DataTree, name: str, first: Answer) -> Answer:
    """An answer of an analysis that does not judge, with the verdict of another and its clause."""
    if analyses()[name].judges:
        return first
    for one in _ranked(aggregate):
        if one.decides is None:
            continue
        clause = one.decides(aggregate[one.name].to_dataset())
        if clause is not None and clause.verdict:
            text = first.html.removesuffix(".")
            return replace(first, html=f"{text}; {clause.html}.", verdict=clause.verdict)
    return first


def _best(
    answers: list[tuple[str, Answer]], by_analysis: dict[str, list[Markup]], first: Answer
) -> list[Markup]:
    """A few findings: answers of the other analyses, then what the first has to say."""
    own = answers[0][0] if answers else ""
    others = [Markup(one.html) for _, one in answers[1:]]
    rest = by_analysis.get(own, [])[first.covers :] if own else []
    left = [text for name, some in by_analysis.items() if name != own for text in some]
    every = dict.fromkeys([*others, *rest, *(() if others or rest else left)])
    return [text for text in every if text != first.html][:FEW]


def _ranked(aggregate: xr.DataTree) -> list[Analysis]:
    """Analyses of an aggregate, the first in rank first."""
    known = [one for name, one in analyses().items() if name in aggregate]
    return sorted(known, key=lambda one: one.rank)


def _said(aggregate: xr.DataTree, analysis: Analysis) -> list[Markup]:
    """Sentences of one analysis."""
    if analysis.say is None:
        return []
    # Every part that a user wrote went through place() or escape().
    return [Markup(text) for text in analysis.say(aggregate[analysis.name].to_dataset())]


def _answers(aggregate: xr.DataTree) -> list[tuple[str, Answer]]:
    """Names of analyses with their answers; first the one that the study names."""
    named = _named(aggregate)
    ordered = sorted(_ranked(aggregate), key=lambda one: one.name != named)
    return [(one.name, found) for one in ordered for found in _answer(aggregate, one)]


def _answer(aggregate: xr.DataTree, analysis: Analysis) -> Iterator[Answer]:
    """The answer of one analysis, if it has any."""
    if analysis.answer is not None:
        found = analysis.answer(aggregate[analysis.name].to_dataset())
        yield from () if found is None else (found,)
    elif analysis.settings is not None:
        yield from (Answer(str(text)) for text in _said(aggregate, analysis)[:1])


def _named(aggregate: xr.DataTree) -> str:
    """The analysis that the study's question names, empty if it names none."""
    question = json.loads(aggregate.attrs.get("study_yaml") or "{}").get("question")
    return str(question.get("analysis", "")) if isinstance(question, dict) else ""


def _points(aggregate: xr.DataTree) -> tuple[int, int]:
    """How many points are done, and how many there are."""
    if RUNS not in aggregate:
        return 0, 0
    runs = aggregate[RUNS].to_dataset()
    return int(runs["done"].sum()), int(runs["points"].sum())
