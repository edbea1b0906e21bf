"""Online ICA with several features: the rule (1)-(2) of Wang and Lu 2017 with phi = 0.

C. Wang and Y. M. Lu, "The scaling limit of high-dimensional online independent component
analysis", NIPS 2017, section 2: one feature is theirs, and a finite number of them what their
analysis can be generalised to. One simulation has the overlaps alone, exact in law, eight chains in
a call of the kernel; the other is that of all rules of projections, with this update.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from hdica.errors import HdicaError
from hdica.finite.projected.chain import address, lane_polynomials, powers
from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream
from hdica.finite.record import Observation, Track, Values, contiguous, record
from hdica.finite.rules.rule import FiniteRule
from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.plain import Array, is_number
from hdica.ingredients.quadrature import dot, numbers
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source, make_source
from hdica.ingredients.update import descent, parse_update
from hdica.limits.rules.averages import Sample
from hdica.limits.rules.equations import Equations
from hdica.systems import fields
from hdica.systems.parameters import Parameters


@dataclass(frozen=True, eq=False)
class Rule:
    """x <- x - (tau/sqrt n) f(y.x/sqrt n) y, then abs(x)^2 = n, from given overlaps."""

    sources: tuple[Source, ...]  # laws of c_1 ... c_M
    nonlinearity: Formula  # f
    schedule: Schedule  # tau(t)
    start: Array  # Q at t = 0, shape (M,)

    @property
    def features(self) -> int:
        """M."""
        return len(self.sources)

    @property
    def terms(self) -> Array:
        """Coefficients of a polynomial f, the highest power first; empty for another f."""
        return powers(self.nonlinearity)

    @property
    def alike(self) -> object:
        """What chains in one call must have in common: M, and f if it is no polynomial."""
        return self.features, None if self.terms.size else self.nonlinearity.expression

    @property
    def rest(self) -> float:
        """Length of the part of x/sqrt(n) that is orthogonal to the features, at t = 0."""
        return math.sqrt(max(0.0, 1.0 - dot(self.start, self.start)))


def dimension_refusal(features: int, n: int) -> str:
    """Empty if the features and the estimate leave another direction in n dimensions."""
    if n >= features + 2:
        return ""
    return f"n = {n} is not allowed with {features} features (n >= {features + 2})"


def run_chains(
    rules: Sequence[Rule], times: Array, n: int, streams: Sequence[Stream]
) -> list[Values]:
    """Overlaps Q, shape (T, M), of at most eight points, one a lane of the kernel.

    The rules have equal :attr:`Rule.alike`; a chain's numbers do not depend on the others. With Q,
    NaN after a step that was not finite, comes why it stopped.
    """
    if dimension_refusal(rules[0].features, n):
        raise HdicaError(dimension_refusal(rules[0].features, n))
    # Imported here, because loading compiled code takes about a second.
    from hdica.finite.projected.chain_kernels import chain_steps
    from hdica.finite.random.streams import side_by_side

    m, terms = rules[0].features, lane_polynomials([rule.terms for rule in rules])
    # Q and s of the lanes; one that is left over stands still.
    state = np.zeros((m + 1, LANES))
    state[-1] = 1.0
    for lane, rule in enumerate(rules):
        state[:, lane] = [*rule.start, rule.rest]
    lanes, made = side_by_side([s("noise") for s in streams]), np.zeros(LANES, dtype=np.int64)
    parameters, f = np.zeros((3, LANES)), address(rules[0].nonlinearity)
    parameters[0, : len(rules)], parameters[1] = -1.0 / n, 1.0

    def advance(source: Array, tau: Array) -> NDArray[np.int64]:
        numbers = source.reshape(-1, LANES)
        chain_steps(lanes, state, n, numbers, tau, parameters, terms, f, m, None, None, made)
        return made

    def point(lane: int) -> Track:
        """A point as the recording loop takes it: each source has its own stream."""
        rule, stream = rules[lane], streams[lane]
        rngs = [stream(f"source {j}" if j else "source") for j in range(m)]

        def draw(size: int) -> Array:
            columns = [s.sample(r, size) for s, r in zip(rule.sources, rngs, strict=True)]
            return contiguous(columns[0] if m == 1 else np.stack(columns, axis=1))

        return Track(Observation(lambda: {"Q": state[:m, lane].copy()}), draw, rule.schedule)

    return record(advance, [*map(point, range(len(rules)))], times, n, LANES, m)


STARTS = (
    "{overlap: [Q1, ..., QM]} or {Q1: ..., QM: ...}, a finite number for each of the "
    "M sources, with a sum of squares of at most 1"
)
NAMED = 9
"""Overlaps of a start with names of their own, Q1 to Q9."""
ROUNDING = 1e-12
"""By how much the squares of the overlaps of a start may exceed 1, being rounded decimals."""


def _start(value: Any) -> Any:
    """A start as a list, however it was written."""
    spec: Any = None
    if isinstance(value, Mapping) and set(value) == {"overlap"}:
        spec = [value["overlap"]] if is_number(value["overlap"]) else value["overlap"]
    elif isinstance(value, Mapping) and len(value) <= NAMED:
        names = [f"Q{j + 1}" for j in range(len(value))]
        spec = [value[name] for name in names] if set(value) == set(names) else None
    overlaps = None if spec is None else numbers(spec)
    if overlaps is None or not overlaps.size or not np.all(np.isfinite(overlaps)):
        raise HdicaError(f"start = {value!r} is not allowed ({STARTS})", ["start"])
    return {"overlap": overlaps.tolist()}


Beginning = Annotated[dict[str, Any], BeforeValidator(_start)]


class SeveralICA(Parameters):
    """Online ICA with M features: y = (xi_1 c_1 + ... + xi_M c_M)/sqrt(n) + a, and one estimate.

    The features are orthogonal with abs(xi_j)^2 = n, the c_j independent, and a is normal with the
    covariance I - (xi_1 xi_1' + ... + xi_M xi_M')/n. The estimate follows
    x <- x - (tau/sqrt n) f(y.x/sqrt n) y, then abs(x)^2 = n (Wang and Lu 2017, eq. (2) with
    phi = 0); time is t = k/n. The overlaps Q_j = xi_j.x/n alone close the limit.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    tau: fields.StepSize = Field(description=fields.SIZED)
    sources: list[fields.SourceSpec] = Field(
        ["uniform", "uniform"],
        min_length=1,
        description=f"a list of laws, one a feature: {fields.LAWS}",
    )
    nonlinearity: fields.FormulaText = Field(
        "x**3",
        description=(
            "f, a formula in `x`: `tanh(x)`. `x**3` learns sub-Gaussian sources (fourth moment "
            "below 3), `-x**3` super-Gaussian ones"
        ),
    )
    start: Beginning = Field(
        {"overlap": [0.5, 0.3]},
        validate_default=True,
        description=(
            "`{overlap: [0.5, 0.3]}`, one number a source, exact at every n (the rest is uniform); "
            "the same as `Q1: 0.5` and `Q2: 0.3`, which a grid can sweep"
        ),
    )
    constants: dict[str, float] = Field({}, description=fields.CONSTANTS)

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {
        f"Q{j}": ("start", f"Q{j}") for j in range(1, NAMED + 1)
    }
    formulas: ClassVar[Mapping[str, str]] = {"tau": "t", "nonlinearity": "x"}
    n_in_steps: ClassVar[bool] = True
    sized_by: ClassVar[Mapping[str, str]] = {"source": "sources"}

    @model_validator(mode="after")
    def _consistent(self) -> SeveralICA:
        fields.schedule(self)
        fields.check_real(self, "nonlinearity")
        if fields.formula(self, "nonlinearity").is_zero:
            text = "nonlinearity = 0 is not allowed (nothing would be learned)"
            raise HdicaError(text, ["nonlinearity"])
        overlap, many = start_overlap(self), len(self.sources)
        if overlap.size != many:
            raise HdicaError(
                f"start: overlap = {overlap.tolist()} is not allowed with {many} sources (one "
                "number a source)",
                ["start", "sources"],
            )
        if dot(overlap, overlap) > 1 + ROUNDING:
            raise HdicaError(
                f"start: overlap = {overlap.tolist()} is not allowed (the sum of the squares is "
                f"{dot(overlap, overlap):.6g}; at most 1)",
                ["start"],
            )
        return self

    def schedules(self) -> tuple[Schedule, ...]:
        """The step size."""
        return (fields.schedule(self),)

    def refuses_n(self, n: int) -> str:
        """Empty if M features and an estimate with a rest fit in n dimensions."""
        return dimension_refusal(len(self.sources), n)

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: the number of the source, from 1 as in Q1."""
        return {"source": tuple(range(1, len(self.sources) + 1))}


def start_overlap(system: SeveralICA) -> Array:
    """Q at t = 0, shape (M,)."""
    return np.array(system.start["overlap"], dtype=float)


def laws(system: SeveralICA) -> tuple[Source, ...]:
    """Laws of the c_j."""
    return tuple(make_source(spec) for spec in system.sources)


def rule(system: SeveralICA) -> Rule:
    """The update as the kernels take it."""
    return Rule(
        sources=laws(system),
        nonlinearity=fields.formula(system, "nonlinearity"),
        schedule=fields.schedule(system),
        start=start_overlap(system),
    )


def all_coordinates(system: SeveralICA) -> FiniteRule:
    """The update of all n coordinates, with features in general position."""
    many = len(system.sources)
    return FiniteRule(
        update=descent(system.nonlinearity, many, system.constants),
        sources=laws(system),
        scales=np.ones(many),
        noise=(),
        psi=parse_formula("0", "x"),
        normalise="norm",
        r=start_overlap(system)[None],
        p=np.ones((1, 1)),
        clock=fields.schedule(system),
    )


def start(system: SeveralICA) -> tuple[Array, Array]:
    """R and P of the one estimate at t = 0."""
    return start_overlap(system)[None], np.ones((1, 1))


def equations(system: SeveralICA) -> Equations:
    """The limit: F = -tau f(u)."""
    f, read = fields.formula(system, "nonlinearity"), parse_update(("u",), "", len(system.sources))
    update = replace(read, expressions=(-f.expression.subs(f.symbol, read.u[0]),))
    sample = Sample(update, laws(system), np.ones(len(system.sources)))
    return Equations(sample, np.zeros(1), "norm", fields.schedule(system))
