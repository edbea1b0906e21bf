"""The unit of escape times: n^3 steps, or n^2 steps where a trap is left sooner."""

from __future__ import annotations

from collections.abc import Iterable

import xarray as xr

from hdica.analysis.show.words import SQUARED_STEPS, STEPS, Text
from hdica.errors import HdicaError

USUAL = "n^3 steps"
POWERS = {USUAL: 3, "n^2 steps": 2}
"""The power of n of every unit."""
_WRITTEN = {USUAL: STEPS, "n^2 steps": SQUARED_STEPS}
_TIMES = ("first", "mean")


def unit_of(data: xr.Dataset) -> str:
    """The unit of the times of a method, or of an analysis."""
    known = [data[name].attrs["units"] for name in _TIMES if "units" in _attributes(data, name)]
    return known[0] if known and known[0] in POWERS else USUAL


def _attributes(data: xr.Dataset, name: str) -> dict[str, str]:
    return dict(data[name].attrs) if name in data else {}


def common_unit(groups: Iterable[xr.Dataset]) -> str:
    """The one unit of several methods, or a refusal."""
    found = sorted({unit_of(data) for data in groups})
    if len(found) > 1:
        raise HdicaError(
            f"simulation, limits: times in {' and in '.join(found)} are not allowed in one "
            "analysis (methods of one unit)"
        )
    return found[0] if found else USUAL


def steps(data: xr.Dataset) -> Text:
    """How the unit of an analysis is written."""
    return _WRITTEN[str(data.attrs.get("unit", USUAL))]
