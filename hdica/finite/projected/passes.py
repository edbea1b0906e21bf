"""One pass over the entries: the end of one step of a projected rule and the start of the next.

Both rules of Wang and Lu move x to x + step z + along xi, let phi act and normalise. A pass moves
the entries by the noise z of one step, draws the noise of the next step into its place, and sums
what that step needs: xi.z, x.z, x.xi and |x|^2. So every entry is read and written once a step;
the normalisation is left to the next pass, which multiplies the entries as it reads them. Sums
run in sixteen lanes, each in the order of the entries, and end pairwise: always the same
additions, whatever the processor.

Arrays are padded with zeros to a multiple of ``CHUNK`` and handed on as pointers.
"""

from __future__ import annotations

import numba

from hdica.finite.jit import call_block
from hdica.finite.random import LANES
from hdica.finite.random.gaussian import draw, normal_pair, read_state, write_state
from hdica.finite.random.lanes import (
    CHUNK,
    beyond,
    every,
    fma,
    load,
    magnitude,
    prefetch,
    store,
    total,
    where,
    with_sign,
)

PLAIN, SIGN_OF_X, SIGN_OF_MOVED, THRESHOLD, PHI_OF_X, PHI_OF_MOVED = range(6)
"""How phi acts, with numbers a and b.

PLAIN: moved; SIGN_OF_X: moved - a sign(x); SIGN_OF_MOVED: b moved - a sign(moved);
THRESHOLD: b sign(moved) max(abs(moved) - a, 0); PHI_OF_X: moved - a phi(x);
PHI_OF_MOVED: moved - a phi(moved).
"""
BLOCK = 1024
"""Entries whose scratch arrays stay in the first cache."""
AHEAD = 1024
"""Entries between one that is used and one that is asked for from memory."""
NEAR = 16 * 1024
"""Entries up to which all arrays stay in the second cache and nothing need be asked for."""
SUMS = 6 * LANES
"""Room for the sums of one point in flight."""


@numba.njit(inline="always")
def _sign_times(a, x):  # type: ignore[no-untyped-def]
    """``a sign(x)`` with sign(0) = 0."""
    return where(every(0.0) < magnitude(x), with_sign(every(a), x), every(0.0))


@numba.njit(inline="always")
def _moved(x, at, z, xi, i, weights):  # type: ignore[no-untyped-def]
    keep, step, along, _, _, _ = weights
    inner = fma(every(along), load(xi, i), every(keep) * load(x, at))
    return fma(every(step), load(z, i), inner)


@numba.njit(inline="always")
def _updated(kind, x, at, z, xi, i, weights, scratch, j):  # type: ignore[no-untyped-def]
    """Eight entries after the update: x from ``at`` on, z and xi from ``i``, scratch from ``j``."""
    _, _, _, a, b, _ = weights
    if kind == PHI_OF_MOVED:
        return load(scratch, j) - every(a) * load(scratch, BLOCK + j)
    moved = _moved(x, at, z, xi, i, weights)
    if kind == PHI_OF_X:
        return moved - every(a) * load(scratch, BLOCK + j)
    if kind == SIGN_OF_X:
        return moved - _sign_times(a, load(x, at))
    if kind == SIGN_OF_MOVED:
        return fma(every(b), moved, -_sign_times(a, moved))
    if kind == THRESHOLD:
        left = magnitude(moved) - every(a)
        return with_sign(every(b) * where(every(0.0) < left, left, every(0.0)), moved)
    return moved


@numba.njit
def _apply_phi(kind, x, at, z, xi, i, count, n, weights, phi, scratch):  # type: ignore[no-untyped-def]
    """Fill the scratch with a block of phi's arguments and, BLOCK further on, with phi of them."""
    scale = weights[5]
    for j in range(0, count, LANES):
        if kind == PHI_OF_X:
            store(scratch, j, every(scale) * load(x, at + j))
        else:
            store(scratch, j, _moved(x, at + j, z, xi, i + j, weights))
    call_block(phi, scratch, beyond(scratch, BLOCK), count)
    for j in range(max(n - i, 0), count):
        scratch[BLOCK + j] = 0.0


@numba.njit(forceinline=True)
def _own_entries(lanes, x, z, xi, n, m, kind, far, weights, phi, scratch):  # type: ignore[no-untyped-def]
    a, b, c, count = read_state(lanes)
    nothing = every(0.0)
    sum_xi_z, sum_x_z, sum_x_xi, sum_x_x = nothing, nothing, nothing, nothing
    odd_xi_z, odd_x_z, odd_x_xi, odd_x_x = nothing, nothing, nothing, nothing
    for low in range(0, m, BLOCK):
        high = min(low + BLOCK, m)
        if kind >= PHI_OF_X:
            _apply_phi(kind, x, low, z, xi, low, high - low, n, weights, phi, scratch)
        for i in range(low, high, CHUNK):
            if far:
                # Behind the end comes the beginning, which the next step needs.
                line = i + AHEAD if i + AHEAD < m else i + AHEAD - m
                for array in (x, z, xi):
                    prefetch(array, line)
                    prefetch(array, line + LANES)
            first, a, b, c, count = draw(a, b, c, count)
            second, a, b, c, count = draw(a, b, c, count)
            even, odd = normal_pair(first, second)
            k = i + LANES
            even_x = _updated(kind, x, i, z, xi, i, weights, scratch, i - low)
            odd_x = _updated(kind, x, k, z, xi, k, weights, scratch, k - low)
            store(x, i, even_x)
            store(x, k, odd_x)
            store(z, i, even)
            store(z, k, odd)
            even_xi, odd_xi = load(xi, i), load(xi, k)
            sum_xi_z, odd_xi_z = fma(even_xi, even, sum_xi_z), fma(odd_xi, odd, odd_xi_z)
            sum_x_z, odd_x_z = fma(even_x, even, sum_x_z), fma(odd_x, odd, odd_x_z)
            sum_x_xi, odd_x_xi = fma(even_x, even_xi, sum_x_xi), fma(odd_x, odd_xi, odd_x_xi)
            sum_x_x, odd_x_x = fma(even_x, even_x, sum_x_x), fma(odd_x, odd_x, odd_x_x)
    # The padding must not move.
    for i in range(n, m):
        z[i] = 0.0
    write_state(lanes, a, b, c, count)
    return (
        total(sum_xi_z + odd_xi_z),
        total(sum_x_z + odd_x_z),
        total(sum_x_xi + odd_x_xi),
        total(sum_x_x + odd_x_x),
    )


# LLVM inlines these into each branch that says what ``kind`` and ``far`` are: the same machine code
# as from numba, which would infer the types of every copy anew, for most of the time of compiling.
@numba.njit(forceinline=True)
def _own_pass(lanes, x, z, xi, n, m, kind, weights, phi, scratch):  # type: ignore[no-untyped-def]
    far = m > NEAR
    if far:
        return _own_entries(lanes, x, z, xi, n, m, kind, far, weights, phi, scratch)
    return _own_entries(lanes, x, z, xi, n, m, kind, far, weights, phi, scratch)


@numba.njit
def own_pass(lanes, x, z, xi, n, m, kind, weights, phi, scratch):  # type: ignore[no-untyped-def]
    """One pass over the entries of one point, with noise of its own.

    Parameters
    ----------
    lanes
        State of the generators, updated.
    x, z, xi
        Estimate, noise and feature.
    n, m
        Dimension, and the multiple of CHUNK from there on.
    kind, weights
        How phi acts, and the tuple (keep, step, along, a, b, scale): x moves to
        keep x + step z + along xi, a and b belong to phi, and phi is taken at scale x.
    phi
        Address of a function of a block.
    scratch
        Room for 2 BLOCK numbers, overwritten.

    Returns
    -------
    tuple
        xi.z, x.z, x.xi and |x|^2 of the entries and the noise that the pass leaves.
    """
    # Compiled for each common kind, near and far: without branches the sums stay in registers.
    if kind == PLAIN:
        return _own_pass(lanes, x, z, xi, n, m, kind, weights, phi, scratch)
    if kind == SIGN_OF_X:
        return _own_pass(lanes, x, z, xi, n, m, kind, weights, phi, scratch)
    if kind == SIGN_OF_MOVED:
        return _own_pass(lanes, x, z, xi, n, m, kind, weights, phi, scratch)
    return _own_entries(lanes, x, z, xi, n, m, kind, m > NEAR, weights, phi, scratch)


@numba.njit(forceinline=True)
def _shared_entries(x, z, xi, fresh, low, high, kind, weights, sums, scratch):  # type: ignore[no-untyped-def]
    """A block of one point: update it, and add to its sums with the fresh noise of the block."""
    sum_x_z, odd_x_z = load(sums, 0), load(sums, LANES)
    sum_x_xi, odd_x_xi = load(sums, 2 * LANES), load(sums, 3 * LANES)
    sum_x_x, odd_x_x = load(sums, 4 * LANES), load(sums, 5 * LANES)
    for i in range(low, high, CHUNK):
        k = i + LANES
        even_x = _updated(kind, x, i, z, xi, i, weights, scratch, i - low)
        odd_x = _updated(kind, x, k, z, xi, k, weights, scratch, k - low)
        store(x, i, even_x)
        store(x, k, odd_x)
        even, odd = load(fresh, i - low), load(fresh, k - low)
        even_xi, odd_xi = load(xi, i), load(xi, k)
        sum_x_z, odd_x_z = fma(even_x, even, sum_x_z), fma(odd_x, odd, odd_x_z)
        sum_x_xi, odd_x_xi = fma(even_x, even_xi, sum_x_xi), fma(odd_x, odd_xi, odd_x_xi)
        sum_x_x, odd_x_x = fma(even_x, even_x, sum_x_x), fma(odd_x, odd_x, odd_x_x)
    store(sums, 0, sum_x_z)
    store(sums, LANES, odd_x_z)
    store(sums, 2 * LANES, sum_x_xi)
    store(sums, 3 * LANES, odd_x_xi)
    store(sums, 4 * LANES, sum_x_x)
    store(sums, 5 * LANES, odd_x_x)


@numba.njit
def shared_block(x, z, xi, fresh, low, high, n, kind, weights, sums, phi, scratch):  # type: ignore[no-untyped-def]
    """One point's share of a pass in which many points see the same noise: one block.

    Parameters
    ----------
    x, z, xi
        As in :func:`own_pass`; ``z`` is the noise of the step that ends.
    fresh
        Noise of the next step in this block.
    low, high
        The block.
    n, kind, weights, phi, scratch
        As in :func:`own_pass`.
    sums
        x.z, x.xi and |x|^2 in sixteen lanes each; continued.
    """
    if kind == PLAIN:  # noqa: SIM114 - a copy for each kind, as in own_pass
        _shared_entries(x, z, xi, fresh, low, high, kind, weights, sums, scratch)
    elif kind == SIGN_OF_X:  # noqa: SIM114
        _shared_entries(x, z, xi, fresh, low, high, kind, weights, sums, scratch)
    elif kind == SIGN_OF_MOVED:
        _shared_entries(x, z, xi, fresh, low, high, kind, weights, sums, scratch)
    else:
        if kind >= PHI_OF_X:
            _apply_phi(kind, x, low, z, xi, low, high - low, n, weights, phi, scratch)
        _shared_entries(x, z, xi, fresh, low, high, kind, weights, sums, scratch)


@numba.njit
def fresh_block(lanes, xi, fresh, low, high, sums):  # type: ignore[no-untyped-def]
    """Draw the noise of a block, and add xi.z of it to sixteen lanes of sums."""
    a, b, c, count = read_state(lanes)
    sum_xi_z, odd_xi_z = load(sums, 0), load(sums, LANES)
    for i in range(low, high, CHUNK):
        first, a, b, c, count = draw(a, b, c, count)
        second, a, b, c, count = draw(a, b, c, count)
        even, odd = normal_pair(first, second)
        store(fresh, i - low, even)
        store(fresh, i - low + LANES, odd)
        sum_xi_z, odd_xi_z = (
            fma(load(xi, i), even, sum_xi_z),
            fma(load(xi, i + LANES), odd, odd_xi_z),
        )
    store(sums, 0, sum_xi_z)
    store(sums, LANES, odd_xi_z)
    write_state(lanes, a, b, c, count)


@numba.njit
def copy_block(block, out, low, high):  # type: ignore[no-untyped-def]
    """Write a block to its place in an array of all entries."""
    for i in range(low, high, LANES):
        store(out, i, load(block, i - low))


@numba.njit
def summed(sums, at):  # type: ignore[no-untyped-def]
    """A sum that ran in sixteen lanes."""
    return total(load(sums, at) + load(sums, at + LANES))
