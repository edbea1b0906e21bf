"""What the account of the runs says, and its table."""

from __future__ import annotations

from typing import Any

import xarray as xr
from markupsafe import escape

from hdica.analysis.show.sentences import listed
from hdica.analysis.show.table import Table
from hdica.analysis.show.words import count, method_name, number, plural, symbol, typeset


def runs(data: xr.Dataset) -> list[str]:
    """Sentences on what was run, and why some of it has no result."""
    total, done = int(data["points"].sum()), int(data["done"].sum())
    lost: dict[str, Any] = {k: int(data[k].sum()) for k in ("diverged", "failed", "pending")}
    extra = listed([f"{count(v)} {k}" for k, v in lost.items() if v] or ["none diverged or failed"])
    return [
        f"{count(done)} of {plural(total, 'point')} are done ({extra}); they took "
        f"{number(float(data['cpu_seconds'].sum()))} s of processor time.",
        *_reasons(data),
    ]


def sharing(data: xr.Dataset) -> str:
    """Methods whose points share their noise, in words; empty if there are none."""
    shared = data["method"].values[data["noise"].values == "shared"]
    return listed([str(name) for name in shared]) if len(shared) else ""


def _reasons(data: xr.Dataset) -> list[str]:
    """The first reason that each method gives."""
    out = []
    for method in data["method"].values:
        here = data.sel({"method": method})
        text = str(here["reason"].item()).rstrip(".")
        if text:
            lost = int(here["diverged"]) + int(here["failed"])
            lead = "" if lost == 1 else "the first of them, "
            out.append(
                f"{method_name(method).html} has no result at {plural(lost, 'point')}: "
                f"{lead}{escape(typeset(text.replace('HdicaError: ', '')))}."
            )
    return out


def _without_n(data: xr.Dataset, seeds: int) -> str:
    """What stands for the n of a method without: infinity for a limit of methods with n."""
    return "∞" if data.attrs["has_n"] and not seeds else "–"


def table(data: xr.Dataset) -> Table:
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
                here["n"].item() or _without_n(data, int(here["seeds"])),
                str(int(here["seeds"])) if int(here["seeds"]) else "–",
            )
        )
    numeric = (False, False, *(True for _ in counts), True, False, True)
    return Table(head, tuple(rows), numeric, len(rows))
