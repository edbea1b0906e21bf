"""FastICA and projected gradient steps on whitened samples, compiled.

FastICA makes passes over blocks that stay in the cache. Samples are packed in panels of eight: one
vector holds a coordinate of eight samples, and those of all d coordinates follow one another. Every
projection w.y, and in a block every sum of y g, is a chain of fused multiply-adds of its own: a
direction has the same bits whichever others are computed with it. Tiles of products stay in the
registers of the processor. Panels lie an odd number of vectors apart (``size`` numbers), else they
would compete for the same places of the cache.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.fastica.functions import EXP, FORMULA, HE4, KURTOSIS, LOGCOSH, slopes, values
from hdica.finite.jit import call_block, call_scalar
from hdica.finite.random import LANES
from hdica.finite.random.lanes import beyond, every, fma, load, pointer, store, total


@numba.njit
def project_two(y, w, s, panels, d, size, stride):  # type: ignore[no-untyped-def]
    """w.y of two directions; w (2, d), s with rows ``stride`` apart."""
    w1, s1, nothing = beyond(w, d), beyond(s, stride), every(0.0)
    for p in range(0, panels - 1, 2):
        one, two = beyond(y, p * size), beyond(y, (p + 1) * size)
        a0, a1, b0, b1 = nothing, nothing, nothing, nothing
        for i in range(d):
            v0, v1 = every(w[i]), every(w1[i])
            # One vector of samples at a time, or there would be too few registers.
            at = load(one, i * LANES)
            a0, b0 = fma(at, v0, a0), fma(at, v1, b0)
            at = load(two, i * LANES)
            a1, b1 = fma(at, v0, a1), fma(at, v1, b1)
        place = p * LANES
        store(s, place, a0)
        store(s, place + LANES, a1)
        store(s1, place, b0)
        store(s1, place + LANES, b1)
    if panels % 2:
        last, place = beyond(y, (panels - 1) * size), (panels - 1) * LANES
        project_one(last, w, beyond(s, place), 1, d, size)
        project_one(last, w1, beyond(s1, place), 1, d, size)


@numba.njit
def project_one(y, w, s, panels, d, size):  # type: ignore[no-untyped-def]
    """w.y of one direction."""
    nothing, p = every(0.0), 0
    while p + 4 <= panels:
        y0, y1 = beyond(y, p * size), beyond(y, (p + 1) * size)
        y2, y3 = beyond(y, (p + 2) * size), beyond(y, (p + 3) * size)
        a0, a1, a2, a3 = nothing, nothing, nothing, nothing
        for i in range(d):
            v, at = every(w[i]), i * LANES
            a0, a1 = fma(load(y0, at), v, a0), fma(load(y1, at), v, a1)
            a2, a3 = fma(load(y2, at), v, a2), fma(load(y3, at), v, a3)
        place = p * LANES
        store(s, place, a0)
        store(s, place + LANES, a1)
        store(s, place + 2 * LANES, a2)
        store(s, place + 3 * LANES, a3)
        p += 4
    while p < panels:
        a0, y0 = nothing, beyond(y, p * size)
        for i in range(d):
            a0 = fma(load(y0, i * LANES), every(w[i]), a0)
        store(s, p * LANES, a0)
        p += 1


@numba.njit
def add_two(y, g, sums, panels, d, size, stride):  # type: ignore[no-untyped-def]
    """Add the sums of y g of two directions, of three coordinates that ``y`` and ``sums`` begin at.

    g has rows ``stride`` apart, sums has rows d apart.
    """
    g1, nothing = beyond(g, stride), every(0.0)
    a0, a1, a2, b0, b1, b2 = nothing, nothing, nothing, nothing, nothing, nothing
    for p in range(panels):
        v0, v1, place = load(g, p * LANES), load(g1, p * LANES), p * size
        at = load(y, place)
        a0, b0 = fma(at, v0, a0), fma(at, v1, b0)
        at = load(y, place + LANES)
        a1, b1 = fma(at, v0, a1), fma(at, v1, b1)
        at = load(y, place + 2 * LANES)
        a2, b2 = fma(at, v0, a2), fma(at, v1, b2)
    sums[0] += total(a0)
    sums[1] += total(a1)
    sums[2] += total(a2)
    sums[d] += total(b0)
    sums[d + 1] += total(b1)
    sums[d + 2] += total(b2)


@numba.njit
def add_three(y, g, sums, panels, size):  # type: ignore[no-untyped-def]
    """The same of one direction."""
    nothing = every(0.0)
    a0, a1, a2 = nothing, nothing, nothing
    for p in range(panels):
        v, place = load(g, p * LANES), p * size
        a0 = fma(load(y, place), v, a0)
        a1 = fma(load(y, place + LANES), v, a1)
        a2 = fma(load(y, place + 2 * LANES), v, a2)
    sums[0] += total(a0)
    sums[1] += total(a1)
    sums[2] += total(a2)


@numba.njit
def add_one(y, g, sums, panels, size):  # type: ignore[no-untyped-def]
    """The same of one direction and one coordinate."""
    a0 = every(0.0)
    for p in range(panels):
        a0 = fma(load(y, p * size), load(g, p * LANES), a0)
    sums[0] += total(a0)


# Panels of a block: as many as hold so many entries, within these bounds.
_LEAST_PANELS, _MOST_PANELS, _ENTRIES = 16, 32, 16384
_PANELS, _MATRIX, _FLOATS = types.float64[:, :, ::1], types.float64[:, ::1], types.float64[::1]
_COUNTS, _TRUTHS = types.int64[::1], types.boolean[::1]
_CONTRAST = types.UniTuple(types.int64, 4)
_SAMPLES = types.Tuple((_MATRIX, _PANELS, types.boolean))
_SCRATCH = types.Tuple((_MATRIX, _FLOATS))
_ROOM = types.Tuple((_MATRIX, _MATRIX, _FLOATS, _COUNTS))


@numba.njit
def block_of(d):  # type: ignore[no-untyped-def]
    """Panels of a block of samples in d dimensions."""
    return min(max(_ENTRIES // (LANES * d), _LEAST_PANELS), _MOST_PANELS)


@numba.njit(types.void(_MATRIX, types.int64, types.int64, _PANELS, types.int64), cache=True)
def pack(y, first, count, panels, at):  # type: ignore[no-untyped-def]
    """Samples from ``first`` on as ``count`` panels from ``at`` on, filled up with zeros."""
    n, d = y.shape
    for p in range(count):
        low = first + p * LANES
        if low + LANES <= n:
            for i in range(d):
                for lane in range(LANES):
                    panels[at + p, i, lane] = y[low + lane, i]
        else:
            panels[at + p, :, :] = 0.0
            for lane in range(n - low):
                for i in range(d):
                    panels[at + p, i, lane] = y[low + lane, i]


@numba.njit
def _projections(y, w, s, starts, panels, d, size, stride):  # type: ignore[no-untyped-def]
    for j in range(0, starts - 1, 2):
        project_two(y, beyond(w, j * d), beyond(s, j * stride), panels, d, size, stride)
    if starts % 2:
        j = starts - 1
        project_one(y, beyond(w, j * d), beyond(s, j * stride), panels, d, size)


@numba.njit
def _sums(y, g, sums, starts, panels, d, size, stride):  # type: ignore[no-untyped-def]
    for i in range(0, d - d % 3, 3):
        at = beyond(y, i * LANES)
        for j in range(0, starts - 1, 2):
            add_two(at, beyond(g, j * stride), beyond(sums, j * d + i), panels, d, size, stride)
        if starts % 2:
            j = starts - 1
            add_three(at, beyond(g, j * stride), beyond(sums, j * d + i), panels, size)
    for i in range(d - d % 3, d):
        for j in range(starts):
            at = beyond(y, i * LANES)
            add_one(at, beyond(g, j * stride), beyond(sums, j * d + i), panels, size)


@numba.njit
def _ends(lanes, last, left):  # type: ignore[no-untyped-def]
    """Sum of the lanes and of the first ``left`` of the last eight numbers."""
    added = total(lanes)
    for lane in range(left):
        added += last[lane]
    return added


@numba.njit
def _called(address, s, spare, count, left):  # type: ignore[no-untyped-def]
    """The sum of a function of a block, of the last eight numbers only of ``left``.

    The first of these takes the place of those that are no samples: they are 0, where the slope of
    a formula may be infinite.
    """
    last, sums = count - LANES, every(0.0)
    for lane in range(left, LANES):
        s[last + lane] = s[last]
    call_block(address, s, spare, count)
    for i in range(0, last, LANES):
        sums = sums + load(spare, i)
    return _ends(sums, beyond(spare, last), left)


@numba.njit
def _push(contrast, s, spare, count, left):  # type: ignore[no-untyped-def]
    """Put g(s) in the place of s; the sum of g'(s), of the last eight only of ``left``."""
    kind, _, g, curvature = contrast
    if kind == FORMULA:
        bent = _called(curvature, s, spare, count, left)
        call_block(g, s, spare, count)
        for i in range(0, count, LANES):
            store(s, i, load(spare, i))
        for lane in range(left, LANES):
            s[count - LANES + lane] = 0.0
        return bent
    before = slope = curved = every(0.0)
    for i in range(0, count, LANES):
        value, slope = slopes(kind, load(s, i))
        store(s, i, value)
        before, curved = curved, curved + slope
    store(spare, 0, slope)
    return _ends(before, spare, left)


@numba.njit
def _height(contrast, s, spare, count, left):  # type: ignore[no-untyped-def]
    """The sum of G(s), of the last eight only of ``left``."""
    if contrast[0] == FORMULA:
        return _called(contrast[1], s, spare, count, left)
    before = value = sums = every(0.0)
    for i in range(0, count, LANES):
        value = values(contrast[0], load(s, i))
        before, sums = sums, sums + value
    store(spare, 0, value)
    return _ends(before, spare, left)


@numba.njit(
    types.void(
        _SAMPLES, _MATRIX, types.int64, _CONTRAST, _MATRIX, _FLOATS, _SCRATCH, types.boolean
    ),
    cache=True,
    nogil=True,
)
def one_pass(samples, w, starts, contrast, sums, second, scratch, only_value):  # type: ignore[no-untyped-def]
    """Sums over all samples of y g(w.y) and g'(w.y), or if ``only_value`` of G(w.y) alone.

    ``samples`` are y, shape (n, d); panels, shape (panels, odd, 8), of all samples or of one block;
    and whether they are of all and are filled. ``starts`` of the rows of w, directions, count.
    ``contrast`` is its kind, and for a formula the addresses of G, g and g' of a block. Overwritten
    are ``sums`` of y g(w.y), shape (k, d), ``second`` of g'(w.y) or G(w.y), shape (k,), and
    ``scratch`` of shapes (k, m) and (m,) with m at least the samples of a block.
    """
    y, panels, packed = samples
    (n, d), (s, spare) = y.shape, scratch
    size, stride, block, there = panels.shape[1] * LANES, s.shape[1], block_of(d), -(-n // LANES)
    for j in range(starts):
        second[j] = 0.0
        for i in range(d):
            sums[j, i] = 0.0
    for first in range(0, there, block):
        count = min(block, there - first)
        if not packed:
            pack(y, first * LANES, count, panels, 0)
        at = beyond(pointer(panels), first * size if packed else 0)
        _projections(at, pointer(w), pointer(s), starts, count, d, size, stride)
        left = min(n - (first + count - 1) * LANES, LANES)
        for j in range(starts):
            row = beyond(pointer(s), j * stride)
            if only_value:
                second[j] += _height(contrast, row, pointer(spare), count * LANES, left)
            else:
                second[j] += _push(contrast, row, pointer(spare), count * LANES, left)
        if not only_value:
            _sums(at, pointer(s), pointer(sums), starts, count, d, size, stride)


@numba.njit
def _next(a, b, n, w, before, j):  # type: ignore[no-untyped-def]
    """Make of the sums a_j the next unit vector, orthogonal to those before; abs(abs(w'.w) - 1)."""
    d = a.shape[1]
    for i in range(d):
        a[j, i] = a[j, i] / n - b / n * w[j, i]
    for m in range(before.shape[0]):
        along = 0.0
        for i in range(d):
            along += before[m, i] * a[j, i]
        for i in range(d):
            a[j, i] -= along * before[m, i]
    square, product = 0.0, 0.0
    for i in range(d):
        square += a[j, i] * a[j, i]
        product += a[j, i] * w[j, i]
    length = math.sqrt(square)
    if not (length > 0.0 and math.isfinite(length)):
        return math.nan
    for i in range(d):
        a[j, i] /= length
    return abs(abs(product / length) - 1.0)


@numba.njit(
    types.void(
        _SAMPLES, _MATRIX, _MATRIX, _CONTRAST, types.float64, types.int64, _PANELS, _COUNTS,
        _TRUTHS, _ROOM, _SCRATCH,
    ),
    cache=True,
    nogil=True,
)  # fmt: skip
def iterate(  # type: ignore[no-untyped-def]
    samples, w, before, contrast, tolerance, most, way, iterations, converged, room, scratch
):
    """Iterate every start until it stands still; samples, contrast and scratch as above.

    Starts w of length one, shape (k, d), are overwritten by where they end; all stay orthogonal to
    the orthonormal directions ``before``, shape (j, d). A start is done once abs(abs(w'.w) - 1) is
    below the tolerance, or after ``most`` iterations. ``way``, of shape (k, most, d) or without
    entries, is w after every iteration; ``iterations`` and ``converged``, shape (k,), begin as
    zero; ``room`` is for w of the starts that move, their sums and indices: (k, d), (k, d), (k,)
    and (k,).
    """
    moving, sums, curved, alive = room
    n, (count, d) = samples[0].shape[0], w.shape
    for j in range(count):
        alive[j] = j
        for i in range(d):
            moving[j, i] = w[j, i]
    for made in range(most):
        if count == 0:
            return
        one_pass(samples, moving, count, contrast, sums, curved, scratch, False)
        left = 0
        for j in range(count):
            start = alive[j]
            moved = _next(sums, curved[j], n, moving, before, j)
            if math.isnan(moved):
                continue
            iterations[start] = made + 1
            converged[start] = moved < tolerance
            for i in range(d):
                w[start, i] = sums[j, i]
                moving[left, i] = sums[j, i]
                if way.size:
                    way[start, made, i] = sums[j, i]
            alive[left] = start
            left += not converged[start]
        count = left


@numba.njit(inline="always")
def _slope(s, code, address):  # type: ignore[no-untyped-def]
    """G' of one number."""
    if code == EXP:
        return s * math.exp(-0.5 * s * s)
    if code == LOGCOSH:
        return math.tanh(s)
    if code == KURTOSIS:
        return 4.0 * s * s * s
    if code == HE4:
        return 4.0 * s * s * s - 12.0 * s
    return call_scalar(address, s)


@numba.njit(
    types.int64(_FLOATS, _MATRIX, types.int64, types.float64, types.int64, types.int64),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def projected_steps(w, y, batch, rate, code, address):  # type: ignore[no-untyped-def]
    """Steps of w, (d,), of signed size ``rate``, on ``batch`` rows of y; how many were finite."""
    d = w.size
    push = np.empty(d)
    for step in range(y.shape[0] // batch):
        push[:] = 0.0
        for i in range(step * batch, (step + 1) * batch):
            s = 0.0
            for k in range(d):
                s += w[k] * y[i, k]
            g = _slope(s, code, address)
            for k in range(d):
                push[k] += g * y[i, k]
        along = 0.0
        for k in range(d):
            along += push[k] * w[k]
        square = 0.0
        for k in range(d):
            push[k] = w[k] + rate * (push[k] - along * w[k]) / batch
            square += push[k] * push[k]
        if not 0.0 < square < math.inf:
            return step
        for k in range(d):
            w[k] = push[k] / math.sqrt(square)
    return y.shape[0] // batch
