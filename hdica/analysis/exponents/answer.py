"""As which power a quantity goes, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.exponents.figure import fits, named, parameters
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import capital, count, method_name, number, resolved, symbol
from hdica.verdict.cells import AGREES, Cells, judged
from hdica.verdict.pooled import pooled

CONTROL = 0.1
"""A theory whose value is off by this share has to be rejected for one that is not to agree."""
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
    covers = 1 if len(known) == 1 else 0
    return Answer(f"{capital(quantity)} goes as {listed(laws)}{theory}.", verdict, covers)


def _law(here: xr.Dataset) -> str:
    """Parameters with exponents and their standard errors."""
    error = here["exponent_error"].values
    return " ".join(
        f"{symbol(name).html}<sup>{resolved(e, s)} ± {resolved(s, s)}</sup>"
        for name, e, s in zip(parameters(here), here["exponent"].values, error, strict=True)
    )


def _theory(cells: list[xr.Dataset]) -> tuple[str, str]:
    """What theory says, and whether the measured values are its own."""
    ratio, errors = (
        np.concatenate([here[f"ratio{end}"].values.ravel() for here in cells])
        if all("ratio" in here for here in cells)
        else np.empty(0)
        for end in ("", "_error")
    )
    mean, error = pooled(ratio, errors)
    if not np.isfinite(mean):
        return "", ""
    seeds = np.concatenate([here["seeds"].values.ravel() for here in cells])
    # Cells share what is known of their scatter; each alone has at least its own seeds less one.
    margin, none = np.full(ratio.shape, CONTROL), np.zeros(ratio.shape)
    found = judged(Cells(ratio - 1, errors, np.maximum(seeds - 1.0, 1.0), margin, none))
    verdicts = found.verdict[found.verdict != ""]
    agree = int((verdicts == AGREES).sum())
    every = "it" if verdicts.size == 1 else f"all {count(verdicts.size)} values"
    many = every if agree == verdicts.size else f"{count(agree)} of {count(verdicts.size)} values"
    name = method_name(cells[0].attrs["theory"]).html
    text = (
        f"; measured over predicted ({name}) is {resolved(mean, error)} ± "
        f"{resolved(error, error)} on average, and {many} "
        f"agree{'s' if verdicts.size == 1 else ''} with theory (a factor off by "
        f"{number(100 * CONTROL)} % would be rejected)"
    )
    return text, found.whole
