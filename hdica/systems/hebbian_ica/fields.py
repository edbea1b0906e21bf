"""What the fields of Hebbian ICA mean: sources, their motion, step sizes, signs, the start.

Sources move where the columns of A_s turn, little by little or at once. A turn by rho takes every
source direction a_j to rho a_j + sqrt(1 - rho^2) b_j, with M orthonormal directions b_j drawn
evenly from all that are orthogonal to A_s; b_j goes to rho b_j - sqrt(1 - rho^2) a_j. The columns
stay orthonormal, <A_s(t)' A_s(t')> is the product of the rho in between, and R = W'A_s becomes rho
R and a noise of order n^-1/2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.plain import is_number, plain
from hdica.ingredients.quadrature import increasing, numbers
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source, make_source
from hdica.limits.averages.double_average import features
from hdica.limits.averages.expectations import gain_at
from hdica.limits.averages.trap import Array, near_zero
from hdica.systems.fields import formula, schedule

ALLOWED = "{drift: rate >= 0 on t = k/n}, {jumps: {times: [t1, ...], share: s in (0, 1]}}, or both"


@dataclass(frozen=True)
class Motion:
    """How the sources move: A_s(t)'A_s(0) decays as exp(-drift t), and at each jump."""

    drift: float = 0.0
    times: tuple[float, ...] = ()
    left: tuple[float, ...] = ()  # rho of each jump: what it leaves of the overlaps

    def turn(self, n: int) -> Schedule:
        """Rho of the turn with which a step begins, as a function of t = k/n.

        A jump belongs to the first step that begins at its time or later: who looks at that time
        still sees the old directions.
        """
        usual = math.exp(-self.drift / n)
        if not self.times:
            return Schedule(lambda t: np.full(np.shape(t), usual), usual)
        first = [math.ceil(time * n * (1 - 1e-12) - 1e-9) for time in self.times]

        def value(t: Array) -> Array:
            step, rho = np.rint(t * n), np.full(np.shape(t), usual)
            for at, left in zip(first, self.left, strict=True):
                rho[step == at] *= left
            return rho

        return Schedule(value, None)


STILL = Motion()


def make_motion(spec: Any) -> Motion | None:
    """The motion that a study names; None for sources that stay."""
    if spec is None:
        return None
    spec = plain(spec)
    readable = isinstance(spec, Mapping) and spec and set(spec) <= {"drift", "jumps"}
    drift: Any = spec.get("drift", 0.0) if readable else None
    if not is_number(drift) or not 0 <= drift < math.inf:
        near = suggestion(spec, ("drift", "jumps"), ALLOWED)
        raise HdicaError(f"motion = {spec!r} is not allowed ({near})")
    if "jumps" not in spec:
        return Motion(float(drift))
    jumps = spec["jumps"]
    if not isinstance(jumps, Mapping) or set(jumps) != {"times", "share"}:
        raise HdicaError(f"motion: jumps = {jumps!r} is not allowed (allowed: {ALLOWED})")
    return Motion(float(drift), *_jumps(jumps))


def _jumps(jumps: Mapping[str, Any]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    times = numbers(jumps["times"])
    share = jumps["share"]
    shares = numbers([share] * (0 if times is None else times.size) if is_number(share) else share)
    if times is None or not times.size or not np.all(np.isfinite(times)):
        raise HdicaError(f"motion: times = {jumps['times']!r} is not allowed (a list of numbers)")
    if not increasing(times):
        raise HdicaError(f"motion: times = {times.tolist()} is not allowed (increasing times > 0)")
    if shares is None or shares.size != times.size or not np.all((shares > 0) & (shares <= 1)):
        raise HdicaError(
            f"motion: share = {share!r} is not allowed (a number in (0, 1], or one for each of "
            f"{times.size} jumps)"
        )
    return tuple(times.tolist()), tuple((1 - shares).tolist())


UNITS = {"eta": 0, "mu": 1, "nu": 2, "nu2": 1.5}
"""The step size is eta = mu/n = nu/n^2 = nu2/n^(3/2): the power of n that is divided out."""
RULES = ("stability", "escape", "adaptive")
STARTS = "{overlap: R0} with a number or a projections x sources matrix, 'zero' or 'random'"
SIGNS = (
    "a list of one +1 or -1 a projection, {steps: {times, values}} of such lists, 'stability', "
    "'escape' or 'adaptive'"
)
UNDECIDED = 1e-9
"""An average smaller than this in size has no sign that could be trusted."""


def _signs(value: Any) -> Any:
    if isinstance(value, str) and value in RULES:
        return value
    if isinstance(value, Mapping) and set(value) == {"steps"}:
        return {"steps": _sign_steps(value["steps"])}
    listed = _sign_list(value)
    if listed is None:
        raise HdicaError(
            f"sigma = {value!r} is not allowed ({suggestion(value, (*RULES, 'steps'), SIGNS)})"
        )
    return listed


def _sign_list(value: Any) -> list[int] | None:
    entries = numbers(value)
    if entries is None or entries.size == 0 or not np.all(np.abs(entries) == 1.0):
        return None
    return [int(one) for one in entries]


def _sign_steps(spec: Any) -> dict[str, list[Any]]:
    """Times of jumps, and the signs before the first and after each."""
    times = numbers(spec["times"]) if isinstance(spec, Mapping) and "times" in spec else None
    listed = isinstance(spec, Mapping) and isinstance(spec.get("values"), list | tuple)
    values = [_sign_list(one) for one in spec["values"]] if listed else []
    rows = [one for one in values if one is not None]
    whole = times is not None and set(spec) == {"times", "values"}
    if times is None or not whole or len(rows) != len(values) or len(rows) != times.size + 1:
        raise HdicaError(
            f"sigma = {{steps: {spec!r}}} is not allowed (allowed: {{steps: {{times: [t1, ...], "
            "values: [signs, ...]}}, lists of one +1 or -1 a projection, one more than times)"
        )
    if not times.size or not increasing(times):
        raise HdicaError(
            f"sigma: steps with times {times.tolist()} is not allowed (increasing times > 0)"
        )
    return {"times": times.tolist(), "values": rows}


def _start(value: Any) -> Any:
    if isinstance(value, str) and value in ("zero", "random"):
        return value
    if isinstance(value, Mapping) and set(value) == {"random"} and value["random"] is True:
        return "random"
    if isinstance(value, Mapping) and set(value) == {"overlap"}:
        overlap = value["overlap"]
        matrix(overlap)
        return {"overlap": float(overlap) if is_number(overlap) else matrix(overlap).tolist()}
    near = suggestion(value, ("overlap", "zero", "random"), STARTS)
    raise HdicaError(f"start = {value!r} is not allowed ({near})")


def _moving(value: Any) -> Any:
    make_motion(value)
    return value


def _batch(value: Any) -> Any:
    whole = is_number(value) and float(value).is_integer() and value >= 1
    if not whole and value != "full":
        raise HdicaError(f"batch = {value!r} is not allowed (a whole number >= 1, or 'full')")
    return int(value) if whole else value


Batch = Annotated[int | str, BeforeValidator(_batch)]
Sigma = Annotated[list[int] | str | dict[str, Any], BeforeValidator(_signs)]
Moving = Annotated[dict[str, Any] | None, BeforeValidator(_moving)]
Beginning = Annotated[str | dict[str, Any], BeforeValidator(_start)]


def matrix(spec: Any) -> Array:
    """An overlap as a matrix: a number is 1 x 1, a list is a list of rows."""
    listed = isinstance(spec, list | tuple | np.ndarray)
    rows = [numbers(row) for row in spec] if listed else [numbers([spec])]
    numeric = [row for row in rows if row is not None and row.size]
    whole = bool(rows) and len(numeric) == len(rows) and len({row.size for row in numeric}) == 1
    if not whole or not np.all(np.isfinite(numeric)):
        raise HdicaError(
            f"start: overlap = {spec!r} is not allowed (a finite number, or a list of "
            "equally long rows of finite numbers, one row a projection)"
        )
    return np.array(numeric, dtype=float)


def sources(system: Any) -> tuple[Source, ...]:
    """Laws of the non-Gaussian sources s, one an entry."""
    return tuple(make_source(spec) for spec in system.sources)


def unit(system: Any) -> str:
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


def given_rate(system: Any) -> Schedule:
    """The step size in the unit in which it is given, as a function of t = k/n."""
    return schedule(system, unit(system))


def in_unit(name: str, system: Any, n: int | None = None) -> Schedule:
    """The step size as eta, mu, nu or nu2, a function of t = k/n; None for n if that is given."""
    own, own_unit = given_rate(system), unit(system)
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


def start_overlap(system: Any) -> Array | None:
    """R at t = 0, shape (projections, sources); None for a random start, whose R is random."""
    if system.start == "random":
        return None
    shape = (system.projections, len(system.sources))
    return np.zeros(shape) if system.start == "zero" else matrix(system.start["overlap"])


def check_start(system: Any) -> None:
    """Refuse a start that no W with W'W = I has."""
    r0 = start_overlap(system)
    if r0 is None:
        return
    shape = (system.projections, len(system.sources))
    if r0.shape != shape:
        raise HdicaError(
            f"start: overlap of shape {r0.shape[0]} x {r0.shape[1]} is not allowed "
            f"({shape[0]} x {shape[1]}: a row a projection, a column a source)"
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


def nearest_source(system: Any, projection: int) -> int:
    """The source that a projection starts nearest to: i mod M where it is near none."""
    r0, count = start_overlap(system), len(system.sources)
    if r0 is None or not np.any(r0[projection]):
        return projection % count
    return int(np.argmax(np.abs(r0[projection])))


def _decided(system: Any, projection: int) -> float:
    average_of, symbol = _DECIDES[system.sigma]
    law = make_source(system.sources[nearest_source(system, projection)])
    mean = average_of(formula(system, "nonlinearity"), law)
    if not UNDECIDED < abs(mean) < np.inf:
        raise HdicaError(
            f"sigma = {system.sigma!r} is not allowed ({symbol} is {mean:.1e} for the source "
            f"{law.label}, which has no sign; allowed: {SIGNS})"
        )
    return 1.0 if mean > 0 else -1.0


def fixed_signs(system: Any) -> bool:
    """Whether the signs are the same at all times."""
    return system.sigma != "adaptive" and not isinstance(system.sigma, dict)


def samples(system: Any) -> float:
    """Samples of an update; infinite for all of them."""
    return math.inf if system.batch == "full" else float(system.batch)


def unplain(system: Any, batches: bool = False) -> str:
    """What takes a system beyond (13) as Rattray studied it: the field with its value, or "".

    With ``batches`` those of a given number of samples do not.
    """
    if not fixed_signs(system):
        return f"sigma = {system.sigma!r}"
    if system.batch != 1 and not (batches and system.batch != "full"):
        return f"batch = {system.batch!r}"
    return "" if system.motion is None else f"motion = {system.motion!r}"


def signs(system: Any) -> Array:
    """Diagonal of Sigma, shape (projections,).

    ``"stability"`` takes (14), ``"escape"`` takes (23), each for the source that the projection
    starts nearest to.
    """
    if not fixed_signs(system):
        raise HdicaError(
            f"sigma = {system.sigma!r} is not allowed here (signs that stay: a list of one +1 or "
            "-1 a projection, 'stability' or 'escape'; methods 'vector', 'chain' and 'ode' "
            "follow others)"
        )
    if isinstance(system.sigma, str):
        return np.array([_decided(system, i) for i in range(system.projections)])
    return _whole(system, system.sigma)


def _whole(system: Any, listed: list[int]) -> Array:
    if len(listed) != system.projections:
        raise HdicaError(
            f"sigma = {listed} is not allowed (one sign a projection: {system.projections})"
        )
    return np.array(listed, dtype=float)


def sign_steps(system: Any) -> tuple[Array, Array]:
    """Times (J,) at which given signs jump, and the signs before and after them, (J + 1, K)."""
    if fixed_signs(system):
        return np.empty(0), signs(system)[None]
    steps = system.sigma["steps"]
    return np.array(steps["times"]), np.array([_whole(system, row) for row in steps["values"]])


def turned_text(system: Any, sign: float) -> str:
    """The nonlinearity with which one projection and one source follow x <- x - mu f(u) y."""
    return system.nonlinearity if sign < 0 else f"-({system.nonlinearity})"


def turned(system: Any, sign: float) -> Formula:
    """The same as a formula."""
    return parse_formula(turned_text(system, sign), "x", system.constants)
