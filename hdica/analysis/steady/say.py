"""What the bifurcation diagram says."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.show.choose import Point, at_largest_n, evenly, points
from hdica.analysis.show.sentences import N, among, cell, listed
from hdica.analysis.show.words import count, number, place, size, symbol, value_of
from hdica.analysis.steady.compute import ALLOWANCE, ERRORS, TRANSITIONS
from hdica.systems.kinds import STATE_KINDS

DIGITS = 10
CONDENSED = 2


def steady(data: xr.Dataset) -> list[str]:
    """Sentences on transitions, bistability, kinds of states and where simulations end."""
    return [
        *_transitions(data),
        *_bistable(data),
        *_kinds(data),
        *_ends(data),
        *_hysteresis(data),
        *_largest(data),
    ]


def _theory_cells(data: xr.Dataset, name: str, own: set[str]) -> list[Point]:
    return evenly(points(data, [str(d) for d in data[name].dims if d not in own]))


def _said(point: Point, text: str) -> str:
    """A sentence with the grid point to which it applies."""
    return f"At {place(point).html} {text[0].lower()}{text[1:]}" if point else text


def _transitions(data: xr.Dataset) -> list[str]:
    """Every transition to ten digits."""
    if "transition_value" not in data:
        return []
    x, out = symbol(data.attrs["x"]).html, []
    for point in _theory_cells(data, "transition_value", {"transition"}):
        here = data.sel(point)
        columns = ("transition_value", "transition_Q", "transition_kind")
        value, q, kind = (here[name].values for name in columns)
        parts = [
            f"a {TRANSITIONS[int(kind[k])]} at {x} = {number(value[k], DIGITS)} "
            f"({size(data.attrs['variable']).html} = {number(abs(q[k]), 4)})"
            for k in np.argsort(value)
            if np.isfinite(value[k])
        ]
        if parts:
            out.append(_said(point, f"In theory the steady states change at {listed(parts)}."))
        elif bool(here["transition_done"]):
            out.append(_said(point, f"In theory the steady states do not change with {x}."))
    return out


def _bistable(data: xr.Dataset) -> list[str]:
    if "bistable_from" not in data:
        return []
    x, out = symbol(data.attrs["x"]).html, []
    for point in _theory_cells(data, "bistable_from", {"range"}):
        here = data.sel(point)
        low, high = here["bistable_from"].values, here["bistable_to"].values
        parts = [
            f"{number(a, 6)} &lt; {x} &lt; {number(b, 6)}"
            for a, b in zip(low, high, strict=True)
            if np.isfinite(a)
        ]
        if parts:
            text = f"Two or more states are stable for {listed(parts)}"
            out.append(_said(point, f"{text}: there the start decides where learning ends."))
    return out


def _kinds(data: xr.Dataset) -> list[str]:
    """Kinds of stable states with the range of swept values at which each is found."""
    if "state_kind" not in data:
        return []
    x = data.attrs["x"]
    out = []
    for point in _theory_cells(data, "state_kind", {"stable_state", x}):
        here = data["state_kind"].sel(point).transpose(x, "stable_state").values
        at = data[x].values.astype(float)
        parts = []
        for code, name in enumerate(STATE_KINDS):
            found = at[(here == code).any(axis=1)]
            if len(found):
                ends = number(found[0], 4), number(found[-1], 4)
                span = ends[0] if len(found) == 1 else f"{ends[0]} … {ends[1]}"
                parts.append(f"{name} at {symbol(x).html} = {span}")
        if parts:
            out.append(
                _said(point, f"Stable states of the swept values{among()}: {'; '.join(parts)}.")
            )
    return out


def ended(data: xr.Dataset) -> list[tuple[Point, xr.Dataset]]:
    """Simulations at their largest n that have a stable state to compare with."""
    if "on_branch" not in data:
        return []
    dims = [str(d) for d in data["on_branch"].dims if d != "n"]
    every = [(point, data.sel(point)) for point in points(data, dims)]
    largest = [(point, at_largest_n(here, here["on_branch"].notnull())) for point, here in every]
    return [(point, here) for point, here in largest if np.isfinite(here["on_branch"])]


def places(known: list[tuple[Point, xr.Dataset]]) -> tuple[int, int]:
    """How many simulations end on a stable state, and how many others where a limit is by then."""
    on = [float(here["on_branch"]) > 0.5 for _, here in known]
    beside = ["on_limit" in here and float(here["on_limit"]) > 0.5 for _, here in known]
    others = [way and not there for there, way in zip(on, beside, strict=True)]
    return sum(on), sum(others)


def _ends(data: xr.Dataset) -> list[str]:
    """How many simulations end on a stable state, and the one furthest from any."""
    known = ended(data)
    if not known:
        return []
    on, moving = places(known)
    also = ""
    if moving:
        be, have = ("is", "has") if moving == 1 else ("are", "have")
        also = (
            f"; {moving} more {be} as near to where the limit is at <i>t</i> = "
            f"{number(float(data.attrs['until']))}, and {have} not reached one any more than that"
        )
    out = [
        f"{on} of {len(known)} simulated means end on a stable steady state, within "
        f"{ERRORS:g} standard errors and {ALLOWANCE:g}/√{N}{also}."
    ]
    off = [(p, h) for p, h in known if float(h["on_branch"]) < 0.5]
    off = [one for one in off if not float(one[1].get("on_limit", 0.0)) > 0.5]
    if off:
        point, here = max(off, key=lambda one: abs(float(one[1]["overlap"] - one[1]["nearest"])))
        out.append(
            f"Furthest from any{among()}: {cell(point)}, {N} = {count(float(here['n']))}, where "
            f"{size(data.attrs['variable']).html} = {number(float(here['overlap']))} ± "
            f"{number(float(here['overlap_se']), 1)} and the nearest stable state has "
            f"{number(float(here['nearest']))}: not yet steady, or seeds that end on different "
            "states."
        )
    return out


def _hysteresis(data: xr.Dataset) -> list[str]:
    """Where values of the series end on different stable states."""
    series, x = data.attrs["series"], data.attrs["x"]
    on = [(p, h) for p, h in ended(data) if float(h["on_branch"]) > 0.5 and series in p]
    groups: dict[tuple[Any, ...], list[tuple[Point, float]]] = {}
    for point, here in on:
        key = tuple(v for k, v in point.items() if k != series)
        groups.setdefault(key, []).append((point, float(here["nearest"])))
    split = [g for g in groups.values() if max(q for _, q in g) - min(q for _, q in g) > 1e-3]
    if not split:
        return []
    values = sorted({float(g[0][0][x]) for g in split})
    first = split[len(split) // 2]
    name = size(data.attrs["variable"]).html
    parts = [
        f"{name} = {number(q)} from {symbol(series).html} = {escape(value_of(p[series]))}"
        for p, q in first[:4]
    ]
    example = {k: v for k, v in first[0][0].items() if k not in (series, "simulation")}
    ends = number(values[0], 4), number(values[-1], 4)
    span = ends[0] if len(values) == 1 else " … ".join(ends)
    return [
        f"Hysteresis is seen at {symbol(x).html} = {span}: for example at "
        f"{place(example).html} runs end at {listed(parts)}."
    ]


def _largest(data: xr.Dataset) -> list[str]:
    """Share of |x|^2 on one entry, where theory says condensed and elsewhere."""
    if "largest" not in data:
        return []
    shares: dict[bool, list[float]] = {True: [], False: []}
    for _, here in ended(data):
        if float(here["on_branch"]) > 0.5 and np.isfinite(float(here["largest"])):
            shares[float(here["nearest_kind"]) == CONDENSED].append(float(here["largest"]))
    if not shares[True]:
        return []
    low, high = number(min(shares[True]), 2), number(max(shares[True]), 2)
    span = low if low == high else f"{low} … {high}"
    text = f"Where theory says condensed, one entry carries a share {span} of |<i>x</i>|²"
    if shares[False]:
        text += f"; elsewhere at most {number(max(shares[False]), 2)}{among()}"
    return [text + "."]
