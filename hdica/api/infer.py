"""The parameters of a rule, from overlaps that were measured."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from hdica.api.best import Space, at_an_end, smallest, spaces_of
from hdica.api.samples import moments_of, share
from hdica.errors import HdicaError, refused
from hdica.ingredients.plain import Array
from hdica.limits.overlap.likelihood import Chain, chain
from hdica.process.progress import USUAL, named, shown, within
from hdica.systems import fields
from hdica.systems.arguments import whole
from hdica.systems.labelled import described, noted
from hdica.systems.parameters import Parameters
from hdica.systems.system import joined

SOURCE = "source.beta"
"""The number of the family of laws that ``source`` stands for."""
USUAL_RANGES = {"tau": (1e-3, 1.0), "omega": (1e-2, 10.0), SOURCE: (1e-2, 100.0)}
"""Where a parameter is looked for of which no range is given."""
MOST_FREE = 2
WORDS = {
    "estimate": "parameter of the largest likelihood",
    "low": "lower end of the interval",
    "high": "upper end of the interval",
    "misfit": "probability of residuals as large as these",
    "deviance": "twice the logarithm of the likelihood ratio",
    "threshold": "deviance at the edge of the region",
    "kurtosis": "excess kurtosis of the source",
    "kurtosis_low": "its lower end",
    "kurtosis_high": "its upper end",
}
_REGION = 25
"""Values of each parameter in the picture of a region."""
_GRID = {1: 49, 2: 17}
"""Points of the grid on which the likelihood is looked at first, along one or two parameters."""
FEW = 20
"""Residuals a parameter below which likelihood ratios need not have the law of many."""
_SIDE = 1e-4
"""Closeness of the ends of an interval, in the logarithm of the parameter."""


@shown
def infer(
    curve: xr.DataArray,
    system: Parameters,
    free: Mapping[str, Any] | Sequence[str],
    *,
    n: int | None = None,
    level: float = 0.95,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """Parameters of a rule from the overlap that was measured at several times.

    By maximum likelihood. Differences from the limit are correlated in time: they are a Markov
    chain, whose law at leading order in 1/n is known, and intervals and regions are those of
    likelihood ratios.

    Parameters
    ----------
    curve
        Overlap with dimension ``time``, and ``seed`` if several runs were measured, as
        :func:`hdica.simulate` gives it; all of one n, which is its coordinate ``n`` or ``n=``.
    system
        Online ICA or sparse PCA whose limit the overlap alone closes; its own values of the free
        parameters do not matter.
    free
        One or two parameters: a mapping to their ranges ``(low, high)``, 0 < low, or a list of
        names, ``"tau"``, ``"omega"`` or ``"source"``, which are looked for in usual ranges.
        ``"source"`` is the exponent of ``{beta: a}``, a family of laws from two values at a = 0
        by the uniform law at 1 towards a normal one.
    n
        Dimension of the runs, if it is no coordinate of the curve.
    level
        Confidence of the intervals and of the region.
    timeout, progress
        As in :func:`hdica.limit`; None for no limit.

    Returns
    -------
    xarray.Dataset
        Over ``parameter``: ``estimate``, and ``low`` and ``high``, the ends of all that the profile
        likelihood does not reject; NaN where that has no end in the range. A ``note`` says where
        that is in several parts, and where the numbers are so few that the confidence may be less
        than ``level``. With two parameters, ``deviance`` over both (twice the logarithm of the
        likelihood ratio), a picture of the region: it is where this is below ``threshold``.
        ``kurtosis`` is that of the source (fourth moment minus 3), if its law is free, with
        ``kurtosis_low`` and ``kurtosis_high``. ``misfit`` is the probability of residuals as large
        as these under the theory at its best: where it is tiny the runs are of another rule.

    Raises
    ------
    HdicaError
        If an argument is not allowed, the overlap does not close the limit, or its fluctuations are
        infinite.

    Examples
    --------
    >>> import hdica
    >>> ica = hdica.OnlineICA(tau=0.04, source="uniform", start={"overlap": 0.62, "exact": True})
    >>> runs = hdica.simulate(ica, n=4000, times=range(0, 81, 2), seeds=1, method="chain")
    >>> found = hdica.infer(runs.Q, ica, free={"tau": (0.01, 0.2)})
    >>> bool(found.low[0] < 0.04 < found.high[0])
    True
    """
    curves, times, size = _measured(curve, n)
    space, confidence = _space(system, free), share(level, "level")
    likelihood = Likelihood(space, curves, times, size)
    return within(timeout, named("infer", system), lambda: _inferred(likelihood, confidence))


def _measured(curve: object, n: object) -> tuple[Array, Array, int]:
    """The curves, shape (runs, T), their times and their dimension."""
    if not isinstance(curve, xr.DataArray) or set(curve.dims) not in ({"time"}, {"time", "seed"}):
        what = tuple(curve.dims) if isinstance(curve, xr.DataArray) else type(curve).__name__
        raise HdicaError(
            f"curve: {what} is not allowed (a DataArray of an overlap over time, and over seed if "
            "there are several runs: for one of several n take .sel(n=...))"
        )
    own = curve.coords["n"].item() if "n" in curve.coords else None
    if own is None and n is None:
        raise HdicaError("n is needed (the curve has no coordinate n: give n=)")
    if own is not None and n is not None and own != n:
        raise HdicaError(f"n = {n} is not allowed (the curve has n = {own})")
    size = whole(own if n is None else n, "n", "a whole number from 2", 2)
    if "time" not in curve.coords or curve["time"].dtype.kind not in "iuf":
        raise HdicaError("curve: its times are missing (a coordinate time of numbers)")
    times = np.asarray(curve["time"].values, dtype=float)
    if times.size < 2 or not (np.all(np.diff(times) > 0) and times[0] >= 0):
        raise HdicaError("curve: its times are not allowed (at least two, increasing, from 0)")
    rows = curve.transpose(..., "time").values.reshape(-1, times.size).astype(float)
    if not np.all(np.abs(rows) <= 1):
        raise HdicaError("curve: its values are not allowed (overlaps from -1 to 1, none missing)")
    return rows, times, size


def _space(system: Parameters, free: object) -> Space:
    """The one space of the free parameters."""
    names = list(free) if isinstance(free, Mapping | Sequence) and not isinstance(free, str) else []
    if not 1 <= len(names) <= MOST_FREE:
        raise refused("free", free, "one or two parameters: a list of names, or their ranges")
    ranges: dict[str, Any] = {}
    for name in names:
        key = SOURCE if name == "source" else name
        if key == SOURCE:
            system = system.model_copy(update={"source": {"beta": 1.0}})
        given = free[name] if isinstance(free, Mapping) else USUAL_RANGES.get(key)
        if key in ranges:
            raise HdicaError(f"free: {list(names)} is not allowed ({key} is there twice)")
        if given is None:
            usual = ", ".join(USUAL_RANGES)
            raise HdicaError(f"free: {name} needs a range (low, high) (of {usual} one is usual)")
        ranges[key] = given
    space, *more = spaces_of(system, ranges, "free")
    if more or len(space.ranges) < len(names) or any(one.low <= 0 for one in space.ranges):
        raise HdicaError(f"free: {ranges} is not allowed (ranges (low, high) with 0 < low)")
    return space


def _inferred(likelihood: Likelihood, confidence: float) -> xr.Dataset:
    from scipy.stats import chi2

    top = likelihood.highest()
    space = likelihood.space
    keys = [axis.key for axis in space.axes]
    threshold = float(chi2.ppf(confidence, 1))
    ends = [likelihood.ends(top, k, threshold) for k in range(len(keys))]
    z = likelihood.chain(top.point).residuals(likelihood.curves, likelihood.n)
    seen = z[np.isfinite(z)]
    columns = zip(("estimate", "low", "high"), (top.point, *zip(*ends, strict=True)), strict=True)
    data = xr.Dataset(
        {name: ("parameter", np.array(column)) for name, column in columns},
        {"parameter": keys, "level": confidence, "n": likelihood.n},
    )
    left = seen.size - len(keys)
    data["misfit"] = chi2.sf(np.sum(seen**2), left) if left > 0 else math.nan
    if len(keys) == MOST_FREE:
        axes = [likelihood.window(k, e) for k, e in enumerate(ends)]
        surface = [likelihood.deviance(top, point) for point in itertools.product(*axes)]
        names = [key.replace(".", "_") for key in keys]
        data["deviance"] = (names, np.reshape(surface, (_REGION, _REGION)))
        data["threshold"] = chi2.ppf(confidence, MOST_FREE)
        data = data.assign_coords(dict(zip(names, axes, strict=True)))
    if SOURCE in keys:
        k = keys.index(SOURCE)
        for end, a in zip(("", "_low", "_high"), (top.point[k], *ends[k]), strict=True):
            data[f"kurtosis{end}"] = -6 / (2 * a + 3)
    for name, words in WORDS.items():
        if name in data:
            data[name].attrs["long_name"] = words
    notes = [at_an_end(space, top.point)]
    parts = sum(so for so, _ in itertools.groupby(top.inside(threshold).values()))
    if len(keys) == 1 and parts > 1:
        notes.append(f"the likelihood has {parts} maxima that low to high holds")
    if seen.size < FEW * len(keys):
        notes.append(
            f"from {seen.size} numbers intervals may cover less often than {confidence:g} (more "
            "times or runs)"
        )
    return described(noted(data, joined(*notes)), space.system(top.point))


class Top(NamedTuple):
    """Where the likelihood is largest, its logarithm there, and minus that at all points tried."""

    point: tuple[float, ...]
    value: float
    tried: Mapping[tuple[float, ...], float]

    def inside(self, threshold: float) -> dict[tuple[float, ...], bool]:
        """Whether the deviance of the points tried is below a threshold, in their order."""
        return {
            point: 2 * (self.value + loss) < threshold for point, loss in sorted(self.tried.items())
        }


class Likelihood(NamedTuple):
    """Likelihood of curves, (runs, T), over the ranges of a space."""

    space: Space
    curves: Array
    times: Array
    n: int

    def chain(self, point: tuple[float, ...]) -> Chain:
        """The chain of the differences at a point."""
        system = fields.at_dimension(self.space.system(point), self.n)
        drift = moments_of(system).drift
        if drift.noise is None:
            raise HdicaError(
                "the fluctuations of the overlap are infinite, and there is no likelihood (a law "
                "with lighter tails, or another nonlinearity)"
            )
        start, prior = fields.start(system), fields.prior(system)  # type: ignore[arg-type]
        schedule = fields.schedule(system)  # type: ignore[arg-type]
        return chain(drift, schedule, start.overlap(prior), start.spread(prior), self.times)

    def at(self, point: tuple[float, ...]) -> float:
        """Minus the logarithm of the likelihood, infinite where there is no limit."""
        try:
            value = -self.chain(point).log_likelihood(self.curves, self.n)
        except HdicaError:
            return math.inf
        return value if math.isfinite(value) else math.inf

    def highest(self) -> Top:
        """The largest likelihood: on a grid, and from its best points by search."""
        tried = dict[tuple[float, ...], float]()

        def loss(point: tuple[float, ...]) -> float:
            tried[point] = self.at(point)
            return tried[point]

        smallest(loss, self.space.ranges, _GRID[len(self.space.ranges)])
        point = min(tried, key=lambda one: tried[one])
        if not math.isfinite(tried[point]):
            self.chain(point)  # says why
            raise HdicaError("infer: the curve has no likelihood anywhere in the ranges")
        return Top(point, -tried[point], tried)

    def deviance(self, top: Top, point: tuple[float, ...]) -> float:
        """Twice the logarithm of the ratio of the largest likelihood and that at a point."""
        return 2 * (top.value + self.at(point))

    def profile(self, top: Top, k: int, value: float) -> float:
        """The least deviance where one parameter has a value."""
        from scipy.optimize import minimize_scalar

        if len(top.point) == 1:
            return self.deviance(top, (value,))
        other = 1 - k
        low, high = self._logs(other)

        def beside(log: float) -> float:
            point = (value, math.exp(log)) if k == 0 else (math.exp(log), value)
            return min(self.deviance(top, point), 1e12)

        grid = np.linspace(low, high, 17)
        values = [beside(x) for x in grid]
        at = int(np.argmin(values))
        ends = (grid[max(at - 1, 0)], grid[min(at + 1, grid.size - 1)])
        search = minimize_scalar(beside, bounds=ends, method="bounded", options={"xatol": 1e-5})
        return float(min(search.fun, values[at]))

    def ends(self, top: Top, k: int, threshold: float) -> tuple[float, float]:
        """The interval of one parameter in which the profile of the deviance is below a value."""
        from scipy.optimize import brentq

        inside = [math.log(point[k]) for point, so in top.inside(threshold).items() if so]
        found = []
        for end, best in zip(self._logs(k), (min(inside), max(inside)), strict=True):

            @cache  # a profile is a search
            def over(log: float) -> float:
                return min(self.profile(top, k, math.exp(log)), 1e6) - threshold

            # Outwards in steps that double: far away there may be no limit, and another optimum.
            step, inner = 0.02 * (end - best), best
            while True:
                outer = inner + step
                outer = end if abs(outer - best) >= abs(end - best) else outer
                if step == 0 or (outer == end and over(outer) < 0):
                    found.append(math.nan)
                    break
                if over(outer) >= 0:
                    found.append(math.exp(float(brentq(over, inner, outer, xtol=_SIDE))))
                    break
                inner, step = outer, 2 * step
        return found[0], found[1]

    def window(self, k: int, ends: tuple[float, float]) -> Array:
        """Values of a parameter in a picture: a little more than its interval."""
        low, high = (
            end if math.isnan(own) else math.log(own)
            for own, end in zip(ends, self._logs(k), strict=True)
        )
        more, (least, most) = 0.3 * (high - low), self._logs(k)
        edges = max(low - more, least), min(high + more, most)
        return np.asarray(np.exp(np.linspace(*edges, _REGION)))

    def _logs(self, k: int) -> tuple[float, float]:
        one = self.space.ranges[k]
        return math.log(one.low), math.log(one.high)
