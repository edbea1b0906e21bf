"""The population loss of the reduced model, and its slope, with their errors.

For h of any law s = sqrt(gamma) a h + sqrt(1 - gamma a^2) N is what a filter of overlap a sees of
y = sqrt(gamma) h vt + zhat ("Reduce and Conquer", 2025, (4)), and

    L(a) = E G(s),    L'(a) = sqrt(gamma) E[h g(s)] - gamma a E[g'(s)],  g = G'.

The printed Lemma 5 has another formula: errata of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.contrasts import Contrast
from hdica.ingredients.sources import Source
from hdica.limits.averages.double_average import Average, double_average, features
from hdica.systems.subspace_ica.limit.hermite import Series, series, too_heavy

Array = NDArray[np.float64]
_INFINITE = 1e-9
_CLOSED = 4e-16
"""Rounding of the closed forms, relative."""


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

    @property
    def _series(self) -> Series:
        return series(self.contrast, self.source)

    def at(self, alpha: Array) -> Values:
        """Loss and slope at overlaps of any shape, from -1 to 1."""
        a = np.asarray(alpha, dtype=float)
        if self._lemma_5:
            return self._exponential(a)
        root = math.sqrt(self.gamma)
        known = self._series
        loss, loss_error = known.value(root * a)
        slope, slope_error = known.slope(root * a)
        found = Values(loss, root * slope, loss_error, root * slope_error)
        return found if known.ends else self._refined(a, found)

    def _exponential(self, a: Array) -> Values:
        """Lemma 5 corrected: for G = -exp(-s^2/2) and h of random signs."""
        q = self.gamma * a * a
        decay = np.exp(-q / (2 * (2 - q)))
        loss = -((2 - q) ** -0.5) * decay
        slope = self.gamma**2 * a**3 * (2 - q) ** -2.5 * decay
        return Values(loss, slope, _CLOSED * np.abs(loss), 4 * _CLOSED * np.abs(slope))

    def _refined(self, a: Array, known: Values) -> Values:
        """By quadrature wherever that is better known than by the series."""
        fine = known.loss_error <= 1e-15 * (1 + np.abs(known.loss))
        fine &= known.slope_error <= 1e-14 * np.abs(known.slope)
        columns = [np.array(v, dtype=float) for v in vars(known).values()]
        for place in zip(*np.nonzero(~fine), strict=True) if a.ndim else [()] * int(not fine):
            found = self._quadrature(float(a[place]))
            for value, error in ((0, 2), (1, 3)):
                # A comparison that NaN or an infinite error of the series loses.
                if not columns[error][place] <= found[error]:
                    columns[value][place] = found[value]
                    columns[error][place] = found[error]
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

        found = averages_at(self.contrast, self.source, integrand, q)
        value, error = found.value, found.error
        return float(value[0]), root * float(value[1]), float(error[0]), root * float(error[1])


def averages_at(contrast: Contrast, source: Source, integrand: object, q: float) -> Average:
    """< integrand(h, e, s) > at sqrt(gamma) a = q.

    Raises
    ------
    HdicaError
        If one of them is infinite.
    """
    found = double_average(integrand, features(contrast.formula.derivative), source.law, q)  # type: ignore[arg-type]
    if not np.all(np.isfinite(found.value)) or bool(np.any(found.far > _INFINITE)):
        raise too_heavy(contrast, source)
    return found


@lru_cache(maxsize=256)
def direction_of(contrast: Contrast, source: Source, gamma: float = 1.0) -> int:
    """1 if ascent of L leads to the feature, -1 if descent does.

    The sign of c_4 kappa_4 for the contrasts ``exp`` and ``logcosh`` with symmetric laws that have
    a fourth cumulant, else that of L' at overlaps in (0, 1]. For G that are not even this is about
    the feature with the sign of a > 0.

    Raises
    ------
    HdicaError
        If L is constant, as for a normal h, or neither rises nor falls all the way.
    """
    terms = series(contrast, source).terms
    loss = Loss(contrast, source, gamma)
    if not loss.closed and contrast.name and source.symmetric:
        fourth = terms[4]
        if math.isfinite(fourth) and abs(fourth) > 1e-14:
            return 1 if fourth > 0 else -1
    a = np.linspace(0.0, 1.0, 129 if loss.closed else 13)[1:]
    found = loss.at(a)
    signs = np.sign(np.where(np.abs(found.slope) <= 20 * found.slope_error, 0.0, found.slope))
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
            f"{a[int(np.argmax(signs == -first))]:.3g}; allowed: 'ascent' or 'descent')",
            ["direction", "contrast", "latent"],
        )
    return int(first)
