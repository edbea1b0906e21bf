"""Everything a study asked to be analysed as one tree, and what is found: records and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from markupsafe import Markup

from hdica.analysis.points import GROUP, means
from hdica.analysis.reading import parts_of_cases, requested, written
from hdica.analysis.record import Analysis
from hdica.analysis.registry import analyses
from hdica.show.finding import Finding, Group, grouped, verdict_of
from hdica.show.terms import speaking_of_results
from hdica.show.typeset import unmarked
from hdica.show.wording import clause, of_points, sentence, where
from hdica.show.words import capital

if TYPE_CHECKING:
    import pandas as pd

RUNS = "runs"
"""The analysis that counts points."""
SENTENCES = 6
"""Sentences under the headline; the table has every finding."""


def aggregate(tree: xr.DataTree) -> xr.DataTree:
    """What a report is made of: what :func:`analysed` gives, and means in ``points/<method>``."""
    out = analysed(tree)
    points = means(tree)
    if points is not None:
        out[GROUP] = points
    return out


def analysed(tree: xr.DataTree) -> xr.DataTree:
    """A group for each analysis that the study of a published store asks for.

    There is one for each other analysis that has something to say, too; the root has the store's
    attributes.
    """
    groups, parts = {}, parts_of_cases(tree)
    for name, analysis in analyses().items():
        given = () if analysis.settings is None else (requested(tree, name),)
        data = None if None in given else analysis.compute(tree, *given)
        if data is not None:
            own = {k: one for k, one in parts.items() if one.dims[0] in data.dims}
            groups[name] = data.assign_coords({k: v for k, v in own.items() if k not in data})
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=dict(tree.attrs)), **groups})


@dataclass(frozen=True)
class Summary:
    """What the page of a study says, in the order in which the page has it.

    ``headline`` answers the question of the study, with its error, empty without any finding; the
    ``verdict`` is ``"agrees"`` if everything that was judged agrees, ``"differs"`` if anything
    differs, else ``"undecided"``, empty if nothing was judged; ``sentences`` are on other findings;
    ``notes`` have no number, by the heading of their analysis; ``account`` says how many points are
    done and why others are not, ``whole`` whether all are; ``findings`` are by analysis.
    """

    headline: Markup
    verdict: str
    sentences: tuple[Markup, ...]
    notes: Mapping[str, tuple[Markup, ...]]
    account: tuple[Markup, ...]
    whole: bool
    findings: Mapping[str, Sequence[Finding]]


def summary(aggregate: xr.DataTree) -> Summary:
    """What the page of an aggregate says.

    The first sentence is on the first finding of the analysis that the study names in
    ``question.analysis``, or else of the first by rank; if another finding decides the verdict,
    it ends the sentence, with the heading under which it stands.
    """
    with about(aggregate):
        every = _found(aggregate)
        groups = [group for some in every.values() for group in grouped(some)]
        verdict = verdict_of([one for some in every.values() for one in some])
        opening = _opening(groups, verdict)
        left = [group for group in groups if group not in opening]
        notes = {one.name: (one.heading, _notes(aggregate, one)) for one in _ranked(aggregate)}
        _, account = notes.pop(RUNS, ("", ()))
        done, total = _points_done(aggregate)
        joint = "; "
        if len(opening) == 2 and verdict_of(opening[0]):
            # Two analyses may compare one quantity: then it matters which of them this is.
            first, other = (analyses()[_owner(every, group)].heading for group in opening)
            joint = "; but " if first == other else f"; but under “{other}” "
        headline = f"{capital(joint.join(map(clause, opening)))}." if opening else ""
        return Summary(
            Markup(headline),
            verdict,
            tuple(Markup(sentence(group)) for group in left[:SENTENCES]),
            {heading: texts for heading, texts in notes.values() if texts},
            account,
            done == total,
            every,
        )


def frame(aggregate: xr.DataTree) -> pd.DataFrame:
    """Every finding of an aggregate as a row.

    Columns are :data:`COLUMNS`, and after them one for each coordinate of the places, such as
    ``tau`` and ``n``.
    """
    import pandas as pd

    with about(aggregate):
        rows = [
            {**record(name, one), **one.place}
            for name, some in _found(aggregate).items()
            for one in some
        ]
    return pd.DataFrame(rows, columns=None if rows else list(COLUMNS))


NUMBERS = ("value", "error", "predicted", "predicted_error")
COLUMNS = ("analysis", "quantity", "place", *NUMBERS, "verdict", "evidence")


def record(analysis: str, one: Finding) -> dict[str, str | float]:
    """A finding as plain data, with texts in place of HTML."""
    texts = (analysis, one.name.plain, where(one.place).plain)
    numbers = [float(getattr(one, name)) for name in NUMBERS]
    cells: list[str | float] = [*texts, *numbers, one.verdict, unmarked(one.evidence)]
    return dict(zip(COLUMNS, cells, strict=True))


@contextmanager
def about(aggregate: xr.DataTree) -> Iterator[None]:
    """Sentences with the names of its system, which say how many of its points are done."""
    with speaking_of_results(aggregate.attrs), of_points(*_points_done(aggregate)):
        yield


def _points_done(aggregate: xr.DataTree) -> tuple[int, int]:
    if RUNS not in aggregate:
        return 0, 0
    runs = aggregate[RUNS].to_dataset()
    return int(runs["done"].sum()), int(runs["points"].sum())


def _opening(groups: Sequence[Group], verdict: str) -> list[Group]:
    """The first group, and the first of the others that decides the verdict if it does not."""
    if not groups:
        return []
    first = groups[0]
    if verdict_of(first) == verdict:
        return [first]
    deciding = next(group for group in groups[1:] if verdict_of(group) == verdict)
    # One value is not worth a sentence before the one that judges it.
    same = first[0].quantity == deciding[0].quantity and len(first) == len(deciding) == 1
    return [deciding] if same and not verdict_of(first) else [first, deciding]


def _owner(every: Mapping[str, Sequence[Finding]], group: Group) -> str:
    """The analysis that has made a group of findings."""
    return next(name for name, some in every.items() if any(one is group[0] for one in some))


def _found(aggregate: xr.DataTree) -> dict[str, list[Finding]]:
    """Findings by analysis; first those of the analysis that the study names, then by rank."""
    question = written(aggregate).get("question")
    named = question.get("analysis") if isinstance(question, dict) else None
    every: dict[str, list[Finding]] = {}
    for one in sorted(_ranked(aggregate), key=lambda one: one.name != named):
        findings = one.answer.findings
        some = [] if findings is None else findings(aggregate[one.name].to_dataset())
        known = [finding for finding in some if np.isfinite(finding.value)]
        if known:
            every[one.name] = known
    return every


def _ranked(aggregate: xr.DataTree) -> list[Analysis]:
    known = [one for name, one in analyses().items() if name in aggregate]
    return sorted(known, key=lambda one: one.answer.rank)


def _notes(aggregate: xr.DataTree, analysis: Analysis) -> tuple[Markup, ...]:
    notes = analysis.answer.notes
    # Every part that a user wrote went through place() or escape().
    texts = () if notes is None else notes(aggregate[analysis.name].to_dataset())
    return tuple(map(Markup, texts))
