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

Adaptive signs sigma_i = sign(m_i) follow a running mean m_i of y_i phi(y_i) - phi'(y_i) whose rate
at step k is the larger of 1/(k + 1) and eta. On t = k/n it averages over so many samples that

    dm/dt = max(1/t, mu) (g(R) - m),  g_i(R) = <y_i phi(y_i) - phi'(y_i)>,  m(0) = g(R0).

While the rate is 1/t, m = S/t with dS/dt = g(R). Across m_i = 0 the rate of m_i is g_i(R), whatever
sigma_i is: the mean passes through and never slides along it. A row R_i = 0 has g_i = 0 and no
sign; where <phi(z)> = 0 it stays, and needs none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.limits.averages import expectations
from hdica.limits.numerics.series import scaled
from hdica.limits.numerics.solvers import MOST, integrate
from hdica.limits.overlap.drift import CONTROL, REFINED, Drift, coarser
from hdica.limits.overlap.drift import solve as solve_overlap
from hdica.limits.overlap.nonlinear import projected_drift
from hdica.process.progress import check_deadline
from hdica.systems.hebbian_ica import averages
from hdica.systems.hebbian_ica.averages import Array, Numbers
from hdica.systems.hebbian_ica.fields import STILL, Motion

Parts = Callable[[Numbers], tuple[Numbers, Numbers]]
_TINY, _STEP = 1e-30, 1e-4
_TOLERANCES, _ROUGHER = (averages.FINE, 1e-9, 1e-7, 1e-5, 1e-4), 100.0


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
        return mu * learning + mu**2 * loss


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
        flow = projected_drift(expectations.averages(phi, laws[0]), lambda: None)
        flow = replace(flow, learning=scaled(flow.learning, -float(signs[0])))
    if exact:
        fine = rough = _parts(signs, averages.mean_function(phi, laws))
    elif flow is not None:
        learning, loss = flow.learning, flow.loss
        fine = rough = lambda r: (learning(r), loss(r))
    else:
        fine, rough = _approximate(signs, phi, laws)
    return Field(signs, phi, laws, fine, rough, exact, flow)


def _approximate(signs: Array, phi: Formula, laws: tuple[Source, ...]) -> tuple[Parts, Parts]:
    """Both orders by two quadratures that share no node, as fine as the number of points allows."""
    for tolerance in _TOLERANCES:
        try:
            fine = averages.mean_function(phi, laws, tolerance)
            break
        except averages.TooManyPoints:
            if tolerance == _TOLERANCES[-1]:
                raise
    looser = min(1e-3, max(averages.COARSE, _ROUGHER * tolerance))
    return _parts(signs, fine), _parts(signs, averages.mean_function(phi, laws, looser, False))


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
    return np.sum(a[:, :, None] * b[None], axis=1)


def solve(field: Field, schedule: Schedule, r0: Array, times: Array) -> Path:
    """Integrate (17) from R, shape (K, M), anew from jumps of mu(t); R = 0 for a random start."""
    if field.scalar is not None:
        path = solve_overlap(field.scalar, schedule, float(r0[0, 0]), 0.0, times)
        shape = (times.size, 1, 1)
        return Path(*(v.reshape(shape) for v in (path.q, path.error, path.control)))

    def march(tolerance: float, rough: bool, factor: float) -> tuple[Array, float]:
        parts = field.rough if rough else field.parts

        def rate(r: Array, mu: float) -> Array:
            learning, loss = parts(r)
            return factor * (mu * learning + mu**2 * loss)

        return integrate(rate, schedule, r0, times, tolerance)

    return _compared(march)


def _compared(march: Callable[[float, bool, float], tuple[Array, float]]) -> Path:
    """Runs ``march(tolerance, rough, factor)``: refined, coarser with rough averages, and wrong."""
    fine, close = march(REFINED, False, 1.0)
    step = coarser(close)
    coarse, wrong = (march(step, True, factor)[0] for factor in (1.0, CONTROL))
    return Path(fine, np.abs(fine - coarse) + close, wrong)


def part_jacobians(field: Field, r: Array, rough: bool = False) -> tuple[Array, Array]:
    """dL_ij/dR_kl and dD_ij/dR_kl at ``[i, j, k, l]``, both of shape (K, M, K, M).

    Of polynomials by a complex step (Squire and Trapp 1998), to rounding. Else by central
    differences with one Richardson extrapolation, inaccurate on the boundary of the overlaps; if
    ``rough``, a plain difference of the coarser quadrature (about 1e-7).
    """
    learning, loss = np.empty((2, *r.shape, *r.shape))
    # How far an entry may move before I - R R' stops being positive.
    room = max(1.0 - np.linalg.svd(r, compute_uv=False)[0], 1e-9)
    step = 0.0 if field.exact else min(_STEP, room / 4)
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
    return mu * learning + mu**2 * loss


def _central(parts: Parts, r: Array, change: Array, step: float) -> Array:
    ahead, behind = np.array(parts(r + change)), np.array(parts(r - change))
    return (ahead - behind) / (2 * step)


def as_matrix(tensor: Array) -> Array:
    """A tensor (K, M, K, M) as a matrix (KM, KM)."""
    size = tensor.shape[0] * tensor.shape[1]
    return tensor.reshape(size, size)


def eigenvalues(field: Field, r: Array, mu: float) -> NDArray[np.complex128]:
    """Eigenvalues of the Jacobian, by increasing real part, shape (KM,)."""
    values = np.linalg.eigvals(as_matrix(jacobian(field, r, mu))).astype(complex)
    return values[np.lexsort((values.imag, values.real))]


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
        field = _field(signs, self.phi, self.sources)
        parts, alone = (field.rough, field.scalar) if rough else (field.parts, None)

        def rate(r: Array, mu: float) -> Array:
            learning, loss = parts(r)
            if alone is not None:
                # The series of K = M = 1, off by as much as they may be.
                learning, loss = learning + alone.learning_error, loss + alone.loss_error
            flow = factor * (mu * learning + mu**2 / self.batch * loss)
            return flow - self.motion.drift * r

        return rate


@lru_cache(maxsize=64)
def _field(signs: tuple[float, ...], phi: Formula, sources: tuple[Source, ...]) -> Field:
    return make_field(signs, phi, sources)


def pieces(breaks: Array, end: float) -> Iterator[tuple[float, float]]:
    """Intervals between breaks inside (0, end)."""
    edges = [0.0, *sorted({float(b) for b in breaks if 0 < b < end}), end]
    return pairwise(edges)


def left_at(motion: Motion, time: float) -> float:
    """What a jump at a time leaves of R: 1 where there is none."""
    return dict(zip(motion.times, motion.left, strict=True)).get(time, 1.0)


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
            clock = problem.schedule.after(low)
            states, close = integrate(rate, clock, now, wanted, tolerance)
            path[inside] = states[:-1]
            now, used = states[-1] * left_at(problem.motion, high), max(used, close)
        return path, used

    return _compared(march)


Gain = Callable[[Array], Array]
UNDECIDED = 1e-9
"""A mean smaller than this in size at t = 0 has no sign that could be trusted."""
MOST_SWITCHES = 1000


def gain(phi: Formula, sources: tuple[Source, ...], fine: bool = True) -> Gain:
    """g_i(R) = <y_i phi(y_i) - phi'(y_i)>, shape (K,), as a function of R, shape (K, M).

    Exact for polynomials. Jumps of phi do not belong to phi', as the rule takes it.
    """
    tolerance, kinks, slope = averages.FINE if fine else averages.COARSE, phi.kinks, phi.derivative
    order = 0 if phi.coefficients is None else phi.coefficients.size
    rules, normal = averages.sample_rules(phi, sources, order, tolerance, fine)
    points, weights = averages.product(
        rules, averages.MOST_PAIRS, 120 if kinks else normal.points.size
    )

    def one(row: Array) -> float:
        if not np.any(row):
            return 0.0
        inside = np.sum(points * row, axis=1)
        scale = math.sqrt(max(0.0, 1.0 - np.sum(row * row)))
        g, w = normal.points[None], normal.weights[None]
        if kinks:
            g, w = averages.normal_panels(kinks, inside, scale, 12 if fine else 9)
        y = inside[:, None] + scale * g
        value = y * phi.value(y) - slope.value(y)
        return np.sum(weights * np.sum(w * value, axis=1))

    return lambda r: np.array([one(row) for row in r])


def check_start(phi: Formula, r0: Array, g: Gain) -> Array:
    """Signs at t = 0, shape (K,), 0 for rows that stay at R_i = 0; refused if they are random."""
    gains = g(r0)
    for i, row in enumerate(r0):
        if np.any(row):
            if not abs(gains[i]) > UNDECIDED:
                raise HdicaError(
                    f"sigma = 'adaptive' is not allowed for the limit (<y f(y) - f'(y)> of "
                    f"projection {i} is {gains[i]:.1e} at t = 0: noise chooses the sign)",
                    ["sigma"],
                )
        elif np.any(r0) and not phi.is_odd:
            raise HdicaError(
                f"sigma = 'adaptive' is not allowed for the limit (projection {i} starts at R = 0, "
                "where noise chooses its sign, and f is not odd, so that the others feel it)",
                ["sigma"],
            )
    return np.sign(gains)


@dataclass(eq=False)
class _March:
    """One run: R and the memory, S while ``plain`` and m afterwards, with the signs it has."""

    problem: Problem
    g: Gain
    rough: bool
    factor: float
    tolerance: float
    signs: Array
    memory: Array
    plain: bool = True
    evaluations: int = 0
    switches: list[tuple[float, int]] = field(default_factory=list)

    def mu(self, t: float, low: float, high: float) -> float:
        """The step size inside a piece."""
        inside, schedule = min(max(t, low), high - 1e-12 * max(1.0, high)), self.problem.schedule
        return schedule.constant or float(schedule.value(np.array(inside)))

    def piece(self, r: Array, low: float, high: float, times: Array) -> tuple[Array, Array]:
        """R at times in (low, high], and at ``high``; the signs switch on the way."""
        states = np.empty((times.size, *r.shape))
        # While the rate of the mean is 1/t, its memory is plain.
        self._clock(low * self.mu(low, low, high) < 1.0, low)
        while low < high:
            solved, stop = self._until_event(r, low, high)
            inside = (times > low) & (times <= stop)
            if np.any(inside):
                states[inside] = solved.sol(times[inside])[: r.size].T.reshape(-1, *r.shape)
            r, self.memory = solved.y[: r.size, -1].reshape(r.shape), solved.y[r.size :, -1].copy()
            low = stop
            if solved.status == 1:
                self._switch(solved.t_events, low)
        return states, r

    def _clock(self, plain: bool, t: float) -> None:
        if plain != self.plain:
            self.memory = self.memory * t if plain else self.memory / t
            self.plain = plain

    def _switch(self, events: list[Array], t: float) -> None:
        """A mean went through zero, or its rate became the other of the two."""
        if events[-1].size:
            self._clock(not self.plain, t)
        for i, hit in enumerate(events[:-1]):
            if hit.size:
                self.signs[i], self.memory[i] = -self.signs[i], 0.0
                self.switches.append((t, i))
        if len(self.switches) > MOST_SWITCHES:
            raise HdicaError(
                f"the limit of sigma = 'adaptive' changes its signs more than {MOST_SWITCHES} "
                f"times until t = {t:.6g} (it cannot be followed further: choose an earlier time)"
            )

    def _until_event(self, r: Array, low: float, high: float):  # type: ignore[no-untyped-def]
        """Solve up to the first switch of a sign or of the clock, or to the end."""
        from scipy.integrate import solve_ivp

        rate = self.problem.rate(tuple(self.signs.tolist()), self.rough, self.factor)

        def flow(t: float, y: Array) -> Array:
            check_deadline()
            self.evaluations += 1
            if self.evaluations > MOST:
                raise HdicaError(
                    f"the limit of sigma = 'adaptive' could not be followed beyond t = {t:.3g} "
                    "(choose a smaller step size)"
                )
            mu, now, memory = self.mu(t, low, high), y[: r.size].reshape(r.shape), y[r.size :]
            moved = self.g(now) if self.plain else mu * (self.g(now) - memory)
            return np.concatenate([rate(now, mu).ravel(), moved])

        def passing(i: int) -> Callable[[float, Array], float]:
            return lambda t, y: self.signs[i] * y[r.size + i] if self.signs[i] else 1.0

        def clock(t: float, y: Array) -> float:
            gap = 1.0 - t * self.mu(t, low, high)
            return gap if self.plain else -gap

        events = [*map(passing, range(len(r))), clock]
        for event in events:
            event.terminal, event.direction = True, -1  # type: ignore[attr-defined]
        begin, near = np.concatenate([r.ravel(), self.memory]), self.tolerance
        options = {"method": "DOP853", "rtol": near, "atol": near, "dense_output": True}
        solved = solve_ivp(flow, (low, high), begin, events=events, **options)
        if not solved.success:
            raise HdicaError(f"the limit could not be integrated beyond t = {solved.t[-1]:.6g}")
        return solved, float(solved.t[-1])


def solve_adaptive(problem: Problem, times: Array) -> tuple[Path, list[tuple[float, int]]]:
    """The limit at increasing times (T,), and when the sign of which projection switched."""
    fine, rough = (gain(problem.phi, problem.sources, one) for one in (True, False))
    signs, runs = check_start(problem.phi, problem.start, fine), list[_March]()

    def march(tolerance: float, roughly: bool, factor: float) -> tuple[Array, float]:
        law = problem, rough if roughly else fine, roughly, factor, tolerance
        run = _March(*law, signs.copy(), np.zeros(signs.size))
        runs.append(run)
        now, states = problem.start, np.empty((times.size, *problem.start.shape))
        states[times <= 0] = now
        breaks = np.array([*problem.schedule.breaks, *problem.motion.times])
        for low, high in pieces(breaks, float(times[-1])):
            inside = (times > low) & (times <= high)
            if high > low:
                states[inside], now = run.piece(now, low, high, times[inside])
            now = now * left_at(problem.motion, high)
        return states, tolerance

    return _compared(march), runs[0].switches
