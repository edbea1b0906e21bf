"""One step of online sparse PCA, compiled: the full vector and Oja's exact O(1) reduction.

As in :mod:`hdica.finite.kernels` a kernel runs a stretch of steps in place and returns how many
it completed; fewer than asked means that the update was not finite or vanished, and the state
is then that before the bad step.
"""

from __future__ import annotations

import math

import numba
from numba import types

from hdica.finite.jit import RNG, SCALAR, VECTOR, standard_gamma

SHRINK, THRESHOLD, GENERAL = 0, 1, 2


@numba.njit(
    types.int64(
        VECTOR,
        VECTOR,
        VECTOR,
        VECTOR,
        VECTOR,
        types.float64,
        types.int64,
        types.float64,
        types.float64,
        SCALAR,
        RNG,
    ),
    cache=True,
    error_model="numpy",
)
def pca_vector_steps(x, xi, work, source, tau, omega, kind, a, b, phi, rng):  # type: ignore[no-untyped-def]
    """Steps of (5) in Wang & Lu 2016, on all p coordinates.

    x~ = x + (tau/p) y y'x, then x = sqrt(p) eta(x~)/|eta(x~)|, with y = sqrt(omega/p) c xi + z
    and z standard normal.

    Parameters
    ----------
    x, xi, work
        Shape (p,), |xi|^2 = |x|^2 = p; ``x`` is updated, ``work`` is overwritten and holds
        eta(x~) of a step that failed.
    source, tau
        Shape (steps,): c and the step size of each step.
    omega
        Signal-to-noise ratio.
    kind, a, b
        Which eta: SHRINK is x - (a sign(x) + b x)/p, THRESHOLD the proximal operator of
        (a|x| + b x^2/2)/p, GENERAL is x - phi(x)/p.
    phi
        Compiled scalar function.
    rng
        Generator of the noise z.
    """
    p = x.size
    root = math.sqrt(omega / p)
    cut = a / p
    slope = b / p
    divided = 1.0 / (1.0 + slope)
    for k in range(source.size):
        ahead = 0.0
        overlap = 0.0
        for i in range(p):
            z = rng.standard_normal()
            work[i] = z
            ahead += x[i] * z
            overlap += x[i] * xi[i]
        shift = root * source[k]
        gain = tau[k] / p * (ahead + shift * overlap)
        norm = 0.0
        for i in range(p):
            moved = x[i] + gain * (work[i] + shift * xi[i])
            if kind == SHRINK:
                jump = cut if moved > 0.0 else (-cut if moved < 0.0 else 0.0)
                moved -= jump + slope * moved
            elif kind == THRESHOLD:
                left = abs(moved) - cut
                moved = math.copysign(left, moved) * divided if left > 0.0 else 0.0
            else:
                moved -= phi(moved) / p
            work[i] = moved
            norm += moved * moved
        if not (math.isfinite(norm) and norm > 0.0):
            return k
        scale = math.sqrt(p / norm)
        for i in range(p):
            x[i] = work[i] * scale
    return source.size


@numba.njit(
    types.int64(VECTOR, types.int64, VECTOR, VECTOR, types.float64, types.float64, RNG),
    cache=True,
    error_model="numpy",
)
def oja_chain_steps(state, p, source, tau, omega, scaling, rng):  # type: ignore[no-untyped-def]
    """Steps of Oja's method on Q alone, exact in law.

    In the basis (xi, the part of x orthogonal to xi, the rest) a sample has the components
    v = sqrt(1 + omega) c along xi, e along x, and a rest of squared length X, chi-square with
    p - 2 degrees of freedom; with s = sqrt(1 - Q^2) and g = (tau/p)(Q v + s e),

        Q <- A / sqrt(A^2 + B^2 + g^2 X),   A = Q + g v,   B = s + g e.

    Carrying s along, instead of taking it from Q, keeps its digits near |Q| = 1.

    Parameters
    ----------
    state
        Shape (2,): Q and s, updated.
    p
        Dimension, at least 3.
    source, tau
        Shape (steps,): standard normal c and the step size of each step.
    omega
        Signal-to-noise ratio.
    scaling
        Factor of a linear eta; only its sign matters.
    rng
        Generator of e and X.
    """
    q = state[0]
    s = state[1]
    signal = math.sqrt(1.0 + omega)
    shape = (p - 2) / 2
    b0 = shape - 1 / 3
    c0 = 1 / math.sqrt(9 * max(b0, 0.1))
    done = source.size
    for k in range(source.size):
        v = signal * source[k]
        e = rng.standard_normal()
        rest = 2.0 * (standard_gamma(b0, c0, rng) if shape > 1.0 else rng.standard_gamma(shape))
        g = tau[k] / p * (q * v + s * e)
        a = scaling * (q + g * v)
        b = scaling * (s + g * e)
        across = b * b + (scaling * g) ** 2 * rest
        norm = a * a + across
        if not (math.isfinite(norm) and norm > 0.0):
            done = k
            break
        scale = 1.0 / math.sqrt(norm)
        q = a * scale
        s = math.sqrt(across) * scale
    state[0] = q
    state[1] = s
    return done
