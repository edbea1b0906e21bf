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
    groups = [group(tree, name) for name in methods]
    columns: dict[str, list[object]] = {
        "accuracy": [str(g.attrs.get("accuracy", "")) for g in groups],
        "equations": [str(g.attrs.get("equations", "")) for g in groups],
        "noise": [str(g.attrs.get("noise", "own" if "seed" in g.dims else "")) for g in groups],
        "kernel": [str(g.attrs.get("kernel", "")) for g in groups],
        "points": [int(g["status"].size) for g in groups],
        "cpu_seconds": [float(g["cpu_seconds"].sum()) for g in groups],
        "n": [_sizes(g["n"].values) if "n" in g.dims else "" for g in groups],
        "seeds": [int(g.sizes.get("seed", 0)) for g in groups],
        "reason": [_reason(g) for g in groups],
    }
    for name, code in COUNTS.items():
        columns[name] = [int((g["status"] == code).sum()) for g in groups]
    out = xr.Dataset({k: ("method", np.array(v)) for k, v in columns.items()})
    out = out.assign_coords(method=methods)
    known = system_of(tree)
    out.attrs["has_n"] = int(known is None or any(m.takes_n for m in known.methods))
    for name in columns:
        out[name].attrs["long_name"] = name.replace("_", " ")
    out["cpu_seconds"].attrs["units"] = "s"
    return out


def _reason(data: xr.Dataset) -> str:
    """Where and why the first point without a result has none; empty if there is no reason."""
    if "reason" not in data:
        return ""
    values = data["reason"]
    texts = np.array([str(t) if isinstance(t, str) else "" for t in values.values.ravel()])
    bad = data["status"].transpose(*values.dims).values.ravel() >= DIVERGED
    given = np.flatnonzero((texts != "") & bad)
    if not len(given):
        return ""
    index = np.unravel_index(given[0], values.shape)
    point = [f"{d} = {data[d].values[k]}" for d, k in zip(values.dims, index, strict=True)]
    return f"{', '.join(point)}: {texts[given[0]]}" if point else texts[given[0]]


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
