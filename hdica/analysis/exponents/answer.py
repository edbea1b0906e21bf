"""As which power a quantity goes, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.exponents.figure import fits, named, parameters
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import count, resolved, symbol
from hdica.analysis.statistics.coverage import verdict_of
from hdica.analysis.statistics.pooled import Z95, pooled

FITS = 3
"""Fits that are told."""


def answer(data: xr.Dataset) -> Answer | None:
    """The exponents of every fit with their errors, and theory's beside the measured values."""
    known = [p for p in fits(data) if np.isfinite(data.sel(p)["exponent_low"].values).all()]
    if not known:
        return None
    alone = data.sizes["simulation"] == 1
    laws = []
    for point in known[:FITS]:
        where = named({k: v for k, v in point.items() if k != "simulation" or not alone})
        laws.append(
            _law(data.sel(point)) + (f" ({where.html})" if where and len(known) > 1 else "")
        )
    quantity = symbol(str(data.attrs["variable"])).html
    theory, verdict = _theory([data.sel(point) for point in known])
    return Answer(f"{quantity} goes as {listed(laws)}{theory}.", verdict)


def _law(here: xr.Dataset) -> str:
    """Parameters with exponents and their standard errors."""
    error = _errors(here)
    return " ".join(
        f"{symbol(name).html}<sup>{resolved(e, s)} ± {resolved(s, s)}</sup>"
        for name, e, s in zip(parameters(here), here["exponent"].values, error, strict=True)
    )


def _errors(here: xr.Dataset) -> np.ndarray:
    return np.asarray((here["exponent_high"] - here["exponent_low"]).values / (2 * Z95))


def _theory(cells: list[xr.Dataset]) -> tuple[str, str]:
    """What theory says, and whether the measured values are its own."""
    ratio, low, high = (
        np.concatenate([here[f"ratio{end}"].values.ravel() for here in cells])
        if all("ratio" in here for here in cells)
        else np.empty(0)
        for end in ("", "_low", "_high")
    )
    mean, error = pooled(ratio, (high - low) / (2 * Z95))
    if not np.isfinite(mean):
        return "", ""
    known = np.isfinite(ratio) & np.isfinite(low)
    inside = ((low <= 1) & (high >= 1))[known]
    text = (
        f"; measured over predicted is {resolved(mean, error)} ± {resolved(error, error)} on "
        f"average, and {count(int(inside.sum()))} of {count(inside.size)} 95 % intervals hold 1"
    )
    return text, verdict_of(inside)
