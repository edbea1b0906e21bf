"""A landscape on the circle or the sphere: its critical points, their number and a picture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.pictures import JUDGED, Sphere
from hdica.analysis.reading import described, done, group
from hdica.errors import HdicaError
from hdica.show.choose import (
    MOST,
    Point,
    cells_of,
    dims_of,
    evenly,
    numbers,
    points,
    positions,
    selected,
)
from hdica.show.finding import Finding
from hdica.show.marks import GREY, tailed
from hdica.show.panel import Array, Item, Line, Panel, Places, Points, Surface
from hdica.show.words import OKABE_ITO, Text, titled, words
from hdica.status import DONE
from hdica.verdict.cells import judged

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
SMALL = 1e-6
"""A coordinate below this is 0 with rounding."""
HEIGHT = 0.6
"""Around the circle the objective is drawn from radius 1, where it is least, to 1 + HEIGHT."""
ABOVE = 1.02
"""Radius at which critical points are drawn, so that the sphere hides none that is in front."""
MARKS = (
    (MINIMISER, "minimisers (stable)", "circle", OKABE_ITO[1]),
    (SADDLE, "saddles", "diamond", OKABE_ITO[4]),
    (MAXIMISER, "maximisers", "square", OKABE_ITO[3]),
)


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
    for name in JUDGED:
        if name not in states:
            raise HdicaError(f"method {settings.states!r} has no variable {name!r}")
    at = done(states, settings.coordinates)
    out = {"at": at, **_counted(states.where(states["status"] == DONE), at)}
    if settings.landscape is not None:
        out["objective"] = done(group(tree, settings.landscape), settings.value)
    data = xr.Dataset(out)
    for dim in dims_of(data, *OWN):
        first = data.isel({dim: 0}, drop=True)
        data = first if first.broadcast_equals(data.drop_vars(dim)) else data
    data.attrs = {"variable": settings.coordinates, "states": settings.states}
    return described(data, LONG_NAMES, settings.coordinates)


def _counted(states: xr.Dataset, at: xr.DataArray) -> dict[str, xr.DataArray]:
    """Kinds and numbers of critical points, and the sum of their indices."""
    stable, unstable = (states[name] for name in JUDGED)
    dimension = at.notnull().sum("component").max("fixed_point").astype(float)
    known = at.notnull().any("component") & unstable.notnull()
    kind = xr.where(unstable == dimension - 1, MAXIMISER, SADDLE)
    kind = xr.where((stable > 0.5) & (unstable == 0), MINIMISER, kind).where(known)
    many = states.get("multiplicity", xr.ones_like(unstable)).where(known, 0.0)
    counts = {
        name: many.where(kind == code, 0.0).sum("fixed_point") for name, code in KINDS.items()
    }
    sign = 1 - 2 * (unstable % 2)
    total = (sign * many).sum("fixed_point").where(many.sum("fixed_point") < EXACT)
    some = known.any("fixed_point")
    return {
        "kind": kind,
        "space": dimension.where(some),
        **{name: values.where(some) for name, values in counts.items()},
        "index_sum": total.where(some),
        "characteristic": (1 + (-1) ** (dimension - 1)).where(some),
    }


def findings(data: xr.Dataset) -> list[Finding]:
    """Numbers of critical points, minimisers off the axes, and whether a point is missing."""
    cells = [one for one in cells_of(data["space"]) if np.isfinite(data["space"].sel(one))]
    if not cells:
        return []
    places = [cell or {"d": int(data["space"])} for cell in cells]
    off = ((abs(data["at"]) > SMALL).sum("component") > 1) & (data["kind"] == MINIMISER)
    counts = {
        "critical points": data["minimisers"] + data["maximisers"] + data["saddles"],
        **{name: data[name] for name in KINDS},
        "minimisers off the coordinate axes": off.sum("fixed_point"),
    }
    out = [
        Finding(words(f"the number of {name}"), at, float(values.sel(cell)))
        for name, values in counts.items()
        for at, cell in zip(places, cells, strict=True)
    ]
    # One missing point changes a sum of indices by 1 (Morse 1925).
    sums = [numbers(data, cell, "index_sum", "characteristic") for cell in cells]
    value, right = np.transpose(sums)
    verdict = judged(value - right, np.zeros_like(value), 1.0).verdict
    name, theory = "sum of the indices of the critical points", "Euler characteristic of the sphere"
    why = "one critical point more or less would change it by 1"
    one = Finding(words(f"the {name}"), theory=words(f"the {theory}"), evidence=why)
    columns = zip(places, value.tolist(), right.tolist(), verdict.tolist(), strict=True)
    return out + [replace(one, place=p, value=v, predicted=r, verdict=c) for p, v, r, c in columns]


def panels(data: xr.Dataset) -> list[Panel]:
    """One panel for each landscape on a circle or a sphere, at most six."""
    if "objective" not in data:
        return []
    dims = [*dims_of(data["space"]), *dims_of(data["objective"], "polar", "azimuth")]
    every = points(data, list(dict.fromkeys(dims)))
    drawn = [cell for cell in every if _seen(data, cell)]
    more = f" {MOST} of {len(drawn)} landscapes, chosen evenly." if len(drawn) > MOST else ""
    out = []
    for tail, cell in tailed(evenly(drawn)):
        circle = selected(data["space"], cell) == 2
        items, caption, look = (_circle if circle else _ball)(data, cell)
        title = titled(words(f"Landscape on the {'circle' if circle else 'sphere'}"), cell)
        labels = _label(data, 0), _label(data, 1)
        text = f"{caption}{more}"
        out.append(Panel(f"sphere{tail}", title, *labels, items, text, equal=True, **look))
    return out


def _seen(data: xr.Dataset, cell: Point) -> bool:
    """Whether there is a landscape that can be drawn."""
    d = float(selected(data["space"], cell))
    objective = selected(data["objective"], cell)
    enough = d == 2 or (d == 3 and "polar" in objective.dims)
    return enough and bool(np.isfinite(objective).any())


def _label(data: xr.Dataset, k: int) -> Text:
    """A component, such as v with the index 1."""
    name = data.attrs["variable"]
    if not (name.isascii() and name.isalpha()):
        return words(f"{name} {k + 1}")
    return Text(f"<i>{name}</i><sub>{k + 1}</sub>", f"${name}_{k + 1}$", name + "₁₂₃"[k])


_Drawn = tuple[tuple[Item, ...], str, dict[str, Any]]
"""What is drawn of a landscape: items, caption, and the rest of its panel."""


def _circle(data: xr.Dataset, cell: Point) -> _Drawn:
    """The objective, on a sphere that near its equator, as the distance from the unit circle."""
    there = selected(data["objective"], cell)
    if "polar" in there.dims:
        rows = there.isel(polar=there.notnull().any("azimuth").values)
        there = rows.isel(polar=int(np.abs(rows["polar"].values - np.pi / 2).argmin()))
    there = _closed(there.dropna("azimuth"))
    angle, objective = positions(there, "azimuth"), there.values
    low, high = float(objective.min()), float(objective.max())
    height = (objective - low) / (high - low) if high > low else np.zeros_like(objective)
    radius = 1 + HEIGHT * height
    turn = np.linspace(0, 2 * np.pi, 181)
    items: list[Item] = [
        Line(np.cos(turn), np.sin(turn), words("unit circle"), GREY, "dot"),
        Line(radius * np.cos(angle), radius * np.sin(angle), words("objective"), "ink", bold=True),
    ]
    for kind, label, mark, color in MARKS:
        at = _critical(data, cell, kind)[:, :2]
        if len(at):
            where = np.interp(np.arctan2(at[:, 1], at[:, 0]), angle, radius, period=2 * np.pi)
            x, y = (at * (where / np.hypot(at[:, 0], at[:, 1]))[:, None]).T
            filled = np.full(len(at), kind == MINIMISER)
            items.append(Points(x, y, words(label), color, symbol=mark, filled=filled))
    reach = (-1.05 - HEIGHT, 1.05 + HEIGHT)
    caption = (
        "Distance from the circle: the objective, from its least to its largest value. "
        "Filled: stable."
    )
    return tuple(items), caption, {"x_range": reach, "y_range": reach}


def _closed(objective: xr.DataArray) -> xr.DataArray:
    """An objective with its first azimuth once more at the end, a turn later."""
    objective = objective.sortby("azimuth")
    first, last = (float(angle) for angle in objective["azimuth"][[0, -1]])
    if last >= first + 2 * np.pi - 1e-9:
        return objective
    again = objective.isel(azimuth=[0]).assign_coords(azimuth=[first + 2 * np.pi])
    return xr.concat([objective, again], "azimuth")


def _critical(data: xr.Dataset, cell: Point, kind: float) -> Array:
    """Coordinates of the critical points of one kind, shape (points, components)."""
    at = selected(data["at"], cell).transpose("fixed_point", "component").values
    return np.asarray(at[selected(data["kind"], cell).values == kind], dtype=float)


def _ball(data: xr.Dataset, cell: Point) -> _Drawn:
    """The objective as the colour of the sphere."""
    objective = _closed(selected(data["objective"], cell)).sortby("polar")
    objective = objective.transpose("polar", "azimuth")
    angles = (positions(objective, name) for name in objective.dims)
    theta, phi = np.meshgrid(*angles, indexing="ij")
    x, y, z = np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)
    items: list[Item] = [Surface(x, y, z, objective.values, words("objective"))]
    for kind, label, mark, hue in MARKS:
        at = ABOVE * _critical(data, cell, kind)
        if len(at):
            items.append(Places(at[:, 0], at[:, 1], at[:, 2], words(label), hue, mark))
    caption = "Colour: the objective. On the page the sphere can be turned."
    return tuple(items), caption, {"z_label": _label(data, 2), "wide": True}
