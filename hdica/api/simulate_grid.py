"""Trials over a grid of parameters and several dimensions, as labelled data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.api.keeping import Asked, saved, timed
from hdica.api.over import Grid, Over, first_everywhere, grid_of
from hdica.api.simulations import (
    MOST_PLANNED,
    able,
    about_step,
    at_size,
    auto,
    check_dimension,
    check_n_of,
    too_large,
    with_noise,
)
from hdica.errors import HdicaError
from hdica.finite.record import steps_of
from hdica.ingredients.save import Save
from hdica.process.progress import counted
from hdica.process.timeout import USUAL, check_timeout, named, within
from hdica.status import DIVERGED, DONE, FAILED
from hdica.systems.labelled import about_data, candidates, dataset, described
from hdica.systems.method import Method
from hdica.systems.outputs import PointResult
from hdica.systems.points import check_held, check_memory, taken_names
from hdica.systems.registry import record_of

Array = NDArray[np.float64]


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

    def seconds(self, method: Method, systems: list[Any], n: int | None) -> float | None:
        """How long the trials of some systems may take together."""
        if self.timeout != "plan":
            each = check_timeout(self.timeout)
            return None if each is None else each * len(systems)
        planned = sum(method.cost.seconds(one, n, float(self.times[-1])) for one in systems)
        return max(USUAL, MOST_PLANNED * planned * len(self.seeds))


def simulate_grid(
    system: Any, over: Over | None, what: Given, asked: Asked, method: str, noise: str
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
    found = np.full(cells, None, dtype=object)
    found[:] = np.array(against, dtype=object)[:, None]
    groups = _groups(chosen, [k for k, why in enumerate(against) if why is None])
    costs = {n: _costs(chosen, grid.systems, n, trials) for n in trials.sizes}
    done = counted(len(trials.sizes) * sum(map(len, groups)), _total(groups, costs))
    for column, n in enumerate(trials.sizes):
        for group in groups:
            some = [grid.systems[k] for k in group]
            found[group, column] = _filled(_run(chosen, some, n, trials, save), len(group))
            done(len(group), sum(costs[n][k] for k in group))
    results = _results(found.ravel().tolist(), chosen, trials, save, own)
    flat = dataset(record_of(system), chosen, trials.times, save, own, results[0], "point")
    labelled = _labelled(flat, grid, trials, *results)
    if chosen.scope.beyond:  # it says itself how many samples it saw
        labelled = labelled.drop_vars("step", errors="ignore")
    return about_data(described(labelled, system), grid.systems)


def _costs(method: Method, systems: Sequence[Any], n: int | None, trials: Trials) -> list[float]:
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
    found = np.empty(count, dtype=object)
    for k in range(count):
        found[k] = values if isinstance(values, HdicaError) else values[k]
    return found


def _run(
    method: Method, systems: list[Any], n: int | None, trials: Trials, save: Save
) -> list[list[PointResult]] | HdicaError:
    """The trials of each of some systems, or why there are none."""
    # All systems of one seed side by side, so that its noise is drawn once where it is shared.
    pairs = [(one, seed) for seed in trials.seeds for one in systems]
    try:
        found = within(
            trials.seconds(method, systems, n),
            named("simulate", systems[0]) + at_size(n),
            lambda: method.run_all(pairs, trials.times, n, save),
        )
    except MemoryError:
        return too_large(method, n)
    except HdicaError as exc:
        return exc
    return [found[k :: len(systems)] for k in range(len(systems))]


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
    found = grid.unfolded(flat, {**among, "seed": len(trials.seeds)}).assign_coords(
        seed=("seed", trials.seeds, {"long_name": "seed of the trial"}),
    )
    if among:
        found = found.assign_coords(n=("n", trials.sizes, {"long_name": "dimension n"}))
    if "time" not in found.dims or not record_of(grid.systems[0]).clock.counts:
        return found
    steps = np.stack([steps_of(trials.times, n or 1) for n in trials.sizes])
    about = about_step(trials.sizes[0])
    if not among:
        return found.assign_coords(step=("time", steps[0], about))
    return found.assign_coords(step=(("n", "time"), steps, about))
