"""More of a limit that is a density: critical curves, the effective potential, sensitivities."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from hdica.api.limit import limit
from hdica.api.request import Numbers
from hdica.api.steady import ends_of
from hdica.errors import HdicaError, suggestion
from hdica.ingredients.formula import parse_functional
from hdica.limits.bands.solve import Change, gradient
from hdica.limits.bands.sweep import Function, means, overlap, penalty
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.transitions.continuation import transition_curve
from hdica.process.progress import USUAL, limited, shown
from hdica.systems.arguments import check_times, finite, listed, text
from hdica.systems.fields import formula, with_parameter
from hdica.systems.labelled import described
from hdica.systems.method import TRANSITION_KINDS
from hdica.systems.parameters import Parameters, constants_of
from hdica.systems.projected.steady import find_transitions
from hdica.systems.space import in_one_spelling
from hdica.systems.system import record_of, systems


def field_maker(system: Parameters) -> Callable[[Parameters], MeanField]:
    """How a system gives its limit."""
    record = record_of(system)
    if record.mean_field is None:
        able = ", ".join(one.name for one in systems().values() if one.mean_field)
        raise HdicaError(f"system {record.name} has no density limit (allowed: {able})")
    return record.mean_field


@shown
@limited
def critical_curve(
    system: Parameters,
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
    parameter, along
        The scalar parameter whose critical value is followed, and the one that varies.
    values
        Those of ``along``, in the order in which they are visited.
    kind
        ``"fold"``, ``"transcritical"`` or ``"junction"``; where there are several at the first
        value, that with the largest overlap is followed.
    low, high
        Range of ``parameter`` searched at the first value, as in :func:`hdica.critical`.
    timeout, progress
        As in :func:`hdica.limit`; None for no limit.

    Returns
    -------
    xarray.Dataset
        Over ``along``: ``value``, its ``error``, and ``Q``; NaN from where the transition is lost.

    Raises
    ------
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
    points = find_transitions(field_of, first, parameter, ends_of(record, parameter, low, high))
    own = np.flatnonzero(points.kind == kind)
    if not own.size:
        known = ", ".join(sorted(set(points.kind.tolist()))) or "none"
        raise HdicaError(
            f"kind = {kind!r} is not found at {along} = {visited[0]:g} (there: {known})"
        )
    begin = own[np.argmax(points.q[own])]
    line = transition_curve(
        lambda value, second: field_of(
            with_parameter(with_parameter(system, along, second), parameter, value)
        ),
        visited,
        (float(points.value[begin]), float(points.q[begin])),
        kind,
    )
    overlap = record.order_parameters[0].name
    data = {"value": (along, line.value), "error": (along, line.error), overlap: (along, line.q)}
    attrs = {"parameter": parameter, "kind": kind}
    return described(xr.Dataset(data, {along: visited}, attrs), system)


def effective_potential(
    system: Parameters,
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
        A problem whose limit is a density.
    times, x
        Times t and points, both increasing; by default points where the density matters.
    timeout
        As in :func:`hdica.limit`; None for no limit.

    Returns
    -------
    xarray.Dataset
        ``potential(time, feature, x)``, ``d(time)``, ``b(time)`` and ``convex(time)``.

    Warns
    -----
    UserWarning
        If the potential is not convex at some of the times, where d_t < 0.
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


_STEP = 1e-5


@shown
@limited
def sensitivity(
    system: Parameters,
    *,
    of: str | None = None,
    at: float,
    wrt: Sequence[str] = ("tau",),
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """Derivatives of a mean of the limit at one time, by parameters of the rates and the start.

    Parameters
    ----------
    system
        A problem whose limit is a density.
    of
        An order parameter, ``"Q"`` or ``"R"``, or a formula in ``x`` and ``xi`` whose mean over the
        entries is meant. None for the overlap.
    at
        The time t > 0.
    wrt
        Scalar parameters: fields such as ``"tau"`` or ``"omega"``, or constants of the formulas.
    timeout, progress
        As in :func:`hdica.limit`; None for no limit.

    Returns
    -------
    xarray.Dataset
        ``value``, and over ``parameter``: ``gradient``, its ``error``, and ``elasticity``, the
        derivative by the parameter's logarithm. ``rate(parameter, step)`` is what of the derivative
        comes from each piece of time around ``time(step)``, per unit of time: for the step size
        the derivative by tau(t).

    Raises
    ------
    HdicaError
        If a parameter is no scalar of this system, its feature moves, or a parameter moves a kink
        of the regularizer.

    Notes
    -----
    One sweep backwards along the density for all parameters together, the exact adjoint of the
    march that solves for it.
    """
    time = finite(at, "at")
    if not time > 0:
        raise HdicaError(f"at = {at!r} is not allowed (a time t > 0)")
    record_of(system)
    cls, content = type(system), system.model_dump(mode="python")
    if isinstance(wrt, str) or not isinstance(wrt, Sequence) or not wrt:
        raise HdicaError(f"wrt = {wrt!r} is not allowed (a list of names of scalar parameters)")
    named = [text(name, "wrt", "names of scalar parameters") for name in wrt]
    names = [in_one_spelling(name, cls, content) for name in named]
    make = field_maker(system)
    of = record_of(system).order_parameters[0].name if of is None else of
    h = _function(system, of)
    values = [_value(system, name) for name in names]
    changes = [_change(system, *pair, make, of) for pair in zip(names, values, strict=True)]
    change = gradient(make(system), means(time, [h]), changes)
    middle = (change.times[1:] + change.times[:-1]) / 2
    each = {
        "gradient": (change.gradient, f"d{of}/dparameter"),
        "error": (change.error, "error of the gradient"),
        "elasticity": (change.gradient * np.array(values), f"d{of}/dln(parameter)"),
    }
    data = {k: ("parameter", column, {"long_name": name}) for k, (column, name) in each.items()}
    late = {"long_name": "what of the gradient comes from a time, per unit of time"}
    coords = {"parameter": names, "time": ("step", middle, {"long_name": "time t = k/n"})}
    value = ((), change.value, {"long_name": f"{of} at t = {time:g}"})
    rate = (("step", "parameter"), change.rate, late)
    return described(xr.Dataset({"value": value, **data, "rate": rate}, coords), system)


def _value(system: Parameters, name: str) -> float:
    """The value of a scalar parameter; refused as it is where it is changed."""
    with_parameter(system, name, 0.5)
    constants = constants_of(system)
    return float(constants[name] if name in constants else getattr(system, name))


def _function(system: Any, of: str) -> Function:
    """What is averaged: xi x, x phi(x) or a formula."""
    known = [one.name for one in record_of(system).order_parameters]
    text(of, "of", f"{', '.join(known)} or a formula in x and xi")
    if of not in known:
        return parse_functional(of, constants_of(system)).value
    return overlap if of == known[0] else penalty(formula(system, "regularizer"))


def _change(
    system: Parameters, name: str, value: float, make: Callable[[Parameters], MeanField], of: str
) -> Change:
    step = _STEP * max(abs(value), 1e-3)
    above, below = (with_parameter(system, name, value + sign * step) for sign in (1, -1))
    return Change(make(above), make(below), step, (_function(above, of), _function(below, of)))
