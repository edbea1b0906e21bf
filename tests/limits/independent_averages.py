"""Averages of f(c Q + e s) by SciPy's adaptive quadrature, from densities written down here."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.integrate import quad

ROOT3 = math.sqrt(3)
EXACT = {"epsabs": 1e-14, "epsrel": 1e-12, "limit": 400}
DENSITY = {
    "uniform": (lambda c: 0.5 / ROOT3, -ROOT3, ROOT3, ()),
    "laplace": (lambda c: math.exp(-math.sqrt(2) * abs(c)) / math.sqrt(2), -28.0, 28.0, (0.0,)),
}


def normal(e):
    return math.exp(-e * e / 2) / math.sqrt(2 * math.pi)


def _density(source):
    """Pieces of a law: density, ends, corners, and atoms with their masses."""
    if isinstance(source, str):
        return (*DENSITY[source], ())
    ((name, value),) = source.items()
    if name == "bernoulli_gaussian":
        width = 1 / math.sqrt(value)
        active = lambda c: value * normal(c / width) / width  # noqa: E731
        return active, -9 * width, 9 * width, (), ((0.0, 1 - value),)
    assert name == "chi2"
    # y = t^2 takes the edge of one degree of freedom away; c(t) is returned by the caller.
    raise KeyError(name)


def smoothed(f, jumps, v, s, weight=lambda e: 1.0):
    """<weight(e) f(v + s e)> over a standard normal e, cut at the jumps of f."""
    cuts = sorted({-12.0, 12.0, *(e for e in ((k - v) / s for k in jumps) if -12 < e < 12)})
    return sum(
        quad(
            lambda e: normal(e) * weight(e) * f(v + s * e),
            a,
            b,
            epsabs=1e-14,
            epsrel=1e-12,
            limit=400,
        )[0]
        for a, b in pairwise(cuts)
    )


def over_source(source, values, cuts):
    """<values(c)> over a source, cut at given places."""
    if isinstance(source, dict) and "chi2" in source:
        k = source["chi2"]
        assert k == 1

        def inside(t):
            return 2 * normal(t) * values((t * t - 1) / math.sqrt(2))

        places = [math.sqrt(1 + c * math.sqrt(2)) for c in cuts if 1 + c * math.sqrt(2) > 0]
        edges = sorted({0.0, 9.0, *(t for t in places if t < 9)})
        return sum(quad(inside, a, b, **EXACT)[0] for a, b in pairwise(edges))
    density, low, high, corners, atoms = _density(source)
    edges = sorted({low, high, *(c for c in (*corners, *cuts) if low < c < high)})
    total = sum(mass * values(c) for c, mass in atoms)
    return total + sum(
        quad(lambda c: density(c) * values(c), a, b, **EXACT)[0] for a, b in pairwise(edges)
    )


def gain_and_power(f, source, q, jumps=(), scale=1.0):
    """<c f> - Q <f'>, with <f'> = <e f>/s so that jumps count, and <f^2>.

    ``scale`` is a length on which f changes around zero.
    """
    s = math.sqrt(1 - q * q)
    near = [w * max(s, scale) / q for w in (-4, -1, 0, 1, 4)] + [j / q for j in jumps]
    gain = over_source(
        source,
        lambda c: (
            c * smoothed(f, jumps, c * q, s) - q / s * smoothed(f, jumps, c * q, s, lambda e: e)
        ),
        near,
    )
    power = over_source(source, lambda c: smoothed(lambda u: f(u) ** 2, jumps, c * q, s), near)
    return gain, power


FUNCTIONS = {
    "tanh(x)": (np.tanh, (), 1.0),
    "tanh(3*x)": (lambda u: math.tanh(3 * u), (), 0.3),
    "tanh(5*x)": (lambda u: math.tanh(5 * u), (), 0.2),
    "tanh(10*x)": (lambda u: math.tanh(10 * u), (), 0.1),
    "atan(3*x)": (lambda u: math.atan(3 * u), (), 0.3),
    "sign(x)": (lambda u: math.copysign(1.0, u), (0.0,), 1.0),
}
