"""The landscape around the circle and on the sphere, with its critical points."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.show.choose import MOST, Point, evenly, points, selected
from hdica.analysis.show.marks import GREY
from hdica.analysis.show.panel import Item, Line, Panel, Places, Points, Surface
from hdica.analysis.show.words import OKABE_ITO, Text, titled, words
from hdica.analysis.sphere.compute import MAXIMISER, MINIMISER, SADDLE
from hdica.analysis.sphere.say import dimension, grid_of

Array = NDArray[np.float64]

HEIGHT = 0.6
"""Around the circle the objective is drawn from radius 1, where it is least, to 1 + HEIGHT."""
ABOVE = 1.02
"""Radius at which critical points are drawn, so that the sphere hides none that is in front."""

MARKS = (
    (MINIMISER, "minimisers (stable)", "circle", OKABE_ITO[1]),
    (SADDLE, "saddles", "diamond", OKABE_ITO[4]),
    (MAXIMISER, "maximisers", "square", OKABE_ITO[3]),
)


def sphere(data: xr.Dataset) -> list[Panel]:
    """One panel for each landscape on a circle or a sphere, at most six."""
    if "objective" not in data:
        return []
    own = [str(d) for d in data["objective"].dims if d not in ("polar", "azimuth")]
    every = points(data, list(dict.fromkeys([*grid_of(data), *own])))
    drawn = [cell for cell in every if _seen(data, cell)]
    chosen = evenly(drawn)
    out = []
    for k, cell in enumerate(chosen):
        key = f"sphere_{k + 1}" if len(chosen) > 1 else "sphere"
        draw = _circle if dimension(data, cell) == 2 else _ball
        out.append(draw(data, cell, key, _more(len(drawn))))
    return out


def _seen(data: xr.Dataset, cell: Point) -> bool:
    """Whether there is a landscape that can be drawn."""
    d = float(selected(data["space"], cell))
    objective = selected(data["objective"], cell)
    enough = d == 2 or (d == 3 and "polar" in objective.dims)
    return enough and bool(np.isfinite(objective).any())


def _more(total: int) -> str:
    return f" {MOST} of {total} landscapes, chosen evenly." if total > MOST else ""


def _label(data: xr.Dataset, k: int) -> Text:
    """A component, such as v with the index 1."""
    name = str(data.attrs["variable"])
    if not (name.isascii() and name.isalpha()):
        return words(f"{name} {k + 1}")
    return Text(f"<i>{name}</i><sub>{k + 1}</sub>", f"${name}_{k + 1}$", name + "₁₂₃"[k])


def _circle(data: xr.Dataset, cell: Point, key: str, more: str) -> Panel:
    """The objective as the distance from the unit circle."""
    angle, objective = _around(selected(data["objective"], cell))
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
    return Panel(
        key,
        titled(words("Landscape on the circle"), cell),
        _label(data, 0),
        _label(data, 1),
        tuple(items),
        caption="Distance from the circle: the objective, from its least to its largest value. "
        f"Filled: stable.{more}",
        x_range=reach,
        y_range=reach,
        equal=True,
    )


def _around(objective: xr.DataArray) -> tuple[Array, Array]:
    """Angles and the objective on the circle: of a grid on the sphere the row nearest its equator.

    The curve is closed.
    """
    if "polar" in objective.dims:
        rows = objective.isel(polar=objective.notnull().any("azimuth").values)
        nearest = int(np.abs(rows["polar"].values - np.pi / 2).argmin())
        objective = rows.isel(polar=nearest)
    objective = objective.sortby("azimuth")
    angle, values = objective["azimuth"].values.astype(float), objective.values
    keep = np.isfinite(values)
    angle, values = angle[keep], values[keep]
    if angle[-1] < angle[0] + 2 * np.pi - 1e-9:
        angle, values = np.append(angle, angle[0] + 2 * np.pi), np.append(values, values[0])
    return angle, values


def _critical(data: xr.Dataset, cell: Point, kind: float) -> Array:
    """Coordinates of the critical points of one kind, shape (points, components)."""
    at = selected(data["at"], cell).transpose("fixed_point", "component").values
    return np.asarray(at[selected(data["kind"], cell).values == kind], dtype=float)


def _ball(data: xr.Dataset, cell: Point, key: str, more: str) -> Panel:
    """The objective as the colour of the sphere."""
    objective = selected(data["objective"], cell).transpose("polar", "azimuth")
    objective = objective.sortby(["polar", "azimuth"])
    polar = objective["polar"].values.astype(float)
    azimuth, color = objective["azimuth"].values.astype(float), objective.values
    if azimuth[-1] < azimuth[0] + 2 * np.pi - 1e-9:  # closed
        azimuth = np.append(azimuth, azimuth[0] + 2 * np.pi)
        color = np.concatenate([color, color[:, :1]], axis=1)
    theta, phi = np.meshgrid(polar, azimuth, indexing="ij")
    x, y, z = np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)
    items: list[Item] = [Surface(x, y, z, color, words("objective"))]
    for kind, label, mark, hue in MARKS:
        at = ABOVE * _critical(data, cell, kind)
        if len(at):
            items.append(Places(at[:, 0], at[:, 1], at[:, 2], words(label), hue, mark))
    return Panel(
        key,
        titled(words("Landscape on the sphere"), cell),
        _label(data, 0),
        _label(data, 1),
        tuple(items),
        caption=f"Colour: the objective. On the page the sphere can be turned.{more}",
        equal=True,
        z_label=_label(data, 2),
        wide=True,
    )
