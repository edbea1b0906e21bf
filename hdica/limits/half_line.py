"""Moments of exp(-a x^2 - c x) on the half line, without overflow or cancellation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc, erfcx, roots_legendre

Array = NDArray[np.float64]
ORDER = 5
"""Moments x^0 to x^4."""
_SWITCH = 0.5
_FALL = 46.0
_POINTS, _WEIGHTS = roots_legendre(48)
_POINTS, _WEIGHTS = (_POINTS + 1) / 2, _WEIGHTS / 2
_TOWERS = np.stack([_WEIGHTS * _POINTS**k for k in range(ORDER)], axis=-1)


def _by_recurrence(a: Array, c: Array) -> tuple[Array, Array]:
    """Integration by parts: 2 a M_(k+1) = k M_(k-1) - c M_k, and M_1 = (1 - c M_0)/(2 a).

    Every term is positive for c <= 0. For z = c/(2 sqrt(a)) > 0 terms cancel, mildly below 1/2.
    """
    root = np.sqrt(a)
    z = c / (2 * root)
    negative = z < 0
    least = np.minimum(z, 0.0)
    # For z < 0 everything is scaled by exp(-z^2): erfcx overflows below -26.
    head = np.where(negative, erfc(least), erfcx(np.maximum(z, 0.0)))
    boundary = np.exp(-least * least)
    m = [np.sqrt(np.pi) / 2 * head]
    m.append((boundary - 2 * z * m[0]) / 2)
    for k in range(1, ORDER - 1):
        m.append((k * m[k - 1] - 2 * z * m[k]) / 2)
    stretched = np.stack([m[k] / root ** (k + 1) for k in range(ORDER)])
    return least * least, stretched


def _by_quadrature(a: Array, c: Array) -> tuple[Array, Array]:
    """Gauss-Legendre where the integrand has not yet fallen by exp(-46); c > 0, a >= 0."""
    ratio = a / c**2
    # u + ratio u^2 = FALL, in the form that is exact for a = 0.
    end = 2 * _FALL / (1 + np.sqrt(1 + 4 * ratio * _FALL))
    u = end[..., None] * _POINTS
    integrand = np.exp(-u - ratio[..., None] * u * u)
    sums = np.einsum("...p,pk->k...", integrand, _TOWERS)
    return np.zeros(a.shape), np.stack([sums[k] * (end / c) ** (k + 1) for k in range(ORDER)])


def half_line_moments(a: Array, c: Array) -> tuple[Array, Array]:
    """Integrals of x^k exp(-a x^2 - c x) over x > 0, for k = 0 to 4.

    The recurrence from erfcx is stable up to z = c/(2 sqrt(a)) = 1/2; beyond it cancels
    (entirely as a -> 0), and quadrature over the finite part of a smooth decay takes over.

    Parameters
    ----------
    a, c
        Same shape; a >= 0. Where a = 0 and c <= 0 the integrals are infinite.

    Returns
    -------
    shift
        Logarithm of a common factor, so that nothing overflows; the shape of ``a``.
    moments
        The integrals divided by exp(shift), shape (5, ...).
    """
    a, c = np.broadcast_arrays(np.asarray(a, float), np.asarray(c, float))
    shift, moments = np.zeros(a.shape), np.full((ORDER, *a.shape), np.inf)
    steep = (c > 0) & (c * c > 4 * _SWITCH**2 * a)
    gentle = ~steep & (a > 0)
    for chosen, method in ((steep, _by_quadrature), (gentle, _by_recurrence)):
        if np.any(chosen):
            shift[chosen], moments[:, chosen] = method(a[chosen], c[chosen])
    return shift, moments
