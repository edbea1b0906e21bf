"""Reference limits: dQ/dt = -tau <(c - Q u) f> - tau**2 Q <f**2>/2, and Hebbian ICA alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from tests.bars.averages import learning_and_power
from tests.bars.functions import Function
from tests.bars.laws import LawOf
from tests.bars.tables import Table

Array = NDArray[np.float64]
_FINE, _COARSE = 3e-14, 1e-12
_SHOWN = 1e3


@dataclass(frozen=True, eq=False)
class StepSize:
    """tau(t) for hdica, and for the reference with the times at which it jumps."""

    spec: object
    value: Callable[[float], float]
    breaks: tuple[float, ...] = ()


def overlap_table(f: Function, law: LawOf) -> Table:
    """<(c - Q u) f(u)> and <f(u)**2> at every overlap."""
    # With -e for e and an odd f, or -c for c, both go over into those of -Q.
    parities = (-1, 1) if law.symmetric or f.odd else None
    return Table(lambda q: learning_and_power(f, law, q), parities)


def solve(
    rate: Callable[[float, Array], Array],
    breaks: tuple[float, ...],
    start: Array,
    times: Array,
    tolerance: float,
) -> Array:
    """States at the times, one run of DOP853 from each time and jump to the next."""
    marks = np.unique([0.0, *times, *(b for b in breaks if b < times[-1])])
    found, now = {}, np.asarray(start, dtype=float)
    for low, high in pairwise(marks):
        # The rate is that of the open interval at its ends too.
        inside = lambda t, low=low, high=high: min(max(t, low), high - 1e-13 * high)  # noqa: E731
        done = solve_ivp(
            lambda t, y, inside=inside: rate(inside(t), y), (low, high), now,
            method="DOP853", rtol=tolerance, atol=tolerance / 100,
        )  # fmt: skip
        now = done.y[:, -1]
        found[high] = now
    return np.array([found[t] for t in times])


def reference_path(
    table: Table, step: StepSize, q0: float, times: Array, sign: int = 1
) -> tuple[Array, Array]:
    """Q at the times and how well it is known; ``sign`` -1 for Hebbian ICA with sigma = 1."""

    def rate(shown: float) -> Callable[[float, Array], Array]:
        def of(t: float, y: Array) -> Array:
            q, tau = float(y[0]), step.value(t)
            pull, power = table(q)
            if shown:
                off = shown * table.error(q)
                pull, power = pull + off[0], power + off[1]
            return np.array([-sign * tau * pull - tau**2 * q * power / 2])

        return of

    fine, coarse, moved = (
        solve(rate(shown), step.breaks, np.array([q0]), times, tolerance)[:, 0]
        for shown, tolerance in ((0.0, _FINE), (0.0, _COARSE), (_SHOWN, _COARSE))
    )
    known = np.abs(fine - coarse) / 10 + np.abs(moved - coarse) / _SHOWN + 4e-16
    return fine, known
