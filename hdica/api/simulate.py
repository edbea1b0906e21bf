"""Trials of a system at finite dimension as labelled data, at one point or over a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr

from hdica.api.asked import Asked, Grid, Numbers, Over, first_everywhere, grid_of, saved, timed
from hdica.errors import HdicaError, no_room, suggestion
from hdica.finite.record import steps_of
from hdica.ingredients.save import Save
from hdica.process.progress import USUAL, check_timeout, counted, named, shown, span, tell, within
from hdica.status import DIVERGED, DONE, FAILED
from hdica.systems.arguments import (
    check_dimensions,
    check_held,
    check_memory,
    check_n,
    check_seeds,
    check_steps,
    check_times,
    check_until,
    refused_n,
    taken_names,
)
from hdica.systems.labelled import about_data, candidates, dataset, described, first_of
from hdica.systems.method import Method, Role, shared_twin
from hdica.systems.outputs import Array, PointResult
from hdica.systems.parameters import Parameters
from hdica.systems.registry import record_of
from hdica.systems.system import System


@shown
def simulate(
    system: Parameters,
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
        sizes = check_dimensions(n) if _several(n) else [_one(n)]
        what = Given(sizes, given, check_seeds(seeds), timeout)
        data = simulate_grid(system, over, what, asked, method, noise)
        return data if _several(n) or n is None else data.isel(n=0)
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
    data = dataset(record, chosen, grid, save, system.dims(), results, "seed")
    data = _with_trials(data, size, trials, results)
    if "time" in data.dims and record.clock.counts and not chosen.scope.beyond:
        about = about_step(size)
        data = data.assign_coords(step=("time", steps_of(grid, size or 1), about))
    return about_data(described(data, system), [system])


def _one(n: object) -> int | None:
    """The dimension of a simulation, None without."""
    return None if n is None else check_n(n)


def _several(n: object) -> bool:
    """Whether these are dimensions rather than one."""
    listed = isinstance(n, Iterable) and not isinstance(n, str | bytes | Mapping)
    return listed and getattr(n, "ndim", 1) > 0


def _with_trials(
    data: xr.Dataset, n: int | None, seeds: list[int], results: list[PointResult]
) -> xr.Dataset:
    """The same with the seed and the outcome of every trial."""
    flags = {"flag_values": [1, 2], "flag_meanings": "done diverged", "long_name": "status"}
    status = np.array([2 if r.diverged else 1 for r in results], dtype=np.uint8)
    data = data.assign_coords(seed=("seed", seeds, {"long_name": "seed of the trial"}))
    if n is not None:
        data = data.assign_coords(n=((), n, {"long_name": "dimension n"}))
    return data.assign(
        status=("seed", status, flags),
        reason=("seed", np.array([r.diverged for r in results], dtype=object)),
    )


MOST_PLANNED = 100.0
"""How many times longer than the cost model says a simulation may take."""


def able(record: System) -> list[Method]:
    """Methods that can be named: simulations first, then whatever else has seeds."""
    ranked = record.with_role(Role.SIMULATION)
    return ranked + [m for m in record.methods if m.stochastic and m not in ranked]


def auto(asked: Asked) -> Callable[[System], list[Method]]:
    """Methods to try; where densities are asked for, those that keep any."""
    return lambda record: asked.first(
        [
            m
            for m in record.with_role(Role.SIMULATION)
            if m.rank and (asked.plain or m.outputs.keeps)
        ]
    )


def with_noise(method: Method, noise: str) -> Method:
    """The method with noise of each trial's own, or shared by trials of equal n and seed."""
    if isinstance(noise, str) and noise == "own":
        return method
    shared = shared_twin(method)
    if not isinstance(noise, str) or noise != "shared" or shared is None:
        names = ("own", "shared") if shared else ("own",)
        near = suggestion(noise, names)
        raise HdicaError(f"noise = {noise!r} is not allowed with method {method.name!r} ({near})")
    return shared


def check_n_of(method: Method, n: int | None, last: float) -> None:
    """Refuse a method without the n that it needs, or with one where it has none.

    ``last`` is the time of the last step.
    """
    if method.takes_n and n is None:
        raise HdicaError(f"n is missing (method {method.name!r} needs it: a whole number >= 3)")
    if not method.takes_n and n is not None:
        raise HdicaError(f"n = {n} is not allowed (method {method.name!r} has no n)")
    if n is not None:
        check_steps(n, last)


def check_dimension(method: Method, system: Parameters, n: int | None) -> None:
    """Refuse an n in which the system has no feature or first estimate."""
    refusal = "" if n is None or method.counts else refused_n(system, n)
    if refusal:
        raise HdicaError(refusal, ["n"])


def check_enough(method: Method, system: Parameters, last: float) -> None:
    """Refuse times until which given samples are not enough."""
    refusal = method.scope.beyond(system, last) if method.scope.beyond else ""
    if refusal:
        raise HdicaError(refusal, ["times"])


def at_size(n: int | None) -> str:
    """What follows "simulate" in a sentence: the dimension, if there is any."""
    return "" if n is None else f" with n = {n}"


def about_step(n: int | None) -> dict[str, str]:
    """Attributes of the step behind each time."""
    return {"long_name": "step k = floor(t)" if n is None else "step k = floor(t n)"}


def too_large(method: Method, n: int | None) -> HdicaError:
    """That a point could not be held while it was computed."""
    return no_room(f"method {method.name!r}{at_size(n)}")


@dataclass(frozen=True)
class Given:
    """What is run of every system: a trial a seed at every n, which is None alone without.

    ``times`` are None where none were given; ``timeout`` is for each system at each n, or as
    :func:`hdica.simulate` plans them.
    """

    sizes: Sequence[int | None]
    times: Array | None
    seeds: list[int]
    timeout: float | Literal["plan"] | None


@dataclass(frozen=True)
class Trials(Given):
    """The same with the times of the method that runs it."""

    times: Array

    def seconds(self, method: Method, systems: list[Parameters], n: int | None) -> float | None:
        """How long the trials of some systems may take together."""
        if self.timeout != "plan":
            each = check_timeout(self.timeout)
            return None if each is None else each * len(systems)
        planned = sum(method.cost.seconds(one, n, float(self.times[-1])) for one in systems)
        return max(USUAL, MOST_PLANNED * planned * len(self.seeds))


def simulate_grid(
    system: Parameters, over: Over | None, what: Given, asked: Asked, method: str, noise: str
) -> xr.Dataset:
    """Trials at every combination of parameters and every n: see :func:`hdica.simulate`."""
    grid = grid_of(system, over)
    methods = candidates(system, method, "simulate", able, auto(asked))
    chosen, against = first_everywhere(methods, grid.systems, USUAL, "simulate", what.times)
    chosen = with_noise(chosen, noise)
    trials = Trials(what.sizes, timed(chosen, what.times, asked), what.seeds, what.timeout)
    for n in trials.sizes:
        check_n_of(chosen, n, float(trials.times[-1]))
        for one in grid.systems:
            check_dimension(chosen, one, n)
    save = saved(chosen, grid.systems[0], trials.times, asked, trials.sizes)
    outputs = chosen.outputs_of(save)
    grid.check_names(taken_names(outputs))
    own = grid.own({dim for output in outputs for dim in output.dims})
    _check_memory(chosen, grid, trials, chosen.bytes_of(trials.times, save, own))
    cells = len(grid.systems), len(trials.sizes)
    trials_of = np.full(cells, None, dtype=object)
    trials_of[:] = np.array(against, dtype=object)[:, None]
    groups = _groups(chosen, [k for k, why in enumerate(against) if why is None])
    costs = {n: _costs(chosen, grid.systems, n, trials) for n in trials.sizes}
    done = counted(len(trials.sizes) * sum(map(len, groups)), _total(groups, costs))
    for column, n in enumerate(trials.sizes):
        for group in groups:
            some = [grid.systems[k] for k in group]
            trials_of[group, column] = _filled(_run(chosen, some, n, trials, save), len(group))
            done(len(group), sum(costs[n][k] for k in group))
    results = _results(trials_of.ravel().tolist(), chosen, trials, save, own)
    flat = dataset(record_of(system), chosen, trials.times, save, own, results[0], "point")
    labelled = _labelled(flat, grid, trials, *results)
    if chosen.scope.beyond:  # it says itself how many samples it saw
        labelled = labelled.drop_vars("step", errors="ignore")
    return about_data(described(labelled, system), grid.systems)


def _costs(
    method: Method, systems: Sequence[Parameters], n: int | None, trials: Trials
) -> list[float]:
    """What the cost model says of all trials of each system."""
    last = float(trials.times[-1])
    return [method.cost.seconds(one, n, last) * len(trials.seeds) for one in systems]


def _total(groups: list[list[int]], costs: Mapping[int | None, list[float]]) -> float:
    return sum(each[k] for each in costs.values() for group in groups for k in group)


def _check_memory(method: Method, grid: Grid, trials: Trials, size: int) -> None:
    """Refuse what this machine cannot hold, before anything is computed."""
    count = len(grid.systems) * len(trials.sizes) * len(trials.seeds)
    most = max((n for n in trials.sizes if n is not None), default=None)
    among = "over and seeds" if most is None else "over, n and seeds"
    check_memory(count * size, f"{among}: {count} points", "fewer of them, or of times")
    check_held(method, max(grid.systems, key=lambda one: method.cost.memory(one, most)), most)


def _groups(method: Method, places: list[int]) -> list[list[int]]:
    """Systems that are run together: all that share their noise, else each alone."""
    return [places] if method.about.noise == "shared" and places else [[k] for k in places]


def _filled(values: list[Any] | HdicaError, count: int) -> Any:
    """The same as an array of objects, an error as often as it is needed."""
    cells = np.empty(count, dtype=object)
    for k in range(count):
        cells[k] = values if isinstance(values, HdicaError) else values[k]
    return cells


def _run(
    method: Method, systems: list[Parameters], n: int | None, trials: Trials, save: Save
) -> list[list[PointResult]] | HdicaError:
    """The trials of each of some systems, or why there are none."""
    # All systems of one seed side by side, so that its noise is drawn once where it is shared.
    pairs = [(one, seed) for seed in trials.seeds for one in systems]
    try:
        results = within(
            trials.seconds(method, systems, n),
            named("simulate", systems[0]) + at_size(n),
            lambda: method.run_all(pairs, trials.times, n, save),
        )
    except MemoryError:
        return too_large(method, n)
    except HdicaError as exc:
        return exc
    return [results[k :: len(systems)] for k in range(len(systems))]


def _results(
    cells: list[list[PointResult] | HdicaError],
    method: Method,
    trials: Trials,
    save: Save,
    own: dict[str, tuple[float, ...]],
) -> tuple[list[PointResult], list[int]]:
    """Every trial, empty where there is none, with its status."""
    if all(isinstance(one, HdicaError) for one in cells):
        raise next(one for one in cells if isinstance(one, HdicaError))
    results, status = [], []
    for cell in cells:
        if isinstance(cell, HdicaError):
            blank = method.blank(trials.times, save, own, str(cell))
            results += [blank] * len(trials.seeds)
            status += [FAILED] * len(trials.seeds)
        else:
            results += cell
            status += [DIVERGED if one.diverged else DONE for one in cell]
    return results, status


def _labelled(
    flat: xr.Dataset, grid: Grid, trials: Trials, results: list[PointResult], status: list[int]
) -> xr.Dataset:
    """The same with its dimensions, and the outcome of every trial."""
    flags = {"flag_values": [DONE, DIVERGED, FAILED], "flag_meanings": "done diverged failed"}
    reasons = np.array([one.diverged for one in results], dtype=object)
    flat = flat.assign(
        status=("point", np.array(status, dtype=np.uint8), {**flags, "long_name": "status"}),
        reason=("point", reasons),
    )
    among = {} if trials.sizes == [None] else {"n": len(trials.sizes)}
    data = grid.unfolded(flat, {**among, "seed": len(trials.seeds)}).assign_coords(
        seed=("seed", trials.seeds, {"long_name": "seed of the trial"}),
    )
    if among:
        data = data.assign_coords(n=("n", trials.sizes, {"long_name": "dimension n"}))
    if "time" not in data.dims or not record_of(grid.systems[0]).clock.counts:
        return data
    steps = np.stack([steps_of(trials.times, n or 1) for n in trials.sizes])
    about = about_step(trials.sizes[0])
    if not among:
        return data.assign_coords(step=("time", steps[0], about))
    return data.assign_coords(step=(("n", "time"), steps, about))
