"""The compiled inner lines of the sweep backwards; imported when a band is first asked for.

Functions of the entries stand in columns, shape (cells, functions), the cells of all atoms one
after the other as in the march (:mod:`hdica.limits.mean_field.density.kernels`).
"""

from __future__ import annotations

import numba
import numpy as np

from hdica.limits.mean_field.density.kernels import rates
from hdica.limits.mean_field.density.layout import FROM_LEFT, FROM_RIGHT, GAMMA, GAP, PUSH, X
from hdica.limits.mean_field.density.loop import LAW, MESH
from hdica.limits.numerics.compiled import value_at

_Q_STEP, _H_STEP = 1e-5, 1e-5


@numba.njit(
    "void(float64[:, ::1], float64[::1], float64[::1], int64[::1], float64[::1])", cache=True
)
def transposed(values, right, left, offsets, pivot):  # type: ignore[no-untyped-def]
    """Solve (1 - c A)' z = values for every column, in place, ``right`` and ``left`` being c A.

    Rows of 1 - c A' sum to one: pivots follow without a subtraction.
    """
    columns = values.shape[1]
    for a in range(offsets.size - 1):
        first, end = offsets[a], offsets[a + 1]
        excess = 1.0
        pivot[first] = 1.0 + (right[first + 1] if first + 1 < end else 0.0)
        for i in range(first + 1, end):
            share = left[i] / pivot[i - 1]
            excess = 1.0 + share * excess
            pivot[i] = excess + (right[i + 1] if i + 1 < end else 0.0)
            for k in range(columns):
                values[i, k] += share * values[i - 1, k]
        for k in range(columns):
            values[end - 1, k] /= pivot[end - 1]
        for i in range(end - 2, first - 1, -1):
            inverse, onwards = 1.0 / pivot[i], right[i + 1]
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
def slopes(found, mass, q, h2, pull, noise, big, c, mesh, room):  # type: ignore[no-untyped-def]
    """The derivatives of c A mass by Q and by 2h, to the rows of ``found``."""
    found[:] = 0.0
    low, high = max(-1.0, q - _Q_STEP), min(1.0, q + _Q_STEP)
    one = 1.0 / (high - low)
    for at, sign in ((high, one), (low, -one)):
        b, g = value_at(pull, at), value_at(noise, at)
        changed(found[0], mass, b, g, big, h2, c, sign, mesh, room)
    b, g, step = value_at(pull, q), value_at(noise, q), _H_STEP * (1.0 + abs(h2))
    for at, sign in ((h2 + step, 0.5 / step), (h2 - step, -0.5 / step)):
        changed(found[1], mass, b, g, big, at, c, sign, mesh, room)


@numba.njit(
    "void(float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1])",
    cache=True,
)
def met(found, base, both, by, weights):  # type: ignore[no-untyped-def]
    """What Q and 2h of a stage add to its columns ``base``: multiples of ``both``, to ``found``.

    ``by`` are the derivatives of c A mass by Q and 2h. With z = base + mu both_0 + nu both_1 the
    stage's own overlap is mu = by_0.z, and E[x^2] = 1 asks for by_1.z = 0.
    """
    columns = base.shape[1]
    aa, ab, ba, bb = 0.0, 0.0, 0.0, 0.0
    found[:] = 0.0
    for i in range(weights.size):
        first, second = weights[i] * by[0, i], weights[i] * by[1, i]
        aa += first * both[i, 0]
        ab += first * both[i, 1]
        ba += second * both[i, 0]
        bb += second * both[i, 1]
        for k in range(columns):
            found[0, k] += first * base[i, k]
            found[1, k] += second * base[i, k]
    # (1 - aa) mu - ab nu = found_0,  ba mu + bb nu = -found_1.
    det = (1.0 - aa) * bb + ab * ba
    for k in range(columns):
        one, two = found[0, k], -found[1, k]
        found[0, k] = (one * bb + ab * two) / det
        found[1, k] = ((1.0 - aa) * two - ba * one) / det


@numba.njit("float64[:, ::1](float64[:, ::1], float64[:, ::1])", cache=True)
def _spread(both, added):  # type: ignore[no-untyped-def]
    """``both`` times ``added``: two columns to many."""
    found = np.empty((both.shape[0], added.shape[1]))
    for i in range(both.shape[0]):
        for k in range(added.shape[1]):
            found[i, k] = both[i, 0] * added[0, k] + both[i, 1] * added[1, k]
    return found


@numba.njit(f"float64[:, ::1]({MESH})", cache=True)
def constraints(mesh):  # type: ignore[no-untyped-def]
    """Columns xi x and x^2 at every cell, shape (cells, 2)."""
    table, offsets, lows, xi, _ = mesh
    found = np.empty((offsets[-1], 2))
    for a in range(xi.size):
        shift = lows[a] - offsets[a]
        for i in range(offsets[a], offsets[a + 1]):
            x = table[X, i + shift]
            found[i, 0], found[i, 1] = xi[a] * x, x * x
    return found


@numba.njit(
    f"void(float64[:, ::1], float64[:, ::1], float64[::1], {MESH}, float64[::1])", cache=True
)
def shared(found, values, mass, mesh, weights):  # type: ignore[no-untyped-def]
    """<v' xi>, <v' x> and <v''> of every column, to the rows of ``found``.

    Sums over faces with the density there; the last by parts, as - integral p' v'.
    """
    table, offsets, lows, xi, _ = mesh
    columns = values.shape[1]
    found[:] = 0.0
    for a in range(xi.size):
        first, end = offsets[a], offsets[a + 1]
        shift = lows[a] - first
        for i in range(first + 1, end):
            cell = i + shift
            left, right = table[X, cell - 1], table[X, cell]
            gap, middle = right - left, 0.5 * (left + right)
            # Faces lie half-way in number, and 1/(gap dx) is in the table.
            before = mass[i - 1] * table[FROM_LEFT, cell] * table[GAP, cell]
            after = mass[i] * table[FROM_RIGHT, cell] * table[GAP, cell]
            density = 0.5 * weights[i] * (before + after)
            bend = weights[i] * (after - before) / gap
            for k in range(columns):
                rise = values[i, k] - values[i - 1, k]
                found[0, k] += xi[a] * density * rise
                found[1, k] += middle * density * rise
                found[2, k] -= bend * rise


@numba.njit(
    f"void(float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1],"
    f"float64, float64, int64, float64, {MESH}, {LAW}, float64[::1], float64[:, ::1])",
    cache=True,
)
def stage_back(values, both, by, added, mass, q, h2, row, c, mesh, law, weights, room):  # type: ignore[no-untyped-def]
    """One implicit stage backwards: ``values``, with its last two columns xi x and x^2, in place.

    Only the first columns are answered for in ``added``, of as many; ``by`` are the derivatives by
    the stage's Q and 2h, ``both`` what xi x and x^2 have become.
    """
    table, offsets, lows, xi, _ = mesh
    pull, noise, big = law[0][row], law[1][row], law[2][row]
    slopes(by, mass, q, h2, pull, noise, big, c, mesh, room)
    b, g = value_at(pull, q), value_at(noise, q)
    rates(room[0], room[1], room[2], table, offsets, lows, xi, b, big, h2, g, c)
    transposed(values, room[0], room[1], offsets, room[2])
    last = values.shape[1] - 2
    for i in range(values.shape[0]):
        both[i, 0], both[i, 1] = values[i, last], values[i, last + 1]
    met(added, values[:, : added.shape[1]].copy(), both, by, weights)


@numba.njit(
    f"Tuple((float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1]))(float64[:, ::1],"
    f"float64[::1], float64[::1], float64[::1], float64[::1], int64[::1], float64, {MESH}, {LAW},"
    "float64[::1])",
    cache=True,
    nogil=True,
)
def step_back(values, before, middle, after, met_at, rows, length, mesh, law, weights):  # type: ignore[no-untyped-def]
    """The adjoint of one step of the march, exact but for rounding and derivatives by Q and 2h.

    ``met_at`` are Q and 2h of both stages, ``rows`` those of the law. Returns the columns before
    the step, those of both stages, and for each what the mean field adds to the mean of its square:
    2 <v R> at both ends on average, R being the multiple of xi x and x^2 that enters on the way.
    """
    cells, columns = values.shape
    c, room, two = GAMMA * length, np.empty((3, cells)), constraints(mesh)
    by, both, added = np.empty((2, cells)), np.empty((cells, 2)), np.empty((2, columns))
    late = np.empty((cells, columns + 2))
    late[:, :columns], late[:, columns:] = values, two
    stage_back(
        late, both, by, added, after, met_at[2], met_at[3], rows[1], c, mesh, law, weights, room
    )
    # Of the columns as they would be without a mean field, then what Q and 2h add to them.
    early = np.empty((cells, columns + 4))
    early[:, :columns] = (1.0 + PUSH) * late[:, :columns]
    early[:, columns : columns + 2], early[:, columns + 2 :] = both, two
    second = late[:, :columns] + _spread(both, added)
    seen = np.empty((2, columns + 2))
    first_both = np.empty((cells, 2))
    stage_back(
        early, first_both, by, seen, middle, met_at[0], met_at[1], rows[0], c, mesh, law, weights,
        room,
    )  # fmt: skip
    came = (1.0 + PUSH) * added
    more, entered = seen[:, :columns].copy(), added.copy()
    for k in range(columns):
        for j in range(2):
            more[j, k] += came[0, k] * seen[j, columns] + came[1, k] * seen[j, columns + 1]
            entered[j, k] += more[j, k]
    first = early[:, :columns] + _spread(early[:, columns : columns + 2].copy(), came)
    first += _spread(first_both, more)
    found, gained = first - PUSH * second, np.zeros(columns)
    # The multiple of x^2 is free, and by the stages known no better than to the first order.
    slopes_of = np.empty((3, columns))
    shared(slopes_of, found, before, mesh, weights)
    for k in range(columns):
        entered[1, k] -= slopes_of[1, k] / 2.0
        for i in range(cells):
            found[i, k] -= slopes_of[1, k] / 2.0 * two[i, 1]
    for i in range(cells):
        one, other = weights[i] * before[i], weights[i] * after[i]
        for k in range(columns):
            part = two[i, 0] * entered[0, k] + two[i, 1] * entered[1, k]
            gained[k] += part * (one * found[i, k] + other * values[i, k])
    return found, first, second, gained
