"""Quadrature panels that fit a density exp(-V): where it lives, and no faster than it varies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.steady.confinement import Confinement
from hdica.limits.mean_field.steady.wells import DEPTH, region

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
_FARTHEST = 2.0**40
_SAMPLES = 97
PANELS = 24


def potential(shape: Confinement, a: Array, k: Array, tilt: Array, x: Array) -> Array:
    """V = a x^2 + k Psi(x) - tilt x; ``x`` of shape (rows, points), the others (rows,)."""
    square, linear = a[:, None] * x * x, tilt[:, None] * x
    return np.asarray(square + k[:, None] * shape.potential(x) - linear)


def _outermost(shape: Confinement, a: Array, k: Array, tilt: Array) -> tuple[Array, Mask]:
    """A reach beyond which a density with one well has vanished, and whether there is one."""
    reach = np.full(a.shape, 8.0)
    while True:
        sides = reach[:, None] * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
        v = potential(shape, a, k, tilt, sides)
        # The fall must hold for x^2 times the density, and with a margin for a deeper minimum.
        fallen = v[:, [0, -1]] - 3 * np.log(reach)[:, None] - v.min(axis=1)[:, None] > DEPTH
        rising = (v[:, 0] > v[:, 1]) & (v[:, -1] > v[:, -2])
        held = np.all(fallen, axis=1) & rising
        growing = ~held & (reach < _FARTHEST)
        if not np.any(growing):
            return reach, held
        reach = np.where(growing, 4 * reach, reach)


def _windows(
    shape: Confinement, a: Array, k: Array, tilt: Array
) -> tuple[Array, Array, Mask, Array]:
    """Where each density exp(-V) is larger than 1e-20 of its maximum.

    Low and high ends, whether it is normalisable with a second moment, shape (rows,), and points
    that crowd towards narrow wells, shape (rows, points).
    """
    if shape.l1 is not None:
        # Convex: one well, which uniform samples find.
        reach, held = _outermost(shape, a, k, tilt)
        low, high = _shrunk(shape, (a, k, tilt), -reach, reach, held)
        return low, high, held, np.empty((a.size, 0))
    found = region(shape, a, k, tilt)
    low, high, one = found.low.copy(), found.high.copy(), ~found.many
    if one.any():
        row = (a[one], k[one], tilt[one])
        low[one], high[one] = _shrunk(shape, row, low[one], high[one], found.held[one])
    return low, high, found.held, found.rungs


def _shrunk(
    shape: Confinement, row: tuple[Array, ...], low: Array, high: Array, held: Mask
) -> tuple[Array, Array]:
    """Intervals of densities with one well, made as narrow as these are."""
    a, k, tilt = row
    for _ in range(40):
        x = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _SAMPLES)
        v = potential(shape, a, k, tilt, x)
        inside = v - v.min(axis=1)[:, None] < DEPTH
        first = np.maximum(inside.argmax(axis=1) - 1, 0)
        last = np.minimum(_SAMPLES - inside[:, ::-1].argmax(axis=1), _SAMPLES - 1)
        rows = np.arange(a.size)
        shrunk = (last - first) < 0.7 * (_SAMPLES - 1)
        low, high = x[rows, first], x[rows, last]
        if not np.any(shrunk & held):
            break
    return low, high


def edges(
    shape: Confinement, a: Array, k: Array, tilt: Array, panels: int = PANELS
) -> tuple[Array, Mask]:
    """Panel edges for each row, shape (rows, panels + 1), and which rows are normalisable.

    Panels share the variation of log-density, of distance and of its logarithm; every point
    where phi is not a short polynomial is an edge.
    """
    low, high, held, rungs = _windows(shape, a, k, tilt)
    t = np.linspace(0, 1, 4 * _SAMPLES)
    x = low[:, None] + (high - low)[:, None] * t
    v = potential(shape, a, k, tilt, x)
    v = np.minimum(v - v.min(axis=1)[:, None], DEPTH)
    width = (high - low)[:, None] / panels
    measure = np.abs(np.diff(v)) / 8 + np.diff(np.arcsinh(x / width)) + panels / 2 * np.diff(t)
    total = np.concatenate([np.zeros((a.size, 1)), np.cumsum(measure, axis=1)], axis=1)
    wanted = total[:, -1:] * np.linspace(0, 1, panels + 1)
    rows = [np.interp(w, m, p) for w, m, p in zip(wanted, total, x, strict=True)]
    found = np.stack(rows) if rows else np.empty((0, panels + 1))
    if a.size == 0 or not np.any(held):
        return found, held
    inner = shape.breaks(float(low[held].min()), float(high[held].max()))
    fixed = np.clip(inner, low[:, None], high[:, None])
    return np.sort(np.concatenate([found, fixed, rungs], axis=1), axis=1), held
