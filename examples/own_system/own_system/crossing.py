"""When does the overlap cross a level? An analysis: settings, numbers, a figure, findings."""

from typing import Annotated

import numpy as np
import xarray as xr
from pydantic import Field

from hdica.analysis import reading, record, settings
from hdica.show import finding, panel, words

RUNS = settings.Needs(True, settings.looked_at, "time", first=True)
"""A stochastic method that gives the variable over time."""


class Crossing(settings.Settings):
    """When the overlap of a simulation crosses a level."""

    x: settings.SweptName = Field(description="swept parameter on the horizontal axis")
    simulation: Annotated[str, RUNS] = Field("", description="method that gives the overlap")
    variable: settings.Variable = ""
    level: float = Field(default=0.5, gt=0, lt=1, description="level that is crossed")


def compute(tree: xr.DataTree, chosen: Crossing) -> xr.Dataset:
    """Mean over seeds of the first time above the level, with its standard error."""
    values = reading.finished(reading.group(tree, chosen.simulation), chosen.variable)
    above = values.sel(n=reading.largest_n(values), drop=True) >= chosen.level
    first = above["time"].isel(time=above.argmax("time")).where(above.any("time"))
    first = first.reset_coords(drop=True)
    se = first.std("seed", ddof=1) / np.sqrt(first.notnull().sum("seed"))
    about = {"long_name": "mean first time above the level"}
    data = {"crossing": first.mean("seed").assign_attrs(about), "crossing_se": se}
    return xr.Dataset(data, attrs={"x": chosen.x, "level": chosen.level})


def figure(data: xr.Dataset) -> list[panel.Panel]:
    """The mean time against the swept parameter."""
    x, y, se = data[data.attrs["x"]].values, data["crossing"].values, data["crossing_se"].values
    label = words.words(f"first time above {data.attrs['level']:g}; bars: two standard errors")
    points = panel.Points(x, y, label, words.OKABE_ITO[0], y - 2 * se, y + 2 * se)
    axes = words.axis(data.attrs["x"]), words.axis("t")
    return [panel.Panel("crossing", words.words("Crossing"), *axes, (points,))]


def findings(data: xr.Dataset) -> list[finding.Finding]:
    """The earliest crossing, with its error."""
    if not data["crossing"].notnull().any():
        return []
    best, x = data.isel(data["crossing"].argmin(...)), data.attrs["x"]
    name = words.words(f"the mean time at which runs cross {data.attrs['level']:g}")
    value, error, form = best["crossing"], best["crossing_se"], finding.Form.SMALLEST
    return [finding.Finding(name, {x: float(best[x])}, float(value), float(error), form=form)]


SHOWN = record.Section("crossing", "Crossing times", figure, 50)
ANALYSIS = record.Analysis("crossing", compute, Crossing, (SHOWN,), record.Answer(50, findings))
