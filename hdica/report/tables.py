"""Tables of a report, as rows of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from hdica.analysis.convergence.figure import grid_of
from hdica.analysis.distances.figure import law_label
from hdica.analysis.show.choose import Point, points
from hdica.analysis.show.sentences import near
from hdica.analysis.show.words import count, number, place, probability, rounded, symbol, value_of

MOST_ROWS = 300
"""Longer tables are cut on the page; the data files hold all."""

NEAR = "near the level"
"""Shown in place of "differs" where chance may have done it."""

VERDICT_HEAD = ("verdict", "<i>p</i>", "<i>p</i> of 2 % control", "power", "seeds to decide")


@dataclass(frozen=True)
class Table:
    """A table for the page.

    Parameters
    ----------
    head
        Column names, HTML.
    rows
        Cells, plain text; escaped by the page.
    numeric
        Which columns are numbers and align to the right.
    total
        Rows before cutting.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    total: int


def runs(data: xr.Dataset) -> Table:
    """What was run."""
    counts = ("points", "done", "diverged", "failed", "pending")
    head = ("method", "accuracy", *counts, "CPU seconds", symbol("n").html, "seeds")
    rows = []
    for method in data["method"].values:
        here = data.sel({"method": method})
        rows.append(
            (
                str(method),
                here["accuracy"].item(),
                *(count(int(here[c])) for c in counts),
                number(float(here["cpu_seconds"])),
                here["n"].item() or "∞",
                str(int(here["seeds"])) if int(here["seeds"]) else "–",
            )
        )
    numeric = (False, False, *(True for _ in counts), True, False, True)
    return Table(head, tuple(rows), numeric, len(rows))


def verdicts(data: xr.Dataset) -> Table:
    """One row for each grid point and simulation; whatever does not agree comes first."""
    dims = ["simulation", *grid_of(data)]
    head = (
        *("method" if d == "simulation" else symbol(d).html for d in dims),
        *VERDICT_HEAD,
        "<i>n</i> used from",
        "<i>a</i> (fluctuation)",
        "<i>b</i> (bias)",
        "sup error, largest <i>n</i>",
    )
    cells = _worst_first(data, dims)
    rows = []
    for point in cells[:MOST_ROWS]:
        here = data.sel(point)
        rows.append(
            (
                *(value_of(point[d]) for d in dims),
                *_verdict(here),
                count(float(here["n_from"])) if np.isfinite(here["n_from"]) else "–",
                _exponent(here, "fluctuation_exponent"),
                _exponent(here, "bias_exponent"),
                _error(here),
            )
        )
    text = tuple(data[d].dtype.kind not in "fiu" for d in dims)
    numeric = (*(not t for t in text), False, *(True,) * 8)
    return Table(head, tuple(rows), numeric, len(cells))


def _worst_first(data: xr.Dataset, dims: Sequence[str]) -> list[Point]:
    """Comparisons; whatever does not agree comes first."""
    order = {"differs": 0, "undecided": 1, "agrees": 2}
    return sorted(
        points(data, dims), key=lambda p: order.get(str(data["verdict"].sel(p).item()), 3)
    )


def distances(data: xr.Dataset) -> Table:
    """One row for each law; whatever does not agree comes first."""
    columns = tuple(
        (f"{short}, largest <i>n</i>", f"{short} of independent draws") for short in ("KS", "W1")
    )
    head = ("law", *VERDICT_HEAD, *columns[0], *columns[1], "<i>a</i> (KS)", "<i>a</i> (W1)")
    cells = _worst_first(data, ["simulation", *(str(d) for d in data["verdict"].dims[1:])])
    rows = []
    for point in cells[:MOST_ROWS]:
        here, rest = data.sel(point), {k: v for k, v in point.items() if k != "simulation"}
        last = _last(here, "ks")
        rows.append(
            (
                f"{point['simulation']}, {law_label(data, rest).plain}",
                *_verdict(here),
                *(text for k in ("ks", "w1") for text in _distance(last, k)),
                *(_exponent(here, f"{k}_exponent") for k in ("ks", "w1")),
            )
        )
    return Table(head, tuple(rows), (False, False, *(True,) * 10), len(cells))


def support(data: xr.Dataset) -> Table:
    """One row for each snapshot; whatever does not agree comes first."""
    head = ("rates", *VERDICT_HEAD, "area under the limit's curve")
    cells = _worst_first(data, ["simulation", *(str(d) for d in data["verdict"].dims[1:])])
    rows = []
    for point in cells[:MOST_ROWS]:
        here, rest = data.sel(point), {k: v for k, v in point.items() if k != "simulation"}
        name = f"{point['simulation']}, {place(rest).plain}"
        rows.append((name, *_verdict(here), number(float(here["area_limit"]), 4)))
    return Table(head, tuple(rows), (False, False, *(True,) * 5), len(cells))


def _verdict(here: xr.Dataset) -> tuple[str, ...]:
    needed = float(here["seeds_needed"])
    return (
        NEAR if near(here) else str(here["verdict"].item()),
        probability(float(here["p_value"])),
        probability(float(here["control_p"])),
        number(float(here["power"]), 2),
        rounded(needed) if np.isfinite(needed) else ("∞" if needed > 0 else "–"),
    )


def _last(here: xr.Dataset, name: str) -> xr.Dataset:
    """The largest n with a result, or the largest of all."""
    known = np.flatnonzero(np.isfinite(here[name].values))
    return here.isel(n=int(known[-1]) if len(known) else -1)


def _distance(last: xr.Dataset, kind: str) -> tuple[str, str]:
    """A distance with its error, and that of independent draws."""
    value, error = float(last[kind]), float(last[f"{kind}_se"])
    bar = f" ± {number(error, 1)}" if np.isfinite(error) else ""
    return f"{number(value, 2)}{bar}", number(float(last[f"{kind}_expected"]), 2)


def _exponent(here: xr.Dataset, name: str) -> str:
    value, low, high = (float(here[name + end]) for end in ("", "_low", "_high"))
    if not np.isfinite(value):
        return "not resolved"
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _error(here: xr.Dataset) -> str:
    known = np.flatnonzero(np.isfinite(here["sup_error"].values))
    if not len(known):
        return "–"
    last = here.isel(n=int(known[-1]))
    return f"{number(float(last['sup_error']), 2)} ± {number(float(last['sup_error_se']), 1)}"
