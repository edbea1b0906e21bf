"""The limit (17) of Hebbian ICA: dR/dt = mu L(R) + mu^2 D(R) for n -> infinity, eta = mu/n.

M. Rattray, "Stochastic trapping in a solvable model of on-line independent component analysis",
Neural Computation 14 (2002), with sigma on the other side of <y phi'> than printed:

    L = Sigma <phi s'> - (Sigma <phi y'> + <y phi'> Sigma) R / 2,
    D = -Sigma <phi phi'> Sigma R / 2.

It holds for every alpha in (0, 1), not only for small ones: alpha cancels.

With batches, signs that jump and sources that move, the mean over m samples divides what comes of
the square of a step by m; sources that drift turn away from W at their rate:

    dR/dt = mu L(R) + (mu^2/m) D(R) - drift R,

with the Sigma of the present time; a jump by a share s leaves (1 - s) R. Of all samples at once,
m infinite, nothing is left but the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.formula import Formula
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import averages
from hdica.limits.numerics.series import scaled
from hdica.limits.numerics.solvers import integrate
from hdica.limits.overlap.drift import CONTROL, REFINED, Drift, coarser
from hdica.limits.overlap.drift import solve as solve_overlap
from hdica.limits.overlap.nonlinear import projected_drift
from hdica.systems.hebbian_ica.averages import (
    COARSE,
    FINE,
    Array,
    Numbers,
    TooManyPoints,
    mean_function,
)
from hdica.systems.hebbian_ica.fields import STILL, Motion

Parts = Callable[[Numbers], tuple[Numbers, Numbers]]
_TINY, _STEP = 1e-30, 1e-4
_TOLERANCES, _ROUGHER = (FINE, 1e-9, 1e-7, 1e-5, 1e-4), 100.0


@dataclass(frozen=True, eq=False)
class Field:
    """Right-hand side of (17), in the two orders of mu."""

    sigma: Array  # signs of the projections, shape (K,)
    phi: Formula
    sources: tuple[Source, ...]
    parts: Parts  # L and D, both of shape (K, M), at R of shape (K, M)
    rough: Parts  # with coarser quadrature: what it changes is the error of ``parts``
    exact: bool  # both are polynomials of R, found without quadrature; R may be complex
    scalar: Drift | None = None  # of K = M = 1 with its errors: one overlap, as in online ICA

    @property
    def shape(self) -> tuple[int, int]:
        """Projections K and sources M."""
        return self.sigma.size, len(self.sources)

    def at(self, r: Numbers, mu: float) -> Numbers:
        """dR/dt, shape (K, M), for a constant mu."""
        learning, loss = self.parts(r)
        return np.asarray(mu * learning + mu**2 * loss)


@dataclass(frozen=True)
class Path:
    """The limit at the asked times, each array of shape (T, K, M)."""

    r: Array
    error: Array  # difference to a run of coarser steps and quadrature, plus the finer tolerance
    control: Array  # with the drift wrong by 2 %: what a comparison must be able to reject


def make_field(sigma: Sequence[float], phi: Formula, sources: Sequence[Source]) -> Field:
    """The field of K signs, each 1 or -1, and M laws."""
    signs, laws = np.asarray(sigma, dtype=float), tuple(sources)
    exact, flow = phi.coefficients is not None, None
    if signs.size == len(laws) == 1:
        flow = projected_drift(averages(phi, laws[0]), lambda: None)
        flow = replace(flow, learning=scaled(flow.learning, -float(signs[0])))
    if exact:
        fine = rough = _parts(signs, mean_function(phi, laws))
    elif flow is not None:
        fine = rough = _alone(flow)
    else:
        fine, rough = _approximate(signs, phi, laws)
    return Field(signs, phi, laws, fine, rough, exact, flow)


def _approximate(signs: Array, phi: Formula, laws: tuple[Source, ...]) -> tuple[Parts, Parts]:
    """Both orders by two quadratures that share no node, as fine as the number of points allows."""
    for tolerance in _TOLERANCES:
        try:
            fine = mean_function(phi, laws, tolerance)
            break
        except TooManyPoints:
            if tolerance == _TOLERANCES[-1]:
                raise
    rough = mean_function(phi, laws, min(1e-3, max(COARSE, _ROUGHER * tolerance)), False)
    return _parts(signs, fine), _parts(signs, rough)


def _alone(flow: Drift) -> Parts:
    def parts(r: Numbers) -> tuple[Numbers, Numbers]:
        return flow.learning(r), flow.loss(r)

    return parts


def _parts(sigma: Array, average: Callable[[Numbers], tuple[Numbers, Numbers, Numbers]]) -> Parts:
    def parts(r: Numbers) -> tuple[Numbers, Numbers]:
        phi_s, phi_y, phi_phi = average(r)
        turned = sigma[:, None] * phi_y
        drag = (turned + turned.T) / 2
        push = sigma[:, None] * phi_phi * sigma / 2
        return sigma[:, None] * phi_s - product_of(drag, r), -product_of(push, r)

    return parts


def product_of(a: Numbers, b: Numbers) -> Numbers:
    """A matrix product whose bits are the same everywhere."""
    # Not a @ b: sums of BLAS may follow the threads of the machine.
    return np.asarray(np.sum(a[:, :, None] * b[None], axis=1))


def solve(field: Field, schedule: Schedule, r0: Array, times: Array) -> Path:
    """Integrate (17) from R of shape (K, M) with error control, restarting at the jumps of mu(t).

    A random start is R = 0, where the limit stays.
    """
    if field.scalar is not None:
        path = solve_overlap(field.scalar, schedule, float(r0[0, 0]), 0.0, times)
        shape = (times.size, 1, 1)
        return Path(*(v.reshape(shape) for v in (path.q, path.error, path.control)))

    def rough(r: Array, mu: float) -> Array:
        learning, loss = field.rough(r)
        return np.asarray(mu * learning + mu**2 * loss)

    fine, close = integrate(field.at, schedule, r0, times, REFINED)
    step = coarser(close)
    coarse, _ = integrate(rough, schedule, r0, times, step)
    wrong, _ = integrate(lambda r, mu: CONTROL * rough(r, mu), schedule, r0, times, step)
    return Path(fine, np.abs(fine - coarse) + close, wrong)


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
    values = np.linalg.eigvals(as_matrix(jacobian(field, r, mu))).astype(complex)
    return np.asarray(values[np.lexsort((values.imag, values.real))])


Rate = Callable[[Array, float], Array]


@dataclass(frozen=True, eq=False)
class Problem:
    """A limit whose right-hand side changes with time."""

    phi: Formula
    sources: tuple[Source, ...]
    schedule: Schedule
    start: Array  # R at t = 0, shape (K, M)
    batch: float = 1.0  # samples of an update, infinite for all of them
    motion: Motion = STILL

    def rate(self, signs: tuple[float, ...], rough: bool = False, factor: float = 1.0) -> Rate:
        """dR/dt as a function of R and mu for these signs, ``factor`` times what (17) says."""
        parts = _signed_parts(signs, self.phi, self.sources, rough)

        def rate(r: Array, mu: float) -> Array:
            learning, loss = parts(r)
            flow = factor * (mu * learning + mu**2 / self.batch * loss)
            return np.asarray(flow - self.motion.drift * r)

        return rate


@lru_cache(maxsize=64)
def _field(signs: tuple[float, ...], phi: Formula, sources: tuple[Source, ...]) -> Field:
    return make_field(signs, phi, sources)


def _signed_parts(
    signs: tuple[float, ...], phi: Formula, sources: tuple[Source, ...], rough: bool
) -> Parts:
    """L and D; a rough one of K = M = 1 is off by as much as its series may be."""
    field = _field(signs, phi, sources)
    if not rough:
        return field.parts
    alone = field.scalar
    if alone is None:
        return field.rough

    def shifted(r: Numbers) -> tuple[Numbers, Numbers]:
        learning, loss = field.parts(r)
        return learning + alone.learning_error, loss + alone.loss_error

    return shifted


def pieces(breaks: Array, end: float) -> Iterator[tuple[float, float]]:
    """Intervals between breaks inside (0, end)."""
    edges = [0.0, *sorted({float(b) for b in breaks if 0 < b < end}), end]
    return pairwise(edges)


def from_time(schedule: Schedule, low: float) -> Schedule:
    """The same step size on a clock that starts at ``low``."""
    breaks = tuple(b - low for b in schedule.breaks if b > low)
    return Schedule(lambda t: schedule.value(t + low), schedule.constant, breaks)


def left_at(motion: Motion, time: float) -> float:
    """What a jump at a time leaves of R: 1 where there is none."""
    shares = [left for t, left in zip(motion.times, motion.left, strict=True) if t == time]
    return shares[0] if shares else 1.0


def solve_steps(problem: Problem, jumps: Array, signs: Array, times: Array) -> Path:
    """The limit with signs (J + 1, K) that jump at J times, at increasing times (T,)."""

    def march(tolerance: float, rough: bool, factor: float) -> tuple[Array, float]:
        now, used = problem.start, tolerance
        path = np.empty((times.size, *now.shape))
        path[times <= 0] = now
        breaks = np.concatenate([jumps, problem.motion.times])
        for low, high in pieces(breaks, float(times[-1])):
            row = signs[np.searchsorted(jumps, low, side="right")]
            rate = problem.rate(tuple(row.tolist()), rough, factor)
            inside = (times > low) & (times <= high)
            wanted = np.append(times[inside], high) - low
            begin = from_time(problem.schedule, low)
            states, close = integrate(rate, begin, now, wanted, tolerance)
            path[inside] = states[:-1]
            now, used = states[-1] * left_at(problem.motion, high), max(used, close)
        return path, used

    fine, close = march(REFINED, False, 1.0)
    step = coarser(close)
    coarse, _ = march(step, True, 1.0)
    wrong, _ = march(step, True, CONTROL)
    return Path(fine, np.abs(fine - coarse) + close, wrong)
