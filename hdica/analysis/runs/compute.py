"""What was run: points, outcomes and time by method."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.reading import group, system_of
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
        "n": [listed(g["n"].values) if "n" in g.dims else "" for g in groups],
        "seeds": [int(g.sizes.get("seed", 0)) for g in groups],
        "reason": [reason(g) for g in groups],
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


def reason(data: xr.Dataset) -> str:
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


def listed(values: np.ndarray) -> str:
    """Whole numbers as text, separated by commas; a long list by its ends."""
    texts = [str(int(v)) for v in values]
    if len(texts) <= 12:
        return ", ".join(texts)
    return f"{texts[0]}, {texts[1]}, …, {texts[-1]} ({len(texts)})"
