"""Functions of the overlap that are costly to find: Chebyshev pieces in arcsin Q, when needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.polynomial import chebyshev as cheb
from numpy.typing import NDArray

Array = NDArray[np.float64]
Sample = Callable[[float], tuple[Array, Array]]
_DEGREE, _FIRST, _DEEPEST = 20, 8, 7
_X = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
_TO_SERIES = np.linalg.inv(cheb.chebvander(_X, _DEGREE))


@dataclass(frozen=True, eq=False)
class Table:
    """Some functions of Q inside (-1, 1); ``parities`` where Q and -Q mirror each other."""

    sample: Sample
    parities: tuple[int, ...] | None
    pieces: dict[tuple[int, int], tuple[Array, Array] | None] = field(default_factory=dict)

    def __call__(self, q: float) -> Array:
        return self._found(q)[0]

    def error(self, q: float) -> Array:
        """Errors of the functions near Q."""
        return self._found(q)[1]

    def _found(self, q: float) -> tuple[Array, Array]:
        mirrored = self.parities is not None and q < 0
        theta = math.asin(min(1.0, abs(q))) / (math.pi / 2)
        side = -1 if q < 0 and not mirrored else 1
        for level in range(_DEEPEST + 1):
            count = _FIRST * 2**level
            k = min(int(theta * count), count - 1)
            piece = self._piece(side, count, k, level == _DEEPEST)
            if piece is not None:
                value = cheb.chebval(2 * (theta * count - k) - 1, piece[0])
                return (value * self.parities if mirrored else value), piece[1]
        raise AssertionError("the deepest piece is always accepted")

    def _piece(self, side: int, count: int, k: int, last: bool) -> tuple[Array, Array] | None:
        """Series and errors, or None where the piece must be halved."""
        key = side * count, k
        if key not in self.pieces:
            thetas = (k + (_X + 1) / 2) / count * (math.pi / 2)
            rows = [self.sample(side * math.sin(t)) for t in thetas]
            values, errors = (np.array([row[i] for row in rows]) for i in (0, 1))
            series, noise = _TO_SERIES @ values, errors.max(axis=0)
            tail = np.abs(series[-3:]).max(axis=0)
            good = np.all(tail <= np.maximum(2 * noise, 1e-15 * np.abs(values).max(axis=0)))
            # Between the points interpolation makes up to three times as much of rounding.
            self.pieces[key] = (series, 4 * (noise + tail)) if good or last else None
        return self.pieces[key]
