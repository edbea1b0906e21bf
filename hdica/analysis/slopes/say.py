"""What shared noise tells of the change along a parameter."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import at_last_n
from hdica.analysis.show.sentences import among, size_of
from hdica.analysis.show.words import count, measured, number, symbol
from hdica.analysis.slopes.compute import parameters_of


def slopes(data: xr.Dataset) -> list[str]:
    """One sentence a parameter: how much better than apart the change along it is known."""
    top = at_last_n(data)
    at = f"{size_of(top)}, " if size_of(top) else ""
    out = []
    for name in parameters_of(data):
        error, apart = (top[f"slope_{name}{k}"].values for k in ("_se", "_se_apart"))
        known = np.isfinite(error) & (error > 0)
        if not known.any():
            continue
        ratio = error[known] / apart[known]
        middle = float(np.median(ratio))
        out.append(
            f"From one {symbol(name).html} to the next the change of the "
            f"{measured(str(data.attrs['variable'])).html} at <i>t</i> = "
            f"{number(data.attrs['time'])}, seed by seed, has {number(middle, 2)} times "
            f"({_span(ratio)}) the standard error of independent noise: as if there were "
            f"{number(middle**-2, 2)} times as many seeds ({at}median "
            f"of {count(int(known.sum()))} points{among()})."
        )
    return out


def _span(ratio: np.ndarray) -> str:
    return f"{number(float(ratio.min()), 2)} … {number(float(ratio.max()), 2)}"
