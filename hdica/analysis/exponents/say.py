"""What the power laws say."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.exponents.figure import fits, named, parameters
from hdica.analysis.show.sentences import among, listed
from hdica.analysis.show.words import count, number, p_value, plural, resolved, symbol
from hdica.verdict.powers import MISFIT


def exponents(data: xr.Dataset) -> list[str]:
    """For every fit its exponents, theory beside them, how exact they are and what is left out."""
    out = []
    chosen = fits(data)
    for point in chosen:
        here = data.sel(point)
        alone = data.sizes["simulation"] == 1
        place = named({k: v for k, v in point.items() if k != "simulation" or not alone})
        lead = f"{place.html}: " if place else ""
        out.append(lead + _law(here) + _theory(here) + ".")
        out += [lead + text for text in (_inexact(here), _left_out(here)) if text]
    return out


def _power(here: xr.Dataset, exponent: str) -> str:
    """Parameters with their exponents: d^1.09 T^-0.94."""
    half = ((here["exponent_high"] - here["exponent_low"]) / 2).values
    values = here[exponent].values
    return " ".join(
        f"{symbol(name).html}<sup>{resolved(value, error)}</sup>"
        for name, value, error in zip(parameters(here), values, half, strict=True)
    )


def _law(here: xr.Dataset) -> str:
    quantity = symbol(str(here.attrs["variable"])).html
    cells = int(here["cells"])
    low, high = here["exponent_low"].values, here["exponent_high"].values
    if not np.isfinite(low).all():
        names = listed([symbol(name).html for name in parameters(here)])
        return f"No power of {names} is fixed by the {plural(cells, 'cell')} that can be fitted"
    ends = [
        f"[{resolved(a, (b - a) / 2)}, {resolved(b, (b - a) / 2)}]"
        for a, b in zip(low, high, strict=True)
    ]
    intervals = "interval" if len(ends) == 1 else "intervals"
    return (
        f"{quantity} ∼ {_power(here, 'exponent')}: 95 % {intervals} {', '.join(ends)} "
        f"({here.attrs['statistic']}s over seeds in {plural(cells, 'cell')})"
    )


def _theory(here: xr.Dataset) -> str:
    """The prediction's own exponents, and how far the values are from it."""
    if "ratio" not in here:
        return ""
    ratio, low, high = (here[f"ratio{end}"].values.ravel() for end in ("", "_low", "_high"))
    known = np.isfinite(ratio)
    if not known.any():
        return ""
    total, inside = int(known.sum()), int(((low <= 1) & (high >= 1))[known].sum())
    cells = "the same" if total == int(here["cells"]) else f"{count(total)} of these"
    own = ""
    if np.isfinite(here["predicted_exponent"].values).all():
        own = f"the prediction's own fit on {cells} cells is {_power(here, 'predicted_exponent')}; "
    least, most = (_times(float(f(ratio[known]))) for f in (np.min, np.max))
    span = least if least == most else f"{least}–{most}"
    contain = "interval contains" if total == 1 else "intervals contain"
    return (
        f"; {own}the measured {here.attrs['statistic']}s are {span} times the prediction"
        f"{among()}, and "
        f"{count(inside)} of {count(total)} {contain} 1"
    )


def _times(ratio: float) -> str:
    """A ratio, to two decimals near 1."""
    return resolved(ratio, 0.0) if 0.1 <= ratio < 100 else number(ratio, 2)


def _inexact(here: xr.Dataset) -> str:
    p, chi2, dof = (float(here[name]) for name in ("p_value", "chi2", "dof"))
    if not p < MISFIT:
        return ""
    return (
        f"The power law is not exact: χ² = {number(chi2)} where {number(dof)} is expected "
        f"({p_value(p).replace('<', '&lt;')}), so that the intervals of the exponents are "
        f"{number(float(here['widening']), 2)} times as wide as seeds alone would have them."
    )


def _left_out(here: xr.Dataset) -> str:
    left, lost = int(here["left_out"]), int(here["diverged"].sum())
    if not left and not lost:
        return ""
    parts = []
    if left:
        parts.append(
            f"{plural(left, 'cell')} of {count(left + int(here['cells']))} "
            f"{'is' if left == 1 else 'are'} left out, without two finished seeds or without a "
            f"{here.attrs['statistic']} that is positive beyond its noise"
        )
    if lost:
        parts.append(f"{plural(lost, 'run')} diverged and {'is' if lost == 1 else 'are'} missing")
    return "; ".join(parts) + "."
