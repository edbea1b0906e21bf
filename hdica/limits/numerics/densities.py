"""A one-dimensional diffusion that stops at a threshold: its Fokker-Planck equation, and its paths.

Entries of sqrt(n) R near zero are independent copies of one diffusion to leading order
(Rattray 2002, (24)-(25)), so that its density and its survival are those of any K x M matrix.
Space is cut into finite volumes with the fluxes of Scharfetter and Gummel (1969), which are
positive at any drift. Time is not stepped at all: the resolvent is transformed back by the Euler
method of Abate and Whitt (1995), whose points all lie to the right of the imaginary axis, where a
resolvent of a Markov process is bounded; to the left of it, on Talbot's contour, that of a strong
drift is astronomically large far from the spectrum. Four grids are extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.limits.numerics.first_passage import Diffusion, Start
from hdica.limits.numerics.solvers import romberg
from hdica.process.progress import check_deadline

_CELLS, _LEVELS = 96, 4
"""Cells of the coarsest grid, and how many grids are extrapolated."""
_TERMS = 15
"""Order of the Euler method: error about 10^-9."""
_INVERSION = 1e-9
_AT_ONCE = 32
"""Times that are treated together: their arrays fit into the cache."""


class Chain(NamedTuple):
    """A birth-and-death process that stands for a diffusion on [0, high], stopped at ``high``.

    Nodes (high's excluded, the first 0), widths of their cells, rates ``up`` to the next node and
    ``down`` to the one before, and the mass of the start in each cell; all of shape (cells,).
    ``up[-1]`` leads out, ``down[0]`` is 0.
    """

    nodes: Array
    widths: Array
    up: Array
    down: Array
    start: Array


def _bernoulli(w: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(w == 0, 1.0, w / np.expm1(np.where(w == 0, 1.0, w)))


def _start_masses(start: Start, scale: float, width: float, faces: Array, cells: int) -> Array:
    """Masses of the start; of a point by Lagrange's cubic weights, which are exact to order 4."""
    if callable(start):
        below = start(faces)
        return np.diff(below, prepend=0.0)
    x = math.asinh(start / scale) / width
    first = min(math.floor(x) - 1, cells - 3)
    masses = np.zeros(cells + 1)
    for i in range(first, first + 4):
        others = [j for j in range(first, first + 4) if j != i]
        # The law is even: what falls left of 0 is its own mirror image.
        masses[abs(i)] += math.prod((x - j) / (i - j) for j in others)
    return masses[:-1]


def chain(diffusion: Diffusion, high: float, start: Start, scale: float, cells: int) -> Chain:
    """Cut [0, high] into cells: even up to ``scale``, in geometric progression beyond.

    The drift is odd and the variance even: |X| is followed. It starts at a point of [0, high), or
    with a distribution function of |X|.
    """
    width = math.asinh(high / scale) / cells
    steps = np.arange(cells + 1.0)
    nodes = scale * np.sinh(width * steps)
    faces = scale * np.sinh(width * (steps[:-1] + 0.5))
    widths = np.diff(faces, prepend=0.0)
    gaps = np.diff(nodes)
    tilt = -2 * gaps * diffusion.drift(faces) / diffusion.variance(faces)
    noise = diffusion.variance(nodes[:-1]) / (2 * widths)
    down = np.zeros(cells)
    down[1:] = noise[1:] / gaps[:-1] * _bernoulli(-tilt[:-1])
    up = noise / gaps * _bernoulli(tilt)
    return Chain(nodes[:-1], widths, up, down, _start_masses(start, scale, width, faces, cells))


def _line(times: Array) -> tuple[NDArray[np.complex128], Array]:
    """Points z and weights of the inverse Laplace transform, shape (times, points)."""
    tail = np.cumsum([math.comb(_TERMS, k) for k in range(_TERMS)]) / 2.0**_TERMS
    sums = np.concatenate([[0.5], np.ones(_TERMS), tail[::-1]])
    order = np.arange(sums.size)
    z = np.asarray(_TERMS * math.log(10) / 3 + 1j * np.pi * order, dtype=np.complex128)
    weight = 10 ** (_TERMS / 3) * (-1.0) ** order * sums
    return np.divide(z, times[:, None]), weight / times[:, None]


def _masses(grid: Chain, times: Array) -> Array:
    """Mass in each cell at the times, shape (times, cells)."""
    parts = [times[i : i + _AT_ONCE] for i in range(0, times.size, _AT_ONCE)]
    return np.concatenate([_inverted(grid, part) for part in parts])


def _inverted(grid: Chain, times: Array) -> Array:
    """The same for few times: Thomas's algorithm for all their points z at once.

    Rows need no exchange: with Re z > 0 the matrix is diagonally dominant.
    """
    z, weight = _line(times)
    out = grid.up + grid.down
    cells = out.size
    share = np.empty((cells, *z.shape), dtype=complex)
    masses = np.empty_like(share)
    pivot = z + out[0]
    masses[0] = grid.start[0] / pivot
    for i in range(1, cells):
        check_deadline()
        share[i - 1] = grid.down[i] / pivot
        pivot = z + out[i] - grid.up[i - 1] * share[i - 1]
        masses[i] = (grid.start[i] + grid.up[i - 1] * masses[i - 1]) / pivot
    for i in range(cells - 2, -1, -1):
        check_deadline()
        masses[i] += share[i] * masses[i + 1]
    return np.sum(masses.real * weight, axis=-1).T


def _grids(
    diffusion: Diffusion, high: float, start: Start, times: Array, scale: float
) -> tuple[Array, list[Chain]]:
    """The times as an array, and all grids; refused where a number is out of its range."""
    times = np.asarray(times, dtype=float)
    if times.ndim != 1 or not np.all(np.isfinite(times) & (times > 0)):
        raise HdicaError("times: they must be a list of finite numbers above 0")
    if not (0 < scale < math.inf and 0 < high < math.inf):
        raise HdicaError(f"threshold: {high} with scale {scale} is not allowed (finite, above 0)")
    if not callable(start) and not 0 <= start < high:
        raise HdicaError(f"start: {start} is not allowed (from 0 to below the threshold {high})")
    return times, [chain(diffusion, high, start, scale, _CELLS * 2**k) for k in range(_LEVELS)]


def survival(
    diffusion: Diffusion, high: float, start: Start, times: Array, *, scale: float
) -> tuple[Array, Array]:
    """Probability that |X| has not reached ``high`` at times above 0, and its error.

    For an odd drift and an even variance, from |X| at the start or its distribution function;
    ``scale`` is the length within which cells are even: where the diffusion does something. The
    error is estimated from the grids and absolute, 1e-9 at least; both are of the shape of the
    times.
    """
    times, grids = _grids(diffusion, high, start, times, scale)
    levels = [_masses(grid, times).sum(axis=1) for grid in grids]
    values, error = romberg(np.array(levels))
    return np.clip(values, 0.0, 1.0), np.maximum(error, _INVERSION)


def density(
    diffusion: Diffusion, high: float, start: Start, times: Array, points: Array, *, scale: float
) -> tuple[Array, Array]:
    """Density p(x, t) of X where it has not yet stopped, for a start with independent sign.

    At points x in (-high, high), shape (T, points), with errors; the integral of the values is the
    :func:`survival`, whose arguments the others are.
    """
    from scipy.interpolate import CubicSpline

    times, grids = _grids(diffusion, high, start, times, scale)
    where = np.abs(np.asarray(points, dtype=float))
    if not np.all(where < high):
        raise HdicaError(f"points: they must lie between -{high:g} and {high:g}")
    levels = []
    for grid in grids:
        heights = _masses(grid, times) / grid.widths / 2
        # In the even coordinate of the cells, mirrored at 0 and at 0 where it stops.
        full = np.concatenate([heights, np.zeros((times.size, 1))], axis=1)
        x = np.arcsinh(np.append(grid.nodes, high) / scale)
        spline = CubicSpline(x, full, axis=1, bc_type=((1, np.zeros(times.size)), "not-a-knot"))
        levels.append(spline(np.arcsinh(where / scale)))
    return romberg(np.array(levels))


def _moved(diffusion: Diffusion, x: Array, step: float, noise: Array) -> Array:
    """One step of Platen's explicit scheme of weak order 2 (Kloeden and Platen 1992, 15.1.1).

    For a constant variance it is Heun's method, of strong order 1.
    """
    b, spread = diffusion.drift(x), np.sqrt(diffusion.variance(x))
    moved, kick = x + b * step, spread * math.sqrt(step)
    plus, minus = (np.sqrt(diffusion.variance(moved + s * kick)) for s in (1.0, -1.0))
    slope = diffusion.drift(moved + spread * noise)
    return (
        x
        + (slope + b) * step / 2
        + (plus + minus + 2 * spread) * noise / 4
        + (plus - minus) * (noise**2 - step) / (4 * math.sqrt(step))
    )


def paths(
    diffusion: Diffusion,
    start: Array,
    times: Array,
    step: float | Callable[[Array], float],
    rng: np.random.Generator,
    bound: float = math.inf,
) -> Array:
    """Values of independent paths at given times, of weak order 2 in the step; shape (T, ...).

    ``start`` are values at time 0, of any shape: entries of a matrix are independent paths. Times
    increase and may begin with 0. ``step`` is the longest step, or a function that gives it from
    the values of the paths below ``bound``, the size at which a path stays for good. The same state
    of ``rng`` gives the same paths. Values are NaN or infinite after an explosion.
    """
    if not callable(step) and not 0 < step < math.inf:
        raise HdicaError(f"step: {step} is not allowed (a finite number above 0)")
    if times.size and not (times[0] >= 0 and np.all(np.diff(times) > 0)):
        raise HdicaError("times: they must increase and begin at 0 or later")
    x, now = np.asarray(start, dtype=float), 0.0
    values = np.empty((times.size, *x.shape))
    for k, time in enumerate(times.tolist()):
        while now < time:
            check_deadline()
            free = np.abs(x) < bound
            if not free.any():
                break
            longest = step(x[free]) if callable(step) else step
            # What is left is cut evenly, so that no step is a scrap.
            h = (time - now) / math.ceil((time - now) / longest)
            noise = math.sqrt(h) * rng.standard_normal(x.shape)
            with np.errstate(all="ignore"):
                moved = _moved(diffusion, x, h, noise)
            x = np.where(free | np.isnan(x), np.clip(moved, -bound, bound), x)
            now = time if h >= time - now else now + h
        values[k], now = x, time
    return values
