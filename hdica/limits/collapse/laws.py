"""The three laws on which runs of every n lie at a transition of one overlap, without a parameter.

Near its transition the overlap is a diffusion, dQ = D dt + (V/n)^(1/2) dW, and the first terms of D
leave one equation for all n: where two states merge (a fold), beside an unstable state (a
separatrix), and where the uninformative state gives way (a pitchfork).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_FAR = 40.0
"""Exponent beyond which an integrand is nothing."""
_SLOWEST = 1e2
"""Logarithm of a law's value from which on no run will show it: infinite."""


def fold(eps: float) -> float:
    """F(eps) = sqrt(2 pi) int_0^inf w^(-1/2) exp(-2 eps w - w^3/6) dw, the time of a fall.

    Of dX = -(eps + X^2) dT + dW from infinity to -infinity. F(0) = sqrt(2 pi) 6^(1/6) Gamma(1/6)/3,
    F -> pi/sqrt(eps) for large eps, where noise does not matter, and for eps < 0 it grows like the
    exponential of the barrier, exp(8/3 |eps|^(3/2)).
    """
    from scipy.integrate import quad

    # With w = s^2 nothing is singular; the integrand is largest at s^2 = w = 2 sqrt(-eps).
    peak = 2 * math.sqrt(max(-eps, 0.0))
    top = -2 * eps * peak - peak**3 / 6
    if top > _SLOWEST:
        return math.inf

    def value(s: float) -> float:
        w = s * s
        return math.exp(-2 * eps * w - w**3 / 6 - top)

    high = 1.0
    while 2 * eps * high**2 + high**6 / 6 + top < _FAR:
        high *= 1.25
    points = [math.sqrt(peak)] if peak > 0 else None
    found, _ = quad(value, 0.0, high, points=points, epsabs=0, epsrel=1e-12, limit=400)
    return 2 * math.sqrt(2 * math.pi) * math.exp(top) * float(found)


def separatrix(z: float) -> float:
    """Phi(z): the chance that dX = X dT + sqrt(2) dW from z ends at infinity."""
    from scipy.special import ndtr

    return float(ndtr(z))


def pitchfork(x: float) -> float:
    """Psi(x) = <Y^2> under exp(x Y^2 - Y^4), the steady size of an overlap that is about to form.

    Psi(0) = Gamma(3/4)/Gamma(1/4); 1/(2 |x|) far below the transition, x/2 far above.
    """
    from scipy.integrate import quad

    top = max(x, 0.0) ** 2 / 4
    peak = math.sqrt(max(x, 0.0) / 2)
    high = peak + 1.0
    while top - x * high**2 + high**4 < _FAR:
        high *= 1.25

    def moment(power: int) -> float:
        def value(y: float) -> float:
            return y**power * math.exp(x * y * y - y**4 - top)

        points = [peak] if peak > 0 else None
        found, _ = quad(value, 0.0, high, points=points, epsabs=0, epsrel=1e-12, limit=400)
        return float(found)

    return moment(2) / moment(0)


LAWS = {"fold": fold, "separatrix": separatrix, "pitchfork": pitchfork}
"""By what happens there."""


def law(kind: str, at: Array) -> Array:
    """A law at scaled values of the control, NaN where these are."""
    one = LAWS[kind]
    values = np.asarray(at, dtype=float)
    found = [one(float(v)) if np.isfinite(v) else math.nan for v in values.ravel()]
    return np.array(found).reshape(values.shape)
