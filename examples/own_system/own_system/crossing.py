"""When does the overlap cross a level? Settings, numbers, figure and findings of an analysis."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import xarray as xr
from pydantic import Field

from hdica.analysis.reading import described, finished, group, largest_n
from hdica.analysis.record import Analysis, Answer, Section
from hdica.analysis.settings import TIME, Needs, Settings, SweptName, Variable, looked_at
from hdica.show.finding import Finding, Form
from hdica.show.panel import Panel, Points
from hdica.show.words import OKABE_ITO, axis, words


class Crossing(Settings):
    """When the overlap of a simulation crosses a level."""

    x: SweptName = Field(description="swept parameter on the horizontal axis")
    simulation: Annotated[str, Needs(True, looked_at, (TIME,), first=True)] = Field(
        default="", description="stochastic method that gives the overlap"
    )
    variable: Variable = ""
    level: float = Field(default=0.5, gt=0, lt=1, description="level that is crossed")


def compute(tree: xr.DataTree, settings: Crossing) -> xr.Dataset:
    """Mean over seeds of the first time above the level, with its standard error."""
    values = finished(group(tree, settings.simulation), settings.variable)
    values = values.sel(n=largest_n(values), drop=True).reset_coords(drop=True)
    above = values >= settings.level
    first = values["time"].isel(time=above.argmax("time")).where(above.any("time"))
    first = first.reset_coords(drop=True)
    count = first.notnull().sum("seed")
    found = {
        "crossing": first.mean("seed"),
        "crossing_se": first.std("seed", ddof=1) / np.sqrt(count),
        "count": count,
    }
    out = xr.Dataset(found, attrs={"x": settings.x, "level": settings.level})
    names = {
        "crossing": "mean first time above the level",
        "crossing_se": "standard error of the mean first time above the level",
        "count": "seeds that cross the level",
    }
    return described(out, names)


def figure(data: xr.Dataset) -> list[Panel]:
    """The mean time against the swept parameter."""
    x = data.attrs["x"]
    y, se = data["crossing"].values, data["crossing_se"].values
    label = words(f"first time above {data.attrs['level']:g}")
    points = Points(data[x].values, y, label, OKABE_ITO[0], y - 2 * se, y + 2 * se)
    caption = "Bars: two standard errors over seeds."
    return [Panel("crossing", words("Crossing"), axis(x), axis("t"), (points,), caption)]


def findings(data: xr.Dataset) -> list[Finding]:
    """The earliest crossing, with its error."""
    if not data["crossing"].notnull().any():
        return []
    best, x = data.isel(data["crossing"].argmin(...)), data.attrs["x"]
    name = words(f"the mean time at which runs cross {data.attrs['level']:g}")
    value, error = float(best["crossing"]), float(best["crossing_se"])
    return [Finding(name, {x: float(best[x])}, value, error, form=Form.SMALLEST)]


ANALYSIS = Analysis(
    name="crossing",
    compute=compute,
    settings=Crossing,
    sections=(Section("crossing", "Crossing times", figure, 50),),
    answer=Answer(50, findings),
)
