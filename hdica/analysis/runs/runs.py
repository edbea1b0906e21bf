"""What was run: points, outcomes and time by method."""

from __future__ import annotations

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.reading import group, system_of
from hdica.show.typeset import typeset
from hdica.show.wording import Table, listed
from hdica.show.words import count, method_name, number, plural, symbol
from hdica.status import DIVERGED, DONE, FAILED, PENDING

COUNTS = {"done": DONE, "diverged": DIVERGED, "failed": FAILED, "pending": PENDING}


def runs(tree: xr.DataTree) -> xr.Dataset:
    """Account of a store over ``method``: points by outcome, processor seconds, n and seeds.

    The attribute ``has_n`` is 1 if the system has any method with a dimension n, else 0.
    """
    methods = [name for name, node in tree.children.items() if "status" in node]
    groups, written = [group(tree, name) for name in methods], ("accuracy", "equations", "kernel")
    columns: dict[str, list[object]] = {
        **{key: [str(g.attrs.get(key, "")) for g in groups] for key in written},
        "noise": [str(g.attrs.get("noise", "own" if "seed" in g.dims else "")) for g in groups],
        "points": [int(g["status"].size) for g in groups],
        "cpu_seconds": [float(g["cpu_seconds"].sum()) for g in groups],
        "n": [_sizes(g["n"].values) if "n" in g.dims else "" for g in groups],
        "seeds": [int(g.sizes.get("seed", 0)) for g in groups],
        "reason": [_reason(g) for g in groups],
    }
    for name, code in COUNTS.items():
        columns[name] = [int((g["status"] == code).sum()) for g in groups]
    attrs = {name: {"long_name": name.replace("_", " ")} for name in columns}
    attrs["cpu_seconds"]["units"] = "s"
    variables = {k: ("method", np.array(v), attrs[k]) for k, v in columns.items()}
    known = system_of(tree)
    has_n = int(known is None or any(m.takes_n for m in known.methods))
    return xr.Dataset(variables, {"method": methods}, {"has_n": has_n})


def _reason(data: xr.Dataset) -> str:
    """Where and why the first point without a result has none; empty if there is no reason."""
    if "reason" not in data:
        return ""
    values = data["reason"]
    bad = data["status"].transpose(*values.dims).values >= DIVERGED
    for index in np.argwhere(bad):
        text = values.values[tuple(index)]
        if isinstance(text, str) and text:
            at = zip(values.dims, index, strict=True)
            point = ", ".join(f"{dim} = {data[dim].values[k]}" for dim, k in at)
            return f"{point}: {text}" if point else text
    return ""


def _sizes(values: np.ndarray) -> str:
    """Whole numbers as text, separated by commas; a long list by its ends."""
    texts = [str(int(v)) for v in values]
    if len(texts) <= 12:
        return ", ".join(texts)
    return f"{texts[0]}, {texts[1]}, …, {texts[-1]} ({len(texts)})"


def notes(data: xr.Dataset) -> list[str]:
    """Sentences on what was run, and why some of it has no result."""
    total, done = int(data["points"].sum()), int(data["done"].sum())
    lost = {k: int(data[k].sum()) for k in ("diverged", "failed", "pending")}
    extra = listed([f"{count(v)} {k}" for k, v in lost.items() if v] or ["none diverged or failed"])
    return [
        f"{count(done)} of {plural(total, 'point')} are done ({extra}); they took "
        f"{number(float(data['cpu_seconds'].sum()))} s of processor time.",
        *(
            _lost(data.sel({"method": name}))
            for name in data["method"][data["reason"] != ""].values
        ),
    ]


def _lost(here: xr.Dataset) -> str:
    """At how many points a method has no result, and the first reason that it gives."""
    text = escape(typeset(str(here["reason"].item()).rstrip(".").replace("HdicaError: ", "")))
    lost = int(here["diverged"]) + int(here["failed"])
    lead = "" if lost == 1 else "the first of them, "
    method = method_name(here["method"].item()).html
    return f"{method} has no result at {plural(lost, 'point')}: {lead}{text}."


def sharing(data: xr.Dataset) -> str:
    """Methods whose points share their noise, in words; empty if there are none."""
    shared = data["method"].values[data["noise"].values == "shared"]
    return listed([str(name) for name in shared]) if len(shared) else ""


def table(data: xr.Dataset) -> Table:
    """What was run; a limit of methods with n has n = ∞."""
    counts = ("points", "done", "diverged", "failed", "pending")
    head = ("method", "accuracy", *counts, "CPU seconds", symbol("n").html, "seeds")
    rows = []
    for method in data["method"].values:
        here = data.sel({"method": method})
        whole, seeds = [count(int(here[c])) for c in counts], int(here["seeds"])
        n = here["n"].item() or ("∞" if data.attrs["has_n"] and not seeds else "–")
        cpu = number(float(here["cpu_seconds"]))
        rows.append((str(method), here["accuracy"].item(), *whole, cpu, n, str(seeds or "–")))
    numeric = (False, False, *(True for _ in counts), True, False, True)
    return Table(head, tuple(rows), numeric, len(rows))
