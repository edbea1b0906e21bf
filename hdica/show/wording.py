"""Findings in words: every headline and sentence on a page is one of these patterns; a table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from hdica.show import terms
from hdica.show.finding import METHODS, Finding, Form, Group, verdict_of
from hdica.show.typeset import power_of_ten, prose
from hdica.show.words import (
    EMPTY,
    Text,
    capital,
    count,
    joined,
    measurement,
    method_name,
    number,
    place,
    plural,
    rounded,
    symbol,
    value_of,
)
from hdica.verdict.cells import AGREES, DIFFERS, UNDECIDED

PATTERNS = {
    "value": "{quantity} is {values}",
    "range": "{quantity} lies between {low} and {high}",
    "extreme": "{quantity} is {extreme} {values}",
    "power": "{quantity} {values}",
    "powers": "{quantity} goes as powers from {low} to {high}",
    "agrees": "{quantity} is {value}{where}, in agreement with {theory}{predicted}",
    "differs": "{quantity} is {value}{where} and differs from {theory}{predicted}",
    "undecided": "{quantity} is {value}{where}; whether it agrees with {theory}{predicted} is "
    "undecided{needed}",
    "open": "{quantity} is {value}{where}, which decides nothing{needed}",
    "all agree": "{quantity} agrees with {theory} in {every} comparisons{within}",
    "some agree": "{quantity} agrees with {theory} in {agree} of {total} comparisons, and {left} "
    "{are} undecided{needed}",
    "some differ": "{quantity} differs from {theory} in {differ} of {total} comparisons, "
    "{largest}{rest}",
    "all undecided": "whether {quantity} agrees with {theory} is undecided in {every} "
    "comparisons{needed}",
}
"""Every sentence about numbers, without its capital letter and its full stop."""
EXPECTED = {
    AGREES: ", in agreement with {power}",
    DIFFERS: " and differs from {power}, which is expected",
    UNDECIDED: "; whether it agrees with {power} is undecided{needed}",
    "": ", where {power} is expected",
}
"""After a power that is measured, the one that is expected, by the verdict on the two."""
EACH = {
    AGREES: " (expected: {power}, in agreement)",
    DIFFERS: " (expected: {power}, from which it differs)",
    UNDECIDED: " (expected: {power}, undecided)",
    "": " (expected: {power})",
}
"""The same after each of several."""
LISTED = 2
"""So many values are listed; of more the least and the largest are."""
POWERS = 3
"""The same of powers."""
ROUNDING = 1e-9
"""Of a prediction: a smaller difference is none."""
LARGE = 1e5
"""Larger numbers have powers of ten, unless they count something."""
WIDE = 10.0
"""Predictions that differ by more than this factor are compared by ratios."""


_DONE: ContextVar[tuple[int, int]] = ContextVar("done", default=(0, 0))


@contextmanager
def of_points(done: int, total: int) -> Iterator[None]:
    """Sentences about a study of which so many points are done."""
    token = _DONE.set((done, total))
    try:
        yield
    finally:
        _DONE.reset(token)


def among() -> str:
    """A clause after an extreme or a word like all: "among the 12 of 40 points that are done".

    It begins with a blank. It is empty where no point is pending, diverged or failed, as these
    might change the statement.
    """
    done, total = _DONE.get()
    if done == total:
        return ""
    return f" among the {count(done)} of {plural(total, 'point')} that are done"


def sentence(group: Group) -> str:
    """One sentence of HTML on neighbouring findings on one quantity."""
    return f"{capital(clause(group))}."


def clause(group: Group) -> str:
    """The same as a clause of a longer sentence."""
    if group[0].form is Form.POWER:
        return _powers(group)
    if group[0].form is not Form.VALUE:
        return _extremes(group)
    judged = [one for one in group if one.verdict]
    if not judged:
        return _values(group)
    return _single(judged[0]) if len(judged) == 1 else _several(judged)


def where(at: Mapping[str, object]) -> Text:
    """A place in words: "τ = 0.05, n = 400, t = 10 (chain)"; empty for none."""
    rest = {k: v for k, v in at.items() if k not in (*METHODS, "t")}
    time = symbol("snapshot") + f" = {value_of(at['t'])}" if "t" in at else EMPTY
    out = joined(place(rest), time)
    methods = joined(*(method_name(at[key]) for key in METHODS if key in at))
    return out + " (" + methods + ")" if out and methods else out or methods


def measured(one: Finding) -> str:
    """The value of a finding with its error or interval and its unit, in HTML."""
    text = _number(one.value, one.error, one.digits)
    if np.isfinite(one.low) and np.isfinite(one.high):
        large = one.high if one.high >= LARGE else 1.0
        power = int(np.floor(np.log10(large)))
        value, low, high = (number(x / 10.0**power) for x in (one.value, one.low, one.high))
        text = f"{value} [{low}, {high}]"
        text = power_of_ten(power, f"({text})") if power else text
    return f"{text} {one.unit.html}" if one.unit else text


def predicted(one: Finding) -> str:
    """The prediction, to a digit more than the error of the value shows; empty without one."""
    if not np.isfinite(one.predicted):
        return ""
    if one.predicted == 0:
        return "0"
    if one.predicted_error > one.error / 3:
        return measurement(one.predicted, one.predicted_error)
    if one.error > ROUNDING * abs(one.value) and 1e-3 <= abs(one.value) < LARGE:
        decimals = max(2 - int(np.floor(np.log10(one.error))), 0)
        return number(round(one.predicted, decimals), 9)
    if abs(one.predicted) >= LARGE:
        return measurement(one.predicted, np.nan)
    return number(one.predicted, max(one.digits, 4))


def _number(value: float, error: float, digits: int) -> str:
    if error > 0:
        return measurement(value, error)
    if abs(value) < LARGE:
        return number(value, digits)
    counts = value > 0 and float(value).is_integer()
    return count(value) if counts else measurement(value, error)


def _at(at: Mapping[str, object]) -> str:
    text = where(at).html
    if not text:
        return ""
    return f" at {text}" if at.keys() - set(METHODS) else f" ({text})"


def _shared(group: Sequence[Finding]) -> dict[str, object]:
    """Coordinates that all findings have in common, where there are several findings."""
    if len(group) == 1:
        return {}
    first = group[0].place
    return {k: v for k, v in first.items() if all(one.place.get(k) == v for one in group)}


def _own(one: Finding, shared: Mapping[str, object]) -> dict[str, object]:
    return {k: v for k, v in one.place.items() if k not in shared}


def _begun(shared: Mapping[str, object], text: str) -> str:
    """A clause after the place that all of its parts have in common."""
    if not shared:
        return text
    by = "at" if shared.keys() - set(METHODS) else "by"
    return f"{by} {where(shared).html} {text}"


def _values(group: Group) -> str:
    """What is not judged: one or two values, or the range of more."""
    shared, quantity = _shared(group), group[0].quantity.html

    def text(one: Finding) -> str:
        return f"{measured(one)}{_at(_own(one, shared))}{_beside(one)}"

    if len(group) <= LISTED:
        values = listed(list(map(text, group)))
        return _begun(shared, PATTERNS["value"].format(quantity=quantity, values=values))
    known = [one for one in group if np.isfinite(one.value)] or list(group)
    low, high = min(known, key=lambda one: one.value), max(known, key=lambda one: one.value)
    if low.value == high.value:
        same = f"{measured(low)} in all {count(len(known))} cases{among()}"
        return PATTERNS["value"].format(quantity=quantity, values=same)
    ends = {"low": text(low), "high": text(high) + among()}
    return _begun(shared, PATTERNS["range"].format(quantity=quantity, **ends))


def _beside(one: Finding) -> str:
    """What theory has, after a value that is not judged."""
    text = predicted(one)
    return f" ({one.theory.html}: {text})" if text else ""


def _extremes(group: Group) -> str:
    """Where a quantity is largest or smallest, in one case or several."""
    shared = _shared(group)
    chosen = group if len(group) <= LISTED else (group[0], group[-1])
    parts = [f"at {where(_own(one, shared)).html}: {measured(one)}{_beside(one)}" for one in chosen]
    parts[0] = f"{among().lstrip()}{', ' if among() else ''}{parts[0]}"
    extreme = "largest" if group[0].form is Form.LARGEST else "smallest"
    text = PATTERNS["extreme"].format(
        quantity=group[0].quantity.html, extreme=extreme, values="; ".join(parts)
    )
    return _begun(shared, text)


def _powers(group: Group) -> str:
    """As which powers a quantity goes, and which are expected: a few, or the range of more."""
    shared, quantity = _shared(group), group[0].quantity.html
    if len(group) <= POWERS:
        endings = EXPECTED if len(group) == 1 else EACH
        parts = [_power(one, shared, endings) for one in group]
        if {part.partition(" ")[0] for part in parts[1:]} == {parts[0].partition(" ")[0]}:
            parts[1:] = [part.partition(" ")[2] for part in parts[1:]]  # one verb is enough
        return _begun(shared, PATTERNS["power"].format(quantity=quantity, values=listed(parts)))
    ordered = sorted(group, key=lambda one: one.value)
    low, high = (f"{_raised(one)}{_at(_own(one, shared))}" for one in (ordered[0], ordered[-1]))
    high += among()
    return _begun(shared, PATTERNS["powers"].format(quantity=quantity, low=low, high=high))


def _raised(one: Finding) -> str:
    return f"{one.base.html}<sup>{_number(one.value, one.error, one.digits)}</sup>"


def _power(one: Finding, shared: Mapping[str, object], endings: Mapping[str, str]) -> str:
    """One power with the one that is expected, and the verdict on the two."""
    text = f"{'falls' if one.value < 0 else 'grows'} as {_raised(one)}{_at(_own(one, shared))}"
    if not np.isfinite(one.predicted):
        return text
    power = "−1/2" if one.predicted == -0.5 else number(one.predicted, 4)
    power = f"{one.base.html}<sup>{power}</sup>"
    return text + endings[one.verdict].format(power=power, needed=_needed([one]))


def _single(one: Finding) -> str:
    expected = predicted(one)
    name = "open" if one.verdict == UNDECIDED and not expected else one.verdict
    return PATTERNS[name].format(
        quantity=one.quantity.html,
        theory=one.theory.html,
        where=_at(one.place),
        value=measured(one),
        predicted=f" ({expected})" if expected and one.predicted else "",  # 0 of a difference
        needed=_needed([one]),
    )


def _several(group: Sequence[Finding]) -> str:
    total = len(group)
    agree, differ, left = (
        [one for one in group if one.verdict == kind] for kind in (AGREES, DIFFERS, UNDECIDED)
    )
    verdict = verdict_of(group)
    name = {AGREES: "all agree", DIFFERS: "some differ"}.get(verdict, "some agree")
    if not agree and verdict == UNDECIDED:
        name = "all undecided"
    rest = [f"{count(len(agree))} agree{'s' if len(agree) == 1 else ''}"] if agree else []
    rest += [f"{count(len(left))} {'is' if len(left) == 1 else 'are'} undecided"] if left else []
    return PATTERNS[name].format(
        quantity=group[0].quantity.html,
        theory=group[0].theory.html,
        every="both" if total == 2 else f"all {count(total)}",
        total=count(total),
        agree=count(len(agree)),
        differ=count(len(differ)),
        left=count(len(left)),
        are="is" if len(left) == 1 else "are",
        largest=_differing(differ) if differ else "",
        rest=f"; {listed(rest)}" if rest else "",
        within=f", within {_largest(agree)}{among()}" if any(map(_apart, agree)) else among(),
        needed=_needed(left),
    )


def _apart(one: Finding) -> bool:
    """Whether measured and predicted are known and not the same number but for rounding."""
    return bool(np.isfinite(one.off) and abs(one.off) > ROUNDING * abs(one.predicted))


def _differing(group: Sequence[Finding]) -> str:
    """By how much comparisons differ at most; without predicted numbers, where they do."""
    if any(np.isfinite(one.off) for one in group):
        return f"by up to {_largest(group)}"
    return f"{'for example ' if len(group) > 1 else ''}at {where(group[0].place).html}"


def _largest(group: Sequence[Finding]) -> str:
    """The largest difference between measured and predicted, with its error and its place."""
    known = [one for one in group if np.isfinite(one.off)]
    sizes = [one.predicted for one in known]
    # An overlap is at most 1.
    if min(sizes) > 0 and max(sizes) > max(WIDE * min(sizes), 1.0):
        worst = max(known, key=lambda one: abs(one.off / one.predicted))
        share = abs(worst.off / worst.predicted)
        if share < 1:  # else a prediction near 0 is missed by far less than others vary
            return f"{number(100 * share, 2)} %{_at(worst.place)}"
    worst = max(known, key=lambda one: abs(one.off))
    size = _number(abs(worst.off), worst.error, 2)
    unit = f" {worst.unit.html}" if worst.unit else ""
    return f"{size}{unit}{_at(worst.place)}"


def _needed(group: Sequence[Finding]) -> str:
    """How many seeds would decide undecided comparisons, or why they are open."""
    some = [one.seeds for one in group if np.isfinite(one.seeds)]
    if some:
        each = "" if len(group) == 1 else " all" if len(some) == len(group) else " some"
        return f"; about {rounded(max(some))} seeds would decide{each}"
    reasons = dict.fromkeys(one.evidence for one in group if one.evidence)
    return f" ({next(iter(reasons))})" if len(reasons) == 1 else ""


def remarks(methods: Collection[object]) -> list[str]:
    """What captions say of some methods of the system that is spoken of, each sentence once."""
    record = terms.speaker()
    some = [one.about.remark for one in record.methods if one.name in methods] if record else []
    return [str(prose(text)) for text in dict.fromkeys(filter(None, some))]


def listed(parts: Sequence[str]) -> str:
    """Join parts as in: a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


MOST_ROWS = 300
"""Longer tables are cut on the page; the data files hold all."""


@dataclass(frozen=True)
class Table:
    """A table for the page, its column names in HTML, its cells HTML or text that the page escapes.

    Numeric columns align to the right; ``total`` counts the rows before cutting. ``keys`` has the
    numbers by which rows are sorted in numeric columns, None for texts and what is missing; a table
    without keys keeps its order.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    total: int
    keys: tuple[tuple[float | None, ...], ...] = ()


def table_of(findings: Sequence[Finding]) -> Table:
    """A row for each finding; whatever does not agree comes first."""
    order = {DIFFERS: 0, UNDECIDED: 1}
    shown = sorted(findings, key=lambda one: order.get(one.verdict, 2))[:MOST_ROWS]
    head = ("quantity", "at", "value", "predicted", "verdict", "evidence")
    numeric = (False, False, True, True, False, False)
    keys = tuple((None, None, _key(one.value), _key(one.predicted), None, None) for one in shown)
    return Table(head, tuple(map(_row, shown)), numeric, len(findings), keys)


def _row(one: Finding) -> tuple[str, ...]:
    evidence = one.evidence
    if one.seeds > 0:
        needed = f"{rounded(one.seeds)} seeds" if np.isfinite(one.seeds) else "no number of seeds"
        evidence = f"{evidence}; {needed} would decide".removeprefix("; ")
    # Every part that a user wrote went through words() or escape().
    cells = (one.name.html, where(one.place).html, measured(one), predicted(one))
    return (*map(Markup, cells), one.verdict, Markup(evidence))


def _key(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
