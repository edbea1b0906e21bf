"""Moments of the first-passage time of a one-dimensional diffusion, however deep its trap.

For dX = b(X) dt + sqrt(a(X)) dB, reflected at the lower end and stopped at the upper one, the
mean time from x is the integral over (x, upper) of J with

    J' = 2/a - (2 b/a) J,    J(lower) = 0.

Where the drift confines, J grows like exp of the barrier; where it carries away, J is slaved to
1/b and the equation is stiff. Radau collocation of high order on panels serves both, and a
logarithmic scale for each panel keeps every exponent in range. The k-th moment has the source
2 k T_{k-1}/a in the place of 2/a.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Legendre, legendre

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array, Function, Mask
from hdica.ingredients.quadrature import dot
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline

Start = float | Function
"""A point, or the distribution function of a law on the positions above the lower end."""

STAGES = 12
"""Points a panel; the integral over it is exact to degree 2 STAGES - 2."""
_STEP = 2.0
"""Logarithm of the factor by which J may change on a panel while it is not slaved to 1/b."""
_SMALLEST, _LARGEST = 2.0**-40, 2.0**40
"""Range of lengths that the first panels cover, in units of the scale."""
_HALVINGS = 6
MOST_GROWTH = 1e4
"""Largest exponent of a mean time; beyond, nothing is computed."""


class Diffusion(NamedTuple):
    """dX = b(X) dt + sqrt(a(X)) dB with vectorised b and a > 0; a is no diffusion constant a/2."""

    drift: Function
    variance: Function


def safe_exp(log: float) -> float:
    """exp, infinite where a floating-point number cannot hold it."""
    return math.exp(log) if log < 709.0 else math.inf


class PassageTime(NamedTuple):
    """Logarithms of mean and second moment of a first-passage time, finite for any exponent.

    They are -inf for a start beyond the end. ``barrier`` is the largest rise of log J without its
    source, the exponent of Kramers' formula; ``error`` the estimated relative error of both
    moments.
    """

    log_mean: float
    log_second: float
    barrier: float
    error: float

    @property
    def mean(self) -> float:
        """The mean; infinite where a floating-point number cannot hold it."""
        return safe_exp(self.log_mean)

    @property
    def cv(self) -> float:
        """Standard deviation over mean; 1 for an exponential law, 0 for a start beyond the end."""
        if not math.isfinite(self.log_mean):
            return 0.0
        return math.sqrt(max(math.expm1(self.log_second - 2 * self.log_mean), 0.0))

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return self.cv * self.mean


def antiderivatives(x: Array) -> Array:
    """Integrals from -1 to every point of the polynomials that are 1 at one and 0 at all others.

    Of shape (points, points): row i holds those of all polynomials up to point i.
    """
    up = [legendre.legint(row, lbnd=-1) for row in np.eye(x.size)]
    integrals = np.array([legendre.legval(x, coefficients) for coefficients in up])
    return np.linalg.solve(legendre.legvander(x, x.size - 1).T, integrals).T


@lru_cache(maxsize=2)
def _radau(stages: int) -> tuple[Array, Array]:
    """Radau points of [0, 1], the end 1 among them, and the integrals of their polynomials.

    The last row of the integrals are the weights.
    """
    ends = Legendre.basis(stages) - Legendre.basis(stages - 1)
    x = np.sort(ends.roots().real)
    x[-1] = 1.0
    return (x + 1) / 2, antiderivatives(x) / 2


class _Panels(NamedTuple):
    """The equation on panels: points, 2/a and the rate -2 b/a there, shape (panels, stages)."""

    edges: Array
    points: Array
    source: Array
    rate: Array

    @property
    def width(self) -> Array:
        """Width of every panel, shape (panels,)."""
        return np.diff(self.edges)

    def parts(self, j: Array, scales: Array) -> Array:
        """J over its largest scale times the width, shape (panels, stages)."""
        return j * np.exp(scales - scales.max())[:, None] * self.width[:, None]

    @property
    def rise(self) -> Array:
        """Change of log J over every panel if J had no source, shape (panels,)."""
        return self.width * np.sum(self.rate * _radau(STAGES)[1][-1], axis=1)

    @property
    def heights(self) -> Array:
        """How far log J has risen above where it is slaved, at the edges, shape (panels + 1,)."""
        heights = np.zeros(self.width.size + 1)
        for i, rise in enumerate(self.rise):
            heights[i + 1] = max(heights[i] + rise, 0.0)
        return heights

    @property
    def steep(self) -> Mask:
        """Panels on which J grows, or falls from where it has grown, by more than exp(2)."""
        above = self.heights[:-1]
        up = self.width * self.rate.max(axis=1)
        down = -self.width * self.rate.min(axis=1)
        return (up > _STEP) | ((down > _STEP) & (above > 0))


def _panels(diffusion: Diffusion, edges: Array) -> _Panels:
    c, _ = _radau(STAGES)
    points = edges[:-1, None] + np.diff(edges)[:, None] * c
    b, a = diffusion.drift(points), diffusion.variance(points)
    if not (np.all(np.isfinite(b)) and np.all(np.isfinite(a)) and np.all(a > 0)):
        raise HdicaError("diffusion: drift and variance must be finite and the variance positive")
    return _Panels(edges, points, 2 / a, -2 * b / a)


def _first_edges(low: float, high: float, scale: float, start: Start) -> Array:
    """Edges in geometric progression from the lower end, so that no length is missed."""
    steps = np.arange(2 * math.log2(_SMALLEST), 2 * math.log2(_LARGEST) + 1)
    edges = low + scale * np.append(0.0, 2.0 ** (steps / 2))
    edges = np.unique(edges[edges < high])
    if math.isfinite(high):
        edges = np.append(edges[edges < high - 1e-9 * (high - low)], high)
    if callable(start) or not low < start < high:
        return edges
    return np.unique(np.append(edges, start))


def _halved(edges: Array, chosen: Mask) -> Array:
    middles = (edges[1:] + edges[:-1])[chosen] / 2
    return np.sort(np.concatenate([edges, middles]))


def _fitted(diffusion: Diffusion, edges: Array) -> _Panels:
    """Panels so small that they resolve how J grows and falls again."""
    while True:
        check_deadline()
        panels = _panels(diffusion, edges)
        total = float(np.sum(np.maximum(panels.rise, 0.0)))
        if total > MOST_GROWTH:
            raise HdicaError(
                f"escape: the logarithm of the mean time is about {total:.3g} and at most "
                f"{MOST_GROWTH:g} is computed (the drift holds X back too strongly)"
            )
        steep = panels.steep
        if not steep.any():
            return panels
        edges = _halved(edges, steep)


def _marched(panels: _Panels, weight: Array) -> tuple[Array, Array]:
    """J at all points: a number of order one and the logarithm of its factor on each panel."""
    _, matrix = _radau(STAGES)
    h = panels.width[:, None, None]
    system = np.eye(STAGES) - h * matrix * panels.rate[:, None, :]
    right = h * np.sum(matrix * (panels.source * weight)[:, None, :], axis=2, keepdims=True)
    with one_thread():
        both = np.linalg.solve(system, np.concatenate([right, np.ones_like(right)], axis=2))
    # J from 0 with the source times the weight, and J from 1 without source.
    forced, free = both[..., 0], both[..., 1]
    size = np.log(np.maximum(np.abs(forced).max(axis=1), 1e-300))
    share, scales = np.zeros(len(size)), np.zeros(len(size))
    log = -math.inf  # of J at the lower end of the panel
    for i, (own, f, u) in enumerate(zip(size, forced[:, -1], free[:, -1], strict=True)):
        scales[i] = max(own, log)
        share[i] = math.exp(log - scales[i])
        end = f * math.exp(-scales[i]) + u * share[i]
        log = scales[i] + math.log(end) if end > 0 else -math.inf
    return forced * np.exp(-scales)[:, None] + free * share[:, None], scales


def _remaining(panels: _Panels, j: Array, scales: Array) -> Array:
    """The mean time from every point over that from the lower end, shape (panels, stages)."""
    _, matrix = _radau(STAGES)
    parts = panels.parts(j, scales)
    whole = np.sum(parts * matrix[-1], axis=1)
    later = np.append(np.cumsum(whole[::-1])[::-1][1:], 0.0)
    inside = np.sum(parts[:, None, :] * (matrix[-1] - matrix), axis=2)
    return (inside + later[:, None]) / whole.sum()


def _log_integral(panels: _Panels, j: Array, scales: Array, weight: Array) -> float:
    _, matrix = _radau(STAGES)
    parts = np.sum(j * weight * matrix[-1], axis=1) * panels.width
    total = dot(parts, np.exp(scales - scales.max()))
    return float(scales.max()) + math.log(total) if total > 0 else -math.inf


def _moments(panels: _Panels, high: float, start: Start) -> tuple[float, float]:
    """Logarithms of the first two moments."""
    one = np.ones_like(panels.points)
    weight = start(panels.points) if callable(start) else (panels.points > start).astype(float)
    j, scales = _marched(panels, one)
    if math.isinf(high):
        parts = panels.parts(j, scales)
        if np.sum(parts[-2:]) > 1e-12 * np.sum(parts):
            raise HdicaError(
                "escape: the mean time to infinity is infinite (the drift must carry X there)"
            )
    mean = _log_integral(panels, j, scales, weight)
    whole = _log_integral(panels, j, scales, one)
    twice, scales = _marched(panels, 2 * _remaining(panels, j, scales))
    return mean, whole + _log_integral(panels, twice, scales, weight)


def first_passage(
    diffusion: Diffusion,
    low: float,
    high: float,
    start: Start,
    *,
    scale: float | None = None,
    tolerance: float = 1e-11,
) -> PassageTime:
    """Mean and second moment of the time at which a diffusion first reaches the upper end.

    It is reflected at ``low``, which for an odd drift and an even variance and low = 0 means |X|
    instead of X; it is stopped at ``high``, which may be infinite if the drift carries X there in
    finite time. ``start`` is where it begins, or the distribution function of that; what begins
    beyond ``high`` takes no time. ``scale`` is a length on which something happens, by default high
    - low. Panels are halved until the moments change by less than ``tolerance``, relative, six
    times at most.
    """
    if not (math.isfinite(low) and low < high):
        raise HdicaError(f"range: [{low}, {high}] is not allowed (a finite number below another)")
    if not callable(start) and not low <= start:
        raise HdicaError(f"start: {start} is not allowed (at least {low})")
    scale = scale if scale is not None else (high - low if math.isfinite(high) else 1.0)
    panels = _fitted(diffusion, _first_edges(low, high, scale, start))
    moments = _moments(panels, high, start)
    for _ in range(_HALVINGS):
        every = np.ones(panels.width.size, dtype=bool)
        panels = _fitted(diffusion, _halved(panels.edges, every))
        coarser, moments = moments, _moments(panels, high, start)
        finite = math.isfinite(moments[0])
        error = max(abs(a - b) for a, b in zip(moments, coarser, strict=True)) if finite else 0.0
        if error <= tolerance:
            break
    return PassageTime(*moments, float(panels.heights.max()), error)
