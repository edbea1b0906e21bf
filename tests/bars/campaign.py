"""How often hdica's bars hold the truth: random cases against references of their own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from tests.bars.cases import Case, escape_case, limit_case, random_pair, several_case
from tests.bars.functions import Function, opposite
from tests.bars.laws import LawOf
from tests.bars.passages import finite_time, one_step_table, scaled_time
from tests.bars.paths import StepSize, overlap_table, reference_path
from tests.bars.several import reference_overlaps
from tests.bars.states import Found, folds, roots, step_size_at
from tests.bars.tables import Table

KINDS = ("limit", "critical", "fixed_points", "escape", "hebbian")
_LIMITS = (("ode", "number"), ("ode", "formula"), ("ode", "steps"), ("hebbian", "formula"),
           ("ode", "number"), ("hebbian", "steps"))  # fmt: skip
_MATCHED = 1e-4
"""Overlaps of the same state differ by less."""
_SHARED = 4
"""Step sizes that share a nonlinearity and a source, which cost more than they do."""


@dataclass(frozen=True)
class Outcome:
    """One case: its largest error over bar, that bar, and how well the reference knows it.

    ``refused`` is the sentence where hdica refused, ``wrong`` what no bar covers: a state that is
    missing or one too many.
    """

    kind: str
    line: str
    ratio: float = 0.0
    bar: float = math.nan
    error: float = 0.0
    known: float = 0.0
    refused: str = ""
    wrong: str = ""

    @property
    def held(self) -> bool:
        """Whether the truth lies within the bar, as far as the reference can tell."""
        return not self.wrong and self.ratio <= 1

    @property
    def lost(self) -> bool:
        """Whether it lies beyond three bars."""
        return bool(self.wrong) or self.ratio > 3


def compared(kind: str, case: Case, found, bars, true, known) -> Outcome:
    """The worst of some numbers; what the reference does not know is not held against hdica."""
    off = np.abs(np.asarray(found, dtype=float) - true)
    error, bars, known = np.atleast_1d(*np.broadcast_arrays(off, bars, known))
    over = np.where(np.isfinite(error), np.maximum(error - known, 0.0), np.inf)
    ratio = over / np.maximum(bars, 1e-300)
    worst = int(np.argmax(ratio))
    return Outcome(
        kind,
        case.line(),
        float(ratio[worst]),
        float(bars[worst]),
        float(error[worst]),
        float(known[worst]),
    )


def limit_outcome(case: Case, table: Table, step: StepSize, q0: float, times) -> Outcome:
    method = case.options["method"]
    kind = "limit, " + ("Hebbian ICA" if case.system == "HebbianICA" else method)
    try:
        found = case.run()
    except HdicaError as refusal:
        return Outcome(kind, case.line(), refused=str(refusal))
    hebbian = case.system == "HebbianICA"
    sign = -case.fields["sigma"][0] if hebbian else 1
    true, known = reference_path(table, step, q0, times, sign)
    names = ("R", "R_error") if hebbian else ("Q", "Q_error")
    return compared(kind, case, *(found[n].values.reshape(-1) for n in names), true, known)


def states_outcome(kind: str, case: Case, values, bars, overlaps, true: list[Found]) -> Outcome:
    """Every state that hdica gives is one of the reference, and the other way round."""
    left, pairs = list(true), []
    for value, bar, q in zip(values, bars, overlaps, strict=True):
        near = [t for t in left if abs(t.q - q) < _MATCHED + 10 * bar * (kind == "fixed_points")]
        if not near:
            return Outcome(kind, case.line(), wrong=f"{value:.6g} at Q = {q:.6g} is none")
        best = min(near, key=lambda t: abs(t.value - value))
        left.remove(best)
        pairs.append((value, bar, best.value, best.error))
    if left:
        return Outcome(
            kind, case.line(), wrong=f"missing {left[0].value:.6g} at Q = {left[0].q:.6g}"
        )
    return compared(kind, case, *np.array(pairs).T) if pairs else Outcome(kind, case.line())


def critical_outcome(case: Case, table: Table) -> Outcome:
    try:
        found = case.run()
    except HdicaError as refusal:
        return Outcome("critical", case.line(), refused=str(refusal))
    kept = found["kind"].values == "fold"
    values, bars, q = (found[n].values[kept] for n in ("value", "error", "Q"))
    return states_outcome("critical", case, values, bars, q, folds(table))


def fixed_points_outcome(case: Case, table: Table) -> Outcome:
    try:
        found = case.run()
    except HdicaError as refusal:
        return Outcome("fixed_points", case.line(), refused=str(refusal))
    q = found["Q"].values
    away = q != 0
    true = roots(table, case.fields["tau"])
    one = states_outcome("fixed_points", case, q[away], found["error"].values[away], q[away], true)
    stable = sorted(zip(q[away], found["stable"].values[away], strict=True))
    if not one.wrong and [s for _, s in stable] != [
        t.stable for t in sorted(true, key=lambda t: t.q)
    ]:
        return Outcome("fixed_points", case.line(), wrong="stability differs")
    return one


def escape_outcome(rng: np.random.Generator, f: Function, law: LawOf, n: int | None) -> Outcome:
    case, nu, power, product, doubt = escape_case(rng, f, law, n)
    kind = "escape" if n is None else "escape, finite n"
    try:
        found = case.run()
    except HdicaError as refusal:
        return Outcome(kind, case.line(), refused=str(refusal))
    if n is None:
        g = abs(product) / (6 * power * nu)
        true = scaled_time(g) / (power * nu**2)
        known = doubt * (2 + 1 / (8 * g)) + 1e-14
    else:
        table, sign = one_step_table(f, law), int(np.sign(product))
        true, rough = (finite_time(table, n, nu, sign, 0.0, 0.8, p) for p in (60, 41))
        off = finite_time(lambda q: table(q) + 1e3 * table.error(q), n, nu, sign, 0.0, 0.8, 41)
        known = abs(true / rough - 1) + abs(off / rough - 1) / 1e3 + 1e-14
    return compared(kind, case, float(found["mean"]) / true, float(found["error"]), 1.0, known)


def _limits(rng: np.random.Generator, cases: int) -> Iterator[Outcome]:
    done = 0
    while done < cases:
        f, law = random_pair(rng)
        table, plan = overlap_table(f, law), list(_LIMITS)
        if rng.random() < 0.25:
            plan[rng.integers(2, 6)] = ("pde", "number" if rng.random() < 0.5 else "formula")
        for method, schedule in plan[: cases - done]:
            case, *rest = limit_case(rng, f, law, method, schedule)
            yield limit_outcome(case, table, *rest)
            done += 1


def _learning_pair(rng: np.random.Generator) -> tuple[Function, LawOf, Table, float]:
    """A pair with the sign of f that learns at some overlaps, and its largest step size there."""
    f, law = random_pair(rng)
    table = overlap_table(f, law)
    sizes = [step_size_at(table, q) for q in np.linspace(-0.95, 0.95, 20)]
    if max(sizes) > -min(sizes):
        return f, law, table, max(sizes)
    f = opposite(f)
    return f, law, overlap_table(f, law), -min(sizes)


def _states(kind: str, rng: np.random.Generator, cases: int) -> Iterator[Outcome]:
    for k in range(cases):
        if kind == "critical" or k % _SHARED == 0:
            f, law, table, most = _learning_pair(rng)
            fields = {"source": law.spec, "nonlinearity": f.text}
        if kind == "critical":
            case = Case("critical", "OnlineICA", {"tau": 0.1, **fields}, {"parameter": "tau"})
            yield critical_outcome(case, table)
            continue
        # Below the largest step size with which anything is found, and a little above it.
        share = math.exp(rng.uniform(math.log(0.05), math.log(1.2)))
        tau = float(f"{max(most, 1e-3) * share:.4g}")
        yield fixed_points_outcome(Case("fixed_points", "OnlineICA", {"tau": tau, **fields}), table)


def _escapes(rng: np.random.Generator, cases: int) -> Iterator[Outcome]:
    for k in range(cases):
        while True:
            f, law = random_pair(rng, odd=True)
            if 1e-6 < abs(law.kappa4) < math.inf:
                break
        yield escape_outcome(rng, f, law, int(rng.choice([50, 100, 200])) if k % 6 == 5 else None)


def _several(rng: np.random.Generator, cases: int) -> Iterator[Outcome]:
    """Hebbian ICA with more than one source or projection."""
    for _ in range(cases):
        case, f, step = several_case(rng)
        try:
            found = case.run()
        except HdicaError as refusal:
            yield Outcome("limit, Hebbian ICA, K or M > 1", case.line(), refused=str(refusal))
            continue
        fields, times = case.fields, np.array(case.options["times"])
        r0 = np.array(fields["start"]["overlap"])
        true = reference_overlaps(f, fields["sources"], fields["sigma"], step, r0, times)
        yield compared(
            "limit, Hebbian ICA, K or M > 1",
            case,
            found["R"].values.ravel(),
            found["R_error"].values.ravel(),
            *(v.ravel() for v in true),
        )


def outcomes(kind: str, cases: int, seed: int) -> Iterator[Outcome]:
    """The outcomes of one kind, one after another."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    if kind in ("limit", "hebbian"):
        return (_limits if kind == "limit" else _several)(rng, cases)
    return _escapes(rng, cases) if kind == "escape" else _states(kind, rng, cases)


def table_of(found: list[Outcome]) -> str:
    """A row for every kind."""
    rows = [
        "kind                   cases  refused  within  worst/bar  median bar  coarse reference"
    ]
    for kind in dict.fromkeys(one.kind for one in found):
        own = [one for one in found if one.kind == kind]
        done = [one for one in own if not one.refused]
        numbers = [one for one in done if math.isfinite(one.bar)]
        bar = float(np.median([one.bar for one in numbers])) if numbers else math.nan
        worst = max((one.ratio for one in done), default=math.nan)
        rough = sum(one.known > one.bar / 10 for one in numbers)
        rows.append(
            f"{kind:22} {len(own):5}  {len(own) - len(done):7}  {sum(o.held for o in done):6}"
            f"  {worst:9.3f}  {bar:10.1e}  {rough:16}"
        )
    refused = Counter(one.refused for one in found if one.refused)
    rows += [f"{count} refused: {sentence}" for sentence, count in refused.most_common()]
    return "\n".join(rows)


def failures(found: list[Outcome]) -> list[str]:
    """The cases beyond their bars, each as a line that repeats it."""
    return [
        f"{one.line}  # error {one.error:.2e}, bar {one.bar:.2e}, "
        f"reference to {one.known:.0e} {one.wrong}"
        for one in found
        if not one.refused and not one.held
    ]


def good(found: list[Outcome]) -> bool:
    """Whether 99 % lie within their bars, and none beyond three."""
    done = [one for one in found if not one.refused]
    return sum(o.held for o in done) >= 0.99 * len(done) and not any(o.lost for o in done)
