"""The limit of adaptive signs: an equation that switches where a running mean changes its sign.

The rule takes sigma_i = sign(m_i), with a running mean m_i of y_i phi(y_i) - phi'(y_i) whose rate
at step k is the larger of 1/(k + 1) and eta. On t = k/n it averages over so many samples that

    dm/dt = max(1/t, mu) (g(R) - m),  g_i(R) = <y_i phi(y_i) - phi'(y_i)>,  m(0) = g(R0),

and R follows (17) with Sigma = sign(m). While the rate is 1/t, m = S/t with dS/dt = g(R). Across
m_i = 0 the rate of m_i is g_i(R), whatever sigma_i is: the mean passes through and never slides
along it. A row R_i = 0 has g_i = 0 and no sign; where <phi(z)> = 0 it stays, and needs none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.quadrature import gaussian_nodes
from hdica.ingredients.sources import Source
from hdica.limits.numerics.solvers import MOST
from hdica.limits.overlap.drift import CONTROL, REFINED, TOLERANCE
from hdica.process.progress import check_deadline
from hdica.systems.hebbian_ica.averages import (
    COARSE,
    FINE,
    MOST_PAIRS,
    Array,
    gauss,
    normal_panels,
    normal_rule,
    product,
    source_rule,
)
from hdica.systems.hebbian_ica.ode import Path, Problem, left_at, pieces

Gain = Callable[[Array], Array]
UNDECIDED = 1e-9
"""A mean smaller than this in size at t = 0 has no sign that could be trusted."""
MOST_SWITCHES = 1000


def gain(phi: Formula, sources: tuple[Source, ...], fine: bool = True) -> Gain:
    """g_i(R) = <y_i phi(y_i) - phi'(y_i)>, shape (K,), as a function of R, shape (K, M).

    Exact for polynomials. Jumps of phi do not belong to phi', as the rule takes it.
    """
    tolerance, kinks, slope = FINE if fine else COARSE, phi.kinks, phi.derivative
    if phi.coefficients is not None:
        order = phi.coefficients.size
        rules, normal = [gauss(s.nodes, order) for s in sources], gaussian_nodes(order)
    else:
        rules = [source_rule(phi, source, tolerance, fine) for source in sources]
        normal = normal_rule(phi, tolerance, fine)
    points, weights = product(rules, MOST_PAIRS, 120 if kinks else normal.points.size)

    def one(row: Array) -> float:
        if not np.any(row):
            return 0.0
        inside = np.sum(points * row, axis=1)
        scale = math.sqrt(max(0.0, 1.0 - float(np.sum(row * row))))
        g, w = normal.points[None], normal.weights[None]
        if kinks:
            g, w = normal_panels(kinks, inside, scale, 12 if fine else 9)
        y = inside[:, None] + scale * g
        value = y * phi.value(y) - slope.value(y)
        return float(np.sum(weights * np.sum(w * value, axis=1)))

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
        inside = min(max(t, low), high - 1e-12 * max(1.0, high))
        return self.problem.schedule.constant or float(
            self.problem.schedule.value(np.array(inside))
        )

    def piece(self, r: Array, low: float, high: float, times: Array) -> tuple[Array, Array]:
        """R at times in (low, high], and at ``high``; the signs switch on the way."""
        states = np.empty((times.size, *r.shape))
        self._clock(self.plain_at(low, low, high), low)
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

    def plain_at(self, t: float, low: float, high: float) -> bool:
        """Whether the rate of the mean is 1/t."""
        return t * self.mu(t, low, high) < 1.0

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

        return self._solved(solve_ivp, flow, r, low, high)

    def _solved(self, solve_ivp, flow, r, low, high):  # type: ignore[no-untyped-def]
        def passing(i: int) -> Callable[[float, Array], float]:
            return lambda t, y: self.signs[i] * y[r.size + i] if self.signs[i] else 1.0

        def clock(t: float, y: Array) -> float:
            gap = 1.0 - t * self.mu(t, low, high)
            return gap if self.plain else -gap

        events = [*map(passing, range(len(r))), clock]
        for event in events:
            event.terminal, event.direction = True, -1  # type: ignore[attr-defined]
        solved = solve_ivp(
            flow,
            (low, high),
            np.concatenate([r.ravel(), self.memory]),
            method="DOP853",
            rtol=self.tolerance,
            atol=self.tolerance,
            dense_output=True,
            events=events,
        )
        if not solved.success:
            raise HdicaError(f"the limit could not be integrated beyond t = {solved.t[-1]:.6g}")
        return solved, float(solved.t[-1])


def solve_adaptive(problem: Problem, times: Array) -> tuple[Path, list[tuple[float, int]]]:
    """The limit at increasing times (T,), and when the sign of which projection switched."""
    fine, rough = (gain(problem.phi, problem.sources, one) for one in (True, False))
    signs = check_start(problem.phi, problem.start, fine)

    def march(g: Gain, roughly: bool, factor: float, tolerance: float) -> tuple[Array, _March]:
        run = _March(problem, g, roughly, factor, tolerance, signs.copy(), np.zeros(signs.size))
        now, states = problem.start, np.empty((times.size, *problem.start.shape))
        states[times <= 0] = now
        breaks = np.array([*problem.schedule.breaks, *problem.motion.times])
        for low, high in pieces(breaks, float(times[-1])):
            inside = (times > low) & (times <= high)
            if high > low:
                states[inside], now = run.piece(now, low, high, times[inside])
            now = now * left_at(problem.motion, high)
        return states, run

    exact, run = march(fine, False, 1.0, REFINED)
    coarse, _ = march(rough, True, 1.0, TOLERANCE)
    wrong, _ = march(rough, True, CONTROL, TOLERANCE)
    return Path(exact, np.abs(exact - coarse) + REFINED, wrong), run.switches
