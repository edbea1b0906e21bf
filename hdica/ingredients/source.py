"""What a source is: a law of mean 0 and variance 1, and what averages need to know of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.parts import Law
from hdica.ingredients.quadrature import Nodes

Array = NDArray[np.float64]
Sampler = Callable[[np.random.Generator, int], Array]
LEAST, MOST = 1e-9, 1e6
"""Smallest and largest number of a law: beyond, its moments are no floating-point numbers."""


@dataclass(frozen=True, eq=False)
class Source:
    """A standardised law.

    ``sample(rng, size)`` draws an array of shape (size,). ``nodes`` is a discrete measure for
    expectations of functions as smooth as the law itself; its error is not known, and averages that
    carry an error are taken over ``law``. ``moment(k)`` is E c^k, ``inf`` where it does not exist;
    ``symmetric`` says whether -c has the same law. ``shift`` is the mean of the law as it was
    written, in units of its standard deviation, 0 for the laws that are standardised by their name:
    c + shift is that law up to a scale.
    """

    label: str
    sample: Sampler
    nodes: Nodes = field(repr=False)
    moment: Callable[[int], float] = field(repr=False)
    symmetric: bool
    find_law: Callable[[], Law] = field(repr=False)
    shift: float = 0.0

    @cached_property
    def law(self) -> Law:
        """The law as atoms and smooth pieces, over which quadrature refines itself."""
        return self.find_law()


def double_factorial(k: int) -> float:
    """The product k (k - 2) (k - 4) ... down to 1 or 2; 1 for k <= 0."""
    return math.prod(range(k, 0, -2)) if k > 0 else 1.0
