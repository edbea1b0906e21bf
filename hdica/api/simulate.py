"""Trials of a system at finite dimension as labelled data, at one point or over a grid."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from hdica.api.request import Grid, Numbers, Over, Own, Request, first_everywhere, grid_of, saved
from hdica.errors import HdicaError, no_room, suggestion
from hdica.finite.record import steps_of
from hdica.ingredients.save import Save
from hdica.process.progress import USUAL, check_timeout, counted, named, shown, span, tell, within
from hdica.status import DIVERGED, DONE, FAILED
from hdica.systems import arguments
from hdica.systems.labelled import candidates, dataset, described, noted
from hdica.systems.method import Array, Method, PointResult, Role, shared_twin
from hdica.systems.parameters import Parameters
from hdica.systems.system import System, joined, record_of


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
        one of its fields has none.
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
        entries driven by the limit, approximate), ``"sample_pca"`` (the leading sample
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
        As in :func:`hdica.limit`.

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
    request = Request(snapshots, x, thresholds, functionals, extra, estimate)
    given = None if times is None else arguments.check_times(times)
    several = isinstance(n, Iterable) and not isinstance(n, str | bytes | Mapping)
    several = several and getattr(n, "ndim", 1) > 0
    sizes = (
        arguments.check_dimensions(n) if several else [None if n is None else arguments.check_n(n)]
    )
    grid, numbers = grid_of(system, over), arguments.check_seeds(seeds)
    auto = request.auto(Role.SIMULATION, lambda one: one.outputs.keeps)
    methods = candidates(system, method, "simulate", able, auto)
    chosen, against = first_everywhere(methods, grid.systems, USUAL, "simulate", given)
    chosen = with_noise(chosen, noise)
    trials = Trials(sizes, request.times_of(chosen, given), numbers, timeout)
    _check(chosen, grid, trials)
    save = saved(chosen, grid.systems[0], trials.times, request, sizes)
    own = grid.own_of(chosen.outputs_of(save))
    _check_memory(chosen, grid, trials, chosen.bytes_of(trials.times, save, own))
    cells = _run_all(chosen, grid, against, trials, save)
    data = described(_labelled(cells, chosen, grid, trials, save, own), system)
    # What samples are not that the rules assume.
    notes = [note for one in grid.systems for note in record_of(one).notes.data(one)]
    data = noted(data, joined(*dict.fromkeys(notes)))
    return data if several or n is None else data.isel(n=0)


MOST_PLANNED = 100.0  # how many times longer than the cost model says a simulation may take


@dataclass(frozen=True)
class Trials:
    """A trial a seed at every n (None alone without n), and the timeout of each system and n."""

    sizes: Sequence[int | None]
    times: Array
    seeds: list[int]
    timeout: float | Literal["plan"] | None

    def planned(self, method: Method, systems: Iterable[Parameters], n: int | None) -> list[float]:
        """What the cost model says of all trials of each of some systems."""
        last = float(self.times[-1])
        return [method.cost.seconds(one, n, last) * len(self.seeds) for one in systems]

    def seconds(self, method: Method, systems: list[Parameters], n: int | None) -> float | None:
        """How long the trials of some systems may take together."""
        if not (isinstance(self.timeout, str) and self.timeout == "plan"):
            each = check_timeout(self.timeout)
            return None if each is None else each * len(systems)
        return max(USUAL, MOST_PLANNED * sum(self.planned(method, systems, n)))


def able(record: System) -> list[Method]:
    """Methods that can be named: simulations first, then whatever else has seeds."""
    ranked = record.with_role(Role.SIMULATION)
    return ranked + [m for m in record.methods if m.stochastic and m not in ranked]


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


def _check(method: Method, grid: Grid, trials: Trials) -> None:
    """Refuse a method without the n it needs, or with one it lacks, and what systems refuse."""
    last = float(trials.times[-1])
    for n, one in itertools.product(trials.sizes, grid.systems):
        if method.takes_n and n is None:
            raise HdicaError(f"n is missing (method {method.name!r} needs it: a whole number >= 3)")
        if not method.takes_n and n is not None:
            raise HdicaError(f"n = {n} is not allowed (method {method.name!r} has no n)")
        if n is not None:
            arguments.check_steps(n, last)
            if not method.counts and (refusal := one.refuses_n(n)):
                raise HdicaError(refusal, ["n"])


def _check_memory(method: Method, grid: Grid, trials: Trials, size: int) -> None:
    """Refuse what this machine cannot hold, before anything is computed."""
    count = len(grid.systems) * len(trials.sizes) * len(trials.seeds)
    most = max((n for n in trials.sizes if n is not None), default=None)
    among, fewer = f"seeds = {count}", "fewer seeds or times"
    if count > len(trials.seeds):
        among = f"over{'' if most is None else ', n'} and seeds: {count} points"
        fewer = "fewer of them, or of times"
    arguments.check_memory(count * size, among, fewer)
    last = float(trials.times[-1])
    largest = max(grid.systems, key=lambda one: method.cost.memory(one, most, last))
    arguments.check_held(method, largest, most, last)


Cell = list[PointResult] | HdicaError  # the trials of a system at an n, or why there are none


def _run_all(
    method: Method,
    grid: Grid,
    against: Sequence[HdicaError | None],
    trials: Trials,
    save: Save,
) -> list[Cell]:
    """The trials of every system at every n, the systems in the order of the grid."""
    applies = [k for k, why in enumerate(against) if why is None]
    # Systems are run together if they share their noise, else each alone.
    groups = [applies] if method.about.noise == "shared" and applies else [[k] for k in applies]
    costs = [trials.planned(method, grid.systems, n) for n in trials.sizes]
    planned = sum(each[k] for each in costs for k in applies)
    tell(f"{len(grid.systems) * len(trials.seeds)} trials, about {span(planned)} by the cost model")
    done = counted(len(trials.sizes) * len(applies), planned)
    cells: dict[tuple[int, int], Cell] = {}
    for column, n in enumerate(trials.sizes):
        for group in groups:
            some = _run(method, [grid.systems[k] for k in group], n, trials, save)
            cells |= {(k, column): cell for k, cell in zip(group, some, strict=True)}
            done(len(group), sum(costs[column][k] for k in group))
    return [
        cells[k, column] if why is None else why
        for k, why in enumerate(against)
        for column in range(len(trials.sizes))
    ]


def _run(
    method: Method, systems: list[Parameters], n: int | None, trials: Trials, save: Save
) -> Sequence[Cell]:
    """The trials of each of some systems, or why there are none."""
    # All systems of one seed side by side, so that its noise is drawn once where it is shared.
    pairs = [(one, seed) for seed in trials.seeds for one in systems]
    size = "" if n is None else f" with n = {n}"
    try:
        results = within(
            trials.seconds(method, systems, n),
            named("simulate", systems[0]) + size,
            lambda: method.run_all(pairs, trials.times, n, save),
        )
    except MemoryError:
        return [no_room(f"method {method.name!r}{size}")] * len(systems)
    except HdicaError as exc:
        return [exc] * len(systems)
    return [results[k :: len(systems)] for k in range(len(systems))]


def _labelled(
    cells: Sequence[Cell], method: Method, grid: Grid, trials: Trials, save: Save, own: Own
) -> xr.Dataset:
    """All trials as labelled data, empty where there is none, with their outcome."""
    errors = [one for one in cells if isinstance(one, HdicaError)]
    if len(errors) == len(cells):
        raise errors[0]
    results, status = list[PointResult](), list[int]()
    for cell in cells:
        if isinstance(cell, HdicaError):
            blank = method.blank(trials.times, save, own, str(cell))
            results += [blank] * len(trials.seeds)
            status += [FAILED] * len(trials.seeds)
        else:
            results += cell
            status += [DIVERGED if one.diverged else DONE for one in cell]
    record = record_of(grid.systems[0])
    flat = dataset(record, method, trials.times, save, own, results, "point")
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
    counts = record.clock.counts and not method.scope.beyond  # which counts its samples
    if "time" not in data.dims or not counts:
        return data
    steps = np.stack([steps_of(trials.times, n or 1) for n in trials.sizes])
    about = {"long_name": f"step k = floor(t{' n' if among else ''})"}
    step = (("n", "time"), steps, about) if among else ("time", steps[0], about)
    return data.assign_coords(step=step)
