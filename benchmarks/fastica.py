"""What does an iteration of FastICA cost, in microseconds a start, next to scikit-learn?

The same whitened samples, starts and number of iterations, one thread, float64. One component from
1, 10 or 50 starts: ours are moved together; scikit-learn's loop for one component runs once a
start. All d components: the class of scikit-learn, with symmetric decorrelation or by deflation.
Ours also gives the score of every component, and rearranges the samples first: both are on the
clock.

Run: python -m benchmarks fastica   (some minutes)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.harness import Contestant, Row, present, race
from benchmarks.rivals import sklearn_fastica
from hdica.finite.fastica.iteration import components, fastica
from hdica.finite.fastica.whitening import whitened
from hdica.ingredients.contrasts import make_contrast

Array = NDArray[np.float64]

NAME = "fastica"
UNIT = "µs per start and iteration"
ONE = "one"
SIZES = ((500, 4), (2000, 4), (2000, 32), (16000, 32), (20000, 128), (5000, 256))


@dataclass(frozen=True)
class Case:
    """n whitened samples in d dimensions, a contrast, and what is looked for.

    ``how`` is ``"one"`` component, or all of them, ``"symmetric"`` or by ``"deflation"``; then
    there are d starts.
    """

    contrast: str
    n: int
    d: int
    how: str = ONE
    starts: int = 1
    iterations: int = 10

    @property
    def label(self) -> str:
        """Name in the table."""
        many = {1: "1 start"}.get(self.starts, f"{self.starts} starts")
        what = many if self.how == ONE else f"all by {self.how}" if self.how[0] == "d" else "all"
        return f"{self.contrast}, n = {self.n}, d = {self.d}, {what}"

    @cached_property
    def data(self) -> tuple[Array, Array]:
        """Samples of which a quarter of the directions are signs, and starts."""
        rng = np.random.default_rng(0)
        x = rng.standard_normal((self.n, self.d))
        x[:, : max(self.d // 4, 1)] = np.sign(x[:, : max(self.d // 4, 1)])
        count = self.starts if self.how == ONE else self.d
        return whitened(x).scores(x), rng.standard_normal((count, self.d))


def ours(case: Case) -> Array:
    """Our components after the iterations of a case."""
    (y, starts), contrast = case.data, make_contrast(case.contrast)
    if case.how == ONE:
        return fastica(y, starts, contrast, tolerance=0.0, most=case.iterations).w
    all_at_once = case.how == "symmetric"
    most = case.iterations
    return components(y, starts, contrast, symmetric=all_at_once, tolerance=0.0, most=most).w


def theirs(case: Case) -> Array:
    """Those of scikit-learn."""
    y, starts = case.data
    if case.how == ONE:
        return sklearn_fastica.first_components(y, starts, case.contrast, case.iterations)
    return sklearn_fastica.all_components(y, starts, case.contrast, case.how, case.iterations)


def cases(small: bool) -> list[Case]:
    """What is raced."""
    if small:
        return [Case("exp", 200, 3), Case("logcosh", 200, 3, "symmetric", iterations=3)]
    contrasts = ("exp", "logcosh", "kurtosis")
    return [
        *(Case(contrast, *size) for size in SIZES for contrast in contrasts),
        *(Case("exp", *size, starts=k, iterations=5) for size in SIZES for k in (10, 50)),
        *(Case("logcosh", *size, "symmetric", iterations=3) for size in SIZES),
        *(Case("logcosh", *size, "deflation", iterations=3) for size in SIZES[:3]),
    ]


def rows(small: bool = False, repeats: int = 5) -> list[Row]:
    """The table."""
    found = []
    if not present("scikit-learn", "sklearn"):
        return found
    with threadpool_limits(1):
        for case in cases(small):
            work = len(case.data[1]) * case.iterations
            contestants = [
                Contestant("hdica", partial(ours, case), work),
                Contestant("scikit-learn", partial(theirs, case), work),
            ]
            found += race(NAME, case.label, contestants, unit=UNIT, scale=1e6, repeats=repeats)
    return found
