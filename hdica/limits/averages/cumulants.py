"""Cumulants of a source, and averages of derivatives of a nonlinearity."""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import HermiteE
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import averaged

Array = NDArray[np.float64]


def cumulants(source: Source, order: int) -> Array:
    """Cumulants kappa_0 (which is 0) to kappa_order of a source, shape (order + 1,)."""
    m = [source.moment(k) for k in range(order + 1)]
    if not all(math.isfinite(v) for v in m):
        raise HdicaError(
            f"source: {source.label} has no finite moment of order {np.argmax(~np.isfinite(m))}; "
            f"its cumulant of order {order} is needed near R = 0"
        )
    kappa = np.zeros(order + 1)
    for n in range(1, order + 1):
        terms = (math.comb(n - 1, k - 1) * kappa[k] * m[n - k] for k in range(1, n))
        kappa[n] = m[n] - math.fsum(terms)
    return kappa


def mean_derivative(
    phi: Formula, source: Source, overlap: float, order: int
) -> tuple[float, float]:
    """<phi^(order)(y)> for y = R s + sqrt(1 - R^2) z and its error, jumps of phi included.

    By Stein's identity; the overlap R lies inside (-1, 1).
    """
    width = math.sqrt(1 - overlap * overlap)
    hermite = HermiteE.basis(order)

    def integrand(s: Array, z: Array, y: Array) -> tuple[Array]:
        return (np.asarray(hermite(z) * phi.value(y)),)

    found = averaged(integrand, phi, source, overlap)
    return float(found.value[0]) / width**order, float(found.error[0]) / width**order
