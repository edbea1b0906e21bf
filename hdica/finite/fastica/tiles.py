"""Products of samples and directions, in tiles that stay in the registers of the processor.

Samples are packed in panels of eight: one vector holds a coordinate of eight samples, and those of
all d coordinates follow one another. Every projection w.y, and in a block every sum of y g, is a
chain of fused multiply-adds of its own: a direction has the same bits whichever others are beside
it. Panels lie an odd number of vectors apart (``size`` numbers), else they would compete for the
same places of the cache.
"""

from __future__ import annotations

import numba

from hdica.finite.random.lanes import LANES, beyond, every, fma, load, store, total


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
