"""The law of a first passage of the exact chain at finite n, refined until it no longer changes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.sources import Source
from hdica.limits.diffusion.escape import Begin
from hdica.limits.passage.collocation import Collocation, collocated
from hdica.limits.passage.gauss import sphere_nodes
from hdica.limits.passage.step import Function, Points, step_of

Array = NDArray[np.float64]
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


class Solvable(Protocol):
    """What has passages: a chain at one n."""

    @property
    def n(self) -> int:
        """The dimension."""

    @property
    def enough(self) -> float:
        """The relative error of a mean that is small enough."""

    @property
    def first(self) -> Any:
        """Numbers of nodes to begin with; they have ``coarser()`` and ``finer()``."""

    @property
    def told(self) -> tuple[str, str]:
        """The step size, and what to do where it is too large."""

    def solved(self, terms: int, points: Any) -> Collocation:
        """The passage in so many polynomials of the overlap."""


@dataclass(frozen=True)
class Chain:
    """A rule at one n, and when it has escaped: |Q| >= ``threshold``."""

    f: Function
    source: Source
    tau: float
    n: int
    threshold: float
    even: bool  # whether Q and -Q are alike
    enough: float = 1e-6
    first: Points = field(default_factory=Points)

    @property
    def told(self) -> tuple[str, str]:
        """The step size, and what to do where it is too large."""
        return f"tau = {self.tau:.6g}", (
            "WKB is the better the longer it is; or take a smaller step size or n"
        )

    def solved(self, terms: int, points: Points) -> Collocation:
        """Its passage in so many polynomials."""
        step = step_of(self.f, self.source, self.tau, self.n, points)
        return collocated(step, self.threshold, terms, self.even)


@dataclass(frozen=True, eq=False)
class Passage:
    """The law of the number of steps from one start."""

    solved: Collocation
    weights: Array  # mean polynomials of the start
    error: float = math.inf  # relative, of the mean

    @cached_property
    def mean(self) -> float:
        """The mean."""
        return float(np.sum(self.weights * self.solved.mean))

    @cached_property
    def sd(self) -> float:
        """The standard deviation."""
        square = float(np.sum(self.weights * self.solved.second))
        return math.sqrt(max(square - self.mean * self.mean, 0.0))

    def survival(self, steps: Array) -> Array:
        """Probability of no passage within numbers of steps."""
        return self.solved.survival(self.weights, np.asarray(steps, dtype=float))


def _start(one: Collocation, begin: Begin, n: int, nodes: int) -> Array:
    """The mean of every polynomial over the start, a random one by so many nodes."""
    if begin == "random":
        rule = sphere_nodes(n, nodes)
        return np.asarray(np.sum(rule.weights[:, None] * one.at(rule.points), axis=0))
    return one.at(np.array([0.0 if begin == "zero" else float(begin)]))[0]


def _moved(first: float, second: float, last: float) -> float:
    """The larger of two changes of a mean, relative; 1 for a mean that is none."""
    moved = max(abs(last - second), abs(second - first) * _SHARE)
    return moved / last if last > 0 else 1.0


def exact_passage(chain: Solvable, begin: Begin) -> Passage:
    """Steps until |Q| reaches the threshold, from ``"zero"``, ``"random"`` or a value of Q.

    Polynomials and nodes are made more until the mean changes by little enough, relative; its
    error is the larger of the last two changes, since one may be small by chance where the nodes
    meet the threshold, and what rounding does.

    Raises
    ------
    HdicaError
        If the mean is not known to three per cent, as for the longest passages.
    """
    terms = min(max(_TERMS, math.ceil(_PER_WIDTH * math.sqrt(chain.n))), _MOST)
    points, nodes = chain.first, _SPHERE

    def level(terms: int, points: Any, nodes: int) -> Passage:
        one = chain.solved(terms, points)
        return Passage(one, _start(one, begin, chain.n, nodes))

    levels = [level(terms * 2 // 3, points.coarser(), nodes * 2 // 3), level(terms, points, nodes)]
    for _ in range(_ROUNDS):
        terms, points, nodes = terms * 3 // 2, points.finer(), nodes * 3 // 2
        levels.append(level(terms, points, nodes))
        error = _moved(*(one.mean for one in levels[-3:]))
        if error < chain.enough:
            break
    found = replace(levels[-1], error=error + levels[-1].solved.rounding)
    if not found.error <= WORST:
        size, advice = chain.told
        raise HdicaError(
            f"the passage of n = {chain.n} with {size} is too long, or its samples "
            f"too rough, for the exact equation: about {found.mean:.2g} steps, known to "
            f"{found.error:.1g} of that at best and allowed to {WORST:g} ({advice})"
        )
    return found
