"""The compiled inner lines of the sweep backwards; imported when a band is first asked for.

Functions of the entries stand in columns, shape (cells, functions), the cells of all atoms one
after the other as in the march (:mod:`hdica.limits.mean_field.density.kernels`).
"""

from __future__ import annotations

import numba
import numpy as np

from hdica.limits.mean_field.density.grid import FROM_LEFT, FROM_RIGHT, GAMMA, GAP, PUSH, X
from hdica.limits.mean_field.density.kernels import rates
from hdica.limits.mean_field.density.loop import LAW, MESH
from hdica.limits.numerics.compiled import value_at

_Q_STEP, _H_STEP = 1e-5, 1e-5


FACTORS = "float64[:, ::1]"
"""A matrix 1 - c A of a stage, eliminated: rows SHARE, PIVOT and ONWARDS over the cells."""
SHARE, PIVOT, ONWARDS = 0, 1, 2


@numba.njit(f"void({FACTORS}, float64[::1], float64[::1], int64[::1])", cache=True)
def eliminated(factors, right, left, offsets):  # type: ignore[no-untyped-def]
    """The elimination of (1 - c A)', ``right`` and ``left`` being c A.

    Rows of 1 - c A' sum to one: pivots follow without a subtraction.
    """
    for a in range(offsets.size - 1):
        first, end = offsets[a], offsets[a + 1]
        excess = 1.0
        factors[PIVOT, first] = 1.0 + (right[first + 1] if first + 1 < end else 0.0)
        for i in range(first + 1, end):
            share = left[i] / factors[PIVOT, i - 1]
            excess = 1.0 + share * excess
            factors[SHARE, i] = share
            factors[PIVOT, i] = excess + (right[i + 1] if i + 1 < end else 0.0)
            factors[ONWARDS, i - 1] = right[i]


@numba.njit(f"void(float64[:, ::1], {FACTORS}, int64[::1])", cache=True)
def transposed(values, factors, offsets):  # type: ignore[no-untyped-def]
    """Solve (1 - c A)' z = values for every column, in place, with what :func:`eliminated` left."""
    columns = values.shape[1]
    for a in range(offsets.size - 1):
        first, end = offsets[a], offsets[a + 1]
        for i in range(first + 1, end):
            share = factors[SHARE, i]
            for k in range(columns):
                values[i, k] += share * values[i - 1, k]
        for k in range(columns):
            values[end - 1, k] /= factors[PIVOT, end - 1]
        for i in range(end - 2, first - 1, -1):
            inverse, onwards = 1.0 / factors[PIVOT, i], factors[ONWARDS, i]
            for k in range(columns):
                values[i, k] = (values[i, k] + onwards * values[i + 1, k]) * inverse


@numba.njit(
    "void(float64[::1], float64[::1], float64[::1], float64[::1], int64[::1], float64)", cache=True
)
def answer(out, mass, right, left, offsets, factor):  # type: ignore[no-untyped-def]
    """Add ``factor`` times c A mass to ``out``."""
    for a in range(offsets.size - 1):
        first, end = offsets[a], offsets[a + 1]
        for i in range(first + 1, end):
            flux = factor * (right[i] * mass[i - 1] - left[i] * mass[i])
            out[i - 1] -= flux
            out[i] += flux


@numba.njit(
    f"void(float64[::1], float64[::1], float64, float64, float64, float64, float64, float64,"
    f"{MESH}, float64[:, ::1])",
    cache=True,
)
def changed(out, mass, b, g, big, h2, c, factor, mesh, room):  # type: ignore[no-untyped-def]
    """Add ``factor`` times c A mass to ``out``, for coefficients b, g, B and 2h."""
    table, offsets, lows, xi, _ = mesh
    rates(room[0], room[1], room[2], table, offsets, lows, xi, b, big, h2, g, c)
    answer(out, mass, room[0], room[1], offsets, factor)


@numba.njit(
    f"void(float64[:, ::1], float64[::1], float64, float64, float64[::1], float64[::1], float64,"
    f"float64, {MESH}, float64[:, ::1])",
    cache=True,
)
def slopes(out, mass, q, h2, pull, noise, big, c, mesh, room):  # type: ignore[no-untyped-def]
    """The derivatives of c A mass by Q and by 2h, to the rows of ``out``."""
    out[:] = 0.0
    low, high = max(-1.0, q - _Q_STEP), min(1.0, q + _Q_STEP)
    one = 1.0 / (high - low)
    for at, sign in ((high, one), (low, -one)):
        b, g = value_at(pull, at), value_at(noise, at)
        changed(out[0], mass, b, g, big, h2, c, sign, mesh, room)
    b, g, step = value_at(pull, q), value_at(noise, q), _H_STEP * (1.0 + abs(h2))
    for at, sign in ((h2 + step, 0.5 / step), (h2 - step, -0.5 / step)):
        changed(out[1], mass, b, g, big, at, c, sign, mesh, room)


@numba.njit(
    "void(float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1])",
    cache=True,
)
def met(multiples, base, both, by, weights):  # type: ignore[no-untyped-def]
    """What Q and 2h of a stage add to its columns ``base``: ``multiples`` of ``both``.

    ``by`` are the derivatives of c A mass by Q and 2h. With z = base + mu both_0 + nu both_1 the
    stage's own overlap is mu = by_0.z, and E[x^2] = 1 asks for by_1.z = 0.
    """
    columns = base.shape[1]
    aa, ab, ba, bb = 0.0, 0.0, 0.0, 0.0
    multiples[:] = 0.0
    for i in range(weights.size):
        first, second = weights[i] * by[0, i], weights[i] * by[1, i]
        aa += first * both[i, 0]
        ab += first * both[i, 1]
        ba += second * both[i, 0]
        bb += second * both[i, 1]
        for k in range(columns):
            multiples[0, k] += first * base[i, k]
            multiples[1, k] += second * base[i, k]
    # (1 - aa) mu - ab nu = found_0,  ba mu + bb nu = -found_1.
    det = (1.0 - aa) * bb + ab * ba
    for k in range(columns):
        one, two = multiples[0, k], -multiples[1, k]
        multiples[0, k] = (one * bb + ab * two) / det
        multiples[1, k] = ((1.0 - aa) * two - ba * one) / det


@numba.njit(f"float64[:, ::1]({MESH})", cache=True)
def constraints(mesh):  # type: ignore[no-untyped-def]
    """Columns xi x and x^2 at every cell, shape (cells, 2)."""
    table, offsets, lows, xi, _ = mesh
    columns = np.empty((offsets[-1], 2))
    for a in range(xi.size):
        shift = lows[a] - offsets[a]
        for i in range(offsets[a], offsets[a + 1]):
            x = table[X, i + shift]
            columns[i, 0], columns[i, 1] = xi[a] * x, x * x
    return columns


@numba.njit(forceinline=True)
def _at_face(table, mass, weights, i, cell):  # type: ignore[no-untyped-def]
    """Between cells i - 1 and i: where, the density there and its slope, which weights count in."""
    left, right = table[X, cell - 1], table[X, cell]
    gap, middle = right - left, 0.5 * (left + right)
    # Faces lie half-way in number, and 1/(gap dx) is in the table.
    before = mass[i - 1] * table[FROM_LEFT, cell] * table[GAP, cell]
    after = mass[i] * table[FROM_RIGHT, cell] * table[GAP, cell]
    return middle, 0.5 * weights[i] * (before + after), weights[i] * (after - before) / gap


@numba.njit(
    f"void(float64[:, ::1], float64[:, ::1], float64[::1], {MESH}, float64[::1])", cache=True
)
def shared(out, values, mass, mesh, weights):  # type: ignore[no-untyped-def]
    """<v' xi>, <v' x> and <v''> of every column, to the rows of ``out``.

    Sums over faces with the density there; the last by parts, as - integral p' v'.
    """
    table, offsets, lows, xi, _ = mesh
    columns = values.shape[1]
    out[:] = 0.0
    for a in range(xi.size):
        first, end = offsets[a], offsets[a + 1]
        shift = lows[a] - first
        for i in range(first + 1, end):
            middle, density, bend = _at_face(table, mass, weights, i, i + shift)
            for k in range(columns):
                rise = values[i, k] - values[i - 1, k]
                out[0, k] += xi[a] * density * rise
                out[1, k] += middle * density * rise
                out[2, k] -= bend * rise


@numba.njit(
    f"void({FACTORS}, float64[:, ::1], float64[::1], float64, float64, int64, float64, {MESH},"
    f"{LAW}, float64[:, ::1])",
    cache=True,
)
def stage(factors, by, mass, q, h2, row, c, mesh, law, room):  # type: ignore[no-untyped-def]
    """An implicit stage: its elimination and its derivatives ``by`` Q and 2h."""
    table, offsets, lows, xi, _ = mesh
    pull, noise, big = law[0][row], law[1][row], law[2][row]
    slopes(by, mass, q, h2, pull, noise, big, c, mesh, room)
    b, g = value_at(pull, q), value_at(noise, q)
    rates(room[0], room[1], room[2], table, offsets, lows, xi, b, big, h2, g, c)
    eliminated(factors, room[0], room[1], offsets)


@numba.njit(
    f"Tuple((float64[:, :, ::1], float64[:, :, ::1], float64[:, :, ::1], float64[:, ::1]))("
    f"float64[::1], float64[::1], float64[::1], int64[::1], float64, {MESH}, {LAW}, float64[::1])",
    cache=True,
    nogil=True,
)
def stages(middle, after, met_at, rows, length, mesh, law, weights):  # type: ignore[no-untyped-def]
    """What a step backwards needs of both stages, late and early, whatever its columns are.

    Their eliminations; their derivatives by Q and 2h; of xi x and x^2 themselves, what the late
    stage makes of them, what the early one makes of that and of themselves; and what Q and 2h of
    the early stage add to what the late one has made.
    """
    offsets, cells, c = mesh[1], weights.size, GAMMA * length
    factors, by, room = np.empty((2, 3, cells)), np.empty((2, 2, cells)), np.empty((3, cells))
    stage(factors[0], by[0], after, met_at[2], met_at[3], rows[1], c, mesh, law, room)
    stage(factors[1], by[1], middle, met_at[0], met_at[1], rows[0], c, mesh, law, room)
    two = constraints(mesh)
    both = np.empty((4, cells, 2))
    both[0] = two
    for k, of in ((1, 0), (2, 1), (3, 0)):
        both[k] = both[of]
        transposed(both[k], factors[0 if k == 1 else 1], offsets)
    onwards = np.empty((2, 2))
    met(onwards, both[2], both[3], by[1], weights)
    return factors, by, both, onwards


@numba.njit("void(float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1])", cache=True)
def handed_on(first, second, both, added):  # type: ignore[no-untyped-def]
    """The late stage's columns, in ``second``: as they go on, to ``first``, then with ``added``."""
    columns = second.shape[1]
    for i in range(second.shape[0]):
        one, other = both[i, 0], both[i, 1]
        for k in range(columns):
            first[i, k] = (1.0 + PUSH) * second[i, k]
            second[i, k] += one * added[0, k] + other * added[1, k]


@numba.njit(
    "void(float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, :, ::1],"
    "float64[:, ::1], float64[:, ::1])",
    cache=True,
)
def put_together(out, first, second, both, came, seen):  # type: ignore[no-untyped-def]
    """The columns before a step from those of both stages, ``first`` with what Q and 2h add."""
    columns = first.shape[1]
    for i in range(first.shape[0]):
        one, other = both[2, i, 0], both[2, i, 1]
        third, fourth = both[3, i, 0], both[3, i, 1]
        for k in range(columns):
            mixed = first[i, k] + (one * came[0, k] + other * came[1, k])
            mixed += third * seen[0, k] + fourth * seen[1, k]
            first[i, k] = mixed
            out[i, k] = mixed - PUSH * second[i, k]


@numba.njit(
    f"Tuple((float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1]))(float64[:, ::1],"
    f"float64[::1], float64[::1], float64[:, :, ::1], float64[:, :, ::1], float64[:, :, ::1],"
    f"float64[:, ::1], {MESH}, float64[::1])",
    cache=True,
    nogil=True,
)
def step_back(values, before, after, factors, by, both, onwards, mesh, weights):  # type: ignore[no-untyped-def]
    """The adjoint of one step of the march, exact but for rounding and derivatives by Q and 2h.

    What it needs of the step are the masses at its ends and what :func:`stages` returns. Returns
    the columns before the step, those of both stages, and for each what the mean field adds to the
    mean of its square: 2 <v R> at both ends on average, R being the multiple of xi x and x^2 that
    enters on the way.
    """
    cells, columns = values.shape
    offsets, two = mesh[1], both[0]
    first, second, before_step = np.empty_like(values), values.copy(), np.empty_like(values)
    added, seen = np.empty((2, columns)), np.empty((2, columns))
    transposed(second, factors[0], offsets)
    met(added, second, both[1], by[0], weights)
    # Of the columns as they would be without a mean field, then what Q and 2h add to them.
    handed_on(first, second, both[1], added)
    transposed(first, factors[1], offsets)
    met(seen, first, both[3], by[1], weights)
    came = (1.0 + PUSH) * added
    for k in range(columns):
        for j in range(2):
            seen[j, k] += came[0, k] * onwards[j, 0] + came[1, k] * onwards[j, 1]
            added[j, k] += seen[j, k]
    put_together(before_step, first, second, both, came, seen)
    gained, slopes_of = np.zeros(columns), np.empty((3, columns))
    # The multiple of x^2 is free, and by the stages known no better than to the first order.
    shared(slopes_of, before_step, before, mesh, weights)
    along = slopes_of[1] / 2.0
    for k in range(columns):
        added[1, k] -= along[k]
    for i in range(cells):
        one, other = weights[i] * before[i], weights[i] * after[i]
        for k in range(columns):
            before_step[i, k] -= along[k] * two[i, 1]
            part = two[i, 0] * added[0, k] + two[i, 1] * added[1, k]
            gained[k] += part * (one * before_step[i, k] + other * values[i, k])
    return before_step, first, second, gained
