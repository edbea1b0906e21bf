"""Steady states and transitions as labelled data, at one point or over a grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.api.request import Grid, Numbers, Over, Request, grid_of, saved
from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING
from hdica.limits.mean_field.transitions.continuation import Transitions
from hdica.limits.rules.transitions import Changes
from hdica.process.progress import USUAL, check_timeout, named, shown, within
from hdica.systems.arguments import check_range, finite, text
from hdica.systems.labelled import (
    applicable,
    candidates,
    dataset,
    described,
    first_of,
    noted,
    with_role,
)
from hdica.systems.method import (
    INFORMATIVE,
    STATE_KINDS,
    TRANSITION_KINDS,
    Array,
    Method,
    Role,
    varied,
    words,
)
from hdica.systems.parameters import Parameters
from hdica.systems.projected.steady import find_transitions
from hdica.systems.system import System, joined, record_of

_NONE = np.empty(0)


@shown
def fixed_points(
    system: Parameters,
    *,
    x: Numbers | None = None,
    over: Over | None = None,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """Steady states of the limit.

    Of online ICA and sparse PCA those that a search over every overlap finds, refined until it is
    stable; states that stand nearer to each other than it resolves are one. Of Hebbian ICA the
    list is proved complete, or what a search found: the result says which.

    Parameters
    ----------
    system
        The problem.
    x
        Points at which the steady densities are given, of online ICA and sparse PCA; None for
        states without their densities.
    over, timeout, progress
        As in :func:`hdica.limit`; None for no limit. With ``over`` a combination that takes longer
        has no states, and a ``note`` that says so.

    Returns
    -------
    xarray.Dataset
        Over ``fixed_point``, by increasing overlap: ``Q``, ``R``, ``h`` (half the curvature of
        the effective potential), ``bulk`` (E[x^2] of all but o(n) entries), ``stable`` (bool)
        and ``kind``: ``"informative"``, ``"uninformative"`` (Q = 0) or ``"condensed"`` (a share
        1 - bulk of |x|^2 sits on o(n) entries), and ``error`` of Q, that of the averages over f
        and the source included.

        With ``x`` also ``density(fixed_point, feature, x)``, the steady density of the estimate
        given the feature, exp{-(h x^2 + B Phi(x) - b xi x)/g}/Z with Phi' = phi (Wang and Lu 2016,
        eq. (17), for sparse PCA with B = 1), ``cdf``, its distribution function at the ``edge`` of
        the bins around ``x``, and ``xi`` and ``weight`` of each group of the feature's entries. Of
        a condensed state it is the density of all but o(n) entries, whose E[x^2] is ``bulk`` < 1:
        of the uninformative one the exponential (20). NaN where every entry is +-xi itself, and
        where the feature moves.

        For Hebbian ICA, by decreasing size: ``R(fixed_point, projection, source)``,
        ``eigenvalue`` (largest real part of those of the Jacobian), ``stable`` and ``kind``. Of
        states that are images of each other under changes of sign (of projections if the
        nonlinearity is odd, of sources if they are symmetric) and exchanges (of projections of
        equal sigma, of equal sources) one is listed, and ``multiplicity`` says how many there
        are. ``certified`` is 1 where it is proved that no other state exists: for polynomial
        nonlinearities and at most six overlaps K M, unless the proof takes too long. Else a search
        of ``starts`` starts found the list: ``hits`` says how many ended at each state, ``unseen``
        estimates what share of further starts would end elsewhere.

        For online ICA with several features ``Q(fixed_point, source)``, the largest overlap
        first, every image under signs and exchanges listed by itself; ``eigenvalue``, ``stable``,
        ``kind`` and ``error``. They are what a search on every choice of features finds.

        With ``over`` every variable has the parameters as its first dimensions, in the order
        given, and ``note`` is a variable over them. Where there are fewer states than elsewhere
        numbers are NaN, ``kind`` is empty and ``stable`` is False.

    Raises
    ------
    HdicaError
        If the step size is not constant, the limit does not exist, or there are more states than
        a result holds or a continuum of them (with ``over``: at every combination). If there are
        no densities at ``x`` for this system.
    """
    return _everywhere(system, over, timeout, "fixed_points", partial(_fixed_points, x=x))


def _fixed_points(system: Parameters, x: Numbers | None = None) -> xr.Dataset:
    """The steady states of one system, with their densities at ``x``."""
    record = record_of(system)
    chosen = applicable(system, "fixed_points", with_role(Role.STEADY_STATES))
    save = saved(chosen, system, _NONE, Request(x=x))
    result = chosen.run(system, _NONE, None, None, save)
    states = dataset(record, chosen, _NONE, save, system.dims(), [result], "")
    states = states.isel(fixed_point=np.isfinite(states["stable"].values))
    about = {"long_name": "whether small departures die out"}
    states["stable"] = ("fixed_point", states["stable"].values.astype(bool), about)
    states["kind"] = ("fixed_point", words(states["kind"].values, STATE_KINDS))
    known = states["stable"].values, states["kind"].values == STATE_KINDS[INFORMATIVE]
    note = record.notes.states(system, _overlap(record, states), *known)
    return described(noted(states, note), system)


def _overlap(record: System, states: xr.Dataset) -> Array:
    """The first order parameter of every state, of a matrix its largest entry."""
    values: Array = states[record.order_parameters[0].name].values
    if values.ndim == 1:
        return values
    r = values.reshape(len(values), -1) if values.size else np.empty((0, 1))
    return r[np.arange(len(r)), np.abs(r).argmax(axis=1)]


@shown
def critical(
    system: Parameters,
    parameter: str | None = None,
    *,
    low: float | None = None,
    high: float | None = None,
    over: Over | None = None,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """Transitions of the steady states as one parameter varies.

    Parameters
    ----------
    system
        The problem; its own value of the parameter does not matter.
    parameter
        A scalar parameter: ``"tau"``, ``"omega"``, ``"rho"`` or a constant of the formulas. The
        default is the step size, ``"tau"`` or, of Hebbian ICA, ``"mu"`` (of which alone it has
        transitions here: of projection i with source i).
    low, high
        Range of the parameter; by default some decades.
    over, timeout, progress
        As in :func:`fixed_points`; ``over`` are other parameters, and None is for no limit.

    Returns
    -------
    xarray.Dataset
        Over ``transition``, largest value first: ``value`` (critical parameter), ``kind``, ``Q``
        there, ``error`` of the value. Kinds are ``"fold"`` (two states merge and vanish),
        ``"transcritical"`` (an informative branch meets Q = 0 and exchanges stability with it;
        with Q -> -Q symmetry a pitchfork in Q), ``"junction"`` (a branch becomes condensed), of
        rules of one's own also ``"hopf"`` (a state turns unstable by oscillations that grow) and
        ``"divergence"`` (the norm of a state becomes infinite, where nothing normalises it).
        Mirror images Q and -Q are given once, with Q > 0. Where two states merge with a corner,
        because one of them begins to condense there, the same value and Q stand twice, as a fold
        and as a junction: that is one point, and ``note`` says so. With ``over`` every variable
        has the parameters as its first dimensions, and where there are fewer transitions than
        elsewhere numbers are NaN and ``kind`` is empty, as in :func:`fixed_points`.

    Raises
    ------
    HdicaError
        If the parameter is not a scalar of this system.
    """
    record = record_of(system)
    _named(system)
    name = record.controls[0].name if parameter is None else parameter
    text(name, "parameter", "the name of a scalar parameter")

    compute = partial(_critical, parameter=name, low=low, high=high)
    return _everywhere(system, over, timeout, "critical", compute, name)


def _critical(
    system: Parameters, parameter: str, low: float | None, high: float | None
) -> xr.Dataset:
    """The transitions of one system."""
    record, method = record_of(system), _named(system)
    ends: tuple[float, float] | None = None
    if parameter == varied(method) and low is None and high is None:
        points = _natural(record, method, system)
        if not record.notes.complete(system):
            ends = ends_of(record, parameter, None, None)
    elif (search := _search(record)) is None:
        raise HdicaError(
            f"parameter = {parameter!r} with low = {low} and high = {high} is not allowed for "
            f"{record.name} (allowed: {varied(method)}, without low and high)"
        )
    else:
        ends = ends_of(record, parameter, low, high)
        roots = search(system, parameter, ends)
        kinds = np.array([str(kind) for kind in roots.kind], dtype=object)
        overlap = record.order_parameters[0].name
        columns = {"value": roots.value, overlap: roots.q, "error": roots.error, "kind": kinds}
        data = {k: ("transition", np.asarray(v)) for k, v in columns.items()}
        attrs = {"parameter": parameter, "kernel_version": method.about.kernel}
        points = xr.Dataset(data, attrs=attrs)
    q = _overlap(record, points)
    note = record.notes.transitions(system, parameter, q, ends)
    note = joined(note, corner_note(points["value"].values, q, points["kind"].values))
    return described(noted(points, note), system)


def _search(
    record: System,
) -> Callable[[Any, str, tuple[float, float]], Transitions | Changes] | None:
    """What finds transitions in any scalar parameter, if the system has it."""
    if record.changes is None and record.mean_field is not None:
        return partial(find_transitions, record.mean_field)
    return record.changes


def _named(system: Parameters) -> Method:
    """The method of the transitions of a system, whether or not it applies."""
    able = with_role(Role.TRANSITIONS)
    return candidates(system, "auto", "critical", able, able)[0]


def _natural(record: System, method: Method, system: Parameters) -> xr.Dataset:
    """Transitions in the parameter that the method of the system varies."""
    chosen = first_of([method], system)
    result = chosen.run(system, _NONE, None, None, NOTHING)
    points = dataset(record, chosen, _NONE, NOTHING, {}, [result], "")
    points = points.isel(transition=np.isfinite(points["value"].values))
    kinds = words(points["kind"].values, TRANSITION_KINDS)
    return points.assign(kind=("transition", kinds))


def ends_of(
    record: System, parameter: str, low: float | None, high: float | None
) -> tuple[float, float]:
    """Range of a parameter in which transitions are looked for."""
    usual = record.control(parameter)
    ends = (
        usual.low if low is None else finite(low, "low"),
        usual.high if high is None else finite(high, "high"),
    )
    check_range(*ends)
    return ends


def corner_note(value: Array, overlap: Array, kind: NDArray[np.object_]) -> str:
    """That a fold and a junction at the same value and overlap are one point; empty if none are."""
    values = []
    for i in np.flatnonzero(kind == "fold"):
        same = (value == value[i]) & (overlap == overlap[i]) & (kind == "junction")
        values += [f"{value[i]:.6g}"] if same.any() else []
    if not values:
        return ""
    return (
        f"the fold and the junction at {', '.join(values)} are one point: two states merge there "
        "with a corner, because one of them begins to condense"
    )


LISTS = ("fixed_point", "transition")
"""Dimensions along which combinations have different numbers of entries."""


def _everywhere(
    system: Parameters,
    over: Over | None,
    timeout: float | None,
    function: str,
    compute: Callable[[Parameters], xr.Dataset],
    parameter: str = "",
) -> xr.Dataset:
    """The results of a function at every combination, as one dataset; it may vary ``parameter``."""
    if over is None:
        return within(timeout, named(function, system), partial(compute, system))
    grid, timeout = grid_of(system, over), check_timeout(timeout)
    if parameter in [axis.key for axis in grid.axes]:
        raise HdicaError(f"over: {parameter!r} is not allowed (its critical values are found)")
    results, errors = list[xr.Dataset](), list[HdicaError]()
    for one in grid.systems:
        try:
            results.append(within(timeout, named(function, one), partial(compute, one)))
        except HdicaError as exc:
            errors.append(exc)
            results.append(xr.Dataset(attrs={"note": str(exc)}))
    if len(errors) == len(results):
        raise errors[0]
    return described(_stacked(grid, results), system)


def _stacked(grid: Grid, results: Sequence[xr.Dataset]) -> xr.Dataset:
    """Datasets of all combinations as one, with room for the longest list: NaN, "" or False."""
    variables = {str(name): one[name] for one in reversed(results) for name in one.data_vars}
    grid.check_names({*variables, *(str(dim) for one in variables.values() for dim in one.dims)})
    sizes: dict[str, int] = {}
    for one in results:
        for dim, size in one.sizes.items():
            if dim not in LISTS and sizes.get(str(dim), size) != size:
                raise grid.uneven(str(dim))
            sizes[str(dim)] = max(size, sizes.get(str(dim), 0))
    data: dict[str, Any] = {}
    for name, like in variables.items():
        blank, dtype = {"O": ("", object), "b": (False, bool)}.get(like.dtype.kind, (np.nan, float))
        shape = (len(results), *(sizes[str(dim)] for dim in like.dims))
        values = np.full(shape, blank, dtype=dtype)
        for k, result in enumerate(results):
            if name in result:
                own = result[name].values
                place: tuple[int | slice, ...] = (k, *map(slice, own.shape))
                values[place] = own
        data[name] = (("point", *like.dims), values, like.attrs)
    notes = np.array([one.attrs.get("note", "") for one in results], dtype=object)
    about = {"long_name": "what a reader of the numbers must know, or why there are none"}
    data["note"] = ("point", notes, about)
    longest = max(
        (one for one in results if one.data_vars),
        key=lambda one: max(one.sizes.get(dim, 0) for dim in LISTS),
    )
    # Values of xi that differ between combinations are in a variable: the dimension counts.
    dims = grid.own({str(dim) for dim in longest.dims}).items()
    differ = {d: (d, list(v)) for d, v in dims if tuple(longest[d].values) != tuple(v)}
    longest = longest.assign_coords(differ)
    attrs = {name: value for name, value in longest.attrs.items() if name != "note"}
    return grid.unfolded(xr.Dataset(data, longest.coords, attrs))
