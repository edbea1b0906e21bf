"""One step of a rule, compiled: the full vector and the exact O(1) reduction.

Both kernels run a stretch of steps in place and return how many they completed; fewer than
asked means that the update was not finite, and the state is then that before the bad step.
"""

from __future__ import annotations

import math

import numba
from numba import types

from hdica.finite.jit import RNG, SCALAR, VECTOR, standard_gamma

NO_REGULARIZER, LINEAR, GENERAL = 0, 1, 2


@numba.njit(
    types.int64(
        VECTOR,
        VECTOR,
        VECTOR,
        VECTOR,
        VECTOR,
        types.int64,
        types.float64,
        SCALAR,
        SCALAR,
        RNG,
    ),
    cache=True,
    error_model="numpy",
)
def vector_steps(x, xi, work, source, tau, kind, beta, f, phi, rng):  # type: ignore[no-untyped-def]
    """Steps of (2) in Wang & Lu 2017, on all n coordinates.

    x <- x - (tau/sqrt n) f(y.x/sqrt n) y - (tau/n) phi(x), then |x|^2 = n, with
    y = xi c/sqrt n + a and a normal with covariance I - xi xi'/n: a = z - xi (xi.z)/n.

    Parameters
    ----------
    x, xi, work
        Shape (n,), |xi|^2 = |x|^2 = n; ``x`` is updated, ``work`` is overwritten.
    source, tau
        Shape (steps,): c and the step size of each step.
    kind, beta
        Which regularizer: none, beta x, or the function ``phi``.
    f, phi
        Compiled scalar functions.
    rng
        Generator of the noise.
    """
    n = x.size
    root = math.sqrt(n)
    for k in range(source.size):
        along = 0.0
        ahead = 0.0
        overlap = 0.0
        for i in range(n):
            z = rng.standard_normal()
            work[i] = z
            along += xi[i] * z
            ahead += x[i] * z
            overlap += x[i] * xi[i]
        # y = z + shift xi, with the component of z along xi replaced by the source.
        shift = source[k] / root - along / n
        u = (ahead + shift * overlap) / root
        gain = tau[k] / root * f(u)
        norm = 0.0
        for i in range(n):
            moved = x[i] - gain * (work[i] + shift * xi[i])
            if kind == LINEAR:
                moved -= tau[k] / n * beta * x[i]
            elif kind == GENERAL:
                moved -= tau[k] / n * phi(x[i])
            work[i] = moved
            norm += moved * moved
        if not (math.isfinite(norm) and norm > 0.0):
            return k
        scale = math.sqrt(n / norm)
        for i in range(n):
            x[i] = work[i] * scale
    return source.size


@numba.njit(
    types.int64(VECTOR, types.int64, VECTOR, VECTOR, types.float64, SCALAR, RNG),
    cache=True,
    error_model="numpy",
)
def chain_steps(state, n, source, tau, beta, f, rng):  # type: ignore[no-untyped-def]
    """Steps of the same rule on Q alone, exact in law for phi = beta x.

    In the basis (xi, the part of x orthogonal to xi, the rest) a step needs the source c, one
    normal number e and the squared length X of the rest, chi-square with n - 2 degrees of
    freedom; with s = sqrt(1 - Q^2) and g = (tau/n) f(Q c + s e),

        Q <- A / sqrt(A^2 + B^2 + g^2 X),   A = a Q - g c,   B = a s - g e,   a = 1 - tau beta/n.

    Carrying s along, instead of taking it from Q, keeps its digits near |Q| = 1.

    Parameters
    ----------
    state
        Shape (2,): Q and s, updated.
    n
        Dimension, at least 3.
    source, tau
        Shape (steps,): c and the step size of each step.
    beta, f, rng
        As in :func:`vector_steps`.
    """
    q = state[0]
    s = state[1]
    shape = (n - 2) / 2
    b0 = shape - 1 / 3
    c0 = 1 / math.sqrt(9 * max(b0, 0.1))
    done = source.size
    for k in range(source.size):
        c = source[k]
        e = rng.standard_normal()
        rest = 2.0 * (standard_gamma(b0, c0, rng) if shape > 1.0 else rng.standard_gamma(shape))
        g = tau[k] / n * f(q * c + s * e)
        shrink = 1.0 - tau[k] * beta / n
        a = shrink * q - g * c
        b = shrink * s - g * e
        across = b * b + g * g * rest
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
