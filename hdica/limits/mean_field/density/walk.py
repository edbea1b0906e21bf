"""The compiled exploration of the Fokker-Planck solver: steps and windows that adapt.

Its arguments are those of the march; one level, of unrefined cells, is explored.
"""

from __future__ import annotations

import math

import numba

from hdica.limits.mean_field.density.kernels import resolve
from hdica.limits.mean_field.density.layout import (
    BROKE,
    DONE,
    DT,
    GAMMA,
    GIVEN,
    H2,
    HALT,
    LEFT,
    MARK,
    MASS,
    ONE,
    RATE,
    RATED,
    RIGHT,
    ROOM,
    SHARE,
    SMOOTH,
    SPENT,
    TWO,
    WINDOWS,
    Q,
    T,
    X,
)
from hdica.limits.mean_field.density.loop import LAW, MEMORY, MESH, learn, measure, step, unrounded

SHORTEST = 1e-10
# Quadrature of order 3 through the slopes at 0, gamma and 1, minus the weights of the method.
_MIDDLE = (1 / 6) / (GAMMA * (1 - GAMMA))
_LAST = 1 / 2 - GAMMA * _MIDDLE
_EMBEDDED = (1 - _MIDDLE - _LAST, _MIDDLE - (1 - GAMMA), _LAST - GAMMA)


@numba.njit("float64(float64, float64, float64)", cache=True)
def ahead(t, mark, dt):  # type: ignore[no-untyped-def]
    """End of the next step: the mark itself, or equal parts of what is left before it."""
    left = mark - t
    parts = math.ceil(left / dt - 1e-9)
    if parts <= 1:
        return mark
    return t + (left / 2 if parts == 2 else dt)


@numba.njit(f"float64(float64, float64, {MESH}, {MEMORY}, float64[:, ::1])", cache=True)
def _local_error(dt, rated, mesh, memory, work):  # type: ignore[no-untyped-def]
    """Difference to a quadrature of order 3, smoothed by the implicit operator.

    Sum of w |e| (1 + x^2)/2. GIVEN becomes the slope over the step, ONE the difference.
    """
    table, offsets, lows, xi, weights = mesh
    mass, rate, one, given, two = work[MASS], work[RATE], work[ONE], work[GIVEN], work[TWO]
    for i in range(mass.size):
        middle, slope = (one[i] - mass[i]) / GAMMA, (two[i] - given[i]) / GAMMA
        # After a jump the old slope says nothing: with the middle one the estimate errs high.
        before = rate[i] * dt if rated != 0.0 else middle
        one[i] = _EMBEDDED[0] * before + _EMBEDDED[1] * middle + _EMBEDDED[2] * slope
        given[i] = slope
    smooth = work[SMOOTH]
    resolve(one, smooth, work[RIGHT], work[LEFT], work[SHARE], memory[3], *mesh)
    error = 0.0
    for a in range(xi.size):
        shift, own = lows[a] - offsets[a], 0.0
        for i in range(offsets[a], offsets[a + 1]):
            own += abs(smooth[i]) * (1.0 + table[X, i + shift] ** 2)
        error += weights[a] * own
    return error / 2


@numba.njit("int64(float64[::1], float64[::1], int64, float64)", cache=True)
def _verdict(own, x, side, edge):  # type: ignore[no-untyped-def]
    """Whether an atom's window should grow on one side, 1, or shrink, -1, or neither, 0.

    It grows if more than ``edge`` of (1 + x^2) times the mass lies in the outer eighth, and
    shrinks if next to nothing lies in the outer third.
    """
    n = own.size
    outer, third, total = max(2, n // 8), n // 3 if n > 64 else 0, 0.0
    for k in range(max(outer, third)):
        i = k if side == 0 else n - 1 - k
        total += own[i] * (1.0 + x[i] * x[i])
        if k < outer and total > edge:
            return 1
        if k >= outer - 1 and total >= edge / 100:
            return 0
    return -1 if third > 0 else 0


@numba.njit(f"int64(float64[::1], {MESH}, float64, int64[:, ::1])", cache=True)
def fit(mass, mesh, edge, windows):  # type: ignore[no-untyped-def]
    """Adjust windows to the density; returns 1 if some grew, -1 if some shrank, 0 if none did.

    Rows of ``windows`` are the first and last face of each atom, and two to work with. None
    shrinks where another grows.
    """
    table, offsets, lows = mesh[0], mesh[1], mesh[2]
    grown, shrunk = 0, 0
    for a in range(lows.size):
        own = mass[offsets[a] : offsets[a + 1]]
        x = table[X, lows[a] : lows[a] + own.size]
        for side in range(2):
            windows[2 + side, a] = _verdict(own, x, side, edge)
            grown += windows[2 + side, a] == 1
            shrunk += windows[2 + side, a] == -1
    for a in range(lows.size):
        n = offsets[a + 1] - offsets[a]
        for side in range(2):
            verdict, outwards = windows[2 + side, a], 2 * side - 1
            if verdict == 1:
                windows[side, a] += outwards * max(4, n // 5)
            elif verdict == -1 and grown == 0:
                windows[side, a] -= outwards * (n // 6)
    return 1 if grown > 0 else (-1 if shrunk > 0 else 0)


@numba.njit(
    f"int64(float64, float64, boolean, int64, float64, float64, {MESH}, {LAW},"
    f"{MEMORY}, float64[::1], float64[:, ::1], int64[:, ::1])",
    cache=True,
)
def attempt(t, end, free, last, goal, edge, mesh, law, memory, state, work, windows):  # type: ignore[no-untyped-def]
    """Try a step, which may be too long, or need wider windows.

    Returns 0 if it is taken, 1 if it must be shorter, 2 if the windows must be wider, 3 if it is
    taken and they may be narrower.
    """
    q1, h1, q2, h2, met = step(t, end, 0, last, mesh, law, memory, state, work)
    length = end - t
    state[SPENT] += work.shape[1]
    error = _local_error(length, state[RATED], mesh, memory, work)
    wanted = 0.9 * (goal / max(error, 1e-30)) ** (1 / 3) if met != 0.0 else 0.2
    if not error <= goal or met == 0.0:
        state[DT] = length * min(0.9, max(0.2, wanted))
        return 1
    unrounded(work[TWO], work[SMOOTH], memory[2], mesh[1])
    change = fit(work[SMOOTH], mesh, edge, windows)
    if change == 1:
        return 2
    grown = length * min(2.0, max(0.5, wanted))
    # A step cut short by a mark does not say that the next one must be short.
    state[DT] = grown if free else max(state[DT], grown)
    learn(memory[0][0], t + GAMMA * length, q1, h1)
    learn(memory[0][1], end, q2, h2)
    for i in range(work.shape[1]):
        work[MASS, i], work[RATE, i] = work[SMOOTH, i], work[GIVEN, i] / length
    state[T], state[Q], state[H2], state[RATED] = end, q2, h2, 1.0
    return 3 if change == -1 else 0


@numba.njit(
    f"UniTuple(int64, 2)(float64[::1], boolean[::1], float64, float64, float64, {MESH},"
    f"{LAW}, {MEMORY}, float64[::1], float64[:, ::1], int64[:, ::1], float64[:, ::1],"
    "float64[::1], float64[:, ::1])",
    cache=True,
    nogil=True,
)
def walk(  # type: ignore[no-untyped-def]
    marks,
    halts,
    goal,
    edge,
    budget,
    mesh,
    law,
    memory,
    state,
    work,
    windows,
    integrands,
    ends,
    found,
):
    """Steps of the right length to each of ``marks``, until windows change or a mark halts.

    A law of one row is that of all steps; one of two, of the two stages, is that of a single
    attempt. Returns why it came back and how many steps it took, whose ends and measures are in
    ``ends`` and ``found``.
    """
    taken, last = 0, law[2].size - 1
    while state[MARK] < marks.size:
        mark = int(state[MARK])
        while state[T] < marks[mark]:
            if state[SPENT] > budget or state[DT] < SHORTEST * (1 + state[T]):
                return BROKE, taken
            if taken == ends.size:
                return ROOM, taken
            t, end = state[T], ahead(state[T], marks[mark], state[DT])
            free = end < marks[mark]
            came = attempt(t, end, free, last, goal, edge, mesh, law, memory, state, work, windows)
            if came == 0 or came == 3:
                ends[taken] = end
                measure(found[taken], work[MASS], mesh, integrands, state[H2])
                taken += 1
            if came >= 2:
                return WINDOWS, taken
            if last > 0:
                return ROOM, taken
        state[MARK] = mark + 1
        if halts[mark]:
            return HALT, taken
    return DONE, taken
