"""Fixed points of (17), and a proof that their list is complete.

The proof is for polynomial phi and few overlaps: branch and prune over the cube [-1, 1]^(KM), which
holds every allowed R; one R of each orbit of the symmetries is enough. With F the right-hand side
and F^ a polynomial whose coefficients are at least the absolute values of those of F, every point x
of a box of centre c and radii r obeys

    |F(x) - F(c) - F'(c)(x - c)| <= F^(|c| + r) - F^(|c|) - F^'(|c|) r,

so that values at points tell a box without zeros: Krawczyk's operator (R. Krawczyk, Computing 4,
1969) with Taylor's remainder in place of interval arithmetic. The proof is about the polynomial
with the cumulants of the sources as they are in floating point.

Else the list is that of a search, which says how often it hit each state and what share of further
starts would end elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.process.progress import tell
from hdica.systems.hebbian_ica.ode import Array, Field
from hdica.systems.hebbian_ica.polynomial import (
    Polynomial,
    Symmetries,
    polynomial,
    rates,
    rates_and_slopes,
    representatives,
    symmetries,
)
from hdica.systems.hebbian_ica.search import Search, polished, search, search_by_quadrature, unknown

Flags = NDArray[np.bool_]
MOST_BOXES = 1_500_000
"""Of six overlaps: about a quarter of a minute."""
_SLACK = 2e-12
"""Of F^: above the rounding of F, whose every term has seen less than a thousand operations."""
_OUTSIDE = 1.0 + 1e-8
_WIDER = 1e-12
"""What rounding could cut off of a state with equal entries, or with entries that vanish."""
_SMALL, _SMALLEST = 1e-3, 1e-8
_BATCH = 8192


def certify(
    poly: Polynomial, group: Symmetries, zeros: Array, most: int = MOST_BOXES
) -> tuple[Array, bool]:
    """Look for further zeros until it is certain that there are no others.

    The zeros are of all the cube, shape (N, K, M), one of each orbit: what else turns up joins
    them. It gives up after ``most`` boxes, and tells whether there is no other zero.
    """
    size = poly.shape[0] * poly.shape[1]
    centres, radii = np.zeros((size, 1)), np.ones((size, 1))
    inside, boxes, complete = _cubes(poly, group, zeros), 0, True
    while centres.shape[1] and boxes < most:
        c, r = centres[:, -_BATCH:], radii[:, -_BATCH:]
        centres, radii = centres[:, :-_BATCH], radii[:, :-_BATCH]
        boxes += c.shape[1]
        tell(f"proof that no fixed point is missing: {boxes:,} of at most {most:,} boxes")
        open_boxes = needed(group, poly.shape, c, r)
        open_boxes[open_boxes] = ~inside(c[:, open_boxes], r[:, open_boxes])
        c, r = _pruned(poly, c[:, open_boxes], r[:, open_boxes])
        small = r.max(axis=0, initial=0.0) < _SMALL
        if np.any(small):
            # Zeros near these points that are not among the others, one of each orbit.
            at, good = polished(poly, c[:, small].reshape(*poly.shape, -1))
            fresh, _ = representatives(group, np.moveaxis(at[:, :, good], 2, 0))
            more = unknown(fresh, zeros)
            if len(more):
                zeros = np.concatenate([zeros, more])
                inside = _cubes(poly, group, zeros)
        left = r.max(axis=0, initial=0.0) > _SMALLEST
        complete &= bool(np.all(left | inside(c, r)))
        c, r = _halved(c[:, left], r[:, left])
        centres, radii = np.hstack([centres, c]), np.hstack([radii, r])
    return zeros, complete and not centres.shape[1]


def _halved(c: Array, r: Array) -> tuple[Array, Array]:
    """Both halves of every box, cut across its widest side."""
    widest = np.argmax(r, axis=0), np.arange(c.shape[1])
    half, low, high = r.copy(), c.copy(), c.copy()
    half[widest] /= 2
    low[widest] -= half[widest]
    high[widest] += half[widest]
    # The centres are rounded: the halves must still meet.
    half[widest] += 1e-15
    return np.hstack([low, high]), np.hstack([half, half])


def needed(group: Symmetries, shape: tuple[int, int], c: Array, r: Array) -> Flags:
    """Boxes, of centres and radii of shape (KM, B), with an allowed R that stands for its orbit.

    Its |R_00| is largest among the entries that may be exchanged with it, the others of its row and
    column are in order, and signs are positive in the first row and, if projections have signs, in
    the first column.
    """
    k, m = shape
    near = np.maximum(np.abs(c) - r - _WIDER, 0.0).reshape(k, m, -1)
    far, top = (np.abs(c) + r).reshape(k, m, -1), (c + r + _WIDER).reshape(k, m, -1)
    # Projections and sources that may be exchanged with the first.
    rows = np.flatnonzero(group.rows.orders.min(axis=0) == 0)
    columns = np.flatnonzero(group.kinds == 0)
    square = near**2
    flags = np.maximum(square.sum(axis=0).max(axis=0), square.sum(axis=1).max(axis=0)) < _OUTSIDE
    for i in rows:
        flags &= np.all(far[0, 0] >= near[i, columns], axis=0)
    for i, other in pairwise(rows[1:]):
        flags &= far[i, 0] >= near[other, 0]
    for j, other in pairwise(columns[1:]):
        flags &= far[0, j] >= near[0, other]
    signed = group.flips.copy()
    if group.odd:
        flags &= np.all(top[:, 0] >= 0.0, axis=0)
        # The signs of the rows have made the first column positive, whatever its own.
        signed[0] = False
    return flags & np.all(top[0, signed] >= 0.0, axis=0)


def _pruned(poly: Polynomial, c: Array, r: Array) -> tuple[Array, Array]:
    """The parts of boxes, shape (KM, B) both, that may hold a zero."""
    (k, m), (n, b) = poly.shape, c.shape
    if not b:
        return c, r
    bound, at = poly.majorant, c.reshape(k, m, b)
    f, slope = rates_and_slopes(poly, at)
    low, low_slope = rates_and_slopes(bound, np.abs(at))
    high = rates(bound, np.abs(at) + r.reshape(k, m, b)).reshape(n, b)
    f, slope, low_slope = f.reshape(n, b), slope.reshape(n, n, b), low_slope.reshape(n, n, b)
    rest = high - low.reshape(n, b) - np.sum(low_slope * r, axis=1)
    rest = np.maximum(rest, 0.0) + _SLACK * high
    left = np.all(np.abs(f) <= np.sum(np.abs(slope) * r, axis=1) + rest, axis=0)
    c, r, f, rest, slope = c[:, left], r[:, left], f[:, left], rest[:, left], slope[:, :, left]
    inverse, gap = _inverse(slope)
    step = -np.sum(inverse * f, axis=1)
    spread = (np.sum(np.abs(inverse) * rest, axis=1) + np.sum(gap * r, axis=1)) * (1 + 1e-12)
    low, high = np.maximum(-r, step - spread), np.minimum(r, step + spread)
    left = np.all(low <= high, axis=0)
    return (c + (low + high) / 2)[:, left], ((high - low) / 2 * (1 + 1e-12) + 1e-15)[:, left]


def _inverse(slope: Array) -> tuple[Array, Array]:
    """An approximate inverse Y of each J, shape (n, n, B), and a bound of |I - Y J|."""
    n = slope.shape[0]
    stacked = np.moveaxis(slope, 2, 0)
    # A singular matrix has no inverse; a huge one of a neighbour tells nothing, which is right.
    size = 1e-13 * (np.abs(stacked).max(axis=(1, 2)) + 1e-300)
    inverse = np.moveaxis(np.linalg.inv(stacked + size[:, None, None] * np.eye(n)), 0, 2)
    gap = np.zeros_like(slope)
    for i in range(n):
        product = np.sum(inverse[i][:, None] * slope, axis=0)
        sizes = np.sum(np.abs(inverse[i])[:, None] * np.abs(slope), axis=0)
        gap[i] = np.abs(np.eye(n)[i][:, None] - product) + 1e-14 * sizes
    return np.ascontiguousarray(inverse), gap


def _cubes(poly: Polynomial, group: Symmetries, zeros: Array) -> Callable[[Array, Array], Flags]:
    """Which boxes, shape (KM, B) both, are inside the largest cubes that have exactly one zero.

    They are those around all images of the zeros with proven existence and uniqueness.
    """
    (k, m), count = poly.shape, len(zeros)
    if not count:
        return lambda c, r: np.zeros(c.shape[1], dtype=bool)
    at, n = np.moveaxis(zeros, 0, 2), k * m
    f, slope = rates_and_slopes(poly, at)
    _, least = rates_and_slopes(poly.majorant, np.abs(at))
    inverse, gap = _inverse(slope.reshape(n, n, count))
    error = np.abs(f.reshape(n, count)) + _SLACK * rates(poly.majorant, np.abs(at)).reshape(n, -1)
    away = np.sum(np.abs(inverse) * error, axis=1).max(axis=0)

    def contraction(sizes: Array) -> Array:
        _, most = rates_and_slopes(poly.majorant, np.abs(at) + sizes)
        spread = (most - least * (1 - _SLACK)).reshape(n, n, count)
        rows = [
            np.sum(np.sum(np.abs(y)[:, None] * spread, axis=0) + g, axis=0)
            for y, g in zip(inverse, gap, strict=True)
        ]
        return np.max(rows, axis=0)

    sizes = np.full(count, 2.0)
    for _ in range(80):
        sizes = np.where(contraction(sizes) < 0.95, sizes, 0.75 * sizes)
    # Krawczyk: the zero is nearer than ``away`` / (1 - 0.95), inside the cube, and alone there.
    sizes = np.where((away < 0.04 * sizes) & (contraction(sizes) < 0.95), sizes, 0.0)
    centres = [group.images(zero).reshape(-1, n) for zero in zeros]
    every = np.concatenate(centres)
    own = np.repeat(sizes, [len(one) for one in centres])
    useful = needed(group, poly.shape, every.T, np.tile(own, (n, 1))) & (own > 0)
    order = np.flatnonzero(useful)[np.argsort(-own[useful], kind="stable")]
    cubes = list(zip(every[order], own[order], strict=True))

    def inside(c: Array, r: Array) -> Flags:
        flags = np.zeros(c.shape[1], dtype=bool)
        least = r.max(axis=0).min(initial=np.inf)
        for centre, size in cubes:
            if size < least:
                break
            flags |= np.all(np.abs(c - centre[:, None]) + r <= size, axis=0)
        return flags

    return inside


MOST_CERTIFIED = 6
"""Overlaps K M up to which a certificate is tried; every two more take some fifty times as long."""
MOST_STARTS = 45_000
_ROOM, _SINGULAR, _MOST_SINGULAR = 1e-9, 1e-9, 16


@dataclass(frozen=True)
class States:
    """Fixed points, one of each orbit of the symmetries, by decreasing sum of squares.

    Of the images under changes of sign and exchanges that map states to states, each is the one
    nearest to a large positive R_00.
    """

    r: Array  # shape (N, K, M), with I - R R' positive semidefinite
    multiplicity: Array  # how many images each has, itself included, shape (N,)
    hits: Array  # how many starts of the search ended at it or an image, shape (N,)
    certified: bool  # whether it is proved that there is no other
    starts: int
    unseen: float  # share of further starts expected to end elsewhere; 0 if certified


def states(field: Field, mu: float) -> States:
    """Fixed points of (17): all with proof where that is possible, else what a search finds."""
    group = symmetries(field)
    if field.exact:
        result, certified = _of_polynomial(polynomial(field, mu), group)
    else:
        result, certified = search_by_quadrature(field, group, mu), False
    largest = np.linalg.norm(result.zeros, 2, axis=(1, 2))
    allowed = np.flatnonzero(largest <= 1 + _ROOM)
    r, multiplicity = representatives(group, result.zeros[allowed])
    r = np.where(np.abs(r) < 1e-9, 0.0, r) + 0.0

    def rank(i: int) -> tuple[float, ...]:
        return (-round(float(np.sum(r[i] * r[i])), 9), *np.round(-r[i].ravel(), 6).tolist())

    order = sorted(range(len(r)), key=rank)
    unseen = 0.0 if certified else result.unseen
    hits = result.hits[allowed]
    return States(r[order], multiplicity[order], hits[order], certified, result.starts, unseen)


def _of_polynomial(poly: Polynomial, group: Symmetries) -> tuple[Search, bool]:
    """What a search gives, and whether that is proved to be all."""
    size = poly.shape[0] * poly.shape[1]
    # Fewer starts where each takes longer.
    most = int(MOST_STARTS * min(1.0, (9 / size) ** 2))
    result = search(poly, group, 100 * min(size, 9), most)
    _, slope = rates_and_slopes(poly, np.moveaxis(result.zeros, 0, 2))
    values = np.linalg.svd(np.moveaxis(slope.reshape(size, size, -1), 2, 0), compute_uv=False)
    flat = np.sum(values[:, -1] < _SINGULAR * np.maximum(values[:, 0], 1e-300))
    if flat > _MOST_SINGULAR:
        raise HdicaError(
            f"the fixed points are not isolated: {flat} of those found have a singular Jacobian, "
            "so that they fill a curve or more"
        )
    if size > MOST_CERTIFIED:
        return result, False
    # A box takes longer the higher the degree; the fewer the overlaps, the fewer it takes.
    share = min(1.0, (4 / poly.slopes.shape[0]) ** 2) * (size / MOST_CERTIFIED) ** 2
    most = int(MOST_BOXES * share)
    zeros, complete = certify(poly, group, result.zeros, most)
    hits = np.concatenate([result.hits, np.zeros(len(zeros) - len(result.zeros))])
    return Search(zeros, hits, result.starts), complete
