"""Hebbian ICA: the rule (13) of Rattray 2002 and its simulation at finite n.

M. Rattray, "Stochastic trapping in a solvable model of on-line independent component analysis",
Neural Computation 14 (2002). Its N is called n here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from hdica.errors import HdicaError, speaking_of
from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.plain import Array, is_number
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source, make_source
from hdica.limits.averages.double_average import features
from hdica.limits.averages.expectations import gain_at
from hdica.limits.escape import near_zero
from hdica.systems import fields
from hdica.systems.hebbian_ica.fields import (
    SIGNS,
    Batch,
    Beginning,
    Moving,
    Sigma,
    make_motion,
    matrix,
)
from hdica.systems.hebbian_ica.rule import HebbianRule
from hdica.systems.parameters import Parameters

UNITS = {"eta": 0, "mu": 1, "nu": 2, "nu2": 1.5}
"""The step size is eta = mu/n = nu/n^2 = nu2/n^(3/2): the power of n that is divided out."""
UNDECIDED = 1e-9
"""An average smaller than this in size has no sign that could be trusted."""


class HebbianICA(Parameters):
    """Hebbian ICA: K projections of data x = A_s s + A_n g with M sources s and n - M normals g.

    The weights follow W <- W + eta x phi(y)' Sigma + alpha W (I - W'W) with y = W'x (Rattray
    2002, eq. (13), Sigma on the right); the overlaps are R = W'A_s, shape (K, M), and Q = W'W.
    Time is t = k/n.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    sources: list[fields.SourceSpec] = Field(
        ["uniform"], min_length=1, description=f"a list of laws, one a source: {fields.LAWS}"
    )
    projections: int = Field(1, ge=1, description="number of projections K")
    nonlinearity: fields.FormulaText = Field("x**3", description="a formula in `x`")
    sigma: Sigma = Field(
        "stability",
        description=(
            "signs of the update, a list of +1 and -1; or the rule that decides them: "
            "`stability` (eq. 14) or `escape` (eq. 23), each for the source that a "
            "projection starts nearest to, `adaptive` (a running mean of "
            "y f(y) − f′(y)); or `{steps: {times: [10], values: [[1], [-1]]}}`"
        ),
    )
    mu: fields.Rate = Field(
        None,
        description=(
            f"μ = nη, one of the four is required: {fields.SCHEDULE}. The limit `ode` needs it"
        ),
    )
    eta: fields.Rate = Field(None, description="the step size η, likewise")
    nu: fields.Rate = Field(None, description="ν = n²η, likewise: escape times as n → ∞ need it")
    nu2: fields.Rate = Field(
        None,
        description=(
            "ν₂ = n^(3/2) η, likewise: escape times of skewed sources in n² steps need it, with a "
            "nonlinearity that is not odd"
        ),
    )
    alpha: float = Field(
        0.5, description="strength of the orthogonalisation, in (0, 2); limits hold below 1"
    )
    batch: Batch = Field(
        1,
        description=(
            "samples whose mean makes an update, or `full` for their average (the limit `ode` "
            "alone); t = k/n counts updates"
        ),
    )
    motion: Moving = Field(
        None,
        description=(
            "none, or how the sources move: `{drift: rate}` (R decays as exp(−rate t)), "
            "`{jumps: {times: [50], share: 0.5}}` (R becomes (1 − share) R), or both"
        ),
    )
    start: Beginning = Field(
        "random",
        description=(
            "`{overlap: R0}` with a number or a matrix (rows are projections), `zero`, or `random` "
            "with R of order n^-1/2; W'W = I always"
        ),
    )
    threshold: float = Field(
        0.8, description="size of R_ij at which a source counts as found, for escape times alone"
    )
    constants: dict[str, float] = Field(
        {},
        description=(
            f"{fields.CONSTANTS}; `{{mu: mu0/(t + 100)}}` with `mu0` in the grid sweeps an "
            "annealed rate"
        ),
    )

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {"R0": ("start", "overlap")}
    formulas: ClassVar[Mapping[str, str]] = {
        "mu": "t",
        "eta": "t",
        "nu": "t",
        "nu2": "t",
        "nonlinearity": "x",
    }
    sized_by: ClassVar[Mapping[str, str]] = {
        "projection": "projections",
        "other": "projections",
        "source": "sources",
        "row": "projections",
        "column": "sources",
    }

    @field_validator("alpha", "threshold", mode="before")
    @classmethod
    def _inside(cls, value: Any, info: ValidationInfo) -> Any:
        name, most = info.field_name, 2 if info.field_name == "alpha" else 1
        if not is_number(value) or not 0 < value < most:
            raise HdicaError(f"{name} = {value!r} is not allowed (0 < {name} < {most})")
        return float(value)

    @model_validator(mode="after")
    def _consistent(self) -> HebbianICA:
        own_rate(self)
        fields.check_real(self, "nonlinearity")
        if fields.formula(self, "nonlinearity").is_zero:
            text = "nonlinearity = 0 is not allowed (nothing would be learned)"
            raise HdicaError(text, ["nonlinearity"])
        with speaking_of("start"):
            check_start(self)
        if self.sigma != "adaptive":
            with speaking_of("sigma"):
                sign_steps(self)
        return self

    def schedules(self) -> tuple[Schedule, ...]:
        """The step size."""
        return (own_rate(self),)

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: projections and sources, once more for Q and eigenmatrices."""
        rows, columns = (tuple(range(size)) for size in self.shape)
        return {
            "projection": rows,
            "other": rows,
            "source": columns,
            "row": rows,
            "column": columns,
        }

    @property
    def shape(self) -> tuple[int, int]:
        """Projections K and sources M."""
        return self.projections, len(self.sources)


def sources(system: HebbianICA) -> tuple[Source, ...]:
    """Laws of the non-Gaussian sources s, one an entry."""
    return tuple(make_source(spec) for spec in system.sources)


def unit(system: HebbianICA) -> str:
    """Which of ``"eta"``, ``"mu"``, ``"nu"`` and ``"nu2"`` is given."""
    units = [name for name in UNITS if getattr(system, name) is not None]
    if len(units) != 1:
        shown = " and ".join(units) or "none of them"
        raise HdicaError(
            f"mu, eta, nu, nu2: {shown} is not allowed (exactly one of them: eta is the step size "
            "of (13), mu = n eta, nu = n^2 eta, nu2 = n^(3/2) eta)",
            UNITS,
        )
    return units[0]


def own_rate(system: HebbianICA) -> Schedule:
    """The step size in the unit in which it is given, as a function of t = k/n."""
    return fields.schedule(system, unit(system))


def in_unit(name: str, system: HebbianICA, n: int | None = None) -> Schedule:
    """The step size as eta, mu, nu or nu2, a function of t = k/n; None for n if that is given."""
    own, own_unit = own_rate(system), unit(system)
    if own_unit == name:
        return own
    if n is None:
        raise HdicaError(
            f"{own_unit} is not allowed where n -> infinity (give {name}, which stays finite "
            "there; mu = n eta, nu = n^2 eta)"
        )
    factor = float(n) ** (UNITS[name] - UNITS[own_unit])
    fixed = own.constant
    return Schedule(
        lambda t: own.value(t) * factor, None if fixed is None else fixed * factor, own.breaks
    )


mu_of = partial(in_unit, "mu")
"""Mu = n eta, which the limit (17) needs."""


def start_overlap(system: HebbianICA) -> Array | None:
    """R at t = 0, shape (projections, sources); None for a random start, whose R is random."""
    if system.start == "random":
        return None
    if isinstance(system.start, str):
        return np.zeros(system.shape)
    return matrix(system.start["overlap"])


def check_start(system: HebbianICA) -> None:
    """Refuse a start that no W with W'W = I has."""
    r0 = start_overlap(system)
    if r0 is None:
        return
    if r0.shape != system.shape:
        rows, columns = system.shape
        raise HdicaError(
            f"start: overlap of shape {r0.shape[0]} x {r0.shape[1]} is not allowed "
            f"({rows} x {columns}: a row a projection, a column a source)"
        )
    largest = float(np.linalg.svd(r0, compute_uv=False)[0])
    if not largest <= 1 + 1e-12:
        raise HdicaError(
            f"start: overlap = {r0.tolist()} is not allowed (I - R0 R0' must not have a negative "
            f"eigenvalue; the largest singular value of R0 is {largest:.6g} and may be 1)"
        )


def stability(phi: Formula, law: Source) -> float:
    """<s phi(s) - phi'(s)>, whose sign makes the optimal fixed point stable: eq. (14)."""
    # Jumps of phi belong to phi': just below one the projection smooths them.
    return gain_at(phi, law, 1.0 - 1e-7 if features(phi).steep else 1.0)[0]


def escape(phi: Formula, law: Source) -> float:
    """kappa_4 <phi'''(z)>, z standard normal, whose sign leads away from R = 0: eq. (23)."""
    return near_zero(phi, law).product


_DECIDES = {
    "stability": (stability, "<s phi(s) - phi'(s)>"),
    "escape": (escape, "kappa_4 <phi'''(z)>"),
}


def _decided(system: HebbianICA, how: str, projection: int) -> float:
    """The sign of a projection by an average for the source nearest to it, i mod M if none is."""
    (average_of, symbol), r0 = _DECIDES[how], start_overlap(system)
    nearest = projection % len(system.sources)
    if r0 is not None and np.any(r0[projection]):
        nearest = int(np.argmax(np.abs(r0[projection])))
    law = make_source(system.sources[nearest])
    mean = average_of(fields.formula(system, "nonlinearity"), law)
    if not UNDECIDED < abs(mean) < np.inf:
        raise HdicaError(
            f"sigma = {how!r} is not allowed ({symbol} is {mean:.1e} for the source "
            f"{law.label}, which has no sign; allowed: {SIGNS})"
        )
    return 1.0 if mean > 0 else -1.0


def fixed_signs(system: HebbianICA) -> bool:
    """Whether the signs are the same at all times."""
    return system.sigma != "adaptive" and not isinstance(system.sigma, dict)


def samples(system: HebbianICA) -> float:
    """Samples of an update; infinite for all of them."""
    return math.inf if system.batch == "full" else float(system.batch)


def unplain(system: HebbianICA, batches: bool = False) -> str:
    """What takes a system beyond (13) as Rattray studied it: the field with its value, or "".

    With ``batches`` those of a given number of samples do not.
    """
    if not fixed_signs(system):
        return f"sigma = {system.sigma!r}"
    if system.batch != 1 and not (batches and system.batch != "full"):
        return f"batch = {system.batch!r}"
    return "" if system.motion is None else f"motion = {system.motion!r}"


def signs(system: HebbianICA) -> Array:
    """Diagonal of Sigma, shape (projections,).

    ``"stability"`` takes (14), ``"escape"`` takes (23), each for the source that the projection
    starts nearest to.
    """
    sigma = system.sigma
    if sigma == "adaptive" or isinstance(sigma, dict):
        raise HdicaError(
            f"sigma = {sigma!r} is not allowed here (signs that stay: a list of one +1 or "
            "-1 a projection, 'stability' or 'escape'; methods 'vector', 'chain' and 'ode' "
            "follow others)"
        )
    if isinstance(sigma, str):
        return np.array([_decided(system, sigma, i) for i in range(system.projections)])
    return _whole(system, sigma)


def _whole(system: HebbianICA, listed: list[int]) -> Array:
    if len(listed) != system.projections:
        raise HdicaError(
            f"sigma = {listed} is not allowed (one sign a projection: {system.projections})"
        )
    return np.array(listed, dtype=float)


def sign_steps(system: HebbianICA) -> tuple[Array, Array]:
    """Times (J,) at which given signs jump, and the signs before and after them, (J + 1, K)."""
    if not isinstance(system.sigma, dict):
        return np.empty(0), signs(system)[None]
    steps = system.sigma["steps"]
    return np.array(steps["times"]), np.array([_whole(system, row) for row in steps["values"]])


def turned_text(system: HebbianICA, sign: float) -> str:
    """The nonlinearity with which one projection and one source follow x <- x - mu f(u) y."""
    return system.nonlinearity if sign < 0 else f"-({system.nonlinearity})"


def turned(system: HebbianICA, sign: float) -> Formula:
    """The same as a formula."""
    return parse_formula(turned_text(system, sign), "x", system.constants)


def numbers_of_overlaps(system: HebbianICA, n: int | None = None, last: float = 0.0) -> int:
    """Numbers of R and of two K x K matrices beside it, which a run of the overlaps has."""
    return system.projections * (len(system.sources) + 2 * system.projections)


def numbers_of_modes(system: HebbianICA, n: int | None = None, last: float = 0.0) -> int:
    """Numbers of a matrix between all entries of R."""
    return int(np.prod(system.shape) ** 2)


def rule(system: HebbianICA) -> HebbianRule:
    """The update (13), as the finite-n kernels take it."""
    if system.batch == "full":
        raise HdicaError(sampled_refusal(system))
    steps = () if system.sigma == "adaptive" else sign_steps(system)
    return HebbianRule(
        sources=sources(system),
        projections=system.projections,
        nonlinearity=fields.formula(system, "nonlinearity"),
        signs=steps[1][0] if steps else None,
        step_size=cache(partial(in_unit, "eta", system)),
        alpha=system.alpha,
        start=start_overlap(system),
        batch=int(system.batch),
        sign_path=partial(_signs_at, *steps) if isinstance(system.sigma, dict) else None,
        motion=make_motion(system.motion),
    )


def _signs_at(jumps: Array, values: Array, times: Array) -> Array:
    """Signs at times of shape (T,), shape (K, T): from a jump on those after it."""
    return values[np.searchsorted(jumps, times, side="right")].T


def sampled_refusal(system: HebbianICA) -> str:
    """Empty if a simulation can draw what an update needs, else the sentence that says why not."""
    if system.batch == "full":
        return (
            "batch = 'full' is not allowed at finite n (the number of samples of an update; "
            "the average over all of them is that of the limit, method 'ode')"
        )
    return ""


def plain_refusal(system: HebbianICA, what: str, batches: bool = False) -> str:
    """Empty for fixed signs, single samples (or ``batches``), sources that stay; else why not."""
    field = unplain(system, batches)
    if not field:
        return ""
    number, others = "", "methods 'vector', 'chain' and 'ode' follow"
    if batches:
        number, others = " or batches of a given number", "the method 'ode' follows"
    return (
        f"{what} needs fixed signs, single samples{number} and sources that stay ({field} is not "
        f"allowed: {others} it)"
    )
