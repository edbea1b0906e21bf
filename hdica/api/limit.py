"""The limit n -> infinity of a system as labelled data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.api.keeping import Asked, Numbers, saved, timed
from hdica.api.limits import MANY_TIMES, able, auto, note_of
from hdica.api.over import Over
from hdica.process.progress import shown
from hdica.process.timeout import USUAL, named, within
from hdica.systems.arguments import whole
from hdica.systems.labelled import candidates, dataset, described, first_of, noted
from hdica.systems.method import Limit
from hdica.systems.points import check_times, check_until
from hdica.systems.registry import record_of

Array = NDArray[np.float64]


@shown
def limit(
    system: Any,
    *,
    times: Numbers | None = None,
    method: str = "auto",
    over: Over | None = None,
    threads: int = 1,
    snapshots: Numbers | None = None,
    x: Numbers | None = None,
    thresholds: Numbers | None = None,
    functionals: Mapping[str, str] | None = None,
    extra: Iterable[str] | None = None,
    bands: bool = False,
    bias: bool = False,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """The limit n -> infinity, at one point or over a whole grid of parameters.

    Parameters
    ----------
    system
        The problem.
    times
        Times t, increasing: a list, or ``{"stop": 40, "num": 41}`` as in a study. None where
        nothing that the method gives has a time.
    method
        ``"ode"`` where the overlap closes the limit, ``"pde"`` for the density of the estimate
        and any regularizer, or ``"auto"``: the first of them that gives what is asked for.
        ``"sample_pca_limit"`` is the batch baseline of sparse PCA; for Hebbian ICA ``"clt"`` adds
        ``R_sd`` to the ODE, and ``"annealed"`` is asymptotic, for step sizes mu0/(t + t0).
    over
        Parameters and their values as in a study's grid, for example
        ``{"tau": {"start": 0.1, "stop": 0.2, "num": 3}, "source": ["uniform", "laplace"]}``:
        fields, ``"Q0"``, ``"rho"``, dotted paths or constants of the formulas. Every combination
        is computed, each with the bits that it has alone.
    threads
        Points of ``over`` computed at once; no number depends on it.
    snapshots
        Times, among ``times``, at which the PDE's density is kept; by default all of them, or
        the last alone if there are more than 50.
    x
        Points of the density; by default a regular grid over where it matters. With ``over``
        densities are kept only if points are given, which all combinations then share.
    thresholds, functionals
        As in :func:`hdica.simulate`.
    extra
        Names of further variables that the method gives on request, kept at every time.
    bands
        Whether to add, for everything that the limit gives, ``<variable>_sd``: the limit of sqrt(n)
        times its standard deviation over runs, by the central limit theorem of the overlap or of
        the empirical measure, with the noise of each entry's own and that of all together. At
        finite n it is wrong where nothing is Gaussian: near a fold, in the trap, for a share within
        1/n of 0 or 1.
    bias
        Whether to add ``<variable>_bias`` of order parameters, functionals and rates: the limit of
        n times (mean of runs - limit). For any phi where tau does not jump, omega stays and the
        feature has values in exact numbers, with any batch; for phi = 0 or beta*x with every
        schedule and feature that stays; for Hebbian ICA of every overlap, where no step size jumps.
    timeout
        Seconds that it may take before :class:`~hdica.errors.OutOfTime` is raised; None for no
        limit. With ``over`` each combination may take as many, and one that takes longer is NaN,
        with a ``note`` that says so. It ends within about two seconds after that, but for the first
        compilation of a kernel on a machine, which may take half a minute.
    progress
        Whether to show what it is at, if it takes longer than two seconds; None for terminals
        alone.

    Returns
    -------
    xarray.Dataset
        ``Q(time)``, ``R(time)``, ``Q_error(time)`` (an estimate of the error of Q: of the solver
        and, by the ODE, what is left of the error of the averages of f) and ``Q_control(time)``
        (the limit wrong by 2 %); for Hebbian ICA ``R(time, projection, source)``, ``R_error`` and
        ``R_control``. From the ODE also ``Q_sd(time)`` (limit of sqrt(n) sd(Q)) and
        ``Q_from_n(time)`` (the n from which three of these deviations stay clear of unstable
        states, below which no band is right); from the PDE ``density(snapshot, feature, x)``,
        ``cdf(snapshot, feature, edge)``, ``potential(snapshot, feature, x)``, ``curvature(time)``
        (d_t = 2h), ``pull(time)``, ``convex(time)`` and ``residual(time)``. Attribute ``note`` says
        so where the estimate condenses instead of converging, and where nothing is learned: why,
        and what to change. With ``over`` every variable has the parameters as its first dimensions,
        in the order given, and ``note`` is a variable over them: it also says why a point is NaN,
        from where the solver stopped or altogether, while the others went on.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If the limit does not exist or no method covers this system (with ``over``: none of the
        combinations), or an argument is not allowed.
    """
    whole(threads, "threads", "a whole number >= 1", 1)
    asked = Asked(snapshots, x, thresholds, functionals, extra, bands=bands, bias=bias)
    given = None if times is None else check_times(times)
    if over is not None:
        from hdica.api.limit_grid import limit_over

        return limit_over(system, over, given, method, asked, threads, timeout)
    return within(timeout, named("limit", system), lambda: _limit(system, given, method, asked))


def _limit(system: Any, given: Array | None, method: str, asked: Asked) -> xr.Dataset:
    """The limit at one point."""
    record = record_of(system)
    check_until(system, given)
    chosen = first_of(candidates(system, method, "limit", able, auto(asked)), system)
    times = timed(chosen, given, asked)
    if isinstance(chosen, Limit) and chosen.densities is not None:
        if asked.snapshots is None:
            asked = replace(asked, snapshots=times if times.size <= MANY_TIMES else times[-1:])
        save, result = chosen.densities.picture(system, times, saved(chosen, system, times, asked))
    else:
        save = saved(chosen, system, times, asked)
        result = chosen.run(system, times, None, None, save)
    found = dataset(record, chosen, times, save, system.dims(), [result], "")
    return described(noted(found, note_of(system, chosen, times, result)), system)
