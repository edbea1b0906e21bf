"""Trials of a system at finite dimension as labelled data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.api.keeping import Asked, Numbers, saved, timed
from hdica.api.over import Over
from hdica.api.simulations import (
    MOST_PLANNED,
    able,
    about_step,
    at_size,
    auto,
    check_dimension,
    check_enough,
    check_n_of,
    too_large,
    with_noise,
)
from hdica.finite.record import steps_of
from hdica.process.progress import shown, span, tell
from hdica.process.timeout import USUAL, named, within
from hdica.systems.labelled import about_data, candidates, dataset, described, first_of
from hdica.systems.outputs import PointResult
from hdica.systems.points import (
    check_dimensions,
    check_held,
    check_memory,
    check_n,
    check_seeds,
    check_times,
    check_until,
)
from hdica.systems.registry import record_of

Array = NDArray[np.float64]


@shown
def simulate(
    system: Any,
    *,
    n: int | Iterable[int] | None = None,
    times: Numbers | None = None,
    seeds: int | Iterable[int] = (0,),
    method: str = "auto",
    over: Over | None = None,
    snapshots: Numbers | None = None,
    x: Numbers | None = None,
    thresholds: Numbers | None = None,
    functionals: Mapping[str, str] | None = None,
    extra: Iterable[str] | None = None,
    estimate: bool | int = False,
    noise: str = "own",
    timeout: float | Literal["plan"] | None = "plan",
    progress: bool | None = None,
) -> xr.Dataset:
    """Run a rule at finite dimension.

    Parameters
    ----------
    system
        The problem, for example :class:`hdica.OnlineICA` or :class:`hdica.SparsePCA`.
    n
        Dimension, at least 3 (the number of particles for method ``"particles"``); or a list of
        dimensions, which gives results a dimension ``n``. A method of a system whose dimension is
        one of its fields has none, and is given none.
    times
        Times t = k/n to record, increasing; step floor(t n), or floor(t) without n. A list, or
        ``{"stop": 40, "num": 41}`` as in a study. None where nothing that the method gives has
        a time.
    seeds
        One independent trial each; a trial depends on the system, n and its seed alone. A number
        is how many: 8 means 0 to 7.
    method
        ``"vector"`` (all coordinates), ``"chain"`` (exact in law at a cost per step that does
        not depend on n), ``"particles"`` (McKean-Vlasov, approximate), ``"entries"`` (uncoupled
        entries that are told the limit, approximate), ``"sample_pca"`` (the leading sample
        eigenvector), for Hebbian ICA ``"escape_times"`` (first passages of the
        chain until the last time) and ``"diffusion"`` (R of order n^-1/2, approximate), or
        ``"auto"``: the chain where it is exact and nothing
        beyond Q and R is asked for, else the vector.
    over
        Parameters and their values as in :func:`hdica.limit`. Every trial of every combination
        has the bits that it has alone.
    snapshots, x
        Times, among ``times``, and points at which the histogram of the entries given the
        feature is kept: ``density(snapshot, feature, x)`` and ``cdf(snapshot, feature, edge)``.
    thresholds
        Thresholds on abs(x) for the recovery of the support of the feature: ``tpr``, ``fpr``
        and ``misclassified`` over ``(snapshot, threshold)``.
    functionals
        Name and formula in ``x`` and ``xi`` of means over the entries, kept at every time.
    extra
        Names of further variables that the method gives on request, kept at every time.
    estimate
        True: the estimate itself, ``estimate(seed, snapshot, entry)`` with |x|^2 = n, is kept at
        the snapshots (at all times if none are given), and the feature, ``xi_entry(seed, entry)``;
        a number: their first entries. With several n there are as many as the largest has, NaN
        where there are no more.
    noise
        ``"shared"``: trials of equal n and seed see the same noise, whatever the system's
        parameters, so that differences between systems are less noisy. Each keeps its law.
    timeout
        Seconds that all trials together may take before :class:`~hdica.errors.OutOfTime` is
        raised, None for no limit; by default a hundred times what the cost model says of them,
        and two minutes at least. With ``over``, or several n, each combination may take as many,
        and one that takes longer is NaN, with status 3. It ends within about two seconds after
        that, but for what is a single call: the first compilation of a kernel on a machine (up to
        half a minute) and the eigenvectors of baselines (some ten seconds at n = 4000).
    progress
        Whether to show what it is at, if it takes longer than two seconds; None for terminals
        alone.

    Returns
    -------
    xarray.Dataset
        ``Q(seed, time)``, ``R(seed, time)`` (Hebbian ICA: ``R(seed, time, projection, source)``
        and ``Q(seed, time, projection, other)``), what was asked for, and per seed ``status``
        (1 done, 2 diverged) and ``reason``; values after a divergence are NaN. From the vector
        also ``largest``, the share of |x|^2 on the largest entry. With ``over`` every variable has
        the parameters as its first dimensions, in the order given, then ``n`` if several are
        given; ``status`` is 3 where a combination has no result, and ``reason`` says why.

    Raises
    ------
    HdicaError
        If an argument is not allowed or the method is not exact for this system (with ``over``:
        for none of the combinations).
    """
    asked = Asked(snapshots, x, thresholds, functionals, extra, estimate)
    given = None if times is None else check_times(times)
    if over is not None or _several(n):
        from hdica.api.simulate_grid import Given, simulate_grid

        sizes = check_dimensions(n) if _several(n) else [_one(n)]
        what = Given(sizes, given, check_seeds(seeds), timeout)
        found = simulate_grid(system, over, what, asked, method, noise)
        return found if _several(n) or n is None else found.isel(n=0)
    record = record_of(system)
    check_until(system, given)
    known = candidates(system, method, "simulate", able, auto(asked))
    chosen = with_noise(first_of(known, system), noise)
    size, grid, trials = _one(n), timed(chosen, given, asked), check_seeds(seeds)
    check_n_of(chosen, size, float(grid[-1]))
    check_dimension(chosen, system, size)
    check_enough(chosen, system, float(grid[-1]))
    save = saved(chosen, system, grid, asked, [size])
    all_of_them = len(trials) * chosen.bytes_of(grid, save, system.dims())
    check_memory(all_of_them, f"seeds = {len(trials)}", "fewer seeds or times")
    check_held(chosen, system, size)
    planned = len(trials) * chosen.cost.seconds(system, size, float(grid[-1]))
    tell(f"{len(trials)} trials, about {span(planned)} by the cost model")
    try:
        results = within(
            max(USUAL, MOST_PLANNED * planned)
            if isinstance(timeout, str) and timeout == "plan"
            else timeout,
            named("simulate", system) + at_size(size),
            lambda: chosen.run_all([(system, seed) for seed in trials], grid, size, save),
        )
    except MemoryError as exc:
        raise too_large(chosen, size) from exc
    found = dataset(record, chosen, grid, save, system.dims(), results, "seed")
    found = _with_trials(found, size, trials, results)
    if "time" in found.dims and record.clock.counts and not chosen.scope.beyond:
        about = about_step(size)
        found = found.assign_coords(step=("time", steps_of(grid, size or 1), about))
    return about_data(described(found, system), [system])


def _one(n: Any) -> int | None:
    """The dimension of a simulation, None without."""
    return None if n is None else check_n(n)


def _several(n: Any) -> bool:
    """Whether these are dimensions rather than one."""
    listed = isinstance(n, Iterable) and not isinstance(n, str | bytes | Mapping)
    return listed and getattr(n, "ndim", 1) > 0


def _with_trials(
    found: xr.Dataset, n: int | None, seeds: list[int], results: list[PointResult]
) -> xr.Dataset:
    """The same with the seed and the outcome of every trial."""
    flags = {"flag_values": [1, 2], "flag_meanings": "done diverged", "long_name": "status"}
    status = np.array([2 if r.diverged else 1 for r in results], dtype=np.uint8)
    found = found.assign_coords(seed=("seed", seeds, {"long_name": "seed of the trial"}))
    if n is not None:
        found = found.assign_coords(n=((), n, {"long_name": "dimension n"}))
    return found.assign(
        status=("seed", status, flags),
        reason=("seed", np.array([r.diverged for r in results], dtype=object)),
    )
