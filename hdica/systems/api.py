"""Points of a system as labelled data: simulate, limit, fixed_points, critical."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.record import steps_of
from hdica.ingredients.save import NOTHING
from hdica.systems.method import Method
from hdica.systems.registry import methods_of

Array = NDArray[np.float64]
_TIME = {"long_name": "time t = k/n", "units": "samples per dimension"}


def _method(system: Any, name: str, kind: str, candidates: Sequence[str]) -> Method:
    """The named method, or for ``"auto"`` the first candidate that applies."""
    methods = methods_of(type(system).__name__)
    allowed = [c for c in candidates if c in methods]
    if name == "auto":
        reasons = [methods[c].refuses(system) for c in allowed]
        for candidate, reason in zip(allowed, reasons, strict=True):
            if not reason:
                return methods[candidate]
        raise HdicaError(reasons[-1])
    if name not in allowed:
        raise HdicaError(
            f"{kind}: method = {name!r} is not known (allowed: auto, {', '.join(allowed)})"
        )
    reason = methods[name].refuses(system)
    if reason:
        raise HdicaError(reason)
    return methods[name]


def check_times(times: Iterable[float]) -> Array:
    """Times as an array of shape (T,), or a sentence why they are not allowed."""
    values = np.atleast_1d(np.asarray(list(times), dtype=float))
    good = values.size > 0 and np.all(np.isfinite(values)) and values[0] >= 0
    if not good or np.any(np.diff(values) <= 0):
        raise HdicaError(
            f"times = {values.tolist()} is not allowed (at least one, finite, >= 0, increasing)"
        )
    return values


def _dataset(
    method: Method, times: Array, results: list[dict[str, Array]], lead: str
) -> xr.Dataset:
    coords: dict[str, Any] = dict(method.coords(times))
    if "time" in coords:
        coords["time"] = ("time", coords["time"], _TIME)
    lead_dims = (lead,) if lead else ()
    data = {
        o.name: (
            (*lead_dims, *o.dims),
            np.stack([r[o.name] for r in results]) if lead else results[0][o.name],
            {"long_name": o.long_name, "units": o.units},
        )
        for o in method.outputs
    }
    attrs = {"method": method.name, "accuracy": method.accuracy, "equations": method.equations}
    return xr.Dataset(data, coords, {**attrs, "kernel_version": method.kernel})


def _described(dataset: xr.Dataset, system: Any) -> xr.Dataset:
    return dataset.assign_attrs(system=type(system).__name__, parameters=system.model_dump_json())


def simulate(
    system: Any,
    *,
    n: int,
    times: Iterable[float],
    seeds: Iterable[int] = (0,),
    method: str = "auto",
) -> xr.Dataset:
    """Run a rule at finite dimension.

    Parameters
    ----------
    system
        The problem, for example :class:`hdica.OnlineICA`.
    n
        Dimension, at least 3.
    times
        Times t = k/n to record, increasing; step floor(t n).
    seeds
        One independent trial each; a trial depends on the system, n and its seed alone.
    method
        ``"vector"`` (all coordinates), ``"chain"`` (exact in law at a cost per step that does
        not depend on n) or ``"auto"``: the chain where it is exact, else the vector.

    Returns
    -------
    xarray.Dataset
        ``Q(seed, time)``, ``R(seed, time)``, and per seed ``status`` (1 done, 2 diverged) and
        ``reason``; values after a divergence are NaN.

    Raises
    ------
    HdicaError
        If an argument is not allowed or the method is not exact for this system.
    """
    chosen = _method(system, method, "simulate", ("chain", "vector"))
    if isinstance(n, bool) or int(n) != n or n < 3:
        raise HdicaError(f"n = {n!r} is not allowed (a whole number >= 3)")
    grid, trials = check_times(times), [int(s) for s in seeds]
    if not trials or min(trials) < 0 or len(set(trials)) < len(trials):
        raise HdicaError(f"seeds = {trials} is not allowed (at least one, >= 0, all different)")
    results = [chosen.run(system, grid, int(n), seed, NOTHING) for seed in trials]
    dataset = _dataset(chosen, grid, [r.values for r in results], "seed")
    flags = {"flag_values": [1, 2], "flag_meanings": "done diverged", "long_name": "status"}
    status = np.array([2 if r.diverged else 1 for r in results], dtype=np.uint8)
    dataset = dataset.assign_coords(
        seed=("seed", trials, {"long_name": "seed of the trial"}),
        n=((), int(n), {"long_name": "dimension n"}),
        step=("time", steps_of(grid, int(n)), {"long_name": "step k = floor(t n)"}),
    ).assign(
        status=("seed", status, flags),
        reason=("seed", np.array([r.diverged for r in results], dtype=object)),
    )
    return _described(dataset, system)


def limit(system: Any, *, times: Iterable[float], method: str = "auto") -> xr.Dataset:
    """The limit n -> infinity.

    Parameters
    ----------
    system
        The problem.
    times
        Times t, increasing.
    method
        ``"ode"`` where the overlap closes the limit, or ``"auto"``.

    Returns
    -------
    xarray.Dataset
        ``Q(time)``, ``R(time)``, ``Q_error(time)`` (the solver's own error), ``Q_sd(time)``
        (limit of sqrt(n) sd(Q)) and ``Q_control(time)`` (the drift wrong by 2 %).

    Raises
    ------
    HdicaError
        If the limit does not exist or no method covers this system.
    """
    chosen = _method(system, method, "limit", ("ode",))
    grid = check_times(times)
    return _described(
        _dataset(chosen, grid, [chosen.run(system, grid, None, None, NOTHING).values], ""), system
    )


def fixed_points(system: Any) -> xr.Dataset:
    """All steady states of the limit, on every branch.

    Returns
    -------
    xarray.Dataset
        Over ``fixed_point``, by increasing overlap: ``Q``, ``R`` and ``stable`` (bool).

    Raises
    ------
    HdicaError
        If the step size is not constant or the overlap does not close the limit.
    """
    chosen = _method(system, "auto", "fixed_points", ("fixed_points",))
    none = np.empty(0)
    found = _dataset(chosen, none, [chosen.run(system, none, None, None, NOTHING).values], "")
    found = found.isel(fixed_point=np.isfinite(found["Q"].values))
    attrs = {"long_name": "whether small departures die out"}
    found["stable"] = ("fixed_point", found["stable"].values.astype(bool), attrs)
    return _described(found, system)


def critical(system: Any, parameter: str = "tau") -> xr.Dataset:
    """Transitions of the steady states as one parameter varies.

    Parameters
    ----------
    system
        The problem; its own value of the parameter does not matter.
    parameter
        ``"tau"``.

    Returns
    -------
    xarray.Dataset
        Over ``transition``, largest value first: ``value`` (critical parameter), ``kind``
        (``"fold"``: a stable and an unstable state merge and vanish), ``Q`` there, ``error`` of
        the value. Mirror images Q and -Q are given once, with Q > 0.

    Raises
    ------
    HdicaError
        If the parameter is not one whose transitions are known.
    """
    if parameter != "tau":
        raise HdicaError(f"critical: parameter = {parameter!r} is not known (allowed: tau)")
    chosen = _method(system, "auto", "critical", ("critical",))
    none = np.empty(0)
    found = _dataset(chosen, none, [chosen.run(system, none, None, None, NOTHING).values], "")
    found = found.isel(transition=np.isfinite(found["value"].values))
    kinds = np.full(found.sizes["transition"], "fold", dtype=object)
    return _described(found.assign(kind=("transition", kinds)), system)
