"""A chain of one overlap at finite n, and the law of its first passages.

Two rules reduce to such a chain exactly: one that restores the length of its estimate at every
step, as (2) of Wang and Lu 2017, and one that leaves it free, as (13) of Rattray (2002) with
K = M = 1. A chain gives the kernel of its step on polynomials of the overlap; where the length is
restored also the mean and the variance of a step, which are a diffusion.

Its escape from 0 has four theories: as n -> infinity and as a diffusion at n in
:mod:`hdica.limits.escape`, exactly at n here, and at a fixed step size as n -> infinity
in :mod:`hdica.limits.passage.wkb`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.polynomial import Chebyshev

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import dot
from hdica.ingredients.sources import Source
from hdica.limits.escape import Begin, Range, begin, summit_of
from hdica.limits.numerics.first_passage import Diffusion
from hdica.limits.passage.collocation import Collocation, collocated, long_collocated
from hdica.limits.passage.step import Function, Grid, Points, Step, long_step, sphere_nodes, step_of

_TERMS, _PER_WIDTH, _MOST = 60, 3.0, 400
"""Polynomials: at least, for each unit of sqrt(n) since what happens has the width n^-1/2, at most.
"""
_ROUNDS = 2
WORST = 0.03
"""Relative error of a mean from which on nothing is given."""
_SPHERE = 60
"""Nodes of a random start to begin with: where it reaches the threshold they must be many."""
_SHARE = 0.3
"""Part of the change before the last one that counts: what remains of it is less."""
_PLACES = 48
"""Overlaps at which the moments of a step are taken; even functions of Q between them."""


@dataclass(frozen=True)
class NormalisedChain:
    """A rule that restores the length of its estimate, and when it has escaped."""

    f: Function
    source: Source
    tau: float
    n: int
    threshold: float
    even: bool  # whether Q and -Q are alike
    scale: float = 1.0  # standard deviation of the sample along the feature
    enough = 1e-6  # relative error of a mean
    first = Points()
    remedy = "WKB is the better the longer it is; or take a smaller step size or n"

    @property
    def step_size(self) -> str:
        """The step size, as a sentence names it."""
        return f"tau = {self.tau:.6g}"

    def step(self, nodes: Points) -> Step:
        """One step of the chain."""
        return step_of(self.f, self.source, self.tau, self.n, nodes, self.scale)

    def kernel(self, terms: int, nodes: Points) -> Collocation:
        """One step below the threshold, on so many polynomials of the overlap."""
        return collocated(self.step(nodes), self.threshold, terms, self.even)

    def diffusion(self, nodes: Points, places: int) -> Diffusion:
        """The diffusion with the mean and the variance of one step, where Q and -Q are alike."""
        step = self.step(nodes)
        # Even numbers of points leave out 0, where the mean over Q is none.
        x = np.cos((np.arange(places) + 0.5) * math.pi / (2 * places))
        means, variances = np.array([step.moments(self.threshold * at) for at in x.tolist()]).T
        slope = Chebyshev(_even_series(means / (self.threshold * x)))
        noise = Chebyshev(_even_series(variances))

        def even(q: Array) -> Array:
            return 2 * (q / self.threshold) ** 2 - 1

        return Diffusion(lambda q: q * slope(even(q)), lambda q: noise(even(q)))


@dataclass(frozen=True)
class FreeChain:
    """A rule that leaves the length of its estimate free, and when sqrt(q) |A| has escaped."""

    f: Function
    source: Source
    eta: float
    alpha: float
    n: int
    threshold: float
    even: bool  # whether A and -A are alike
    odd: bool  # whether f is, and the source symmetric
    enough = 5e-4
    first = Grid()
    remedy = "take a smaller step size or n"

    @property
    def step_size(self) -> str:
        """The step size, as a sentence names it."""
        return f"eta = {self.eta:.6g}"

    def kernel(self, terms: int, nodes: Grid) -> Collocation:
        """One step below the threshold, on so many polynomials of the direction's overlap."""
        step = long_step(self.f, self.source, (self.eta, self.alpha), self.n, nodes, self.odd)
        return long_collocated(step, self.threshold, terms, nodes, self.even)


Chain = TypeVar("Chain", NormalisedChain, FreeChain)


def _even_series(values: Array) -> Array:
    """Chebyshev coefficients in 2 x^2 - 1 of an even function at the points cos((k+1/2) pi/2m)."""
    m = values.size
    angles = np.multiply.outer(np.arange(m), (np.arange(m) + 0.5) * math.pi / m)
    coefficients = 2 / m * np.sum(np.cos(angles) * values, axis=1)
    coefficients[0] /= 2
    return coefficients


def diffusion_range(chain: NormalisedChain, start: Begin) -> Range:
    """The escape of |Q| by the diffusion at n, in steps, for an f of which Q and -Q are alike."""
    points = chain.first
    coarse, fine = chain.diffusion(points, _PLACES), chain.diffusion(points.finer(), 2 * _PLACES)
    of_r, root = begin(start, chain.n), math.sqrt(chain.n)
    first = (lambda q: of_r(q * root)) if callable(of_r) else of_r / root
    summit = summit_of(fine, chain.threshold)
    return Range(fine, chain.threshold, first, summit, float(chain.n) ** 3, coarse=coarse)


@dataclass(frozen=True, eq=False)
class PassageLaw:
    """The law of the number of steps from one start."""

    kernel: Collocation
    weights: Array  # mean polynomials of the start
    error: float = math.inf  # relative, of the mean

    @cached_property
    def mean(self) -> float:
        """The mean."""
        return dot(self.weights, self.kernel.mean)

    @cached_property
    def sd(self) -> float:
        """The standard deviation."""
        square = dot(self.weights, self.kernel.second)
        return math.sqrt(max(square - self.mean * self.mean, 0.0))

    def survival(self, steps: Array) -> Array:
        """Probability of no passage within numbers of steps."""
        return self.kernel.survival(self.weights, np.asarray(steps, dtype=float))


def _start(kernel: Collocation, begin: Begin, n: int, nodes: int) -> Array:
    """The mean of every polynomial over the start, a random one by so many nodes."""
    if begin == "random":
        rule = sphere_nodes(n, nodes)
        return np.sum(rule.weights[:, None] * kernel.at(rule.points), axis=0)
    return kernel.at(np.array([0.0 if begin == "zero" else float(begin)]))[0]


def exact_passage(chain: Chain, begin: Begin) -> PassageLaw:
    """Steps until the overlap reaches the threshold, from ``"zero"``, ``"random"`` or a value.

    Polynomials and nodes are made more until the mean changes by little enough, relative; its
    error is the larger of the last two changes, since one may be small by chance where the nodes
    meet the threshold, and what rounding does. Refused if the mean is not known to three per cent,
    as for the longest passages.
    """
    terms = min(max(_TERMS, math.ceil(_PER_WIDTH * math.sqrt(chain.n))), _MOST)
    points, nodes = chain.first, _SPHERE

    def law_of(kernel: Collocation, nodes: int) -> PassageLaw:
        return PassageLaw(kernel, _start(kernel, begin, chain.n, nodes))

    coarse = law_of(chain.kernel(terms * 2 // 3, points.coarser()), nodes * 2 // 3)
    levels = [coarse, law_of(chain.kernel(terms, points), nodes)]
    for _ in range(_ROUNDS):
        terms, points, nodes = terms * 3 // 2, points.finer(), nodes * 3 // 2
        levels.append(law_of(chain.kernel(terms, points), nodes))
        # The larger of the last two changes; of the one before, what remains is less.
        first, second, last = (law.mean for law in levels[-3:])
        moved = max(abs(last - second), abs(second - first) * _SHARE)
        error = moved / last if last > 0 else 1.0
        if error < chain.enough:
            break
    law = replace(levels[-1], error=error + levels[-1].kernel.rounding)
    if not law.error <= WORST:
        raise HdicaError(
            f"the passage of n = {chain.n} with {chain.step_size} is too long, or its samples "
            f"too rough, for the exact equation: about {law.mean:.2g} steps, known to "
            f"{law.error:.1g} of that at best and allowed to {WORST:g} ({chain.remedy})"
        )
    return law
