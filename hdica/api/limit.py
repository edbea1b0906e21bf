"""The limit n -> infinity of a system as labelled data, at one point or over a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from hdica.api.request import Numbers, Over, Request, first_everywhere, grid_of, saved
from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.process.progress import USUAL, check_timeout, counted, named, shown, within
from hdica.systems.arguments import check_held, check_times, check_until, whole
from hdica.systems.labelled import Methods, candidates, dataset, described, first_of, noted
from hdica.systems.method import Array, Method, PointResult, Role, densities_of
from hdica.systems.parameters import Parameters
from hdica.systems.system import System, joined, record_of


@shown
def limit(
    system: Parameters,
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
        The problem, for example :class:`hdica.OnlineICA` or :class:`hdica.SparsePCA`.
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
        Seconds that it may take before :class:`~hdica.errors.OutOfTime` is raised, two minutes by
        default; None for no limit. With ``over`` each combination may take as many, and one that
        takes longer is NaN, with a ``note`` that says so. It ends within about two seconds after
        that, but for the first compilation of a kernel on a machine, which may take half a minute.
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
        If it takes longer than ``timeout``.
    HdicaError
        If the limit does not exist or no method covers this system (with ``over``: none of the
        combinations), or an argument is not allowed.
    """
    whole(threads, "threads", "a whole number >= 1", 1)
    request = Request(snapshots, x, thresholds, functionals, extra, bands=bands, bias=bias)
    given = None if times is None else check_times(times)
    if over is not None:
        return limit_over(system, over, given, method, request, threads, timeout)
    return within(timeout, named("limit", system), lambda: _limit(system, given, method, request))


def _limit(system: Parameters, given: Array | None, method: str, request: Request) -> xr.Dataset:
    """The limit at one point."""
    record = record_of(system)
    check_until(system, given)
    chosen = first_of(candidates(system, method, "limit", able, auto(request)), system)
    times, densities = request.times_of(chosen, given), densities_of(chosen)
    if densities:
        request = _with_snapshots(request, times)
    save = saved(chosen, system, times, request)
    if densities:
        save, result = densities.picture(system, times, save)
    else:
        result = chosen.run(system, times, None, None, save)
    data = dataset(record, chosen, times, save, system.dims(), [result], "")
    note = joined(numbers_note(result), learning_note(system, chosen, times, result))
    return described(noted(data, note), system)


MANY_TIMES = 50
"""More output times than this, and only the last density is kept unless snapshots are asked for."""


def _with_snapshots(request: Request, times: Array) -> Request:
    """A request with the snapshots that are usual where it names none."""
    if request.snapshots is not None:
        return request
    return replace(request, snapshots=times if times.size <= MANY_TIMES else times[-1:])


def able(record: System) -> list[Method]:
    """Methods that can be named: limits, and baselines without seeds."""
    ranked = record.with_role(Role.LIMIT)
    return ranked + [m for m in record.with_role(Role.BASELINE) if not m.stochastic]


def auto(request: Request) -> Methods:
    """Methods to try; where densities are asked for, those that have any."""
    return request.auto(Role.LIMIT, densities_of)


def learning_note(system: Parameters, method: Method, times: Array, result: PointResult) -> str:
    """Why nothing is learned, where a limit that is not itself an approximation says so."""
    if method.role is not Role.LIMIT or method.about.accuracy == "approximate" or times[-1] == 0.0:
        return ""
    record = record_of(system)
    path = result.values.get(record.order_parameters[0].name)
    if path is None or not np.all(np.isfinite(path)):
        return ""
    return record.notes.limit(system, result.values, times)


def numbers_note(result: PointResult) -> str:
    """That the solver stopped, or the state condenses."""
    if result.diverged:
        return result.diverged
    curvature = result.values.get("curvature")
    if curvature is not None and curvature[-1] < 0:
        return (
            "at the last time h < 0: |x|^2 moves to ever larger entries, so the estimate is "
            "not converging (it condenses if this lasts)"
        )
    return ""


def _kept(method: Method, system: Parameters, times: Array, request: Request) -> Save:
    """What to keep of every point: densities only at points that all share."""
    if request.x is not None or request.thresholds is not None:
        request = _with_snapshots(request, times)
    elif request.snapshots is not None:
        raise HdicaError(
            "x = None is not allowed with over and snapshots (points of the densities, which all "
            "combinations share, or thresholds)"
        )
    return saved(method, system, times, request)


def _run(
    method: Method,
    systems: Sequence[Parameters],
    times: Array,
    save: Save,
    threads: int,
    timeout: float | None,
) -> tuple[list[PointResult | HdicaError], dict[int, str]]:
    """Every point, the error in the place of one that has no result, and notes by their ``id``."""
    last = float(times[-1])
    costs = {id(one): method.cost.seconds(one, None, last) for one in systems}
    done, notes = counted(len(systems), sum(costs.values())), dict[int, str]()

    def guard(one: Parameters, compute: Callable[[], PointResult]) -> PointResult:
        """The result of a point, which has a time of its own, and its note for later."""
        results: list[PointResult] = []

        def solve() -> str:
            results.append(compute())
            return learning_note(one, method, times, results[0])

        try:
            notes[id(one)] = within(timeout, named("limit", one), solve)
        except HdicaError as exc:
            if not results:
                raise
            notes[id(one)] = str(exc)
        finally:
            done(1, costs[id(one)])
        return results[0]

    densities = densities_of(method)
    if densities and densities.many:
        return densities.many(systems, times, save, threads, guard), notes
    solved: list[PointResult | HdicaError] = []
    for one in systems:
        try:
            solved.append(guard(one, partial(method.run, one, times, None, None, save)))
        except HdicaError as exc:
            solved.append(exc)
    return solved, notes


def limit_over(
    system: Parameters,
    over: Over,
    given: Array | None,
    method: str,
    request: Request,
    threads: int,
    timeout: float | None,
) -> xr.Dataset:
    """The limit at every combination of parameters: :func:`hdica.limit` with ``over``."""
    grid = grid_of(system, over)
    timeout, systems = check_timeout(timeout), grid.systems
    methods = candidates(systems[0], method, "limit", able, auto(request))
    chosen, against = first_everywhere(methods, systems, timeout, "limit", given)
    check_held(chosen, max(systems, key=lambda one: chosen.cost.memory(one, None, 0.0)), None)
    times = request.times_of(chosen, given)
    save = _kept(chosen, system, times, request)
    own = grid.own_of(chosen.outputs_of(save))
    applies = [one for one, why in zip(systems, against, strict=True) if why is None]
    solved, notes = _run(chosen, applies, times, save, threads, timeout)
    left = iter(solved)
    each = [next(left) if why is None else why for why in against]
    errors = [one for one in (*solved, *each) if isinstance(one, HdicaError)]
    if len(errors) == len(solved) + len(each):
        raise errors[0]
    results = [
        chosen.blank(times, save, own, str(one)) if isinstance(one, HdicaError) else one
        for one in each
    ]
    flat = dataset(record_of(system), chosen, times, save, own, results, "point")
    about = {"long_name": "why values are missing, the estimate condenses or nothing is learned"}
    texts = [
        joined(numbers_note(result), notes.get(id(one), ""))
        for one, result in zip(systems, results, strict=True)
    ]
    note = ("point", np.array(texts, dtype=object), about)
    return described(grid.unfolded(flat.assign(note=note)), system)
