"""How a time grows with a size: a power law, its exponent, and the rows of a table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import linregress

from benchmarks.harness import Contestant, Row, compare
from benchmarks.vector import spoken

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Law:
    """Times of the same thing at several sizes.

    Parameters
    ----------
    what
        What takes the time: ``"step of the full vector"``.
    along
        What grows: ``"n"``, ``"points"`` or ``"workers"``.
    unit
        Of ``times``.
    sizes
        Increasing, shape (sizes,).
    times
        Shape (sizes, repeats).
    fitted
        How many of the largest sizes the power law is fitted to, where a fixed cost hides it at
        the smaller ones; 0 for all.
    """

    what: str
    along: str
    unit: str
    sizes: tuple[int, ...]
    times: Array
    fitted: int = 0

    @property
    def _logs(self) -> tuple[Array, Array]:
        """Logarithms of the fitted sizes, shape (sizes,), and of their times."""
        return np.log(self.sizes[-self.fitted :]), np.log(self.times[-self.fitted :])

    @property
    def exponent(self) -> tuple[float, float]:
        """Slope of log time over log size and its standard error, over all repeats."""
        x, y = self._logs
        fit = linregress(np.repeat(x, y.shape[1]), y.reshape(-1))
        return float(fit.slope), float(fit.stderr)

    @property
    def line(self) -> tuple[Array, Array]:
        """Fitted sizes and times, shape (sizes,) each."""
        x, y = self._logs
        return np.exp(x), np.exp(y.mean() + self.exponent[0] * (x - x.mean()))

    @property
    def said(self) -> str:
        """The exponent in words: ``0.97 ± 0.01``."""
        slope, error = (round(value, 2) + 0.0 for value in self.exponent)
        return f"{slope:.2f} ± {error:.2f}".replace("-", "−")

    def rows(self, benchmark: str) -> list[Row]:
        """A row for each size; ratios are to the smallest."""
        case = f"{self.what} against {self.along}: exponent {self.said}"
        names = [f"{self.along} = {spoken(size)}" for size in self.sizes]
        sizes = [Contestant(name, lambda: None) for name in (f"hdica, {names[0]}", *names[1:])]
        return compare(benchmark, case, sizes, self.times, self.unit)
