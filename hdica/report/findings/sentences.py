"""Parts of sentences that several findings share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.report.choose import Point
from hdica.report.words import count, number, place, plural, symbol

N = symbol("n").html


def listed(parts: Sequence[str]) -> str:
    """Join parts as in: a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def cell(point: Point) -> str:
    """A grid point with its method: "chain, τ = 0.05"."""
    rest = {k: v for k, v in point.items() if k != "simulation"}
    return ", ".join([str(escape(point["simulation"])), *([place(rest).html] if rest else [])])


def span(data: xr.Dataset) -> str:
    """The range of n in words."""
    return f"{N} = {count(data['n'].values[0])} … {count(data['n'].values[-1])}"


def counted(
    data: xr.Dataset, cells: Sequence[Point], what: str, name: Callable[[Point], str]
) -> list[str]:
    """How many comparisons agree, and why the others do not.

    Parameters
    ----------
    data
        With ``verdict`` and ``why``.
    cells
        The comparisons.
    what
        What they are, in the plural.
    name
        A comparison in words, HTML.
    """
    verdicts = [str(data["verdict"].sel(p).item()) for p in cells]
    agree, differ, undecided = (verdicts.count(v) for v in ("agrees", "differs", "undecided"))
    out = [
        f"Of {len(cells)} {what} {agree} agree, {differ} differ and {undecided} are undecided "
        f"(level {number(data.attrs['level'])} for the whole study)."
    ]
    for verdict in ("differs", "undecided"):
        where = [p for p, v in zip(cells, verdicts, strict=True) if v == verdict]
        reasons = sorted({str(data["why"].sel(p).item()) for p in where})
        for reason in reasons:
            some = [p for p in where if str(data["why"].sel(p).item()) == reason]
            places = "; ".join(name(p) for p in some[:3])
            more = f"; and {len(some) - 3} more" if len(some) > 3 else ""
            out.append(f"{verdict.capitalize()}, because {reason}: {places}{more}.")
    return out


def exponents(
    data: xr.Dataset, name: str, noun: str, quantity: str, letter: str, expected: float
) -> list[str]:
    """How a quantity falls with n, over all comparisons.

    Parameters
    ----------
    data
        With ``<name>_exponent`` and its interval.
    name, noun, quantity, letter
        Of the variable, the thing, its formula and the exponent.
    expected
        The exponent in theory.
    """
    if data.sizes["n"] < 2:
        return []
    value, low, high = (
        data[f"{name}_exponent{end}"].values.ravel() for end in ("", "_low", "_high")
    )
    known = np.isfinite(value)
    total, found = len(value), int(known.sum())
    if found == 0:
        return [f"The {noun} does not stand above its noise: no exponent ({span(data)})."]
    law = f"{quantity} ∼ {N}<sup>−<i>{letter}</i></sup>"
    if total == 1:
        ends = f"[{number(low[0], 2)}, {number(high[0], 2)}]"
        return [
            f"The {noun} falls as {law}, <i>{letter}</i> = {number(value[0])} {ends} "
            f"(expected {expected:g}; {span(data)})."
        ]
    inside = int(((low <= expected) & (expected <= high))[known].sum())
    missing = f"; the other {total - found} are not resolved" if found < total else ""
    return [
        f"The {noun} falls as {law} with median <i>{letter}</i> = "
        f"{number(float(np.median(value[known])))} over {plural(found, 'comparison')}; "
        f"{inside} of {found} 95 % intervals contain {expected:g}{missing}."
    ]
