"""Fixed points of (17) for several projections and sources, optimal and symmetric ones.

Rattray 2002, section 4.3: where projections begin alike towards a source they may stay so until
noise parts them. Newton's method begins at every way to give each projection a source or none,
projections on the same source sharing it evenly.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from hdica.limits.hebbian import Field
from hdica.limits.hebbian_jacobian import as_matrix, part_jacobians

Array = NDArray[np.float64]
MOST_PATTERNS = 4096
_SCALES = (0.97, 0.8, 0.6, 0.4, 0.2)
"""Of a pattern: from its own place down to where barriers are."""
_SAME, _SOLVED = 1e-7, 1e-11


def patterns(shape: tuple[int, int]) -> list[Array]:
    """Starts of the search: R with one source or none a projection, shape (K, M).

    Signs are all positive: for odd phi every other choice is a mirror image. Where there are more
    than 4096 ways, those with a source for all or none of the projections remain.
    """
    k, m = shape
    every: list[tuple[int, ...]] = (
        list(itertools.product(range(-1, m), repeat=k))
        if (m + 1) ** k <= MOST_PATTERNS
        else [(-1,) * k, tuple(i if i < m else -1 for i in range(k))]
    )
    found = []
    for chosen in every:
        r = np.zeros(shape)
        for source in set(chosen) - {-1}:
            rows = [i for i, one in enumerate(chosen) if one == source]
            r[rows, source] = 1 / np.sqrt(len(rows))
        found.append(r)
    return found


def states(field: Field, mu: float) -> list[Array]:
    """Fixed points found from all patterns, each once, by decreasing sum of squares.

    Parameters
    ----------
    field
        Right-hand side of (17).
    mu
        Constant learning rate > 0.

    Returns
    -------
    list of ndarray
        R, shape (K, M), with I - R R' positive semidefinite; of mirror images, which exist for odd
        phi, the one whose rows begin with a positive entry. There may be others: no method finds
        all of a general field.
    """
    mirrored = _mirrored(field)
    found: list[Array] = []
    for start in patterns(field.shape):
        for scale in _SCALES:
            r = _solved(field, mu, scale * start)
            if r is None:
                continue
            r = _upright(r) if mirrored else r
            if not any(np.abs(r - other).max() < _SAME for other in found):
                found.append(r)
    return sorted(found, key=lambda r: -round(float(np.sum(r * r)), 9))


def _mirrored(field: Field) -> bool:
    """Whether the mirror image of a projection moves as its mirror image: phi is odd."""
    r = np.zeros(field.shape)
    r[np.diag_indices(min(field.shape))] = 0.6
    r[0] += 0.1
    turned = r.copy()
    turned[0] *= -1
    parts, images = (np.array(field.parts(one)) for one in (r, turned))
    images[:, 0] *= -1
    return bool(np.abs(parts - images).max() < 1e-9 * np.abs(parts).max())


def _upright(r: Array) -> Array:
    first = r[np.arange(len(r)), np.argmax(np.abs(r) > _SAME, axis=1)]
    return r * np.where(first < 0, -1.0, 1.0)[:, None] + 0.0


def _solved(field: Field, mu: float, start: Array) -> Array | None:
    """The fixed point that Newton's method, damped, finds from a start; None if none."""
    from scipy.optimize import root

    def value(x: Array) -> Array:
        learning, loss = field.parts(x.reshape(field.shape))
        return np.asarray((learning + mu * loss).ravel())

    def slope(x: Array) -> Array:
        learning, loss = (as_matrix(p) for p in part_jacobians(field, x.reshape(field.shape)))
        return np.asarray(learning + mu * loss)

    solution = root(value, start.ravel(), jac=slope, method="hybr", tol=1e-14)
    r = np.asarray(solution.x.reshape(field.shape))
    allowed = float(np.linalg.svd(r, compute_uv=False)[0]) <= 1 + 1e-9
    if not allowed or float(np.abs(value(solution.x)).max()) > _SOLVED:
        return None
    return np.where(np.abs(r) < 1e-9, 0.0, r) + 0.0
