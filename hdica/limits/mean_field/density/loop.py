"""The compiled march of the Fokker-Planck solver: stages, steps that adapt, and runs of steps.

What it works on comes in tuples. ``mesh``: table, offsets and lows of the mesh, nodes and weights
of the prior. ``law``: b and g as packed functions, and B, a row for each step size that occurs, and
2h as a packed function. A rule that keeps the norm has b and g of Q and no 2h: that is the unknown
beside Q, which E[x^2] = 1 demands. Of any other all three are functions of Q and P = E[x^2], and P
is the other unknown. ``memory``: what earlier steps taught about the two stages of a step.
``work``: flat arrays over the cells, by the names in :mod:`hdica.limits.mean_field.density.grid`.
"""

from __future__ import annotations

import math

import numba

from hdica.limits.mean_field.density import grid as at
from hdica.limits.mean_field.density.kernels import push, rates, resolve
from hdica.limits.numerics.compiled import plane, value_at

_SWEEPS = 14
_Q_EXACT, _SQUARE_EXACT = 5e-13, 6e-14
MESH = "Tuple((float64[:, ::1], int64[::1], int64[::1], float64[::1], float64[::1]))"
LAW = "Tuple((float64[:, ::1], float64[:, ::1], float64[::1], float64[::1]))"
MEMORY = "Tuple((float64[:, :, ::1], float64[:, ::1], float64[::1], float64[::1]))"


@numba.njit("UniTuple(float64, 2)(float64[:, ::1], float64, float64, float64)", cache=True)
def foretold(past, t, q, h2):  # type: ignore[no-untyped-def]
    """Q and the other unknown extrapolated to time t; ``q`` and ``h2`` where nothing is known."""
    count = int(past[at.PAST, 0])
    if count == 0:
        return q, h2
    q, h2 = 0.0, 0.0
    for i in range(count):
        share = 1.0
        for j in range(count):
            if j != i:
                share *= (t - past[j, 0]) / (past[i, 0] - past[j, 0])
        q += share * past[i, 1]
        h2 += share * past[i, 2]
    return q, h2


@numba.njit("void(float64[:, ::1], float64, float64, float64)", cache=True)
def learn(past, t, q, h2):  # type: ignore[no-untyped-def]
    """Remember an accepted solution."""
    count = int(past[at.PAST, 0])
    if count == at.PAST:
        for i in range(at.PAST - 1):
            past[i] = past[i + 1]
        count -= 1
    past[count, 0], past[count, 1], past[count, 2] = t, q, h2
    past[at.PAST, 0] = count + 1


@numba.njit(
    f"Tuple((float64, float64, boolean))(int64, float64, float64, float64, int64, {MESH}, {LAW},"
    f"{MEMORY}, float64[:, ::1], int64)",
    cache=True,
)
def implicit(row, q, other, c, stage, mesh, law, memory, work, source):  # type: ignore[no-untyped-def]
    """Solve (1 - c A) mass = given together with Q = E[xi x], and E[x^2] = 1 or P = E[x^2].

    Two unknowns by Newton's method, whose derivatives, kept per unit of c from step to step, are
    corrected by what they foretell (Broyden 1965). Returns Q, the other unknown and whether both
    were met.
    """
    table, offsets, lows, xi, _ = mesh
    pull, noise, big, free = law[0][row], law[1][row], law[2][row], law[3].size > 0
    answer, sums = memory[1][stage], memory[2]
    before, mass, share = work[source], work[at.ONE if stage == 0 else at.TWO], work[at.SHARE]
    # Derivatives of the misses of what is no function of c.
    own = 1.0 if free else 0.0
    if not free:
        q = min(1.0, max(-1.0, q))
    if answer[4] == 0.0 and not free:
        # How Q and E[x^2] answer to Q (through b and g) and to 2h, to first order in c.
        low, high = max(-1.0, q - 1e-4), min(1.0, q + 1e-4)
        rise = (value_at(pull, high) - value_at(pull, low)) / (high - low)
        wider = (value_at(noise, high) - value_at(noise, low)) / (high - low)
        answer[0], answer[1], answer[2], answer[3] = rise, -q, 2 * (rise * q + wider), -2.0
    # Derivatives of what Q and E[x^2] become, less what they should be, by Q and by 2h.
    qq, qh, sq, sh = c * answer[0] - 1.0, c * answer[1], c * answer[2], c * answer[3] - own
    dq, dh, off, wide, met = 0.0, 0.0, 0.0, 0.0, False
    h2, goal, size = other, 1.0, 1.0
    for sweep in range(_SWEEPS):
        if free:
            goal, size = other, max(1.0, other)
            b, g, h2 = plane(pull, q, other), plane(noise, q, other), plane(law[3], q, other)
        else:
            b, g, h2 = value_at(pull, q), value_at(noise, q), other
        rates(work[at.RIGHT], work[at.LEFT], share, table, offsets, lows, xi, b, big, h2, g, c)
        overlap, square = resolve(before, mass, work[at.RIGHT], work[at.LEFT], share, sums, *mesh)
        first, second = overlap - q, square - goal
        met = abs(first) < size * _Q_EXACT and abs(second) < size * _SQUARE_EXACT
        if met or not math.isfinite(overlap + square):
            break
        # A difference of two misses near rounding would teach noise.
        if sweep > 0 and max(abs(off), abs(wide)) >= 1e-11 and (dq != 0.0 or dh != 0.0):
            length = dq * dq + dh * dh
            one = (first - off - qq * dq - qh * dh) / length
            two = (second - wide - sq * dq - sh * dh) / length
            qq, qh, sq, sh = qq + one * dq, qh + one * dh, sq + two * dq, sh + two * dh
        off, wide = first, second
        det = qq * sh - qh * sq
        dq, dh = (qh * wide - sh * off) / det, (sq * off - qq * wide) / det
        q, other = q + dq, other + dh
        if not free:
            q = min(1.0, max(-1.0, q))
    answer[0], answer[1], answer[2], answer[3] = (qq + 1.0) / c, qh / c, sq / c, (sh + own) / c
    answer[4] = 1.0
    return q, other, met


@numba.njit(
    f"UniTuple(float64, 5)(float64, float64, int64, int64, {MESH}, {LAW}, {MEMORY},"
    "float64[::1], float64[:, ::1])",
    cache=True,
)
def step(t, end, row, last, mesh, law, memory, state, work):  # type: ignore[no-untyped-def]
    """One step, positive and conservative by construction: from MASS to TWO, not yet of sum one.

    ``row`` and ``last`` are the rows of the law at the two stages. Returns Q and the other unknown
    of both, and 1.0 if both met their conditions. RIGHT and LEFT are left as those of the second.
    """
    past = memory[0]
    middle, c = t + at.GAMMA * (end - t), at.GAMMA * (end - t)
    q, h2 = foretold(past[0], middle, state[at.Q], state[at.OTHER])
    q1, h1, one = implicit(row, q, h2, c, 0, mesh, law, memory, work, at.MASS)
    right, left, flux = work[at.RIGHT], work[at.LEFT], work[at.SHARE]
    push(work[at.ONE], work[at.SOURCE], right, left, flux, mesh[1], at.PUSH)
    q, h2 = foretold(past[1], end, q1, h1)
    q2, h2, two = implicit(last, q, h2, c, 1, mesh, law, memory, work, at.SOURCE)
    return q1, h1, q2, h2, 1.0 if one and two else 0.0


@numba.njit("void(float64[::1], float64[::1], float64[::1], int64[::1])", cache=True)
def unrounded(rounded, mass, sums, offsets):  # type: ignore[no-untyped-def]
    """``mass`` = ``rounded`` with unit sums: rounding alone would drift away over 10^5 steps."""
    for a in range(sums.size):
        scale = 1.0 / sums[a]
        own, new = rounded[offsets[a] : offsets[a + 1]], mass[offsets[a] : offsets[a + 1]]
        for i in range(own.size):
            new[i] = own[i] * scale


@numba.njit(
    f"void(float64[::1], float64[::1], {MESH}, float64[:, ::1], float64, float64)", cache=True
)
def measure(row, mass, mesh, integrands, other, goal):  # type: ignore[no-untyped-def]
    """Q, R, the other unknown, the largest |mass - 1|, |E x^2 - goal| and the functionals.

    They are written to row[1:].
    """
    table, offsets, lows, xi, weights = mesh
    q, r, square, worst = 0.0, 0.0, 0.0, 0.0
    for a in range(xi.size):
        own, low = mass[offsets[a] : offsets[a + 1]], lows[a]
        x, x_phi = table[at.X, low : low + own.size], table[at.X_PHI, low : low + own.size]
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
    row[1], row[2], row[3], row[4], row[5] = q, r, other, worst, abs(square - goal)
    for k in range(integrands.shape[0]):
        mean = 0.0
        for i in range(mass.size):
            mean += mass[i] * integrands[k, i]
        row[at.FIRST + k] = mean


@numba.njit(
    f"int64(float64[::1], int64[:, ::1], int64, {MESH}, {LAW}, {MEMORY},"
    "float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1])",
    cache=True,
    nogil=True,
)
def march(ends, rows, every, mesh, law, memory, state, work, integrands, rows_out):  # type: ignore[no-untyped-def]
    """Steps from ``state[T]`` to each of ``ends``; a row of ``rows_out`` after ``every`` steps.

    ``rows`` are those of the law at both stages of every step. Returns how many steps did not
    meet E[x^2] = 1 and their own Q.
    """
    past, missed, free = memory[0], 0, law[3].size > 0
    for k in range(ends.size):
        t, end = state[at.T], ends[k]
        q1, h1, q2, h2, met = step(t, end, rows[k, 0], rows[k, 1], mesh, law, memory, state, work)
        missed += met == 0.0
        learn(past[0], t + at.GAMMA * (end - t), q1, h1)
        learn(past[1], end, q2, h2)
        unrounded(work[at.TWO], work[at.MASS], memory[2], mesh[1])
        state[at.T], state[at.Q], state[at.OTHER] = end, q2, h2
        if (k + 1) % every == 0:
            row, square = rows_out[(k + 1) // every - 1], h2 if free else 1.0
            measure(row, work[at.MASS], mesh, integrands, h2, square)
    return missed


SHORTEST = 1e-10
# Quadrature of order 3 through the slopes at 0, gamma and 1, minus the weights of the method.
_MIDDLE = (1 / 6) / (at.GAMMA * (1 - at.GAMMA))
_LAST = 1 / 2 - at.GAMMA * _MIDDLE
_EMBEDDED = (1 - _MIDDLE - _LAST, _MIDDLE - (1 - at.GAMMA), _LAST - at.GAMMA)


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

    Sum of w |e| (1 + x^2)/2. SOURCE becomes the slope over the step, ONE the difference.
    """
    table, offsets, lows, xi, weights = mesh
    mass, rate, one = work[at.MASS], work[at.RATE], work[at.ONE]
    slopes, two = work[at.SOURCE], work[at.TWO]
    for i in range(mass.size):
        middle, slope = (one[i] - mass[i]) / at.GAMMA, (two[i] - slopes[i]) / at.GAMMA
        # After a jump the old slope says nothing: with the middle one the estimate errs high.
        before = rate[i] * dt if rated != 0.0 else middle
        one[i] = _EMBEDDED[0] * before + _EMBEDDED[1] * middle + _EMBEDDED[2] * slope
        slopes[i] = slope
    smooth = work[at.SMOOTH]
    resolve(one, smooth, work[at.RIGHT], work[at.LEFT], work[at.SHARE], memory[3], *mesh)
    error = 0.0
    for a in range(xi.size):
        shift, own = lows[a] - offsets[a], 0.0
        for i in range(offsets[a], offsets[a + 1]):
            own += abs(smooth[i]) * (1.0 + table[at.X, i + shift] ** 2)
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
        x = table[at.X, lows[a] : lows[a] + own.size]
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
    state[at.SPENT] += work.shape[1]
    error = _local_error(length, state[at.RATED], mesh, memory, work)
    wanted = 0.9 * (goal / max(error, 1e-30)) ** (1 / 3) if met != 0.0 else 0.2
    if not error <= goal or met == 0.0:
        state[at.DT] = length * min(0.9, max(0.2, wanted))
        return 1
    unrounded(work[at.TWO], work[at.SMOOTH], memory[2], mesh[1])
    change = fit(work[at.SMOOTH], mesh, edge, windows)
    if change == 1:
        return 2
    grown = length * min(2.0, max(0.5, wanted))
    # A step cut short by a mark does not say that the next one must be short.
    state[at.DT] = grown if free else max(state[at.DT], grown)
    learn(memory[0][0], t + at.GAMMA * length, q1, h1)
    learn(memory[0][1], end, q2, h2)
    for i in range(work.shape[1]):
        work[at.MASS, i], work[at.RATE, i] = work[at.SMOOTH, i], work[at.SOURCE, i] / length
    state[at.T], state[at.Q], state[at.OTHER], state[at.RATED] = end, q2, h2, 1.0
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
    measures,
):
    """Steps of the right length to each of ``marks``, until windows change or a mark halts.

    A law of one row is that of all steps; one of two, of the two stages, is that of a single
    attempt. Returns why it came back and how many steps it took, whose ends and measures are in
    ``ends`` and ``measures``.
    """
    steps, last, free = 0, law[2].size - 1, law[3].size > 0
    while state[at.MARK] < marks.size:
        mark = int(state[at.MARK])
        while state[at.T] < marks[mark]:
            if state[at.SPENT] > budget or state[at.DT] < SHORTEST * (1 + state[at.T]):
                return at.BROKE, steps
            if steps == ends.size:
                return at.ROOM, steps
            t, end = state[at.T], ahead(state[at.T], marks[mark], state[at.DT])
            free = end < marks[mark]
            came = attempt(t, end, free, last, goal, edge, mesh, law, memory, state, work, windows)
            if came == 0 or came == 3:
                ends[steps] = end
                other, square = state[at.OTHER], state[at.OTHER] if free else 1.0
                measure(measures[steps], work[at.MASS], mesh, integrands, other, square)
                steps += 1
            if came >= 2:
                return at.WINDOWS, steps
            if last > 0:
                return at.ROOM, steps
        state[at.MARK] = mark + 1
        if halts[mark]:
            return at.HALT, steps
    return at.DONE, steps
