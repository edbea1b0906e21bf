"""Near zero: the coefficients that decide whether an overlap is trapped there, and how deep.

With r = sqrt(n) R and nu = n^2 eta (or n tau) of order one, an overlap obeys in s = t/n^3
(Rattray 2002, (24)-(26))

    dr = -U'(r) ds + sqrt(P) nu dB,    U = P nu^2 r^2/4 - C nu r^4/24,

with P = <phi(z)^2> and C = |kappa4 <phi'''(z)>|, z standard normal, if the rule has the sign of
kappa4 <phi'''(z)>; with the other sign both terms of U confine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import HermiteE
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import averaged, power_at

Array = NDArray[np.float64]


def cumulants(source: Source, order: int) -> Array:
    """Cumulants kappa_0 (which is 0) to kappa_order of a source, shape (order + 1,)."""
    m = [source.moment(k) for k in range(order + 1)]
    if not all(math.isfinite(v) for v in m):
        raise HdicaError(
            f"source: {source.label} has no finite moment of order {np.argmax(~np.isfinite(m))}; "
            f"its cumulant of order {order} is needed near R = 0"
        )
    kappa = np.zeros(order + 1)
    for n in range(1, order + 1):
        terms = (math.comb(n - 1, k - 1) * kappa[k] * m[n - k] for k in range(1, n))
        kappa[n] = m[n] - math.fsum(terms)
    return kappa


def mean_derivative(
    phi: Formula, source: Source, overlap: float, order: int
) -> tuple[float, float]:
    """<phi^(order)(y)> for y = R s + sqrt(1 - R^2) z and its error, jumps of phi included.

    By Stein's identity; the overlap R lies inside (-1, 1).
    """
    width = math.sqrt(1 - overlap * overlap)
    hermite = HermiteE.basis(order)

    def integrand(s: Array, z: Array, y: Array) -> tuple[Array]:
        return (np.asarray(hermite(z) * phi.value(y)),)

    result = averaged(integrand, phi, source, overlap)
    return float(result.value[0]) / width**order, float(result.error[0]) / width**order


_VANISHES = 1e-11
"""An average by quadrature below this, relative to its scale, counts as zero."""


@dataclass(frozen=True)
class Trap:
    """What a nonlinearity and a source mean to an overlap near zero."""

    power: float  # P = <phi(z)^2>
    kurtosis: float  # kappa4 of the source
    third: float  # <phi'''(z)>
    power_error: float = 0.0  # absolute, as third_error
    third_error: float = 0.0

    @property
    def product(self) -> float:
        """Kappa4 <phi'''(z)>, with its sign."""
        return self.kurtosis * self.third

    @property
    def pull(self) -> float:
        """C = |kappa4 <phi'''(z)>|."""
        return abs(self.product)

    @property
    def errors(self) -> tuple[float, float]:
        """Relative errors of P and C."""
        third = self.third_error / abs(self.third) if self.third else 0.0
        return self.power_error / self.power, third

    @property
    def sigma(self) -> int:
        """The sign that lets an entry escape, (23); 0 if kappa4 <phi'''(z)> vanishes."""
        return int(np.sign(self.product))

    def depth(self, nu: float) -> float:
        """The only parameter g = C/(6 P nu) of dr = (-r/2 + g r^3) ds + dB."""
        return self.pull / (6 * self.power * nu)

    def potential(self, nu: float, r: Array | float, escaping: bool = True) -> Array:
        """U(r), (26), for the sign of sigma that lets an entry escape, or for the other."""
        square = np.asarray(r, dtype=float) ** 2
        quartic = self.pull * nu * square**2 / 24
        return self.power * nu**2 * square / 4 + (-quartic if escaping else quartic)

    def summit(self, nu: float) -> float:
        """Where the barrier is: r with r^2 = 3 P nu/C."""
        return math.sqrt(3 * self.power * nu / self.pull) if self.pull else math.inf

    def barrier(self, nu: float) -> float:
        """Height of the barrier, 3 P^2 nu^3/(8 C)."""
        return 3 * self.power**2 * nu**3 / (8 * self.pull) if self.pull else math.inf

    def exponent(self, nu: float) -> float:
        """3 P nu/(4 C), the exponent of the escape time: (27) corrected.

        The noise in (25) has variance D = P nu^2 a unit of s, so that Kramers' exponent is
        2 Delta U/D; (27) has Delta U/D, half of it.
        """
        return 3 * self.power * nu / (4 * self.pull) if self.pull else math.inf

    def log_kramers(self, nu: float) -> float:
        """Logarithm of Kramers' escape time pi sqrt(2)/(P nu^2) exp(3 P nu/(4 C)), in n^3 steps.

        Both barriers count. Its relative error falls like the inverse of the exponent.
        """
        return math.log(math.pi * math.sqrt(2) / (self.power * nu**2)) + self.exponent(nu)

    def kramers(self, nu: float) -> float:
        """Kramers' escape time, in n^3 steps; infinite where a number cannot hold it."""
        return safe_exp(self.log_kramers(nu))


def safe_exp(log: float) -> float:
    """exp, infinite where a floating-point number cannot hold it."""
    return math.exp(log) if log < 709.0 else math.inf


@lru_cache(maxsize=64)
def near_zero(phi: Formula, source: Source) -> Trap:
    """P, kappa4 and <phi'''(z)> of a nonlinearity and a source."""
    power, power_off = power_at(phi, source, 0.0)
    if power == 0.0:
        raise HdicaError(f"nonlinearity: {phi.text!r} is not allowed (it vanishes)")
    kappa = cumulants(source, 4)
    scale = math.sqrt(power)
    (second, _), (third, off) = (mean_derivative(phi, source, 0.0, k) for k in (2, 3))
    if abs(kappa[3] * second) > 1e-9 * scale:
        raise HdicaError(
            f"nonlinearity: {phi.text!r} with the skewed source {source.label} is not allowed "
            f"near R = 0 (kappa3 <phi''(z)> = {kappa[3] * second:.3g} must be 0, as for odd ones; "
            "else it escapes in n^2 steps: give nu2, where the system has it)"
        )
    third = 0.0 if abs(third) < _VANISHES * scale else third
    kurtosis = 0.0 if abs(kappa[4]) < _VANISHES else float(kappa[4])
    return Trap(power, kurtosis, third, power_off, off)
