"""The population loss of the reduced model, its slope, with their errors, and the flow on it.

For h of any law s = sqrt(gamma) a h + sqrt(1 - gamma a^2) N is what a filter of overlap a sees of
y = sqrt(gamma) h vt + zhat ("Reduce and Conquer", 2025, (4)), and

    L(a) = E G(s),    L'(a) = sqrt(gamma) E[h g(s)] - gamma a E[g'(s)],  g = G'.

The printed Lemma 5 has another formula: errata of the paper. With c_k = E G(N) He_k(N)

    L(a) = sum_k c_k/k! E[He_k(h)] (sqrt(gamma) a)^k.

E He_1(h) = E He_2(h) = 0 for every h of mean 0 and variance 1. The series ends where G is a
polynomial; else it diverges for laws with heavy tails, and is summed up to its least term.

The gradient flow is da/dt = +-L'(a)(1 - a^2). In z = ln a - ln(1 - a^2)/2, the logarithm of the
tangent a/sqrt(1 - a^2), it is dz/dt = +-L'(a)/a: no end is singular, and dt = a dz/L'(a) is
integrated by Gauss rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev, hermite_e

from hdica.errors import HdicaError
from hdica.ingredients.contrasts import Contrast
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import gauss_legendre
from hdica.ingredients.sources import Source
from hdica.limits.averages.double_average import Average, double_average, features

ORDERS = 24  # highest order of a series that does not end
_ROUNDING = 1e-15
_NOTHING = 1e-12


def hermite_mean(source: Source, k: int) -> float:
    """E He_k(h) of a standardised source; 0 for k = 1, 2 exactly, NaN where it does not exist."""
    if k in (1, 2) or (k % 2 and source.symmetric):
        return 0.0
    powers = hermite_e.herme2poly([0.0] * k + [1.0])
    moments = [source.moment(j) if p else 0.0 for j, p in enumerate(powers)]
    if not np.all(np.isfinite(moments)):
        return math.nan
    return math.fsum(p * m for p, m in zip(powers.tolist(), moments, strict=True))


@lru_cache(maxsize=128)
def contrast_coefficients(contrast: Contrast) -> tuple[float, ...]:
    """c_k/k! for k = 0, 1, ...: all of a polynomial, else up to :data:`ORDERS`."""
    powers = contrast.formula.coefficients
    if powers is not None:
        return tuple(hermite_e.poly2herme(powers).tolist())
    c = np.array([contrast.hermite(k) for k in range(ORDERS + 1)])
    factorials = np.array([math.factorial(k) for k in range(ORDERS + 1)], dtype=float)
    size = np.abs(c) / np.sqrt(factorials)
    # What is rounding only, such as the odd ones of an even G, would lead at small overlaps.
    c[size < _NOTHING * size.max()] = 0.0
    return tuple((c / factorials).tolist())


@dataclass(frozen=True)
class Series:
    """The loss in powers of Q = sqrt(gamma) a."""

    terms: tuple[float, ...]  # factors of Q^0, Q^1, ..., NaN from the first that does not exist on
    ends: bool  # whether these are all: G is a polynomial

    def value(self, q: Array) -> tuple[Array, Array]:
        """L at every Q and its error, infinite where the series does not say, shape of ``q``."""
        return self._sum(q, self.terms)

    def slope(self, q: Array) -> tuple[Array, Array]:
        """dL/dQ at every Q and its error, shape of ``q``."""
        return self._sum(q, tuple(k * term for k, term in enumerate(self.terms))[1:])

    def _sum(self, q: Array, terms: tuple[float, ...]) -> tuple[Array, Array]:
        exist = [t for t in terms if not math.isnan(t)]
        powers = q[..., None] ** np.arange(len(exist))
        parts = powers * np.array(exist)
        size = np.abs(parts)
        if self.ends:
            return parts.sum(axis=-1), _ROUNDING * size.sum(axis=-1)
        present = [k for k, t in enumerate(exist) if t != 0.0]
        if len(present) < 2 or len(exist) < len(terms):
            return np.full(q.shape, math.nan), np.full(q.shape, math.inf)
        last = np.array(present)[np.argmin(size[..., present], axis=-1)]
        # Terms up to the least one; it and those that follow are what is not exist.
        summed = np.arange(len(exist)) < last[..., None]
        left = np.take_along_axis(size, last[..., None], axis=-1)[..., 0]
        total = np.where(summed, parts, 0.0).sum(axis=-1)
        return total, 2 * left + _ROUNDING * np.where(summed, size, 0.0).sum(axis=-1)


@lru_cache(maxsize=256)
def series(contrast: Contrast, source: Source) -> Series:
    """The series of a loss; refused if G is a polynomial of which the source lacks a moment."""
    c = contrast_coefficients(contrast)
    means = [hermite_mean(source, k) if one else 0.0 for k, one in enumerate(c)]
    terms = tuple(one * mean for one, mean in zip(c, means, strict=True))
    ends = contrast.formula.coefficients is not None
    if ends and any(math.isnan(term) for term in terms):
        raise too_heavy(contrast, source)
    return Series(terms, ends)


def too_heavy(contrast: Contrast, source: Source) -> HdicaError:
    """The sentence for a loss that is infinite."""
    return HdicaError(
        f"contrast = {contrast.formula.text!r} is not allowed with the latent variable "
        f"{source.label} (an average of the loss is infinite: its tails are too heavy)",
        ["contrast", "latent"],
    )


def information_exponent(contrast: Contrast, source: Source) -> int | None:
    """Least k >= 1 with c_k E He_k(h) != 0, so that L(a) - L(0) ~ a^k: 4 for even G.

    None if there is none up to the order that is known (a normal latent variable, or one without
    the moment that decides).
    """
    terms, c = series(contrast, source).terms, contrast_coefficients(contrast)
    sizes = [math.sqrt(math.factorial(k)) for k in range(len(terms))]
    largest = max(abs(term) * size for term, size in zip(c, sizes, strict=True))
    for k in range(1, len(terms)):
        if math.isnan(terms[k]):
            return None
        if abs(terms[k]) * sizes[k] > _NOTHING * largest:
            return k
    return None


_INFINITE = 1e-9
_CLOSED = 4e-16  # rounding of the closed forms, relative


@dataclass(frozen=True)
class Values:
    """Loss, slope and their errors, arrays of one shape."""

    loss: Array
    slope: Array
    loss_error: Array
    slope_error: Array


@dataclass(frozen=True)
class Loss:
    """L(a) of a contrast, a law of h and a signal-to-noise ratio gamma in (0, 1]."""

    contrast: Contrast
    source: Source
    gamma: float

    @property
    def closed(self) -> bool:
        """Whether it has a closed form: -exp(-s^2/2) with random signs, or a polynomial G."""
        return self._lemma_5 or self.contrast.formula.coefficients is not None

    @property
    def _lemma_5(self) -> bool:
        return self.contrast.name == "exp" and self.source.label == "rademacher"

    def at(self, a: Array) -> Values:
        """Loss and slope at overlaps of any shape, from -1 to 1."""
        if self._lemma_5:
            return self._exponential(a)
        root = math.sqrt(self.gamma)
        terms = series(self.contrast, self.source)
        loss, loss_error = terms.value(root * a)
        slope, slope_error = terms.slope(root * a)
        values = Values(loss, root * slope, loss_error, root * slope_error)
        return values if terms.ends else self._refined(a, values)

    def _exponential(self, a: Array) -> Values:
        """Lemma 5 corrected: for G = -exp(-s^2/2) and h of random signs."""
        q = self.gamma * a * a
        decay = np.exp(-q / (2 * (2 - q)))
        loss = -((2 - q) ** -0.5) * decay
        slope = self.gamma**2 * a**3 * (2 - q) ** -2.5 * decay
        return Values(loss, slope, _CLOSED * np.abs(loss), 4 * _CLOSED * np.abs(slope))

    def _refined(self, a: Array, by_series: Values) -> Values:
        """By quadrature wherever that is better than the series."""
        fine = by_series.loss_error <= 1e-15 * (1 + np.abs(by_series.loss))
        fine &= by_series.slope_error <= 1e-14 * np.abs(by_series.slope)
        columns = [np.array(v, dtype=float) for v in vars(by_series).values()]
        for place in zip(*np.nonzero(~fine), strict=True) if a.ndim else [()] * int(not fine):
            fine_values = self._quadrature(a[place])
            for value, error in ((0, 2), (1, 3)):
                # A comparison that NaN or an infinite error of the series loses.
                if not columns[error][place] <= fine_values[error]:
                    columns[value][place] = fine_values[value]
                    columns[error][place] = fine_values[error]
        return Values(*columns)

    def _quadrature(self, a: float) -> tuple[float, float, float, float]:
        """Loss, slope and their errors at one overlap."""
        root = math.sqrt(self.gamma)
        g, g1, q = self.contrast.slope, self.contrast.curvature, root * a
        s = math.sqrt(max(0.0, (1 - q) * (1 + q)))
        steep = features(self.contrast.formula.derivative).steep and s > 0

        def integrand(c: Array, e: Array, u: Array) -> Sequence[Array]:
            slope = g(u)
            # Where g' is unbounded, E g'(s) = E[e g(s)]/sqrt(1 - q) by Stein's lemma.
            bend = e * slope / s if steep else g1(u)
            return self.contrast.value(u), c * slope - q * bend

        averages = averages_at(self.contrast, self.source, integrand, q)
        value, error = averages.value, averages.error
        return value[0], root * value[1], error[0], root * error[1]


def averages_at(contrast: Contrast, source: Source, integrand: object, q: float) -> Average:
    """< integrand(h, e, s) > at sqrt(gamma) a = q, refused if one of them is infinite."""
    averages = double_average(integrand, features(contrast.formula.derivative), source.law, q)  # type: ignore[arg-type]
    if not np.all(np.isfinite(averages.value)) or np.any(averages.far > _INFINITE):
        raise too_heavy(contrast, source)
    return averages


@lru_cache(maxsize=256)
def direction_of(contrast: Contrast, source: Source, gamma: float = 1.0) -> int:
    """1 if ascent of L leads to the feature, -1 if descent does.

    The sign of c_4 kappa_4 for the contrasts ``exp`` and ``logcosh`` with symmetric laws that have
    a fourth cumulant, else that of L' at overlaps in (0, 1]. For G that are not even this is about
    the feature with the sign of a > 0.

    Refused if L is constant, as for a normal h, or neither rises nor falls all the way.
    """
    terms = series(contrast, source).terms
    loss = Loss(contrast, source, gamma)
    if not loss.closed and contrast.name and source.symmetric:
        fourth = terms[4]
        if math.isfinite(fourth) and abs(fourth) > 1e-14:
            return 1 if fourth > 0 else -1
    a = np.linspace(0.0, 1.0, 129 if loss.closed else 13)[1:]
    at = loss.at(a)
    signs = np.sign(np.where(np.abs(at.slope) <= 20 * at.slope_error, 0.0, at.slope))
    if not np.any(signs):
        raise HdicaError(
            f"contrast = {contrast.formula.text!r} is not allowed with the latent variable "
            f"{source.label} (the population loss does not depend on the overlap)",
            ["contrast", "latent"],
        )
    first = signs[np.flatnonzero(signs)[0]]
    if np.any(signs == -first):
        raise HdicaError(
            f"direction = 'auto' is not allowed with contrast = {contrast.formula.text!r} and the "
            f"latent variable {source.label} (the population loss turns before overlap "
            f"{a[np.argmax(signs == -first)]:.3g}; allowed: 'ascent' or 'descent')",
            ["direction", "contrast", "latent"],
        )
    return int(first)


_WIDTH, _FINE, _COARSE = 0.5, 16, 12
_FIRST, _MOST_TERMS = 16, 128
_ENOUGH = 3e-14
_FAR = 40.0  # largest abs(z) that differs from the ends, 0 and 1


def to_line(a: float) -> float:
    """Z = ln(a/sqrt(1 - a^2)) of an overlap strictly between 0 and 1."""
    return np.log(a) - np.log((1 - a) * (1 + a)) / 2


def from_line(z: Array) -> Array:
    """The overlap of z."""
    small = np.exp(-np.abs(z))
    size = np.sqrt(1 + small * small)
    return np.where(z < 0, small / size, 1 / size)


@lru_cache(maxsize=64)
def _fit(loss: Loss) -> tuple[int, Callable[[Array], Array], float]:
    """A power p of a with which L' vanishes at least, L'(a)/a^p, and its error.

    The ratio is a Chebyshev series on [0, 1], in a^2 if L' is odd, else in a, of as many terms as
    it takes, each value of L' by quadrature.
    """
    terms = series(loss.contrast, loss.source).terms
    even = loss.source.symmetric or not any(terms[1::2])
    power = (3 if even else 2) if math.isfinite(terms[4 if even else 3]) else 1
    order = _FIRST
    while True:
        x = (1 + chebyshev.chebpts1(order)) / 2
        a = np.sqrt(x) if even else x
        values = loss.at(a)
        scaled = values.slope / a**power
        coefficients = chebyshev.chebfit(2 * x - 1, scaled, order - 1)
        size = np.abs(coefficients)
        rough = size[-3:].sum()
        if rough <= _ENOUGH * size.max() or order >= _MOST_TERMS:
            break
        order *= 2

    def ratio(a: Array) -> Array:
        return np.asarray(chebyshev.chebval(2 * (a * a if even else a) - 1, coefficients))

    return power, ratio, 2 * rough + np.max(values.slope_error)


@dataclass(frozen=True)
class Flow:
    """The flow up (``direction`` 1) or down (-1) a population loss, from 0 <= a <= 1.

    L' is taken in closed form where there is one, else from a Chebyshev series of L'(a)/a^p, p the
    order with which it vanishes at 0.
    """

    loss: Loss
    direction: int

    def speed(self, a: Array) -> Array:
        """+-L'(a)/a, shape of ``a``; 0 at a = 0."""
        if self.loss.closed:
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = np.where(a > 0, self.loss.at(a).slope / a, 0.0)
            return self.direction * ratio
        power, ratio_of, _ = _fit(self.loss)
        return self.direction * ratio_of(a) * a ** (power - 1)

    def times(self, start: float, ends: Array) -> tuple[Array, Array]:
        """Times from ``start`` to some overlaps, and their errors; shape of ``ends``.

        0 for ends that are not ahead, infinite for those that are not reached.
        """
        took, errors = np.zeros(ends.shape), np.zeros(ends.shape)
        for place, end in np.ndenumerate(ends):
            if not end > start:
                continue
            took[place] = math.inf
            if start <= 0.0 or end >= 1.0:
                continue
            low, high = to_line(start), to_line(end)
            fine, slow, wrong = self._elapsed(low, high, _FINE)
            if slow > 0.0:
                coarse, _, _ = self._elapsed(low, high, _COARSE)
                took[place], errors[place] = fine, abs(fine - coarse) + wrong + 1e-15 * fine
        return took, errors

    def _elapsed(self, low: float, high: float, order: int) -> tuple[float, float, float]:
        """Integral of dz/speed, the least speed on the way, and the error from that of L'."""
        panels = max(1, math.ceil((high - low) / _WIDTH))
        edges = np.linspace(low, high, panels + 1)
        x, w = gauss_legendre(order)
        half = np.diff(edges)[:, None] / 2
        a = from_line(edges[:-1, None] + half * (x + 1))
        speed = self.speed(a)
        with np.errstate(divide="ignore"):
            share = np.full(a.shape, 4e-16)  # relative error of the speed
            if not self.loss.closed:
                power, _, error = _fit(self.loss)
                share = error * a ** (power - 1) / np.abs(speed)
            return (
                np.sum(half * w / speed),
                speed.min(),
                np.sum(half * w / np.abs(speed) * share),
            )

    def path(self, start: float, times: Array) -> tuple[Array, Array]:
        """Overlaps at increasing times >= 0, and their errors, shape of ``times``.

        Solved in z (Dormand and Prince 8(5,3)); the error is how far the quadrature of dt puts the
        time of the overlap from the output time.
        """
        from scipy.integrate import solve_ivp

        if start <= 0.0 or start >= 1.0 or not times.size or times[-1] == 0.0:
            return np.full(times.shape, start), np.zeros(times.shape)
        first = to_line(start)
        solved = solve_ivp(
            lambda t, z: self.speed(from_line(z)),
            (0.0, float(times[-1])),
            [first],
            method="DOP853",
            t_eval=times,
            rtol=1e-12,
            atol=1e-13,
        )
        z = np.clip(solved.y[0], -_FAR, _FAR)
        return from_line(z), self._missed(first, z, times)

    def _missed(self, first: float, z: Array, times: Array) -> Array:
        """Errors of overlaps, from the times at which quadrature has them."""
        a = from_line(z)
        speed = self.speed(a)
        rounding = 1e-15 * (1 + np.abs(z)) * a * (1 - a * a)
        errors = np.zeros(z.shape)
        for k, end in enumerate(z.tolist()):
            if abs(end) >= _FAR or abs(end - first) < 1e-12:
                continue
            took, _, wrong = self._elapsed(first, end, _FINE)
            late = abs(took - times[k]) + abs(wrong)
            errors[k] = late * abs(speed[k]) * a[k] * (1 - a[k] ** 2)
        return errors + rounding

    def least_slope(self, low: float, high: float) -> float:
        """Least +-L' between two overlaps: C of the bound of Theorem 4."""
        from scipy.optimize import minimize_scalar

        grid = np.linspace(low, high, 257)
        values = grid * self.speed(grid)
        k = int(np.argmin(values))
        if k in (0, grid.size - 1):
            return values[k]

        def at(a: float) -> float:
            return float(a * self.speed(np.array(a)))

        least = minimize_scalar(at, bounds=(grid[k - 1], grid[k + 1]), method="bounded")
        return min(values[k], least.fun)


def bound(least: float, start: float, times: Array) -> Array:
    """f(t) = tanh(C t + artanh a0), below which the overlap is not while L' >= C (Theorem 4)."""
    if start >= 1.0:
        return np.ones(np.shape(times))
    return np.tanh(least * times + math.atanh(start))


def bound_time(least: float, start: float, ends: Array) -> Array:
    """Time (artanh a1 - artanh a0)/C by which f is at a1; infinite for C <= 0."""
    with np.errstate(divide="ignore"):
        way = np.maximum(np.arctanh(ends) - math.atanh(start), 0.0)
        return way / least if least > 0 else np.where(way > 0, math.inf, 0.0)


def leading_time(loss: Loss, start: float) -> float:
    """Leading order 1/(2 C a0^2) of all times from a small overlap, L'(a) ~ +-C a^3.

    2 sqrt(2)/(gamma a0)^2 for G = -exp(-s^2/2) and random signs. Infinite where c_4 kappa_4 is 0.
    """
    terms = series(loss.contrast, loss.source).terms
    rise = 4 * abs(terms[4]) * loss.gamma**2 if len(terms) > 4 else 0.0
    return 1 / (2 * rise * start**2) if rise > 0 and start > 0 else math.inf
