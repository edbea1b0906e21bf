"""How much a mean of the limit changes with parameters: derivatives by the adjoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from hdica.api.curve import field_maker
from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_functional
from hdica.limits.bands.solve import Change, gradient
from hdica.limits.bands.sweep import Function, means, overlap, penalty
from hdica.limits.mean_field.family import MeanField
from hdica.process.progress import shown
from hdica.process.timeout import USUAL, limited
from hdica.systems.address import in_one_spelling
from hdica.systems.arguments import finite, text
from hdica.systems.fields import formula, with_parameter
from hdica.systems.labelled import described
from hdica.systems.registry import record_of

_STEP = 1e-5


@shown
@limited
def sensitivity(
    system: Any,
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
    timeout
        Seconds that it may take before :class:`~hdica.errors.OutOfTime` is raised; None for no
        limit.
    progress
        Whether to show what it is at, if it takes longer than two seconds; None for terminals
        alone.

    Returns
    -------
    xarray.Dataset
        ``value``, and over ``parameter``: ``gradient``, its ``error``, and ``elasticity``, the
        derivative by the parameter's logarithm. ``rate(parameter, step)`` is what of the derivative
        comes from each piece of time around ``time(step)``, per unit of time: for the step size
        the derivative by tau(t).

    Raises
    ------
    OutOfTime
        If it takes longer than ``timeout``: two minutes unless that says otherwise.
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
    named = [text(name, "wrt", "names of scalar parameters") for name in _listed(wrt)]
    names = [in_one_spelling(name, cls, content) for name in named]
    make = field_maker(system)
    of = record_of(system).order_parameters[0].name if of is None else of
    h = _function(system, of)
    values = [_value(system, name) for name in names]
    changes = [_change(system, *pair, make, of) for pair in zip(names, values, strict=True)]
    found = gradient(make(system), means(time, [h]), changes)
    middle = (found.times[1:] + found.times[:-1]) / 2
    each = {
        "gradient": (found.gradient, f"d{of}/dparameter"),
        "error": (found.error, "error of the gradient"),
        "elasticity": (found.gradient * np.array(values), f"d{of}/dln(parameter)"),
    }
    data = {k: ("parameter", column, {"long_name": name}) for k, (column, name) in each.items()}
    late = {"long_name": "what of the gradient comes from a time, per unit of time"}
    coords = {"parameter": names, "time": ("step", middle, {"long_name": "time t = k/n"})}
    told = ((), found.value, {"long_name": f"{of} at t = {time:g}"})
    rate = (("step", "parameter"), found.rate, late)
    return described(xr.Dataset({"value": told, **data, "rate": rate}, coords), system)


def _listed(wrt: Any) -> list[Any]:
    if isinstance(wrt, str) or not isinstance(wrt, Sequence) or not wrt:
        raise HdicaError(f"wrt = {wrt!r} is not allowed (a list of names of scalar parameters)")
    return list(wrt)


def _value(system: Any, name: str) -> float:
    """The value of a scalar parameter; refused as it is where it is changed."""
    with_parameter(system, name, 0.5)
    return float(system.constants[name] if name in system.constants else getattr(system, name))


def _function(system: Any, of: Any) -> Function:
    """What is averaged: xi x, x phi(x) or a formula."""
    known = [one.name for one in record_of(system).order_parameters]
    text(of, "of", f"{', '.join(known)} or a formula in x and xi")
    if of not in known:
        return parse_functional(of, system.constants).value
    return overlap if of == known[0] else penalty(formula(system, "regularizer"))


def _change(
    system: Any, name: str, value: float, make: Callable[[Any], MeanField], of: str
) -> Change:
    step = _STEP * max(abs(value), 1e-3)
    sides = [with_parameter(system, name, value + sign * step) for sign in (1, -1)]
    fields, functions = [make(one) for one in sides], [_function(one, of) for one in sides]
    return Change(fields[0], fields[1], step, (functions[0], functions[1]))
