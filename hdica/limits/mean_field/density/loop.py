"""The compiled march of the Fokker-Planck solver: implicit stages, steps, and runs of steps.

What it works on comes in tuples. ``mesh``: table, offsets and lows of the mesh, nodes and weights
of the prior. ``law``: b and g as packed functions of Q, and B, a row for each
step size that occurs. ``memory``: what earlier steps taught about the two stages of a step.
``work``: flat arrays over the cells, by the names below.
"""

from __future__ import annotations

import math

import numba

from hdica.limits.mean_field.density.kernels import push, rates, resolve
from hdica.limits.mean_field.density.layout import (
    FIRST,
    GAMMA,
    GIVEN,
    H2,
    KEPT,
    LEFT,
    MASS,
    ONE,
    PUSH,
    RIGHT,
    SHARE,
    TWO,
    X_PHI,
    Q,
    T,
    X,
)
from hdica.limits.numerics.compiled import value_at

_SWEEPS = 14
_Q_EXACT, _SQUARE_EXACT = 5e-13, 6e-14
MESH = "Tuple((float64[:, ::1], int64[::1], int64[::1], float64[::1], float64[::1]))"
LAW = "Tuple((float64[:, ::1], float64[:, ::1], float64[::1]))"
MEMORY = "Tuple((float64[:, :, ::1], float64[:, ::1], float64[::1], float64[::1]))"


@numba.njit("UniTuple(float64, 2)(float64[:, ::1], float64, float64, float64)", cache=True)
def foretold(past, t, q, h2):  # type: ignore[no-untyped-def]
    """Q and 2h extrapolated to time t; ``q`` and ``h2`` where nothing is known."""
    known = int(past[KEPT, 0])
    if known == 0:
        return q, h2
    q, h2 = 0.0, 0.0
    for i in range(known):
        share = 1.0
        for j in range(known):
            if j != i:
                share *= (t - past[j, 0]) / (past[i, 0] - past[j, 0])
        q += share * past[i, 1]
        h2 += share * past[i, 2]
    return min(1.0, max(-1.0, q)), h2


@numba.njit("void(float64[:, ::1], float64, float64, float64)", cache=True)
def learn(past, t, q, h2):  # type: ignore[no-untyped-def]
    """Remember an accepted solution."""
    known = int(past[KEPT, 0])
    if known == KEPT:
        for i in range(KEPT - 1):
            past[i] = past[i + 1]
        known -= 1
    past[known, 0], past[known, 1], past[known, 2] = t, q, h2
    past[KEPT, 0] = known + 1


@numba.njit("void(float64[::1], float64[::1], float64[::1], float64)", cache=True)
def _first_answer(answer, pull, noise, q):  # type: ignore[no-untyped-def]
    """How Q and E[x^2] answer to Q (through b and g) and to 2h, to first order in c."""
    low, high = max(-1.0, q - 1e-4), min(1.0, q + 1e-4)
    rise = (value_at(pull, high) - value_at(pull, low)) / (high - low)
    wider = (value_at(noise, high) - value_at(noise, low)) / (high - low)
    answer[0], answer[1], answer[2], answer[3] = rise, -q, 2 * (rise * q + wider), -2.0


@numba.njit(
    "UniTuple(float64, 4)(float64, float64, float64, float64, float64, float64, float64, float64)",
    cache=True,
)
def _corrected(qq, qh, sq, sh, one, two, dq, dh):  # type: ignore[no-untyped-def]
    return qq + one * dq, qh + one * dh, sq + two * dq, sh + two * dh


@numba.njit(
    f"Tuple((float64, float64, boolean))(int64, float64, float64, float64, int64, {MESH}, {LAW},"
    f"{MEMORY}, float64[:, ::1], int64)",
    cache=True,
)
def implicit(row, q, h2, c, stage, mesh, law, memory, work, given):  # type: ignore[no-untyped-def]
    """Solve (1 - c A(Q, 2h)) mass = given together with Q = E[xi x] and E[x^2] = 1.

    Two unknowns by Newton's method, whose derivatives, kept per unit of c from step to step, are
    corrected by what they foretell (Broyden 1965). Returns Q, 2h and whether both were met.
    """
    table, offsets, lows, xi, _ = mesh
    pull, noise, big = law[0][row], law[1][row], law[2][row]
    answer, sums = memory[1][stage], memory[2]
    before, mass, share = work[given], work[ONE if stage == 0 else TWO], work[SHARE]
    if answer[4] == 0.0:
        _first_answer(answer, pull, noise, q)
    # Derivatives of what Q and E[x^2] become, less what they should be, by Q and by 2h.
    qq, qh, sq, sh = c * answer[0] - 1.0, c * answer[1], c * answer[2], c * answer[3]
    dq, dh, off, wide, met = 0.0, 0.0, 0.0, 0.0, False
    for sweep in range(_SWEEPS):
        b, g = value_at(pull, q), value_at(noise, q)
        rates(work[RIGHT], work[LEFT], share, table, offsets, lows, xi, b, big, h2, g, c)
        found, square = resolve(before, mass, work[RIGHT], work[LEFT], share, sums, *mesh)
        first, second = found - q, square - 1.0
        met = abs(first) < _Q_EXACT and abs(second) < _SQUARE_EXACT
        if met or not math.isfinite(found + square):
            break
        # A difference of two misses near rounding would teach noise.
        if sweep > 0 and max(abs(off), abs(wide)) >= 1e-11 and (dq != 0.0 or dh != 0.0):
            size = dq * dq + dh * dh
            one, two = (first - off - qq * dq - qh * dh), (second - wide - sq * dq - sh * dh)
            qq, qh, sq, sh = _corrected(qq, qh, sq, sh, one / size, two / size, dq, dh)
        off, wide = first, second
        det = qq * sh - qh * sq
        dq, dh = (qh * wide - sh * off) / det, (sq * off - qq * wide) / det
        q, h2 = min(1.0, max(-1.0, q + dq)), h2 + dh
    answer[0], answer[1], answer[2], answer[3] = (qq + 1.0) / c, qh / c, sq / c, sh / c
    answer[4] = 1.0
    return q, h2, met


@numba.njit(
    f"UniTuple(float64, 5)(float64, float64, int64, int64, {MESH}, {LAW}, {MEMORY},"
    "float64[::1], float64[:, ::1])",
    cache=True,
)
def step(t, end, row, last, mesh, law, memory, state, work):  # type: ignore[no-untyped-def]
    """One step, positive and conservative by construction: from MASS to TWO, not yet of sum one.

    ``row`` and ``last`` are the rows of the law at the two stages. Returns Q and 2h of both, and
    1.0 if both met E[x^2] = 1 and their own Q. RIGHT and LEFT are left as those of the second.
    """
    past = memory[0]
    middle, c = t + GAMMA * (end - t), GAMMA * (end - t)
    q, h2 = foretold(past[0], middle, state[Q], state[H2])
    q1, h1, one = implicit(row, q, h2, c, 0, mesh, law, memory, work, MASS)
    push(work[ONE], work[GIVEN], work[RIGHT], work[LEFT], work[SHARE], mesh[1], PUSH)
    q, h2 = foretold(past[1], end, q1, h1)
    q2, h2, two = implicit(last, q, h2, c, 1, mesh, law, memory, work, GIVEN)
    return q1, h1, q2, h2, 1.0 if one and two else 0.0


@numba.njit("void(float64[::1], float64[::1], float64[::1], int64[::1])", cache=True)
def unrounded(found, mass, sums, offsets):  # type: ignore[no-untyped-def]
    """``mass`` = ``found`` with unit sums: rounding alone would drift away over 10^5 steps."""
    for a in range(sums.size):
        scale = 1.0 / sums[a]
        own, new = found[offsets[a] : offsets[a + 1]], mass[offsets[a] : offsets[a + 1]]
        for i in range(own.size):
            new[i] = own[i] * scale


@numba.njit(f"void(float64[::1], float64[::1], {MESH}, float64[:, ::1], float64)", cache=True)
def measure(row, mass, mesh, integrands, h2):  # type: ignore[no-untyped-def]
    """Q, R, 2h, the largest |mass - 1|, |E x^2 - 1| and the functionals, to row[1:]."""
    table, offsets, lows, xi, weights = mesh
    q, r, square, worst = 0.0, 0.0, 0.0, 0.0
    for a in range(xi.size):
        own, low = mass[offsets[a] : offsets[a + 1]], lows[a]
        x, x_phi = table[X, low : low + own.size], table[X_PHI, low : low + own.size]
        total, first, second, third = 0.0, 0.0, 0.0, 0.0
        for i in range(own.size):
            total += own[i]
            first += own[i] * x[i]
            second += own[i] * x[i] * x[i]
            third += own[i] * x_phi[i]
        q += weights[a] * xi[a] * first
        r += weights[a] * third
        square += weights[a] * second
        worst = max(worst, abs(total - 1.0))
    row[1], row[2], row[3], row[4], row[5] = q, r, h2, worst, abs(square - 1.0)
    for k in range(integrands.shape[0]):
        mean = 0.0
        for i in range(mass.size):
            mean += mass[i] * integrands[k, i]
        row[FIRST + k] = mean


@numba.njit(
    f"int64(float64[::1], int64[:, ::1], int64, {MESH}, {LAW}, {MEMORY},"
    "float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1])",
    cache=True,
    nogil=True,
)
def march(ends, rows, every, mesh, law, memory, state, work, integrands, found):  # type: ignore[no-untyped-def]
    """Steps from ``state[T]`` to each of ``ends``; a row of ``found`` after ``every`` steps.

    ``rows`` are those of the law at both stages of every step. Returns how many steps did not
    meet E[x^2] = 1 and their own Q.
    """
    past, missed = memory[0], 0
    for k in range(ends.size):
        t, end = state[T], ends[k]
        q1, h1, q2, h2, met = step(t, end, rows[k, 0], rows[k, 1], mesh, law, memory, state, work)
        missed += met == 0.0
        learn(past[0], t + GAMMA * (end - t), q1, h1)
        learn(past[1], end, q2, h2)
        unrounded(work[TWO], work[MASS], memory[2], mesh[1])
        state[T], state[Q], state[H2] = end, q2, h2
        if (k + 1) % every == 0:
            measure(found[(k + 1) // every - 1], work[MASS], mesh, integrands, h2)
    return missed
