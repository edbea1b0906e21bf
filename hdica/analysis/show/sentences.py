"""Parts of sentences that several findings share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.show.choose import Point
from hdica.analysis.show.words import (
    count,
    method_name,
    number,
    p_value,
    place,
    plural,
    rounded,
    symbol,
)
from hdica.verdict.cells import CLEAR

N = symbol("n").html
_DONE: ContextVar[tuple[int, int]] = ContextVar("done", default=(0, 0))


@contextmanager
def of_points(done: int, total: int) -> Iterator[None]:
    """Sentences about a study of which so many points are done."""
    token = _DONE.set((done, total))
    try:
        yield
    finally:
        _DONE.reset(token)


def among() -> str:
    """A clause after an extreme or a word like all: "among the 12 of 40 points that are done".

    It begins with a blank. It is empty where no point is pending, diverged or failed, as these
    might change the statement.
    """
    done, total = _DONE.get()
    if done == total:
        return ""
    return f" among the {count(done)} of {plural(total, 'point')} that are done"


def size_of(data: xr.Dataset) -> str:
    """The last dimension of some data, "n = 400" in HTML; empty without."""
    if "n" not in data.coords:
        return ""
    return f"{N} = {count(float(np.atleast_1d(data['n'].values)[-1]))}"


def at_size(data: xr.Dataset, text: str) -> str:
    """A sentence that begins with the last dimension of some data, if there is any."""
    size = size_of(data)
    return f"At {size} {text}" if size else text[0].upper() + text[1:]


def listed(parts: Sequence[str]) -> str:
    """Join parts as in: a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def cell(point: Point) -> str:
    """A grid point with its method: "chain, τ = 0.05"."""
    rest = {k: v for k, v in point.items() if k != "simulation"}
    return ", ".join([method_name(point["simulation"]).html, *([place(rest).html] if rest else [])])


def counted(
    data: xr.Dataset, cells: Sequence[Point], what: str, name: Callable[[Point], str]
) -> list[str]:
    """How many comparisons agree, and why the others do not.

    ``what`` they are, in the plural; ``name`` says one of them in HTML.
    """
    if not cells:
        return []
    verdicts = ["near" if near(data.sel(p)) else str(data["verdict"].sel(p).item()) for p in cells]
    agree, differ, close, undecided = (
        verdicts.count(v) for v in ("agrees", "differs", "near", "undecided")
    )
    open_ones = f" and {undecided} {'is' if undecided == 1 else 'are'} undecided"
    if close:
        open_ones = f", {close} {'is' if close == 1 else 'are'} rejected near the level{open_ones}"
    out = [
        f"Of {len(cells)} {what} {agree} agree, {differ} differ{open_ones} "
        f"(level {number(data.attrs['level'])} for the whole study)."
    ]
    for verdict, word in (("differs", "Differs"), ("near", "Open"), ("undecided", "Undecided")):
        where = [p for p, v in zip(cells, verdicts, strict=True) if v == verdict]
        reasons = sorted({str(data["why"].sel(p).item()) for p in where})
        for reason in reasons:
            some = [p for p in where if str(data["why"].sel(p).item()) == reason]
            places = "; ".join(name(p) for p in some[:3])
            more = f"; and {len(some) - 3} more" if len(some) > 3 else ""
            rare = _rarest(data, some) if verdict == "near" else ""
            out.append(f"{word}, because {reason}: {places}{more}{rare}{would_decide(data, some)}.")
    return out


def near(here: xr.Dataset) -> bool:
    """Whether one comparison is rejected so near the level that chance may have done it."""
    each = here.attrs["level"] / here.attrs["tests"]
    return str(here["verdict"].item()) == "differs" and float(here["p_value"]) >= each / CLEAR


def _rarest(data: xr.Dataset, cells: Sequence[Point]) -> str:
    """How rare by chance the smallest p-value is."""
    p = min(float(data["p_value"].sel(one)) for one in cells)
    return f" (smallest {escape(p_value(p))}: {rarity(data, p)})"


def rarity(data: xr.Dataset, p: float) -> str:
    """How often right limits give a p-value this small somewhere in the study."""
    tests = int(data.attrs["tests"])
    somewhere = -np.expm1(tests * np.log1p(-p))
    who = "a right limit gives" if tests == 1 else f"{tests} right limits give"
    return f"{who} one so small by chance one time in {count(1 / somewhere)}"


def would_decide(data: xr.Dataset, cells: Sequence[Point]) -> str:
    """How many seeds would decide open comparisons, after semicolons; empty if unknown."""
    names = ("seeds_needed", "seeds_needed_error")
    found = [tuple(float(data[k].sel(p)) for k in names) for p in cells]
    known = [pair for pair in found if not np.isnan(pair[0])]
    some = sorted(pair for pair in known if np.isfinite(pair[0]))
    parts = []
    if some:
        low, high = some[0][0], some[-1][0]
        if len(some) == 1 or rounded(low) == rounded(high):
            bar = f" ± {rounded(some[-1][1], 1)}" if np.isfinite(some[-1][1]) else ""
            many, each = f"{rounded(high)}{bar}", ""
        else:
            many, each = f"{rounded(low)} to {rounded(high)}", " each"
        parts.append(f"about {many} seeds at each {N} would decide{each} 19 times in 20")
    never = len(known) - len(some)
    if never:
        where = f"at {count(never)} of them " if some else ""
        parts.append(f"{where}no number of seeds would, because what is to be seen is too small")
    return "".join(f"; {part}" for part in parts)


def exponents(
    data: xr.Dataset,
    name: str,
    noun: str,
    quantity: str,
    letter: str,
    expected: float,
    measured: str = "",
) -> list[str]:
    """How a quantity falls with n, over all comparisons: noun, formula, exponent's letter.

    ``measured`` is the variable that holds it over n, by default ``name``; without values at two n
    there is no sentence.
    """
    size = data[measured or name]
    if int(size.notnull().any([d for d in size.dims if d != "n"]).sum()) < 2:
        return []
    value, low, high = (
        data[f"{name}_exponent{end}"].values.ravel() for end in ("", "_low", "_high")
    )
    span = f"{N} = {count(data['n'].values[0])} … {count(data['n'].values[-1])}"
    known = np.isfinite(value)
    total, found = len(value), int(known.sum())
    if found == 0:
        return [f"The {noun} does not stand above its noise: no exponent ({span})."]
    law = f"{quantity} ∼ {N}<sup>−<i>{letter}</i></sup>"
    if total == 1:
        ends = f"[{number(low[0], 2)}, {number(high[0], 2)}]"
        return [
            f"The {noun} falls as {law}, <i>{letter}</i> = {number(value[0])} {ends} "
            f"(expected {expected:g}; {span})."
        ]
    inside = int(((low <= expected) & (expected <= high))[known].sum())
    missing = f"; the other {total - found} are not resolved" if found < total else ""
    return [
        f"The {noun} falls as {law} with median <i>{letter}</i> = "
        f"{number(float(np.median(value[known])))} over {plural(found, 'comparison')}; "
        f"{inside} of {found} 95 % intervals contain {expected:g}{missing}."
    ]
