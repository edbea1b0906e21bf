"""Sources that move: the columns of A_s turn, little by little or at once.

A turn by rho takes every source direction a_j to rho a_j + sqrt(1 - rho^2) b_j, with M
orthonormal directions b_j drawn evenly from all that are orthogonal to A_s; b_j goes to
rho b_j - sqrt(1 - rho^2) a_j. The columns stay orthonormal, <A_s(t)' A_s(t')> is the product of the
rho in between, and R = W'A_s becomes rho R and a noise of order n^-1/2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.plain import is_number, plain
from hdica.ingredients.quadrature import increasing, numbers
from hdica.ingredients.schedules import Schedule

Array = NDArray[np.float64]
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
            step, found = np.rint(t * n), np.full(np.shape(t), usual)
            for at, left in zip(first, self.left, strict=True):
                found[step == at] *= left
            return found

        return Schedule(value, None)


STILL = Motion()


def make_motion(given: Any) -> Motion | None:
    """The motion that a study names; None for sources that stay."""
    if given is None:
        return None
    given = plain(given)
    known = isinstance(given, Mapping) and given and set(given) <= {"drift", "jumps"}
    drift: Any = given.get("drift", 0.0) if known else None
    if not is_number(drift) or not 0 <= drift < math.inf:
        near = suggestion(given, ("drift", "jumps"), ALLOWED)
        raise HdicaError(f"motion = {given!r} is not allowed ({near})")
    if "jumps" not in given:
        return Motion(float(drift))
    jumps = given["jumps"]
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
