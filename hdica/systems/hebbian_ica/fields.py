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
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.plain import Array, is_number, plain
from hdica.ingredients.quadrature import increasing, numbers
from hdica.ingredients.schedules import Schedule

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


RULES = ("stability", "escape", "adaptive")
STARTS = "{overlap: R0} with a number or a projections x sources matrix, 'zero' or 'random'"
SIGNS = (
    "a list of one +1 or -1 a projection, {steps: {times, values}} of such lists, 'stability', "
    "'escape' or 'adaptive'"
)


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
    whole = isinstance(spec, Mapping) and set(spec) == {"times", "values"}
    times = numbers(spec["times"]) if whole else None
    listed = whole and isinstance(spec["values"], list | tuple)
    rows = [_sign_list(one) for one in spec["values"]] if listed else []
    if times is None or None in rows or len(rows) != times.size + 1:
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
