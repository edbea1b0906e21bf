"""A transition of the steady states along a second parameter, and the effective potential."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from hdica.api.keeping import Numbers
from hdica.api.limit import limit
from hdica.api.steady import ends_of
from hdica.errors import HdicaError, suggestion
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.transitions.continuation import transition_curve
from hdica.process.progress import shown
from hdica.process.timeout import USUAL, limited
from hdica.systems.arguments import listed, text
from hdica.systems.fields import with_parameter
from hdica.systems.kinds import TRANSITION_KINDS
from hdica.systems.labelled import described
from hdica.systems.points import check_times
from hdica.systems.projected.steady import find_transitions
from hdica.systems.registry import record_of, systems


def field_maker(system: Any) -> Callable[[Any], MeanField]:
    """How a system gives its limit."""
    record = record_of(system)
    if record.mean_field is None:
        able = ", ".join(one.name for one in systems().values() if one.mean_field)
        raise HdicaError(f"system {record.name} has no density limit (allowed: {able})")
    return record.mean_field


@shown
@limited
def critical_curve(
    system: Any,
    parameter: str,
    along: str,
    values: Numbers,
    *,
    kind: str = "fold",
    low: float | None = None,
    high: float | None = None,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """One transition as a second parameter varies: a line in the plane of two parameters.

    Parameters
    ----------
    system
        The problem; its own values of the two parameters do not matter.
    parameter
        The scalar parameter whose critical value is followed.
    along
        The scalar parameter that varies.
    values
        Its values, in the order in which they are visited.
    kind
        ``"fold"``, ``"transcritical"`` or ``"junction"``; where there are several at the first
        value, that with the largest overlap is followed.
    low, high
        Range of ``parameter`` searched at the first value, as in :func:`hdica.critical`.
    timeout
        Seconds that it may take before :class:`~hdica.errors.OutOfTime` is raised; None for no
        limit.
    progress
        Whether to show what it is at, if it takes longer than two seconds; None for terminals
        alone.

    Returns
    -------
    xarray.Dataset
        Over ``along``: ``value``, its ``error``, and ``Q``; NaN from where the transition is lost.

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
    HdicaError
        If a parameter is not a scalar of this system, or there is no such transition at the
        first value.
    """
    record, field_of = record_of(system), field_maker(system)
    text(parameter, "parameter", "the name of a scalar parameter")
    text(along, "along", "the name of a scalar parameter")
    if not isinstance(kind, str) or kind not in TRANSITION_KINDS:
        raise HdicaError(f"kind = {kind!r} is not allowed ({suggestion(kind, TRANSITION_KINDS)})")
    visited = listed(values, "values")
    if not visited.size:
        raise HdicaError("values = [] is not allowed (at least one value)")
    first = with_parameter(system, along, float(visited[0]))
    found = find_transitions(field_of, first, parameter, ends_of(record, parameter, low, high))
    own = np.flatnonzero(found.kind == kind)
    if not own.size:
        known = ", ".join(sorted(set(found.kind.tolist()))) or "none"
        raise HdicaError(
            f"kind = {kind!r} is not found at {along} = {visited[0]:g} (there: {known})"
        )
    begin = own[np.argmax(found.q[own])]
    line = transition_curve(
        lambda value, second: field_of(
            with_parameter(with_parameter(system, along, second), parameter, value)
        ),
        visited,
        (float(found.value[begin]), float(found.q[begin])),
        kind,
    )
    overlap = record.order_parameters[0].name
    data = {"value": (along, line.value), "error": (along, line.error), overlap: (along, line.q)}
    attrs = {"parameter": parameter, "kind": kind}
    return described(xr.Dataset(data, {along: visited}, attrs), system)


def effective_potential(
    system: Any,
    *,
    times: Numbers,
    x: Numbers | None = None,
    timeout: float | None = USUAL,
) -> xr.Dataset:
    """The potential E_t(x, xi) in which each entry of the estimate moves by itself.

    E_t = d_t (x - b_t xi)^2/2 + B Phi(x), Wang and Lu 2017, eq. (16), with d_t and b_t corrected.

    Parameters
    ----------
    system
        The problem.
    times
        Times t, increasing.
    x
        Points; by default where the density matters.
    timeout
        Seconds that it may take before :class:`~hdica.errors.OutOfTime` is raised; None for no
        limit.

    Returns
    -------
    xarray.Dataset
        ``potential(time, feature, x)``, ``d(time)``, ``b(time)`` and ``convex(time)``.

    Warns
    -----
    UserWarning
        If the potential is not convex at some of the times (d_t < 0: the picture of a convex
        problem solved coordinate by coordinate does not hold then).
    """
    times = check_times(times).tolist()
    field_maker(system)
    path = limit(system, times=times, snapshots=times, x=x, timeout=timeout)
    convex = path["convex"].values == 1
    if not np.all(convex):
        listed = ", ".join(f"{t:g}" for t in path["time"].values[~convex])
        warnings.warn(f"the effective potential is not convex at t = {listed}", stacklevel=2)
    d = path["curvature"].rename("d").assign_attrs(long_name="d_t, curvature of the potential")
    b = (path["pull"] / path["curvature"]).rename("b").assign_attrs(long_name="b_t")
    shape = path["potential"].drop_vars("time", errors="ignore").rename(snapshot="time")
    data = {"potential": shape, "d": d, "b": b, "convex": ("time", convex)}
    return xr.Dataset(data, attrs=path.attrs)
