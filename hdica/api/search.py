"""The search of :func:`hdica.best`: choices one by one, ranges by a grid and then a polish."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Loss = Callable[[tuple[float, ...]], float]
PER_RANGE = {1: 25, 2: 7, 3: 5}
"""Points of the grid in each of so many ranges."""
_STARTS = 2
_CLOSE = 1e-7
"""Share of a range at which Brent's method ends."""
_SIDE, _LEVEL = 3e-4, 1e-7
"""Side of the simplex, and differences of the loss on it, at which Nelder and Mead's ends."""
_MOST = 120
_END = 1e-4


@dataclass(frozen=True)
class Range:
    """Numbers between two ends, both included.

    On the way from 0 to 1 they are spaced evenly in the logarithm if both ends are > 0, as squares
    if the lower one is 0, which looks closer where a parameter is small, and else evenly.
    """

    low: float
    high: float

    def at(self, u: float) -> float:
        """The number at a share of the way."""
        if u <= 0:
            return self.low
        if u >= 1:
            return self.high
        if self.low > 0:
            return self.low * math.exp(u * math.log(self.high / self.low))
        return self.low + (self.high - self.low) * (u * u if self.low == 0 else u)

    def end(self, value: float) -> str:
        """Which end a number is at, for people; empty if it is inside."""
        inside = self.at(_END) < value < self.at(1 - _END)
        return "" if inside else ("lower" if value <= self.at(_END) else "upper")


def smallest(loss: Loss, ranges: tuple[Range, ...]) -> bool:
    """Ask for the loss where it may be smallest; whether the search converged.

    Whoever asks keeps what was tried: the smallest of these is the result. Every local minimum of
    a grid, the lowest two at most, is polished: by Brent's method in one range, else by that of
    Nelder and Mead.
    """

    def at(u: Array) -> float:
        return loss(tuple(r.at(float(x)) for r, x in zip(ranges, u, strict=True)))

    if not ranges:
        return bool(np.isfinite(at(np.empty(0))))
    count = PER_RANGE[len(ranges)]
    line = np.linspace(0.0, 1.0, count)
    shape = (count,) * len(ranges)
    grid = np.array([at(np.array(u)) for u in itertools.product(line, repeat=len(ranges))])
    found = [_polished(at, line[list(i)], 1 / (count - 1)) for i in _minima(grid.reshape(shape))]
    return bool(found) and all(found)


def _minima(grid: Array) -> list[tuple[int, ...]]:
    """Where a grid is not above any neighbour: the lowest of these, and of equal ones the first."""
    found: list[tuple[float, tuple[int, ...]]] = []
    for index in np.ndindex(*grid.shape):
        value = float(grid[index])
        near = [float(grid[other]) for other in _neighbours(index, grid.shape)]
        # On a plateau one point is enough.
        if np.isfinite(value) and value <= min(near) and value < max(near):
            found.append((value, index))
    if not found and np.isfinite(grid).any():
        lowest = np.unravel_index(int(np.argmin(grid)), grid.shape)
        found.append((0.0, tuple(int(i) for i in lowest)))
    return [index for _, index in sorted(found)[:_STARTS]]


def _neighbours(index: tuple[int, ...], shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for step in itertools.product((-1, 0, 1), repeat=len(index)):
        other = tuple(i + s for i, s in zip(index, step, strict=True))
        if any(step) and all(0 <= i < size for i, size in zip(other, shape, strict=True)):
            yield other


def _polished(at: Callable[[Array], float], u: Array, step: float) -> bool:
    """Ask around a point of the grid until nothing changes any more; whether this was reached."""
    from scipy.optimize import minimize, minimize_scalar

    low, high = np.maximum(u - step, 0.0), np.minimum(u + step, 1.0)
    if u.size == 1:
        found = minimize_scalar(
            lambda x: at(np.array([x])),
            bounds=(float(low[0]), float(high[0])),
            method="bounded",
            options={"xatol": _CLOSE, "maxiter": _MOST},
        )
        return bool(found.success)
    # From the point into the box, whichever side has room.
    toward = np.where(u + step / 2 <= 1, step / 2, -step / 2)
    simplex = np.vstack([u, u + np.diag(toward)])
    value = at(u)
    options = {
        "initial_simplex": simplex,
        "xatol": _SIDE,
        "fatol": _LEVEL * max(1.0, abs(value)),
        "maxfev": _MOST * u.size,
    }
    bounds = [(0.0, 1.0)] * u.size
    found = minimize(at, u, method="Nelder-Mead", bounds=bounds, options=options)
    return bool(found.success)
