"""A landscape on the circle or the sphere, with its critical points and their number."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.describe import described
from hdica.analysis.reading import group
from hdica.analysis.sphere.record import JUDGED, Sphere
from hdica.errors import HdicaError
from hdica.status import DONE

LONG_NAMES = {
    "objective": "objective in a direction",
    "at": "coordinate {v} of a critical point",
    "kind": "0 minimiser, 1 saddle, 2 maximiser",
    "space": "dimension d of the space around the sphere",
    "minimisers": "number of minimisers",
    "saddles": "number of saddles",
    "maximisers": "number of maximisers",
    "index_sum": "sum of (-1)^(number of unstable directions) over the critical points",
    "characteristic": "Euler characteristic of the sphere, 1 + (-1)^(d - 1)",
}

MINIMISER, SADDLE, MAXIMISER = 0.0, 1.0, 2.0
KINDS = {"minimisers": MINIMISER, "maximisers": MAXIMISER, "saddles": SADDLE}

OWN = {"fixed_point", "component", "polar", "azimuth"}

EXACT = 2.0**53
"""Sums of larger numbers of either sign are rounded."""


def sphere(tree: xr.DataTree, settings: Sphere) -> xr.Dataset:
    """The objective in all directions, and the critical points by their kind.

    ``objective`` over ``polar`` and ``azimuth`` as the method gives it; over ``fixed_point``
    ``kind``, and with ``component`` the coordinates ``at``. A point without unstable directions is
    a minimiser, one with d - 1 of them a maximiser, any other a saddle. Numbers count
    ``multiplicity`` points each where the method says so; ``index_sum`` is the Euler
    ``characteristic`` of the sphere if every critical point is listed and none is degenerate
    (Morse 1925). Swept parameters on which nothing depends are left out.
    """
    states = group(tree, settings.states)
    for name in (settings.coordinates, *JUDGED):
        if name not in states:
            raise HdicaError(f"method {settings.states!r} has no variable {name!r}")
    done = states["status"] == DONE
    at = states[settings.coordinates].where(done)
    out = {"at": at, **_counted(states.where(done), at)}
    if settings.landscape is not None:
        out["objective"] = _objective(group(tree, settings.landscape), settings)
    data = xr.Dataset({name: values.reset_coords(drop=True) for name, values in out.items()})
    data = _varying(data, [str(d) for d in data.dims if d not in OWN])
    data.attrs = {"variable": settings.coordinates, "states": settings.states}
    return described(data, LONG_NAMES, settings.coordinates)


def _objective(data: xr.Dataset, settings: Sphere) -> xr.DataArray:
    """Objective of finished points; directions that a circle lacks are NaN."""
    if settings.value not in data:
        raise HdicaError(f"method {settings.landscape!r} has no variable {settings.value!r}")
    return data[settings.value].where(data["status"] == DONE)


def _counted(states: xr.Dataset, at: xr.DataArray) -> dict[str, xr.DataArray]:
    """Kinds and numbers of critical points, and the sum of their indices."""
    stable, unstable = (states[name] for name in JUDGED)
    dimension = at.notnull().sum("component").max("fixed_point").astype(float)
    known = at.notnull().any("component") & unstable.notnull()
    kind = xr.where(unstable == dimension - 1, MAXIMISER, SADDLE)
    kind = xr.where((stable > 0.5) & (unstable == 0), MINIMISER, kind).where(known)
    many = states.get("multiplicity", xr.ones_like(unstable)).where(known, 0.0)
    found = {name: many.where(kind == code, 0.0).sum("fixed_point") for name, code in KINDS.items()}
    sign = 1 - 2 * (unstable % 2)
    total = (sign * many).sum("fixed_point").where(many.sum("fixed_point") < EXACT)
    some = known.any("fixed_point")
    return {
        "kind": kind,
        "space": dimension.where(some),
        **{name: values.where(some) for name, values in found.items()},
        "index_sum": total.where(some),
        "characteristic": (1 + (-1) ** (dimension - 1)).where(some),
    }


def _varying(data: xr.Dataset, grid: list[str]) -> xr.Dataset:
    """The data without swept parameters on which none of it depends."""
    for dim in grid:
        first = data.isel({dim: 0}, drop=True)
        if all(_same(data[name], first[name], dim) for name in data.data_vars):
            data = first
    return data


def _same(values: xr.DataArray, first: xr.DataArray, dim: str) -> bool:
    if dim not in values.dims:
        return True
    moved = values.transpose(dim, ...)
    like = first.transpose(*moved.dims[1:]).values
    return bool(np.array_equal(moved.values, np.broadcast_to(like, moved.shape), equal_nan=True))
