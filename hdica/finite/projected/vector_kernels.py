"""Projected rules x <- x + n^-1/2 F(u, c) y + n^-1 psi(x) on all n coordinates, compiled.

A kernel runs a stretch of steps in place and says how many of them each point completed; fewer
than asked means that the update was not finite, or vanished.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.jit import call_pair, call_scalar
from hdica.finite.projected.observed import observed
from hdica.finite.projected.passes import (
    BLOCK,
    PLAIN,
    SUMS,
    copy_block,
    fresh_block,
    own_pass,
    shared_block,
    summed,
)
from hdica.finite.random import LANES
from hdica.finite.random.lanes import beyond, pointer

NONLINEAR, LINEAR = 0, 1
"""Forms of F in x <- x + n^-1/2 F(u, c) y + n^-1 psi(x): see :func:`_weights`."""
BATCH = 2
"""Added to a form where an update takes the mean over several samples: :func:`_batch_weights`."""
_CLOSE = 1e-13
"""1 - Q^2 below which the part of x across xi is nothing but rounding."""
_STILL = (1.0, 0.0, 0.0, 0.0, 1.0, 1.0)
"""Weights of a pass that moves nothing."""
_FLOATS, _MATRIX, _COUNTS = types.float64[::1], types.float64[:, ::1], types.int64[::1]
_ARRAYS = types.Tuple((types.uint64[::1], _MATRIX, _FLOATS, _FLOATS))
_LAW = types.Tuple((types.int64, _COUNTS, _MATRIX, _FLOATS, types.int64, types.int64))
_SIGNATURE = (
    _ARRAYS, types.int64, _MATRIX, _MATRIX, _MATRIX, _LAW, types.none, _FLOATS, _COUNTS
)  # fmt: skip


@numba.njit(inline="always")
def polynomial(coefficients, u):  # type: ignore[no-untyped-def]
    """A polynomial by its coefficients, the highest first."""
    value = coefficients[0]
    for k in range(1, coefficients.size):
        value = value * u + coefficients[k]
    return value


@numba.njit(inline="always")
def value_of(f, coefficients, u):  # type: ignore[no-untyped-def]
    """f(u): a polynomial by its coefficients, the highest first, or else the function."""
    if coefficients.size == 0:
        return call_scalar(f, u)
    return polynomial(coefficients, u)


@numba.njit
def _pushes(law, p, row, points, q, s):  # type: ignore[no-untyped-def]
    """Sums over the samples of a step of f c, f e and f^2, with u = q c + s e."""
    model, _, numbers, coefficients, f, _ = law
    count = row.size // points // 2
    linear = model == BATCH + LINEAR
    signal = math.sqrt(1.0 + numbers[p, 3]) if linear else 1.0
    along, across, power = 0.0, 0.0, 0.0
    for j in range(count):
        c, e = signal * row[j * points + p], row[(count + j) * points + p]
        u = q * c + s * e
        if linear:
            value = u
        else:
            value = polynomial(coefficients, u) if coefficients.size else call_pair(f, u, c)
        along += value * c
        across += value * e
        power += value * value
    return along / count, across / count, math.sqrt(power) / count


@numba.njit
def _batch_weights(law, p, n, carried, row, tau):  # type: ignore[no-untyped-def]
    """Weights of point p's pass for a step x + (rate tau/sqrt n) mean_j f(u_j, c_j) y_j.

    In the basis (xi, w, the rest), with w the unit vector along the part of x across xi, sample j
    is y_j = xi c_j/sqrt(n) + w e_j + r_j. Given the f_j the sum of f_j r_j is normal with variance
    sum f_j^2 a coordinate: one vector z, without its parts along xi and w, does for all samples,
    exactly in law. So a step costs one pass for any number of samples. The row holds the c_j and
    then the e_j, each of all points.
    """
    model, _, numbers, _, _, _ = law
    scale, xi_z, x_z, x_xi = carried[p, 0], carried[p, 1], carried[p, 2], carried[p, 3]
    a, b, linear, rate = numbers[p, 0], numbers[p, 1], numbers[p, 2], numbers[p, 3]
    root, small = math.sqrt(n), tau / n
    if model == BATCH + LINEAR:
        rate = 1.0
    else:
        a = small * a
    q = min(1.0, max(-1.0, scale * x_xi / n))
    square = 1.0 - q * q
    s = math.sqrt(square) if square > _CLOSE else 0.0
    along, across, noise = _pushes(law, p, row, carried.shape[0], q, s)
    size = rate * tau / root
    turn = 0.0
    if s > 0.0:
        width = s * root
        turn = size * (across - noise * (scale * x_z - q * xi_z) / width) / width
    straight = size * (along / root - noise * xi_z / n) - turn * q
    return scale * (1.0 - small * linear + turn), size * noise, straight, a, b, scale


@numba.njit
def _weights(law, p, n, carried, row, tau, rows):  # type: ignore[no-untyped-def]
    """Weights of point p's pass: see :func:`hdica.finite.projected.passes.own_pass`.

    NONLINEAR: x + (rate tau/sqrt n) f(u, c) y - (tau/n) phi(x), u = y.x/sqrt(n), with
    y = z + shift xi, where the component of z along xi is replaced by the source c;
    LINEAR: x + (tau/n) (y.x) y with y = z + sqrt(rate/n) c xi.
    """
    model, _, numbers, coefficients, f, _ = law
    if model >= BATCH:
        return _batch_weights(law, p, n, carried, row, tau)
    scale, xi_z, x_z, x_xi = carried[p, 0], carried[p, 1], carried[p, 2], carried[p, 3]
    a, b, linear, rate = numbers[p, 0], numbers[p, 1], numbers[p, 2], numbers[p, 3]
    root, c = math.sqrt(n), row[p]
    if model != LINEAR:
        part = 1.0 / root
        shift = c * part - xi_z / n
        u = scale * part * (x_z + shift * x_xi)
        if rows is not None:
            tau = observed(rows[p], u)
        small = tau / n
        value = polynomial(coefficients, u) if coefficients.size else call_pair(f, u, c)
        step = rate * tau * part * value
        return scale * (1.0 - small * linear), step, step * shift, small * a, b, scale
    shift = math.sqrt(rate / n) * c
    if rows is not None:
        tau = observed(rows[p], scale / root * (x_z + shift * x_xi))
    step = tau / n * scale * (x_z + shift * x_xi)
    return scale, step, step * shift, a, b, scale


@numba.njit
def _carry(carried, p, n, xi_z, x_z, x_xi, norm):  # type: ignore[no-untyped-def]
    """Keep what the next step needs; False, and a factor of NaN, if the update was not finite."""
    if not (math.isfinite(norm) and norm > 0.0):
        carried[p, 0] = math.nan
        return False
    carried[p, 0] = math.sqrt(n / norm)
    carried[p, 1], carried[p, 2], carried[p, 3] = xi_z, x_z, x_xi
    return True


@numba.njit(cache=True, nogil=True, error_model="numpy")
def own_steps(arrays, n, carried, source, tau, law, rows, scratch, made):  # type: ignore[no-untyped-def]
    """Steps of one point with noise of its own.

    Parameters
    ----------
    arrays
        State of the generators; x, shape (1, m), the estimate but for a factor; z and xi, shape
        (m,), noise of the coming step and feature. |xi|^2 = n.
    n
        Dimension; m is the multiple of CHUNK from n on, and the padding is zero.
    carried
        Shape (1, 4): the factor that gives x its |x|^2 = n, and xi.z, x.z and x.xi; all zero before
        the first step.
    source, tau
        Shape (steps, 1): c and the step size of each step; with a batch the source has the columns
        of :func:`_batch_weights`.
    law
        The form of F; how phi acts, shape (1,); a, b, the slope of a linear phi and rate, shape
        (1, 4); f as coefficients of a polynomial in u, the highest first, or none and then the
        address of a function of u and c; the address of phi of a block.
    rows
        None, or what replaces ``tau``, a row a point: :mod:`hdica.finite.projected.observed`.
    scratch
        Shape (3 BLOCK,), overwritten.
    made
        Shape (1,): steps completed, overwritten.
    """
    lanes, x, z, xi = arrays
    places = pointer(lanes), pointer(x), pointer(z), pointer(xi)
    made[0] = source.shape[0]
    # -1 is the pass that draws the first noise.
    for k in range(-1 if carried[0, 0] == 0.0 else 0, source.shape[0]):
        kind, weights = PLAIN, _STILL
        if k >= 0:
            kind, weights = law[1][0], _weights(law, 0, n, carried, source[k], tau[k, 0], rows)
        sums = own_pass(*places, n, z.size, kind, weights, law[5], pointer(scratch))
        if not _carry(carried, 0, n, *sums):
            made[0] = max(k, 0)
            return


@numba.njit
def _keep(rows, p, values):  # type: ignore[no-untyped-def]
    """Write a row one by one: numba compiles seconds of text for an assignment to a slice."""
    for j in range(len(values)):
        rows[p, j] = values[j]


@numba.njit
def _shared_pass(lanes, x, z, xi, n, m, alive, kind, weights, sums, phi, scratch):  # type: ignore[no-untyped-def]
    """A pass over all points that are alive, block by block; returns xi.z, whose sum comes last."""
    points, size = weights.shape[0], sums.shape[1]
    sums[:] = 0.0
    fresh, totals, along = beyond(scratch, 2 * BLOCK), pointer(sums), points * size
    for low in range(0, m, BLOCK):
        high = min(low + BLOCK, m)
        fresh_block(lanes, xi, fresh, low, high, beyond(totals, along))
        for p in range(points):
            if alive[p]:
                row, place, place_of_sums = weights[p], beyond(x, p * m), beyond(totals, p * size)
                shared_block(
                    place,
                    z,
                    xi,
                    fresh,
                    low,
                    high,
                    n,
                    kind[p],
                    (row[0], row[1], row[2], row[3], row[4], row[5]),
                    place_of_sums,
                    phi,
                    scratch,
                )
        copy_block(fresh, z, low, high)
    for i in range(n, m):
        z[i] = 0.0
    return summed(totals, along)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def shared_steps(arrays, n, carried, source, tau, law, rows, scratch, made):  # type: ignore[no-untyped-def]
    """Steps of several points that see the same feature and the same noise.

    Each point's numbers are those of :func:`own_steps` with the same generators.

    Parameters
    ----------
    arrays, n, law, rows, scratch
        As in :func:`own_steps`, with a row a point in x, kinds and numbers; all the rest is the
        same for all points.
    carried, source, tau, made
        As in :func:`own_steps`, with a row, or for ``source`` and ``tau`` a column, a point. The
        factor of x becomes NaN where a point has stopped, and it stays so.
    """
    lanes, x, z, xi = arrays
    points, m = x.shape
    places = pointer(lanes), pointer(x), pointer(z), pointer(xi)
    sums, weights = np.empty((points + 1, SUMS)), np.zeros((points, 6))
    alive, kinds = ~np.isnan(carried[:, 0]), np.zeros_like(law[1])
    made[:] = source.shape[0]
    for k in range(-1 if carried[0, 0] == 0.0 else 0, source.shape[0]):
        for p in range(points):
            if k < 0:
                _keep(weights, p, _STILL)
            elif alive[p]:
                kinds[p] = law[1][p]
                _keep(weights, p, _weights(law, p, n, carried, source[k], tau[k, p], rows))
        xi_z = _shared_pass(*places, n, m, alive, kinds, weights, sums, law[5], pointer(scratch))
        for p in range(points):
            if alive[p]:
                own = pointer(sums[p])
                x_z, x_xi, norm = summed(own, 0), summed(own, 2 * LANES), summed(own, 4 * LANES)
                if not _carry(carried, p, n, xi_z, x_z, x_xi, norm):
                    made[p], alive[p] = max(k, 0), False
        if not alive.any():
            return


# Compiled where a worker begins, before its first point; other kinds at their first call.
own_steps.compile(_SIGNATURE)
shared_steps.compile(_SIGNATURE)
