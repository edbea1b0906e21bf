"""How long escape takes at best, in one sentence."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from hdica.analysis.escape.figure import methods, others, sizes, theories
from hdica.analysis.escape.unit import steps
from hdica.analysis.show.agreement import verdict_of
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, points, selected
from hdica.analysis.show.sentences import N, among, listed
from hdica.analysis.show.words import count, method_name, number, place, value_of

FAR = 1.1
"""A further theory is named as off from this factor on."""


def answer(data: xr.Dataset) -> Answer | None:
    """The least mean escape time at the largest n, measured with its interval or in theory."""
    last = points(data, others(data))[-1:]
    for other in last:
        for method in methods(data):
            found = _measured(data, other, method)
            if found:
                alone = len(methods(data)) == len(sizes(data)) == len(points(data, others(data)))
                return Answer(found, _verdict(data), int(alone))
        found = _bounds(data, other) or _predicted(data, other)
        if found:
            return Answer(found)
    return None


def _event(data: xr.Dataset) -> str:
    return "Escape" if data.attrs["event"] == "first" else "Escape of the last projection"


def _measured(data: xr.Dataset, other: Point, method: str) -> str:
    """Where the measured mean is least, at the largest n at which two means are known."""
    x = data.attrs["x"]
    for n in reversed(sizes(data)):
        point = {**other, "simulation": method, "n": n}
        mean, low, high = (
            selected(data[k], point).values for k in ("mean", "mean_low", "mean_high")
        )
        known = np.where(np.isfinite(mean), mean, np.nan)
        # A mean that runs only bound may be less than the least that they tell.
        unknown = np.isinf(mean) & (low < np.nanmin([*known, np.inf]))
        if np.isfinite(known).sum() < 2 or unknown.any():
            continue
        k = int(np.nanargmin(known))
        best = {x: data[x].values[k].item()}
        return (
            f"{_event(data)} is fastest at {place(best).html}{among()}: "
            f"{_on_average(data, mean[k], low[k], high[k])} at {place({'n': n}).html}"
            f"{_beside(data, {**point, **best})}{_slowest(data, point, k)}"
            f"{_below(data)}{_off(data)}{_beside_the_first(data)}."
        )
    return ""


def _bounds(data: xr.Dataset, other: Point) -> str:
    """The least mean that runs tell, if any, and above what those lie that they only bound."""
    x = data.attrs["x"]
    for method, n in product(methods(data), sizes(data)[-1:]):
        point = {**other, "simulation": method, "n": n}
        runs, mean, low, high = (
            selected(data[k], point).values for k in ("runs", "mean", "mean_low", "mean_high")
        )
        known, none = np.flatnonzero(np.isfinite(mean)), np.isinf(mean) & (runs > 0)
        if not none.any():
            continue
        size = place({"n": n}).html
        least = f"the mean escape time is above {number(low[none].min())} {steps(data).html}"
        if not known.size:
            return f"No run escapes at {size}{among()}: {least}."
        k = int(known[np.argmin(mean[known])])
        best = {x: data[x].values[k].item()}
        first = "fastest where they do, at" if known.size > 1 else "only at"
        return (
            f"At {size} runs escape {first} {place(best).html}{among()}, after "
            f"{_on_average(data, mean[k], low[k], high[k])}"
            f"{_beside(data, {**point, **best})}; where none does, {least}."
        )
    return ""


def _on_average(data: xr.Dataset, mean: float, low: float, high: float) -> str:
    """A mean escape time with its interval."""
    return f"{number(mean)} [{number(low)}, {number(high)}] {steps(data).html} on average"


def _slowest(data: xr.Dataset, point: Point, best: int) -> str:
    """Where escape takes longest: the mean with its interval, or above what it lies."""
    x = data.attrs["x"]
    mean, low, high = (selected(data[k], point).values for k in ("mean", "mean_low", "mean_high"))
    bound = np.where(np.isinf(mean), low, np.nan)
    size = bound if np.isfinite(bound).any() else np.where(np.isfinite(mean), mean, np.nan)
    k = int(np.nanargmax(size))
    if k == best:
        return ""
    middle, least, most = (number(float(f"{v[k]:.3g}")) for v in (mean, low, high))
    told = f"{middle} [{least}, {most}]"
    if np.isinf(mean[k]):
        told = f"above {least}, as no run escapes,"
    where = place({x: data[x].values[k].item()}).html
    return f"; it takes longest at {where}: {told} {steps(data).html}"


def _beside(data: xr.Dataset, point: Point) -> str:
    """What every theory says there."""
    known = theories(data)
    finite = [method for method, at_n in known if at_n]
    parts = []
    for method, at_n in known:
        value = float(selected(data["theory"], {**point, "limit": method}))
        # Of several for one n the first: how far the others are from it is told for all runs.
        if np.isfinite(value) and method not in finite[1:]:
            by = f" ({method_name(method).html})" if at_n and len(finite) > 1 else ""
            parts.append(f"{number(value)} {f'at that {N}' if at_n else f'for {N} → ∞'}{by}")
    return f"; theory says {' and '.join(parts)}" if parts else ""


def _predicted(data: xr.Dataset, other: Point) -> str:
    """Where the mean of the last theory is least."""
    x = data.attrs["x"]
    for method, finite in reversed(theories(data)):
        values = selected(data["theory"], {**other, "limit": method})
        if "n" in values.dims:
            values = values.isel(n=-1)
        mean = np.where(np.isfinite(values), values, np.nan)
        if mean.ndim == 1 and np.isfinite(mean).sum() > 1:
            k = int(np.nanargmin(mean))
            size = "" if finite else f" for {N} → ∞"
            return (
                f"In theory{size} {_event(data).lower()} is fastest at "
                f"{place({x: data[x].values[k].item()}).html}{among()}: {number(mean[k], 4)} "
                f"{steps(data).html} on average."
            )
    return ""


def _verdict(data: xr.Dataset) -> str:
    """Whether runs follow the first theory that was compared with them.

    A theory for n → ∞ is judged at the largest n: what it leaves out is largest at the smallest.
    """
    here = _judged(data)
    if here is None:
        return ""
    cells, finite = _cells(here), theories(data)[0][1]
    return verdict_of(here, cells if finite else _largest(cells))


def _below(data: xr.Dataset) -> str:
    """Where a theory for n → ∞ holds at the largest n, how many differ at smaller ones."""
    here = _judged(data)
    if here is None or theories(data)[0][1]:
        return ""
    cells = _cells(here)
    largest = _largest(cells)
    smaller = [p for p in cells if p not in largest]
    off = [p for p in smaller if str(here["verdict"].sel(p).item()) == "differs"]
    if not off or verdict_of(here, largest) != "agrees":
        return ""
    agree = sum(str(here["verdict"].sel(p).item()) == "agrees" for p in largest)
    at = listed([count(n) for n in sorted({int(p["n"]) for p in off})])
    return (
        f"; at {place({'n': largest[0]['n']}).html} runs follow theory for {N} → ∞ in "
        f"{count(agree)} of {count(len(largest))} comparisons; below it {count(len(off))} of "
        f"{count(len(smaller))} differ (at {N} = {at}): {N} is not yet large there"
    )


def _off(data: xr.Dataset) -> str:
    """Where runs differ from a theory at their own n, and by which factor."""
    here = _judged(data)
    if here is None or not theories(data)[0][1]:
        return ""
    cells, x = _cells(here), str(data.attrs["x"])
    off = [p for p in cells if str(here["verdict"].sel(p).item()) == "differs"]
    if not off:
        return ""
    agree = sum(str(here["verdict"].sel(p).item()) == "agrees" for p in cells)
    at = listed([count(n) for n in sorted({int(p["n"]) for p in off})])
    values = sorted({p[x] for p in off})
    span = place({x: values[0]}).html
    span += f" to {value_of(values[-1])}" if len(values) > 1 else ""
    return (
        f"; runs follow theory at their {N} in {count(agree)} of {count(len(cells))} comparisons "
        f"and differ from it in {count(len(off))}, at {N} = {at} with {span}{_factors(here, off)}"
    )


def _factors(here: xr.Dataset, off: list[Point]) -> str:
    """Measured means over those of theory, the least and the largest, with their intervals."""
    known = []
    for point in off:
        cell = here.sel(point)
        found = [float(cell[k] / cell["theory"]) for k in ("mean", "mean_low", "mean_high")]
        if np.isfinite(found).all():
            known.append(found)
    if not known:
        return ""
    told = [
        f"{number(mean, 3)} [{number(low, 3)}, {number(high, 3)}]"
        for mean, low, high in (min(known), max(known))
    ]
    return f", where they take {' to '.join(dict.fromkeys(told))} times its mean"


def _beside_the_first(data: xr.Dataset) -> str:
    """By which factors further theories for one n are off the first one, where runs are."""
    known = [method for method, finite in theories(data) if finite]
    here = _judged(data)
    if here is None or not theories(data)[0][1]:
        return ""
    told = [_factor_of(data, here, method) for method in known[1:]]
    return "".join(told)


def _factor_of(data: xr.Dataset, here: xr.Dataset, method: str) -> str:
    """Where another theory is farthest off, in both directions, and by how much."""
    other = data["theory"].sel(limit=method)
    ratios = []
    for point in _cells(here):
        value = float(selected(other, point)) / float(selected(here["theory"], point))
        if np.isfinite(value) and value > 0:
            ratios.append((value, point))
    if not ratios:
        return ""
    (low, least), (high, most) = (pick(ratios, key=_first) for pick in (min, max))
    if high < FAR and low > 1 / FAR:
        return ""
    ends = [(low, least)] if low < 1 / FAR else []
    ends += [(high, most)] if high > FAR else []
    x = str(data.attrs["x"])
    parts = [
        f"{number(v, 3)} times that mean at {place({'n': p['n'], x: p[x]}).html}" for v, p in ends
    ]
    return f"; {method_name(method).html} has {' and '.join(parts)}"


def _first(pair: tuple[float, Point]) -> float:
    return pair[0]


def _judged(data: xr.Dataset) -> xr.Dataset | None:
    """Verdicts on the first theory that was compared with runs, if there are any."""
    if "verdict" not in data:
        return None
    here = data.sel(limit=theories(data)[0][0])
    if not bool(here["p_value"].notnull().any()) and data.attrs["event"] == "last":
        return None  # of several projections theory may know the mean alone
    return here


def _cells(here: xr.Dataset) -> list[Point]:
    """Cells with runs."""
    every = points(here, [str(d) for d in here["runs"].dims])
    return [p for p in every if int(here["runs"].sel(p)) > 0]


def _largest(cells: list[Point]) -> list[Point]:
    """Those of the largest n."""
    top = max((p["n"] for p in cells), default=0)
    return [p for p in cells if p["n"] == top]
