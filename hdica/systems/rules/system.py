"""Any online rule of finitely many projections: its fields, their checks, and the rule they make.

x_k <- x_k + n^-1/2 F_k(u, v, noise, norm, t) y + n^-1 psi(x_k), and a normalisation, with
u_k = y.x_k/sqrt(n) and v_m = y.xi_m/sqrt(n). One system has one estimate and one feature, another
several of either.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from hdica.errors import HdicaError, suggestion
from hdica.finite.rules.rule import FiniteRule, dimension_refusal
from hdica.ingredients.grammar import FUNCTIONS, MORE
from hdica.ingredients.laws import Source
from hdica.ingredients.plain import Array, is_number
from hdica.ingredients.quadrature import gram
from hdica.ingredients.sources import make_source
from hdica.ingredients.sums import sum_of
from hdica.ingredients.update import NORMALISATIONS, RESERVED, Update, parse_update
from hdica.limits.rules.averages import Sample
from hdica.limits.rules.equations import Equations
from hdica.systems import fields
from hdica.systems.parameters import Parameters

ROUNDING = 1e-12
"""By how much P - R R' may fail to be positive, its numbers being rounded decimals."""
STARTS = (
    "{overlap: Q0, norm: 1} for one estimate and one feature; else {overlap: ...} with a row of "
    "numbers an estimate and a column a feature, and norm, one number or one an estimate, or "
    "products, the matrix of x_k.x_l/n"
)


class Rule(Parameters):
    """Fields of a rule, whatever the number of its estimates and features."""

    update: str | list[str] = Field(
        description=(
            "F, a formula in `u`, `v`, `norm` = √(x·x/n), `label`, the names of the noise and `t`: "
            "`tau*(label - u)`; a list for several estimates, in `u1`, `u2`, …"
        )
    )
    label: str = Field(
        "", description="a formula in `v`, the names of the noise and `t`: `v + s*z`"
    )
    noise: dict[str, fields.SourceSpec] = Field(
        {}, description="laws of further random numbers of a sample, by name: `{z: gaussian}`"
    )
    entrywise: fields.FormulaText = Field(
        "0", description="ψ, a formula in `x` that acts on every entry: `-tau*beta*sign(x)`"
    )
    normalise: str = Field(
        "none",
        description=(
            "what a step ends with: `none`, `norm` (every x_k·x_k = n), `symmetric` or "
            "`gram-schmidt` (orthonormal estimates)"
        ),
    )
    source: fields.SourceSpec | list[fields.SourceSpec] = Field(
        "gaussian", description=f"law of c, a list for several features: {fields.LAWS}"
    )
    spike: float | list[float] | None = Field(
        None,
        description=(
            "ω of spiked data, v = √ω c + a with a normal; a list for several features; none: v = c"
        ),
    )
    start: dict[str, Any] = Field(
        {"overlap": 0.1, "norm": 1.0}, description=f"exact at every n: `{STARTS}`"
    )
    constants: dict[str, float] = Field({}, description=fields.CONSTANTS)

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {"Q0": ("start", "overlap")}
    formulas: ClassVar[Mapping[str, str]] = {"update": "u", "label": "v", "entrywise": "x"}

    @model_validator(mode="after")
    def _consistent(self) -> Rule:
        if self.normalise not in NORMALISATIONS:
            raise HdicaError(
                f"normalise = {self.normalise!r} is not allowed "
                f"({suggestion(self.normalise, NORMALISATIONS)})",
                ["normalise"],
            )
        _check_names(self)
        update_of(self)
        fields.check_real(self, "entrywise")
        spikes(self)
        start_of(self)
        return self

    def refuses_n(self, n: int) -> str:
        """Empty if estimates and features leave another direction in n dimensions."""
        estimates, features = start_of(self)[0].shape
        return dimension_refusal(estimates, features, n)


def _check_names(system: Rule) -> None:
    """Refuse names of noise and constants that mean something else."""
    taken = {*FUNCTIONS, *MORE, "pi", "where", "x"}
    for field, names in (("noise", system.noise), ("constants", system.constants)):
        for name in names:
            stem = name.rstrip("0123456789")
            if not name.isidentifier() or name in taken or stem in RESERVED:
                raise HdicaError(
                    f"{field}: the name {name!r} is not allowed (a name that is no function and "
                    f"none of {', '.join(RESERVED)})",
                    [field],
                )
    both = sorted(system.noise.keys() & system.constants.keys())
    if both:
        raise HdicaError(
            f"noise and constants: {both[0]!r} is not allowed in both (a name for each)",
            ["noise", "constants"],
        )


def texts_of(system: Rule) -> tuple[str, ...]:
    """Formulas of the update, one an estimate."""
    if isinstance(system.update, str):
        rows = system.start.get("overlap")
        nested = isinstance(rows, list) and rows and isinstance(rows[0], list)
        return (system.update,) * (len(rows or []) if nested else 1)
    return tuple(system.update)


def laws(system: Rule) -> tuple[Source, ...]:
    """Laws of the c_m."""
    specs = system.source if isinstance(system.source, list) else [system.source]
    return tuple(make_source(spec) for spec in specs)


def update_of(system: Rule) -> Update:
    """F_1 ... F_K."""
    texts = texts_of(system)
    if not texts:
        raise HdicaError("update = [] is not allowed (a formula for each estimate)", ["update"])
    names = tuple(system.noise)
    return parse_update(texts, system.label, len(laws(system)), names, system.constants)


def spikes(system: Rule) -> tuple[float, ...] | None:
    """Omega of every feature; None of data that are not spiked."""
    if system.spike is None:
        return None
    given = system.spike if isinstance(system.spike, list) else [system.spike]
    many = len(laws(system))
    if len(given) != many or not all(0 <= omega < math.inf for omega in given):
        raise HdicaError(
            f"spike = {system.spike!r} is not allowed (a number >= 0 for each of the {many} "
            f"feature{'s' * (many > 1)})",
            ["spike", "source"],
        )
    return tuple(float(omega) for omega in given)


def _matrix(value: Any, rows: int, columns: int) -> Array | None:
    """Numbers as a matrix of this shape: a number, a row or a column where there is but one."""
    try:
        given = np.array(value, dtype=float)
    except (TypeError, ValueError):
        return None
    if given.size != rows * columns or not np.all(np.isfinite(given)):
        return None
    if given.ndim > 2 or (given.ndim == 2 and given.shape != (rows, columns)):
        return None
    if given.ndim < 2 and min(rows, columns) > 1:
        return None
    return given.reshape(rows, columns)


def start_of(system: Rule) -> tuple[Array, Array]:
    """R, shape (K, M), and P, shape (K, K), at t = 0."""
    many, features = len(texts_of(system)), len(laws(system))
    spec = system.start
    allowed = {"overlap", "norm", "products"}

    def refused(why: str) -> HdicaError:
        return HdicaError(f"start = {spec!r} is not allowed ({why})", ["start"])

    if not set(spec) <= allowed or "overlap" not in spec or {"norm", "products"} <= set(spec):
        raise refused(STARTS)
    r = _matrix(spec["overlap"], many, features)
    if r is None:
        raise refused(f"overlap: {many} x {features} finite numbers, a row an estimate")
    free = system.normalise == "none"
    if "products" in spec:
        p = _matrix(spec["products"], many, many)
        if p is None or not np.allclose(p, p.T, rtol=0, atol=ROUNDING):
            raise refused(f"products: a symmetric matrix of {many} x {many} finite numbers")
    else:
        norm = spec.get("norm", 1.0)
        norms = np.full(many, float(norm)) if is_number(norm) else np.array(norm, dtype=float)
        if norms.shape != (many,) or not np.all((norms > 0) & (norms < math.inf)):
            raise refused("norm: a number > 0, or one an estimate")
        # Parts of the estimates across the features are orthogonal to each other.
        p = gram(r)
        if system.normalise in ("symmetric", "gram-schmidt"):
            p = np.zeros((many, many))
        np.fill_diagonal(p, norms**2)
    if not free and np.abs(np.diag(p) - 1).max() > ROUNDING:
        raise refused(f"normalise = {system.normalise!r} makes every norm 1")
    if (
        system.normalise in ("symmetric", "gram-schmidt")
        and np.abs(p - np.eye(many)).max() > ROUNDING
    ):
        raise refused(f"normalise = {system.normalise!r} makes the estimates orthonormal")
    if np.linalg.eigvalsh(p - gram(r)).min() < -ROUNDING:
        raise refused(
            "no estimates have such overlaps and norms: P - R R' is not positive semidefinite"
        )
    return r, p


def rule_of(system: Rule) -> FiniteRule:
    """The rule as the kernels take it."""
    (r, p), prior = start_of(system), fields.optional(system, "prior")
    sources, scales = projections(system)
    return FiniteRule(
        update=update_of(system),
        sources=sources,
        scales=scales,
        noise=noises(system),
        psi=fields.formula(system, "entrywise"),
        normalise=system.normalise,
        r=r,
        p=p,
        prior=None if prior is None else fields.prior_of(prior),
    )


def closed_refusal(system: Rule) -> str:
    """Empty if R and P alone close the limit, else the sentence that says why not."""
    if fields.formula(system, "entrywise").slope_if_linear is not None:
        return ""
    return (
        f"R and P alone do not close the limit for entrywise = {system.entrywise!r} (allowed: 0 "
        "and a multiple of x)"
    )


def limit_of(system: Rule) -> Equations:
    """The rule in the limit."""
    shrinkage = -(fields.formula(system, "entrywise").slope_if_linear or 0.0)
    sample = Sample(update_of(system), *projections(system), noises(system))
    return Equations(sample, np.full(len(texts_of(system)), shrinkage), system.normalise)


def noises(system: Rule) -> tuple[Source, ...]:
    """Laws of the noise, in the order of its names."""
    return tuple(make_source(spec) for spec in system.noise.values())


def projections(system: Rule) -> tuple[tuple[Source, ...], Array]:
    """Laws of the v_m over their standard deviations, and these: 1 unless data are spiked."""
    sources, omegas = laws(system), spikes(system)
    if omegas is None:
        return sources, np.ones(len(sources))
    pairs = zip(sources, omegas, strict=True)
    return tuple(_spiked(*pair) for pair in pairs), np.sqrt(1 + np.array(omegas))


def _spiked(source: Source, omega: float) -> Source:
    """The law of (sqrt(omega) c + a)/sqrt(1 + omega) with a normal."""
    normal = make_source("gaussian")
    return sum_of([(source, math.sqrt(omega)), (normal, 1.0)]) if omega else normal
