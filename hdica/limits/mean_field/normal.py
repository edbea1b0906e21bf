"""The limit without a kink: an Ornstein-Uhlenbeck process given the feature.

For phi = 0 and phi = beta*x, which E[x^2] = 1 makes inert, the drift b xi - d x is linear, with
d = g + b Q. From a normal start the estimate stays normal,

    x_t | xi = A x_0 + B xi + sqrt(V) N,   A' = -d A,   B' = -d B + b,   V' = -2 d V + 2 g,

and Q = A Q_0 + B closes the equations: three numbers instead of a density.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import dot, panel_nodes
from hdica.limits.mean_field.density.grid import Density
from hdica.limits.mean_field.density.solve import DensityPath
from hdica.limits.mean_field.density.state import Functional
from hdica.limits.mean_field.family import MeanField
from hdica.limits.numerics.solvers import Integrated, integrate

VERSION = 1
REFINED = 1e-12
"""Tolerance of a step; that of the run with which it is compared is a hundredfold."""
_FARTHEST, _TAIL = 9.0, 7.2
"""Standard deviations beyond which nothing is integrated, and beyond which lies 1e-12."""
_PANELS = 36


@dataclass(frozen=True, eq=False)
class NormalDensity(Density):
    """P(x | xi) normal at each node of the prior, ``means`` of shape (nodes,), one variance."""

    means: Array
    variance: float

    @property
    def _sd(self) -> float:
        return float(np.sqrt(max(self.variance, 1e-300)))

    def _z(self, x: Array) -> Array:
        return (np.array(x, dtype=float, ndmin=1) - self.means[:, None]) / self._sd

    def at(self, x: Array) -> Array:
        """Density at points ``x``, shape (nodes, len(x))."""
        with np.errstate(over="ignore"):  # far from a point mass
            return np.exp(-(self._z(x) ** 2) / 2) / (np.sqrt(2 * np.pi) * self._sd)

    def cdf(self, edges: Array) -> Array:
        """Distribution function at ``edges``, shape (nodes, len(edges))."""
        from scipy.special import ndtr

        return ndtr(self._z(edges))

    def support(self) -> tuple[float, float]:
        """Points beyond which an entry of x lies with a probability below 1e-12."""
        reach = _TAIL * self._sd
        return float(self.means.min() - reach), float(self.means.max() + reach)

    def mean(self, h: Functional) -> float:
        """E[h(xi, x)]: panels of Gauss and Legendre between x = 0 and far out on both sides."""
        return self.mean_with_error(h)[0]

    def mean_with_error(self, h: Functional) -> tuple[float, float]:
        """The same, and twice its difference to the one with panels twice as wide, as its error."""
        fine, coarse = (self._mean(h, panels) for panels in (_PANELS, _PANELS // 2))
        return fine, 2 * abs(fine - coarse) + 1e-14 * (1 + abs(fine))

    def _mean(self, h: Functional, panels: int) -> float:
        total = 0.0
        for xi, m, weight in zip(self.xi.tolist(), self.means.tolist(), self.weights, strict=True):
            # x = 0 is where formulas such as abs(x) have their kink.
            zero = float(np.clip(-m / self._sd, -_FARTHEST, _FARTHEST))
            edges = np.unique(np.append(np.linspace(-_FARTHEST, _FARTHEST, panels + 1), zero))
            z, dz = panel_nodes(edges, 8)
            values = np.broadcast_to(h(np.array(xi), m + self._sd * z), z.shape)
            total += weight * dot(values * np.exp(-z * z / 2), dz)
        return total / float(np.sqrt(2 * np.pi))


def _states(field: MeanField, times: Array, tolerance: float) -> Integrated:
    """A, B and V at the times, shape (T, 3), and the tolerance of a step."""
    q0 = field.q0

    def rate(state: Array, tau: float) -> Array:
        a, b, v = state.tolist()
        q = min(max(a * q0 + b, -1.0), 1.0)
        pull, spread = field.pull(q, tau), field.diffusion(q, tau)
        d = spread + pull * q
        return np.array([-d * a, -d * b + pull, -2 * d * v + 2 * spread])

    return integrate(rate, field.schedule, np.array([1.0, 0.0, 0.0]), times, tolerance)


def _law(field: MeanField, state: Array) -> NormalDensity:
    nodes, (a, b, v) = field.prior.nodes, state.tolist()
    mean, variance = field.start.conditional(nodes.points)
    means = a * mean + b * nodes.points
    return NormalDensity(*nodes, (), means, a * a * variance + v)


def solve(
    field: MeanField,
    times: Array,
    *,
    snapshots: Sequence[float] = (),
    functionals: Mapping[str, Functional] | None = None,
    tolerance: float = REFINED,
) -> DensityPath:
    """Solve the limit by the three numbers of its normal law, as of the density by cells.

    Wang and Lu 2017, (10)-(14); Wang and Lu 2016, (8)-(14). Parameters and results are those of
    :func:`hdica.limits.mean_field.density.solve.solve`; a regularizer that is not linear is
    refused. The error of Q is the difference to a run with a hundredfold tolerance, plus that
    tolerance.
    """
    beta, q0 = field.phi.slope_if_linear, field.q0
    if beta is None:
        raise HdicaError(
            f"the estimate is not normal for the regularizer {field.phi.text!r} (allowed: 0 and "
            "beta*x; method 'pde' takes any)"
        )
    times = np.asarray(times, dtype=float)
    states, close = _states(field, times, tolerance)
    rough, _ = _states(field, times, 100 * close)
    q, other = (rows[:, 0] * q0 + rows[:, 1] for rows in (states, rough))
    places = [(at, field.schedule.at(t)) for at, t in zip(q.tolist(), times, strict=True)]
    laws = [_law(field, state) for state in states]
    where = [np.argmin(np.abs(times - t)) for t in snapshots]
    means = {
        name: np.array([law.mean_with_error(h) for law in laws]).T
        for name, h in (functionals or {}).items()
    }
    (a, b, v), none = states.T, np.zeros(times.size)
    return DensityPath(
        q=q,
        r=np.full(times.size, beta),
        curvature=np.array([field.curvature(at, beta, tau) for at, tau in places]),
        pull=np.array([field.pull(at, tau) for at, tau in places]),
        q_error=np.abs(q - other) + close,
        r_error=none,
        functionals={name: mean for name, (mean, _) in means.items()},
        functional_errors={name: error for name, (_, error) in means.items()},
        mass_error=none,
        moment_error=np.abs(a * a + b * b + 2 * a * b * q0 + v - 1),
        multiplier_error=none,
        square=np.ones(times.size),
        square_error=none,
        densities=tuple(laws[k] for k in where),
    )
