"""Rules of K estimates and M features on all n coordinates, compiled.

A step reads and writes every entry once, block by block: it turns the estimates by the
normalisation of the step before, moves them by the noise z of the step and along the features,
lets psi act, draws the noise of the next step, and sums the inner products that this step needs.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.jit import call_block
from hdica.finite.projected.passes import BLOCK
from hdica.finite.random import LANES
from hdica.finite.random.gaussian import normal_block
from hdica.finite.random.lanes import beyond, every, fma, load, pointer, store, total
from hdica.finite.rules.chain_kernels import GRAM_SCHMIDT, NORM, SYMMETRIC, inverse_root

_MATRIX, _FLOATS = types.float64[:, ::1], types.float64[::1]
_PSI = types.Tuple((types.int64, _FLOATS, types.int64))
PLAIN, LINEAR, CALLED = range(3)
"""How psi acts: not, as a multiple of x, or as a function of a block."""


@numba.njit(inline="always")
def _fill(out, count, value):  # type: ignore[no-untyped-def]
    for i in range(0, count, LANES):
        store(out, i, every(value))


@numba.njit(inline="always")
def _add(out, x, count, factor):  # type: ignore[no-untyped-def]
    """Add a multiple of a block to another."""
    for i in range(0, count, LANES):
        store(out, i, fma(every(factor), load(x, i), load(out, i)))


@numba.njit(inline="always")
def _inner(x, y, count, sums):  # type: ignore[no-untyped-def]
    """Add the inner product of two blocks to a sum that runs in eight lanes."""
    value = load(sums, 0)
    for i in range(0, count, LANES):
        value = fma(load(x, i), load(y, i), value)
    store(sums, 0, value)


@numba.njit
def _pass(lanes, x, z, xi, n, turn, step, along, psi, psi_of, scratch, sums):  # type: ignore[no-untyped-def]
    """x_k <- sum_l turn_kl x_l + step_k z + sum_m along_km xi_m + psi, and the noise after it.

    ``sums`` gets, each in eight lanes, x_k.x_l for l <= k, x_k.z, x_k.xi_m and xi_m.z.
    """
    estimates, m = x.shape
    features = xi.shape[0]
    sums[:] = 0.0
    place, noise, feature, state = pointer(x), pointer(z), pointer(xi), pointer(lanes)
    turned, results = pointer(scratch), pointer(sums)
    kind, shrink, address = psi
    for low in range(0, m, BLOCK):
        count = min(BLOCK, m - low)
        for k in range(estimates):
            out = beyond(turned, k * BLOCK)
            _fill(out, count, 0.0)
            for j in range(estimates):
                if turn[k, j] != 0.0:
                    _add(out, beyond(place, j * m + low), count, turn[k, j])
        for k in range(estimates):
            out, target = beyond(turned, k * BLOCK), beyond(place, k * m + low)
            keep = 1.0 - shrink[k] if kind == LINEAR else 1.0
            _fill(target, count, 0.0)
            _add(target, out, count, keep)
            if kind == CALLED:
                value = beyond(turned, estimates * BLOCK)
                call_block(address, out, value, count)
                for i in range(max(n - low, 0), count):
                    value[i] = 0.0
                _add(target, value, count, psi_of)
            if step[k] != 0.0:
                _add(target, beyond(noise, low), count, step[k])
            for j in range(features):
                if along[k, j] != 0.0:
                    _add(target, beyond(feature, j * m + low), count, along[k, j])
        fresh = beyond(noise, low)
        normal_block(state, fresh, count)
        for i in range(max(n - low, 0), count):
            fresh[i] = 0.0
        at = 0
        for k in range(estimates):
            target = beyond(place, k * m + low)
            for j in range(k + 1):
                _inner(target, beyond(place, j * m + low), count, beyond(results, at))
                at += LANES
        for k in range(estimates):
            target = beyond(place, k * m + low)
            _inner(target, fresh, count, beyond(results, at))
            at += LANES
            for j in range(features):
                _inner(target, beyond(feature, j * m + low), count, beyond(results, at))
                at += LANES
        for j in range(features):
            _inner(beyond(feature, j * m + low), fresh, count, beyond(results, at))
            at += LANES


@numba.njit
def normalisation(p, mode, turn, room):  # type: ignore[no-untyped-def]
    """The matrix S by which a step ends, of P before it; not finite where there is none."""
    size = p.shape[0]
    turn[:] = 0.0
    if mode == SYMMETRIC:
        inverse_root(p, turn, room)
        return
    for k in range(size):
        turn[k, k] = 1.0
        if mode == NORM:
            turn[k, k] = 1.0 / math.sqrt(p[k, k])
        elif mode == GRAM_SCHMIDT:
            for j in range(k):
                share = 0.0
                for i in range(k + 1):
                    for h in range(j + 1):
                        share += turn[k, i] * p[i, h] * turn[j, h]
                for i in range(j + 1):
                    turn[k, i] -= share * turn[j, i]
            square = 0.0
            for i in range(k + 1):
                for h in range(k + 1):
                    square += turn[k, i] * p[i, h] * turn[k, h]
            for i in range(k + 1):
                turn[k, i] /= math.sqrt(square)


@numba.njit(
    types.void(
        types.uint64[::1], _MATRIX, _FLOATS, _MATRIX, types.int64, _MATRIX, _MATRIX, _FLOATS,
        _FLOATS, types.int64, types.int64, _PSI, _FLOATS, _FLOATS, types.int64[::1],
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)  # fmt: skip
def rule_vector_steps(  # type: ignore[no-untyped-def]
    lanes, x, z, xi, n, carried, source, clock, constants, f, mode, psi, scratch, sums, made
):
    """Steps of one point.

    Parameters
    ----------
    lanes
        State of the generators, updated.
    x, z, xi
        Estimates but for the turn of the last step, shape (K, m), noise of the coming step, shape
        (m,), and features, shape (M, m), |xi|^2 = n; m is a multiple of CHUNK, the padding zero.
    n
        Dimension.
    carried
        The turn of the last step, shape (K + 1, K); before the first noise it is 1, and the row
        after it 0.
    source
        v_1 ... v_M and the noise of each step, shape (steps, M + J).
    clock
        The time of each step, shape (steps,).
    constants
        Of the update.
    f
        Address of the update as C code.
    mode
        Place of the normalisation in :data:`hdica.ingredients.update.NORMALISATIONS`.
    psi
        How psi acts; lambda/n of a linear one, shape (K,); the address of a function of a block.
    scratch, sums
        Room, shape ((K + 1) BLOCK,) and (LANES times the inner products,): kept between calls.
    made
        Shape (1,): steps completed, overwritten.
    """
    estimates, features = x.shape[0], xi.shape[0]
    drawn = source.shape[1]
    arguments = np.zeros(estimates + drawn + estimates + 1 + constants.size)
    arguments[2 * estimates + drawn + 1 :] = constants
    values, shift = np.zeros(estimates), np.zeros(features)
    p, room = np.zeros((estimates, estimates)), np.zeros((2, estimates, estimates))
    step, along = np.zeros(estimates), np.zeros((estimates, features))
    turn = carried[:estimates]
    root, results = math.sqrt(n), pointer(sums)
    squares = estimates * (estimates + 1) // 2
    last = squares + estimates * (1 + features)
    made[0] = source.shape[0]
    if carried[estimates, 0] == 0.0:
        still = (PLAIN, psi[1], psi[2])
        _pass(lanes, x, z, xi, n, turn, step, along, still, 0.0, scratch, sums)
        carried[estimates, 0] = 1.0
    for now in range(source.shape[0]):
        for m in range(features):
            shift[m] = source[now, m] / root - total(load(results, (last + m) * LANES)) / n
        at = 0
        for k in range(estimates):
            for j in range(k + 1):
                value = total(load(results, at * LANES)) / n
                p[k, j] = value
                p[j, k] = value
                at += 1
        for k in range(estimates):
            u, square = 0.0, 0.0
            for j in range(estimates):
                row = squares + j * (1 + features)
                value = total(load(results, row * LANES))
                for m in range(features):
                    value += shift[m] * total(load(results, (row + 1 + m) * LANES))
                u += turn[k, j] * value
                for i in range(estimates):
                    square += turn[k, j] * p[j, i] * turn[k, i]
            arguments[k] = u / root
            arguments[estimates + drawn + k] = math.sqrt(square)
        for j in range(drawn):
            arguments[estimates + j] = source[now, j]
        arguments[2 * estimates + drawn] = clock[now]
        call_block(f, pointer(arguments), pointer(values), 1)
        for k in range(estimates):
            step[k] = values[k] / root
            for m in range(features):
                along[k, m] = step[k] * shift[m]
        _pass(lanes, x, z, xi, n, turn, step, along, psi, 1.0 / n, scratch, sums)
        at, finite = 0, True
        for k in range(estimates):
            for j in range(k + 1):
                value = total(load(results, at * LANES)) / n
                finite = finite and math.isfinite(value)
                p[k, j] = value
                p[j, k] = value
                at += 1
        normalisation(p, mode, turn, room)
        for k in range(estimates):
            for j in range(estimates):
                finite = finite and math.isfinite(turn[k, j])
        if not finite:
            made[0] = now
            return
