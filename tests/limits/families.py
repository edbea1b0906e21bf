"""Limits written by hand from Wang and Lu 2016 and 2017, for tests of what is common to them."""

import numpy as np

from hdica.ingredients.formula import parse_formula
from hdica.ingredients.priors import make_prior
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.starts import make_start
from hdica.limits.mean_field.family import MeanField

MOMENTS = {"rademacher": (1.0, 1.0), "uniform": (1.8, 27 / 7), "arcsine": (1.5, 2.5)}


def oist(omega, tau=0.5, beta=0.27, prior=None, phi="beta*sign(x)", bias=0.0):
    """Online iterative soft thresholding; ``bias`` breaks the symmetry of Q and -Q."""
    return MeanField(
        make_prior(prior or {"sparse": 0.05}),
        make_start({"overlap": 0.5}),
        make_schedule(tau),
        parse_formula(phi, constants={"beta": beta}),
        lambda q, t: t * (omega * q + bias * q * q),
        lambda q, t: t * t * (1 + omega * q * q) / 2,
        lambda t: 1.0,
    )


def ica(tau, source="rademacher", beta=0.1, phi="beta*sign(x)"):
    """Online ICA with f = x^3."""
    m4, m6 = MOMENTS[source]

    def power(q):
        return 15 + 15 * q**4 * (1 - q * q) * (m4 - 3) + q**6 * (m6 - 15)

    return MeanField(
        make_prior({"sparse": 0.3}),
        make_start({"overlap": 0.5}),
        make_schedule(tau),
        parse_formula(phi, constants={"beta": beta}),
        lambda q, t: t * (3 - m4) * q**3,
        lambda q, t: t * t * power(q) / 2,
        lambda t: t,
    )


def density(shape, a, k, tilt, x):
    """exp(-a x^2 - k Psi + tilt x)/Z at points that hold all its mass, shape (tilts, points)."""
    v = a * x * x + k * shape.potential(x) - tilt[:, None] * x
    p = np.exp(v.min(axis=1, keepdims=True) - v)
    return p / np.trapezoid(p, x, axis=1)[:, None]
