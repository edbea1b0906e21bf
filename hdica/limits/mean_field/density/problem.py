"""What the Fokker-Planck solver solves: a mean field at the nodes of its prior that count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.priors import Prior
from hdica.ingredients.starts import Start
from hdica.ingredients.vectors import NOT_NORMAL
from hdica.limits.mean_field.density.grid import Mesh
from hdica.limits.mean_field.family import MeanField, Scaled
from hdica.limits.numerics.packed import packed, times
from hdica.limits.numerics.series import adaptive

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Coefficient = Callable[[float, float], float]
Law = tuple[Array, Array, Array]
"""Coefficients as compiled code takes them: see :func:`tabulated`."""
Functional = Callable[[Array, Array], Array]
NARROWEST = 1e-4
"""Smallest variance of the start that cells resolve at a sane cost."""
NO_WEIGHT = 1e-18


@lru_cache(maxsize=32)
def _interpolation(points: int) -> tuple[tuple[float, ...], Array]:
    """Chebyshev points, and the matrix that takes values there to coefficients."""
    angle = np.pi * (np.arange(points) + 0.5) / points
    matrix = np.cos(np.arange(points)[:, None] * angle) * (2 / points)
    matrix[0] /= 2
    return tuple(np.cos(angle).tolist()), matrix


def _rows(coefficient: Coefficient, taus: Array) -> Array:
    """B or g at each step size as compiled code takes it, shape (step sizes, numbers)."""
    if isinstance(coefficient, Scaled):
        return times(packed(coefficient.function), taus[:, None] ** coefficient.power)
    first, _ = adaptive(lambda q: float(coefficient(q, float(taus[0]))))
    points, matrix = _interpolation(max(8, 2 * first.coef.size))
    values = [[float(coefficient(q, tau)) for q in points] for tau in taus.tolist()]
    # Sums and no product of matrices, whose rounding may follow the number of BLAS threads.
    series = [np.sum(matrix * np.array(row), axis=1) for row in values]
    return np.array([np.concatenate([[0.0], one]) for one in series])


def tabulated(field: MeanField, taus: Array) -> Law:
    """The law at S step sizes: b and g as packed functions of Q, a row each, and B, shape (S,)."""
    strength = np.array([float(field.strength(tau)) for tau in taus.tolist()])
    return _rows(field.pull, taus), _rows(field.diffusion, taus), strength


@dataclass(frozen=True, eq=False)
class Problem:
    """A mean field at the nodes of its prior that count, and their weights, shape (atoms,).

    ``mirrored`` says whether P(-x | -xi) = P(x | xi), and the nodes stand for their mirror images
    too.
    """

    field: MeanField
    xi: Array
    weights: Array
    mirrored: bool = False

    @property
    def moves(self) -> bool:
        """Whether the laws at all nodes mix, because the feature moves."""
        return self.field.motion.moves

    @cached_property
    def constant_law(self) -> Law | None:
        """The law of all times, or None if the step size varies."""
        tau = self.field.schedule.constant
        return None if tau is None else tabulated(self.field, np.array([tau]))

    def law(self, taus: Array) -> tuple[Law, Indices]:
        """The law at the step sizes that occur, and the row of each of ``taus``."""
        if self.constant_law is not None:
            return self.constant_law, np.zeros(taus.shape, dtype=np.int64)
        found, rows = np.unique(taus, return_inverse=True)
        return tabulated(self.field, found), rows.reshape(taus.shape).astype(np.int64)

    def integrands(self, mesh: Mesh, functionals: Mapping[str, Functional]) -> Array:
        """What to sum against the masses for each functional, shape (functionals, cells)."""
        if not functionals:
            return np.empty((0, int(mesh.offsets[-1])))
        xi, x, weights = mesh.flat(self.xi, self.weights)
        rows = [np.broadcast_to(h(xi, x), x.shape) for h in functionals.values()]
        if self.mirrored:
            images = [np.broadcast_to(h(-xi, -x), x.shape) for h in functionals.values()]
            rows = [(row + image) / 2 for row, image in zip(rows, images, strict=True)]
        return np.array([weights * row for row in rows])


@dataclass(frozen=True, eq=False)
class Places:
    """Which atom of the problem, or its mirror image, has the density at each node of the prior.

    Its number is -1 for a node of no weight.
    """

    atom: Indices
    flipped: NDArray[np.bool_]


def start_refusal(start: Start, prior: Prior) -> str:
    """Empty if cells can resolve the start, else the sentence that says why not."""
    if start.length is not None:
        return f"start {NOT_NORMAL}"
    _, var = start.conditional(prior.nodes.points)
    if var >= NARROWEST:
        return ""
    return (
        f"start {start.label} gives x the variance {var:.3g} at a given xi, which the "
        f"method 'pde' cannot resolve (allowed: at least {NARROWEST:g}; the method "
        "'particles' takes any)"
    )


def _symmetric(field: MeanField, xi: Array, weights: Array) -> bool:
    """Whether the limit is the same for -xi and -x: the prior, the start and phi say so."""
    order = np.argsort(xi)
    points, shares = xi[order], weights[order]
    mean, _ = field.start.conditional(points)
    even = np.array_equal(points, -points[::-1]) and np.array_equal(shares, shares[::-1])
    return bool(even and np.array_equal(mean, -mean[::-1]) and field.phi.is_odd)


def posed(field: MeanField) -> tuple[Problem, Places]:
    """The problem of a mean field, with half of its nodes where the other half mirrors them."""
    refusal = start_refusal(field.start, field.prior)
    if refusal:
        raise HdicaError(refusal)
    points, weights = field.prior.nodes.points, field.prior.nodes.weights
    kept = weights >= NO_WEIGHT
    mirrored = not field.motion.moves and _symmetric(field, points[kept], weights[kept])
    own = kept & (points >= 0) if mirrored else kept
    atom = np.full(points.size, -1)
    atom[own] = np.arange(np.count_nonzero(own))
    flipped = kept & ~own
    number = dict(zip(points[own].tolist(), atom[own].tolist(), strict=True))
    atom[flipped] = [number[-xi] for xi in points[flipped].tolist()]
    share = np.where(mirrored & (points > 0), 2.0, 1.0) * weights
    xi, share = (np.ascontiguousarray(v[own], dtype=float) for v in (points, share))
    return Problem(field, xi, share, mirrored), Places(atom, flipped)
