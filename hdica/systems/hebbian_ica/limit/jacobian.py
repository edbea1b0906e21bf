"""Derivatives of (17) with respect to R."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdica.systems.hebbian_ica.limit.equation_17 import Field, Parts

Array = NDArray[np.float64]
_TINY = 1e-30
_STEP = 1e-4


def part_jacobians(field: Field, r: Array, rough: bool = False) -> tuple[Array, Array]:
    """dL_ij/dR_kl and dD_ij/dR_kl at ``[i, j, k, l]``, both of shape (K, M, K, M).

    Polynomials are differentiated by a complex step (Squire and Trapp 1998), to rounding and on
    the boundary of the overlaps too. Else by central differences with one Richardson
    extrapolation, which stay inside the overlaps: on their boundary they are inaccurate. If
    ``rough``, a plain difference of the coarser quadrature will do (about 1e-7).
    """
    learning, loss = np.empty((2, *r.shape, *r.shape))
    step = 0.0 if field.exact else min(_STEP, _room(r) / 4)
    for index in np.ndindex(*r.shape):
        unit = np.zeros(r.shape)
        unit[index] = 1.0
        where = (slice(None), slice(None), *index)
        if field.exact:
            both = np.array(field.parts(r + 1j * _TINY * unit)).imag / _TINY
        elif rough:
            both = _central(field.rough, r, step * unit, step)
        else:
            wide, narrow = (_central(field.parts, r, h * unit, h) for h in (step, step / 2))
            both = (4 * narrow - wide) / 3
        learning[where], loss[where] = both
    return learning, loss


def jacobian(field: Field, r: Array, mu: float, rough: bool = False) -> Array:
    """d(dR_ij/dt)/dR_kl at ``[i, j, k, l]``, shape (K, M, K, M), for a constant ``mu``."""
    learning, loss = part_jacobians(field, r, rough)
    return np.asarray(mu * learning + mu**2 * loss)


def _central(parts: Parts, r: Array, change: Array, step: float) -> Array:
    ahead, behind = np.array(parts(r + change)), np.array(parts(r - change))
    return np.asarray((ahead - behind) / (2 * step))


def _room(r: Array) -> float:
    """How far an entry may move before I - R R' stops being positive."""
    largest = float(np.linalg.svd(r, compute_uv=False)[0])
    return max(1.0 - largest, 1e-9)


def as_matrix(tensor: Array) -> Array:
    """A tensor (K, M, K, M) as a matrix (KM, KM)."""
    size = tensor.shape[0] * tensor.shape[1]
    return tensor.reshape(size, size)


def eigenvalues(field: Field, r: Array, mu: float) -> NDArray[np.complex128]:
    """Eigenvalues of the Jacobian, by increasing real part, shape (KM,)."""
    found = np.linalg.eigvals(as_matrix(jacobian(field, r, mu))).astype(complex)
    return np.asarray(found[np.lexsort((found.imag, found.real))])
