"""Fixed points of (17) for any numbers of projections and sources: all that can be found.

Where phi is a polynomial and there are few overlaps the list is proved complete; else it is what a
search found, which says how often it hit each state and what share of further starts would end
elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.systems.hebbian_ica.limit.equation_17 import Array, Field
from hdica.systems.hebbian_ica.states.certificate import MOST_BOXES, certify
from hdica.systems.hebbian_ica.states.polynomial import Polynomial, polynomial, rates_and_slopes
from hdica.systems.hebbian_ica.states.quadrature_search import search_by_quadrature
from hdica.systems.hebbian_ica.states.search import Search, search
from hdica.systems.hebbian_ica.states.symmetries import Symmetries, representatives, symmetries

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
    """Fixed points of (17): all of them with proof where that is possible, else as found."""
    group = symmetries(field)
    if field.exact:
        found, certified = _of_polynomial(polynomial(field, mu), group)
    else:
        found, certified = search_by_quadrature(field, group, mu), False
    largest = np.linalg.norm(found.zeros, 2, axis=(1, 2))
    allowed = np.flatnonzero(largest <= 1 + _ROOM)
    r, multiplicity = representatives(group, found.zeros[allowed])
    r = np.where(np.abs(r) < 1e-9, 0.0, r) + 0.0
    order = sorted(range(len(r)), key=lambda i: _rank(r[i]))
    unseen = 0.0 if certified else found.unseen
    hits = found.hits[allowed]
    return States(r[order], multiplicity[order], hits[order], certified, found.starts, unseen)


def _rank(r: Array) -> tuple[float, ...]:
    return (-round(float(np.sum(r * r)), 9), *np.round(-r.ravel(), 6).tolist())


def _of_polynomial(poly: Polynomial, group: Symmetries) -> tuple[Search, bool]:
    """What was found, and whether that is all."""
    size = poly.shape[0] * poly.shape[1]
    # Fewer starts where each takes longer.
    most = int(MOST_STARTS * min(1.0, (9 / size) ** 2))
    found = search(poly, group, 100 * min(size, 9), most)
    _check_isolated(poly, found.zeros)
    if size > MOST_CERTIFIED:
        return found, False
    # A box takes longer the higher the degree; the fewer the overlaps, the fewer it takes.
    share = min(1.0, (4 / poly.slopes.shape[0]) ** 2) * (size / MOST_CERTIFIED) ** 2
    most = int(MOST_BOXES * share)
    zeros, complete = certify(poly, group, found.zeros, most)
    hits = np.concatenate([found.hits, np.zeros(len(zeros) - len(found.zeros))])
    return Search(zeros, hits, found.starts), complete


def _check_isolated(poly: Polynomial, zeros: Array) -> None:
    size = poly.shape[0] * poly.shape[1]
    _, slope = rates_and_slopes(poly, np.moveaxis(zeros, 0, 2))
    values = np.linalg.svd(np.moveaxis(slope.reshape(size, size, -1), 2, 0), compute_uv=False)
    flat = int(np.sum(values[:, -1] < _SINGULAR * np.maximum(values[:, 0], 1e-300)))
    if flat > _MOST_SINGULAR:
        raise HdicaError(
            f"the fixed points are not isolated: {flat} of those found have a singular Jacobian, "
            "so that they fill a curve or more"
        )
