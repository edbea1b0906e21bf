"""As which power a quantity goes, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.exponents.figure import fits, named, parameters
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import capital, count, method_name, number, resolved, symbol
from hdica.verdict.cells import AGREES, CONTROL, DIFFERS, judged, together
from hdica.verdict.pooled import pooled

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
    # All values together, the exponents, and each value alone, which may differ but tells little.
    seeds = np.concatenate([here["seeds"].values.ravel() for here in cells])
    each = judged(ratio - 1, errors, CONTROL, np.maximum(seeds - 1.0, 1.0))
    slopes = [here["exponent"] - here["predicted_exponent"] for here in cells]
    off = np.concatenate([[mean - 1], *(one.values.ravel() for one in slopes)])
    noise = [here["exponent_error"].values.ravel() for here in cells]
    found = judged(off, np.concatenate([[error], *noise]), CONTROL)
    verdict = together([found.whole, *({DIFFERS} & set(each.verdict.tolist()))])
    name = method_name(cells[0].attrs["theory"]).html
    text = (
        f"; measured over predicted ({name}) is {resolved(mean, error)} ± "
        f"{resolved(error, error)} on average"
    )
    many = int((each.verdict == DIFFERS).sum())
    if many:
        text += f", and {count(many)} of {count(each.verdict.size)} values differ from theory"
    elif verdict == AGREES:
        text += f", and a factor or an exponent off by {number(CONTROL)} is rejected"
    return text, verdict
