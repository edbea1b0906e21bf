"""The answer of comparisons with a limit: whether they agree, without chance rejections."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import Point
from hdica.analysis.show.sentences import N, among, listed, near
from hdica.analysis.show.words import count, p_value, with_error
from hdica.verdict.cells import AGREES, UNDECIDED, together
from hdica.verdict.pooled import pooled

NAMED = 2
"""Comparisons that differ and are named."""
EXPECTED, SIGMAS = 0.5, 3.0
"""Power of 1/n by which fluctuations fall, and how many errors off it another one is."""


def verdict_of(data: xr.Dataset, cells: Sequence[Point]) -> str:
    """What all comparisons say together.

    ``differs`` if one is rejected clearly: not one that chance may have rejected, near the level;
    ``agrees`` if all agree; else ``undecided``.
    """
    found = [UNDECIDED if near(data.sel(p)) else str(data["verdict"].sel(p).item()) for p in cells]
    return together(found) or UNDECIDED


def agreement(
    data: xr.Dataset, cells: Sequence[Point], who: str, name: Callable[[Point], str]
) -> str:
    """The beginning of an answer: who agrees with the limit, in how many comparisons.

    ``name`` says one of them in HTML.
    """
    found = [str(data["verdict"].sel(p).item()) for p in cells]
    clear = [
        p for p, v in zip(cells, found, strict=True) if v == "differs" and not near(data.sel(p))
    ]
    total, agree, verdict = len(cells), found.count("agrees"), verdict_of(data, cells)
    if verdict == "differs":
        if total == 1:
            return f"{who} differs from the limit ({_p(data, clear)})"
        named = listed([name(p) for p in clear[:NAMED]])
        more = f" and {count(len(clear) - NAMED)} more" if len(clear) > NAMED else ""
        return (
            f"{who} differs from the limit in {count(len(clear))} of {count(total)} comparisons "
            f"({named}{more}; {_p(data, clear)})"
        )
    if total == 1:
        return f"{who} agrees with the limit" if agree else _open(who)
    if agree == total:
        every = "both" if total == 2 else f"all {count(total)}"
        return f"{who} agrees with the limit in {every} comparisons{among()}"
    if agree and "differs" not in found:
        open_ones = total - agree
        be = "is" if open_ones == 1 else "are"
        return (
            f"{who} agrees with the limit in {count(agree)} of {count(total)} comparisons, and "
            f"{count(open_ones)} {be} undecided"
        )
    if not agree:
        return f"{_open(who)}: none of {count(total)} comparisons decides{among()}"
    return (
        f"{_open(who)}: {count(agree)} of {count(total)} comparisons agree, and none differs "
        f"beyond chance{among()}"
    )


def _open(who: str) -> str:
    return f"Whether {who[0].lower()}{who[1:]} follows the limit is open"


def _p(data: xr.Dataset, cells: Sequence[Point]) -> str:
    smallest = min(float(data["p_value"].sel(p)) for p in cells)
    return p_value(smallest).replace("<", "&lt;")


def law(data: xr.Dataset, name: str) -> tuple[str, str]:
    """A power of n with its standard error, pooled over comparisons, and its verdict.

    As in n^(-0.50 ± 0.02), which agrees with the power of the central limit theorem; of another
    one, undecided, the text says which was expected. Empty where no comparison has resolved it.
    """
    if f"{name}_exponent" not in data:
        return "", AGREES
    value, errors = (data[f"{name}_exponent{end}"].values.ravel() for end in ("", "_error"))
    mean, error = pooled(value, errors)
    if not np.isfinite(mean):
        return "", AGREES
    text = f"{N}<sup>{with_error(-mean, error)}</sup>"
    if abs(mean - EXPECTED) <= SIGMAS * error:
        return text, AGREES
    return f"{text}, where −1/2 is expected", UNDECIDED
