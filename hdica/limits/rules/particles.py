"""Particles of a rule: entries of its estimates that see each other through R and P alone.

As n -> infinity an entry (x_1, ..., x_K) of the estimates moves, given those of the features, by

    dx = (b xi + A x + psi(x) - B x) dt + C dW,    b = <F v'> - A R,    C C' = <F F'>,

A_kl = <dF_k/du_l>, which Stein's lemma makes of <F u'> = <F v'> R' + A (P - R R'), and B as in
:mod:`hdica.limits.rules.equations`, with what psi adds to D.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from hdica.ingredients.formula import Formula
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import gram, root_of
from hdica.limits.rules.averages import FIRST, Averages
from hdica.limits.rules.equations import Equations
from hdica.process.progress import check_deadline

STEP = 0.025
"""Time step in units of the fastest time scale."""
MAX_STEPS = 1_000_000
_LEVEL = FIRST + 1
_STABLE, _NEAR, _SINGULAR, _WITHIN = 0.5, 1e-12, 1e-10, 1e-9


def crossed(rows: Array, others: Array) -> Array:
    """Means of products of entries, by sums and not by BLAS: shape (rows, others)."""
    return np.sum(rows[:, None] * others, axis=2) / rows.shape[1]


class Law(NamedTuple):
    """What all entries share at one time: b (K, M), A - B (K, K) and <F F'> (K, K)."""

    pull: Array
    slope: Array
    square: Array


class Particles(NamedTuple):
    """The process of a rule with some entries of its features, shape (M, N)."""

    equations: Equations
    averages: Averages
    psi: Formula
    features: Array

    def state(self, x: Array) -> tuple[Array, Array]:
        """R and P of estimates, shape (K, N)."""
        return crossed(x, self.features), crossed(x, x)

    def law(self, x: Array, pushed: Array, t: float) -> Law:
        """What the averages at R and P make of every entry; ``pushed`` is psi(x)."""
        check_deadline()
        r, p = self.state(x)
        means = self.averages.at(r, p, t)
        rest = np.linalg.pinv(p - gram(r), rcond=_SINGULAR, hermitian=True).astype(float)
        a = _product(means.u - _product(means.v, r.T), rest)
        along = crossed(x, pushed)
        d = means.u + means.u.T + means.square + along + along.T
        back = self.equations.restored * d
        return Law(means.v - _product(a, r), a - back, means.square)

    def drift(self, law: Law, x: Array, pushed: Array) -> Array:
        """Velocity of every entry."""
        return _combined(law.pull, self.features) + _combined(law.slope, x) + pushed

    def kept(self, x: Array) -> Array:
        """Estimates as the rule normalises them: what a step leaves is of order dt^2."""
        normalise = self.equations.normalise
        if normalise == "none":
            return x
        p = crossed(x, x)
        if normalise == "norm":
            return x / np.sqrt(np.diag(p))[:, None]
        if normalise == "gram-schmidt":
            return _combined(np.linalg.inv(root_of(p)).astype(float), x)
        values, vectors = np.linalg.eigh(p)
        return _combined(np.einsum("ik,k,jk->ij", vectors, values**-0.5, vectors), x)

    def after(self, x: Array, noise: Array, t: float, dt: float) -> Array:
        """Estimates after a time, by Heun's method: of weak order 2 as the noise is additive."""
        if dt <= 0:
            return x
        pushed = self.psi.value(x)
        # An update that switches in time does so between steps.
        law = self.law(x, pushed, t + _WITHIN * dt)
        slope = self.drift(law, x, pushed)
        ahead = x + dt * slope + math.sqrt(dt) * _combined(root_of(law.square), noise)
        ahead = self.kept(ahead)
        pushed = self.psi.value(ahead)
        later = self.law(ahead, pushed, t + dt - _WITHIN * dt)
        slope = (slope + self.drift(later, ahead, pushed)) / 2
        spread = root_of((law.square + later.square) / 2)
        return self.kept(x + dt * slope + math.sqrt(dt) * _combined(spread, noise))

    def length(self, x: Array, t: float, step: float) -> float:
        """Length of the next step, from the present state alone."""
        pushed = self.psi.value(x)
        law = self.law(x, pushed, t)
        steep = np.abs(self.psi.derivative.value(x))
        size = float(np.diag(crossed(x, x)).min())
        noise = np.diag(law.square)
        rate = float(np.abs(law.slope).max() + math.sqrt(float(np.mean(steep * steep))))
        rate += float(np.abs(law.pull).max() + noise.max()) / max(math.sqrt(size), _NEAR)
        kinks = np.array(self.psi.kinks)
        reach = 1e-9 * (1 + np.abs(kinks))
        jumps = np.abs(self.psi.value(kinks + reach) - self.psi.value(kinks - reach)) / 2
        # Diffusion crosses the layer in which a jump of psi is felt within g over its square.
        jump = float(np.max(jumps, initial=0.0))
        rate += jump * jump / max(float(noise.min()) / 2, _NEAR) if jump else 0.0
        return 1 / max(rate / step, float(steep.max()) / _STABLE, _NEAR)

    def matched(self, noise: Array, x: Array) -> Array:
        """Normal numbers, shape (K, N), made orthonormal and orthogonal to features and estimates.

        Independent ones would give R and P a martingale of order N^-1/2.
        """
        rows: list[Array] = []
        for row in (*self.features, *x, *noise):
            rest = row.copy()
            for other in rows:
                rest -= other * (np.sum(other * rest) / other.size)
            size = math.sqrt(np.sum(rest * rest) / rest.size)
            rows.append(rest / size if size > _SINGULAR else np.zeros_like(rest))
        return np.array(rows[-len(noise) :])


def _product(one: Array, other: Array) -> Array:
    return np.einsum("ij,jk->ik", one, other)


def _combined(matrix: Array, rows: Array) -> Array:
    return np.einsum("ki,in->kn", matrix, rows)


def _steps(
    process: Particles, x: Array, rng: Generator, step: float
) -> Iterator[tuple[float, float, Array, Array]]:
    """Begin and end of every step, the estimates at its begin, and its noise."""
    t, breaks = 0.0, [*process.equations.breaks, math.inf]
    while True:
        end = t + process.length(x, t, step)
        edge = next(b for b in breaks if b > t * (1 + _NEAR))
        end = edge if end >= edge * (1 - _NEAR) else end
        noise = process.matched(rng.standard_normal(x.shape), x)
        yield t, end, x, noise
        x, t = process.after(x, noise, t, end - t), end


def run(
    equations: Equations,
    psi: Formula,
    features: Array,
    estimates: Array,
    times: Array,
    rng: Generator,
    step: float = STEP,
) -> tuple[Array, Array, str]:
    """R, shape (T, K, M), and P, shape (T, K, K), at increasing times, and why they end early.

    The path does not depend on the times: those between the ends of steps are reached by a step of
    their own. Values from where a number was not finite are NaN.
    """
    process = Particles(equations, Averages(equations.sample, _LEVEL), psi, features)
    k, m = len(estimates), len(features)
    r, p = np.full((times.size, k, m), np.nan), np.full((times.size, k, k), np.nan)
    index = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for made, (t, end, x, noise) in enumerate(_steps(process, estimates, rng, step)):
            if made >= MAX_STEPS:
                return r, p, f"the particles needed {MAX_STEPS} steps to reach t = {t:.6g}"
            if not np.all(np.isfinite(x)):
                return r, p, f"the particles were not finite at t = {t:.6g}"
            while index < times.size and times[index] < end:
                r[index], p[index] = process.state(process.after(x, noise, t, times[index] - t))
                index += 1
            if index == times.size:
                break
    return r, p, ""
