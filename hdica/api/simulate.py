"""Points of a system as labelled data: simulate and limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.record import steps_of
from hdica.ingredients.save import Save
from hdica.process.progress import shown
from hdica.process.timeout import USUAL, named, within
from hdica.systems.arguments import formulas, increasing, whole
from hdica.systems.method import Method, PointResult
from hdica.systems.points import (
    check_functionals,
    check_memory,
    check_n,
    check_points,
    check_seeds,
    check_size,
    check_steps,
    check_times,
)
from hdica.systems.registry import SYSTEMS, mean_field_of, methods_of, name_of
from hdica.systems.shared.density import path_of, pde_values, regular_grid
from hdica.systems.shared.learning_note import joined, limit_note

Array = NDArray[np.float64]
MANY_TIMES = 50
"""More output times than this, and only the last density is kept unless snapshots are asked for."""
MOST_PLANNED = 100.0
"""How many times longer than the cost model says a simulation may take."""
_ABOUT: dict[str, dict[str, str]] = {
    "time": {"long_name": "time t = k/n", "units": "samples per dimension"},
    "snapshot": {"long_name": "time of the snapshot", "units": "samples per dimension"},
    "feature": {"long_name": "value of xi in the group"},
    "x": {"long_name": "entry of the estimate"},
    "edge": {"long_name": "edge of the bins around x"},
    "threshold": {"long_name": "threshold on abs(x)"},
    "projection": {"long_name": "projection i, a column of W"},
    "other": {"long_name": "another projection"},
    "source": {"long_name": "source j"},
    "age": {"long_name": "time over the mean time of the first escape"},
    "r": {"long_name": "r = sqrt(n) R"},
}


def known_methods(system: Any, name: str, kind: str, candidates: Sequence[str]) -> list[Method]:
    """The named method, or for ``"auto"`` all candidates, in the order in which to try them.

    Raises
    ------
    HdicaError
        If the method is not known.
    """
    methods = methods_of(name_of(system))
    allowed = [c for c in candidates if c in methods]
    if not allowed:
        raise HdicaError(_no_such_thing(system, kind, candidates))
    if not isinstance(name, str) or name not in ("auto", *allowed):
        raise HdicaError(
            f"{kind}: method = {name!r} is not known (allowed: auto, {', '.join(allowed)})"
        )
    return [methods[c] for c in (allowed if name == "auto" else [name])]


def _no_such_thing(system: Any, kind: str, candidates: Sequence[str]) -> str:
    """That a kind of result does not exist for a system, and for which systems it does."""
    able = [one for one in SYSTEMS if any(c in methods_of(one) for c in candidates)]
    return f"{kind}: system = {type(system).__name__} is not allowed (allowed: {', '.join(able)})"


def choose(system: Any, name: str, kind: str, candidates: Sequence[str]) -> Method:
    """The named method, or for ``"auto"`` the first candidate that applies.

    Raises
    ------
    HdicaError
        If the method is not known or does not apply to this system.
    """
    for method in known_methods(system, name, kind, candidates):
        reason = method.refuses(system)
        if not reason:
            return method
    raise HdicaError(reason)


def saved(
    method: Method,
    system: Any,
    times: Array,
    snapshots: Iterable[float] | None,
    x: Iterable[float] | None,
    thresholds: Iterable[float] | None,
    functionals: Mapping[str, str] | None,
) -> Save:
    """What to keep, checked against the times and the method."""
    from hdica.ingredients.functionals import parse_functional

    points = increasing(x, "x", "point", positive=False)
    theta = increasing(thresholds, "thresholds", "threshold")
    asked = snapshots is not None or points or theta or functionals
    if asked and not method.keeps:
        name = type(system).__name__
        able = [repr(m.name) for m in methods_of(name).values() if m.keeps]
        use = f"use method {' or '.join(able)}" if able else f"no method of {name} does"
        raise HdicaError(f"method {method.name!r} keeps no densities ({use})")
    check_points(points)
    kept = increasing(snapshots, "snapshots", "time")
    if snapshots is None and (points or theta):
        kept = tuple(times.tolist())
    for one in kept:
        if not np.any(np.isclose(times, one, rtol=1e-12, atol=1e-12)):
            raise HdicaError(f"snapshots: {one:g} is not one of the times {times.tolist()}")
    means, save = formulas(functionals), Save(kept, points, theta)
    check_functionals(means, method.outputs_of(save), "functionals")
    for text in means.values():
        parse_functional(text, system.constants)
    save = replace(save, functionals=means)
    if save.anything:
        check_size(method.bytes_of(times, save, system.dims()), method.name)
    return save


def dataset(
    method: Method,
    times: Array,
    save: Save,
    own: Mapping[str, Sequence[float]],
    results: list[PointResult],
    lead: str,
) -> xr.Dataset:
    """Labelled results of one point, or of several along ``lead``."""
    coords = {
        dim: (dim, values, _ABOUT.get(dim, {}))
        for dim, values in method.coords_of(times, save, own).items()
    }
    lead_dims = (lead,) if lead else ()
    values = [r.values for r in results]
    data = {
        o.name: (
            (*lead_dims, *o.dims),
            np.stack([v[o.name] for v in values]) if lead else values[0][o.name],
            {"long_name": o.long_name, "units": o.units},
        )
        for o in method.outputs_of(save)
    }
    attrs = {"method": method.name, "accuracy": method.accuracy, "equations": method.equations}
    return xr.Dataset(data, coords, {**attrs, "kernel_version": method.kernel})


def described(found: xr.Dataset, system: Any) -> xr.Dataset:
    """The same with the system and its parameters in the attributes."""
    return found.assign_attrs(system=type(system).__name__, parameters=system.model_dump_json())


def _with_noise(method: Method, noise: str) -> Method:
    """The method with noise of each trial's own, or shared by trials of equal n and seed."""
    if isinstance(noise, str) and noise == "own":
        return method
    if not isinstance(noise, str) or noise != "shared" or method.shared is None:
        allowed = "'own' or 'shared'" if method.shared else f"'own' for method {method.name!r}"
        raise HdicaError(f"noise = {noise!r} is not allowed ({allowed})")
    return method.shared


def simulate(
    system: Any,
    *,
    n: int,
    times: Iterable[float],
    seeds: int | Iterable[int] = (0,),
    method: str = "auto",
    snapshots: Iterable[float] | None = None,
    x: Iterable[float] | None = None,
    thresholds: Iterable[float] | None = None,
    functionals: Mapping[str, str] | None = None,
    noise: str = "own",
    timeout: float | Literal["plan"] | None = "plan",
) -> xr.Dataset:
    """Run a rule at finite dimension.

    Parameters
    ----------
    system
        The problem, for example :class:`hdica.OnlineICA` or :class:`hdica.SparsePCA`.
    n
        Dimension, at least 3 (the number of particles for method ``"particles"``).
    times
        Times t = k/n to record, increasing; step floor(t n).
    seeds
        One independent trial each; a trial depends on the system, n and its seed alone. A number
        is how many: 8 means 0 to 7.
    method
        ``"vector"`` (all coordinates), ``"chain"`` (exact in law at a cost per step that does
        not depend on n), ``"particles"`` (McKean-Vlasov, approximate), ``"sample_pca"`` (the
        leading sample eigenvector), for Hebbian ICA ``"escape_times"`` (first passages of the
        chain until the last time) and ``"diffusion"`` (R of order n^-1/2, approximate), or
        ``"auto"``: the chain where it is exact and nothing
        beyond Q and R is asked for, else the vector.
    snapshots, x
        Times, among ``times``, and points at which the histogram of the entries given the
        feature is kept: ``density(snapshot, feature, x)`` and ``cdf(snapshot, feature, edge)``.
    thresholds
        Thresholds on abs(x) for the recovery of the support of the feature: ``tpr``, ``fpr``
        and ``misclassified`` over ``(snapshot, threshold)``.
    functionals
        Name and formula in ``x`` and ``xi`` of means over the entries, kept at every time.
    noise
        ``"shared"``: trials of equal n and seed see the same noise, whatever the system's
        parameters, so that differences between systems are less noisy. Each keeps its law.
    timeout
        Seconds that all trials together may take before :class:`~hdica.errors.OutOfTime` is
        raised, None for no limit; by default a hundred times what the cost model says of them,
        and two minutes at least.

    Returns
    -------
    xarray.Dataset
        ``Q(seed, time)``, ``R(seed, time)`` (Hebbian ICA: ``R(seed, time, projection, source)``
        and ``Q(seed, time, projection, other)``), what was asked for, and per seed ``status``
        (1 done, 2 diverged) and ``reason``; values after a divergence are NaN. From the vector
        also ``largest``, the share of |x|^2 on the largest entry.

    Raises
    ------
    HdicaError
        If an argument is not allowed or the method is not exact for this system.
    """
    plain = snapshots is None and x is None and thresholds is None and functionals is None
    first = ("chain", "vector") if plain else ("vector",)
    others = ("chain", "vector", "particles", "sample_pca", "escape_times", "diffusion")
    chosen = choose(system, method, "simulate", first if method == "auto" else others)
    chosen = _with_noise(chosen, noise)
    size, grid, trials = check_n(n), check_times(times), check_seeds(seeds)
    check_steps(size, float(grid[-1]))
    save = saved(chosen, system, grid, snapshots, x, thresholds, functionals)
    all_of_them = len(trials) * chosen.bytes_of(grid, save, system.dims())
    check_memory(all_of_them, f"seeds = {len(trials)}", "fewer seeds or times")
    check_memory(8.0 * chosen.held(size), f"n = {size}", f"a smaller n for method {chosen.name!r}")
    planned = len(trials) * chosen.seconds(system, size, float(grid[-1]))
    try:
        results = within(
            max(USUAL, MOST_PLANNED * planned) if timeout == "plan" else timeout,
            f"{named('simulate', system)} with n = {size}",
            lambda: chosen.run_all([(system, seed) for seed in trials], grid, size, save),
        )
    except MemoryError as exc:
        raise HdicaError(f"n = {size} needs more memory than there is ({chosen.name})") from exc
    found = dataset(chosen, grid, save, system.dims(), results, "seed")
    return described(_with_trials(found, grid, size, trials, results), system)


def _with_trials(
    found: xr.Dataset, times: Array, n: int, seeds: list[int], results: list[PointResult]
) -> xr.Dataset:
    """The same with the seed, the step and the outcome of every trial."""
    flags = {"flag_values": [1, 2], "flag_meanings": "done diverged", "long_name": "status"}
    status = np.array([2 if r.diverged else 1 for r in results], dtype=np.uint8)
    found = found.assign_coords(
        seed=("seed", seeds, {"long_name": "seed of the trial"}),
        n=((), n, {"long_name": "dimension n"}),
    )
    if "time" in found.dims:
        about = {"long_name": "step k = floor(t n)"}
        found = found.assign_coords(step=("time", steps_of(times, n), about))
    return found.assign(
        status=("seed", status, flags),
        reason=("seed", np.array([r.diverged for r in results], dtype=object)),
    )


@shown
def limit(
    system: Any,
    *,
    times: Iterable[float],
    method: str = "auto",
    over: Mapping[str, Iterable[float]] | None = None,
    threads: int = 1,
    snapshots: Iterable[float] | None = None,
    x: Iterable[float] | None = None,
    thresholds: Iterable[float] | None = None,
    functionals: Mapping[str, str] | None = None,
    timeout: float | None = USUAL,
) -> xr.Dataset:
    """The limit n -> infinity, at one point or over a whole grid of parameters.

    Parameters
    ----------
    system
        The problem.
    times
        Times t, increasing.
    method
        ``"ode"`` where the overlap closes the limit, ``"pde"`` for the density of the estimate
        and any regularizer, or ``"auto"``: the first of them that gives what is asked for.
        ``"sample_pca_limit"`` is the batch baseline of sparse PCA; for Hebbian ICA ``"clt"`` adds
        ``R_sd`` to the ODE, and ``"annealed"`` is asymptotic, for step sizes mu0/(t + t0).
    over
        Scalar parameters and their values, for example ``{"tau": [0.1, 0.2], "beta": [...]}``:
        fields, ``"rho"`` or constants of the formulas. Every combination is computed, each with
        the bits that it has alone.
    threads
        Points of ``over`` computed at once; no number depends on it.
    snapshots
        Times, among ``times``, at which the PDE's density is kept; by default all of them, or
        the last alone if there are more than 50.
    x
        Points of the density; by default a regular grid over where it matters. With ``over``
        densities are kept only if points are given, which all combinations then share.
    thresholds, functionals
        As in :func:`simulate`.
    timeout
        Seconds that it may take before :class:`~hdica.errors.OutOfTime` is raised; None for no
        limit. With ``over`` each combination may take as many, and one that takes longer is NaN,
        with a ``note`` that says so.

    Returns
    -------
    xarray.Dataset
        ``Q(time)``, ``R(time)``, ``Q_error(time)`` (an estimate of the error of Q: of the solver
        and, by the ODE, what is left of the error of the averages of f) and ``Q_control(time)``
        (the limit wrong by 2 %); for Hebbian ICA ``R(time, projection,
        source)``, ``R_error`` and ``R_control``. From the ODE also ``Q_sd(time)`` (limit of
        sqrt(n) sd(Q)); from the PDE ``density(snapshot, feature, x)``,
        ``cdf(snapshot, feature, edge)``, ``potential(snapshot, feature, x)``, ``curvature(time)``
        (d_t = 2h), ``pull(time)``, ``convex(time)`` and ``residual(time)``. Attribute ``note``
        says so where the estimate condenses instead of converging, and where nothing is learned:
        why, and what to change. With ``over`` every variable
        has the parameters as its first dimensions, in the order given, and ``note`` is a
        variable over them: it also says why a point is NaN, from where the solver stopped or
        altogether, while the others went on.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If the limit does not exist or no method covers this system (with ``over``: none of the
        combinations), or an argument is not allowed.
    """
    whole(threads, "threads", "a whole number >= 1", 1)
    if over is not None:
        from hdica.api.limit_grid import Asked, limit_over

        asked = Asked(snapshots, x, thresholds, functionals)
        return limit_over(system, over, check_times(times), method, asked, threads, timeout)
    what = (snapshots, x, thresholds, functionals)
    return within(
        timeout, named("limit", system), lambda: _limit(system, check_times(times), method, *what)
    )


def _limit(
    system: Any,
    grid: Array,
    method: str,
    snapshots: Iterable[float] | None,
    x: Iterable[float] | None,
    thresholds: Iterable[float] | None,
    functionals: Mapping[str, str] | None,
) -> xr.Dataset:
    """The limit at one point."""
    plain = snapshots is None and x is None and thresholds is None and functionals is None
    chosen = choose(system, method, "limit", limit_candidates(method, plain))
    if chosen.name == "pde":
        return _density_limit(chosen, system, grid, snapshots, x, thresholds, functionals)
    save = saved(chosen, system, grid, snapshots, x, thresholds, functionals)
    result = chosen.run(system, grid, None, None, save)
    found = dataset(chosen, grid, save, system.dims(), [result], "")
    return described(noted(found, limit_note(system, result.values, grid, chosen.name)), system)


def limit_candidates(method: str, plain: bool) -> tuple[str, ...]:
    """Methods of the limit to try; ``plain`` if Q and R alone are asked for."""
    if method != "auto":
        return ("ode", "pde", "sample_pca_limit", "clt", "annealed")
    return ("ode", "pde") if plain else ("pde",)


def _density_limit(
    method: Method,
    system: Any,
    times: Array,
    snapshots: Iterable[float] | None,
    x: Iterable[float] | None,
    thresholds: Iterable[float] | None,
    functionals: Mapping[str, str] | None,
) -> xr.Dataset:
    """The PDE's limit; the points of its densities are known only once it is solved."""
    field_of = mean_field_of(type(system).__name__)
    if snapshots is None:
        snapshots = times if times.size <= MANY_TIMES else times[-1:]
    save = saved(method, system, times, snapshots, x, thresholds, functionals)
    field = field_of(system)
    path = path_of(field, system, times, save)
    if x is None:
        save = replace(save, x=tuple(regular_grid(path).tolist()))
    result = pde_values(field, system, times, save, path)
    found = dataset(method, times, save, system.dims(), [result], "")
    note = joined(note_of(result), limit_note(system, result.values, times, method.name))
    return described(noted(found, note), system)


def noted(found: xr.Dataset, note: str) -> xr.Dataset:
    """The same with a note among its attributes, if there is anything to say."""
    return found.assign_attrs(note=note) if note else found


def note_of(result: PointResult) -> str:
    """What a reader of the numbers must know: the solver stopped, or the state condenses."""
    if result.diverged:
        return result.diverged
    curvature = result.values.get("curvature")
    if curvature is not None and curvature[-1] < 0:
        return (
            "at the last time h < 0: |x|^2 moves to ever larger entries, so the estimate is "
            "not converging (it condenses if this lasts)"
        )
    return ""
