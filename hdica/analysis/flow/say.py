"""What the flow of the limit says."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.show.choose import evenly, points
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import number, place
from hdica.systems.kinds import ZERO


def flow(data: xr.Dataset) -> list[str]:
    """Sentences on the fixed points of the flow."""
    if "fixed_q" not in data:
        return []
    dims = [str(d) for d in data["fixed_q"].dims if d != "fixed_point"]
    out = []
    done = [p for p in points(data, dims) if bool(data["fixed_q"].sel(p).notnull().any())]
    for point in evenly(done):
        lead = f"At {place(point).html} " if point else ""
        kinds = _fixed_points(data.sel(point))
        if kinds:
            out.append(f"{lead}the informative fixed points are {listed(kinds)}.")
        else:
            out.append(f"{lead}the only fixed point is <i>q</i> = 0: nothing is learned.")
    return [text[0].upper() + text[1:] for text in out]


def _fixed_points(here: xr.Dataset) -> list[str]:
    """Informative fixed points by q; -Q and Q are one."""
    pairs = zip(here["fixed_q"].values, here["stable"].values, strict=True)
    kinds = {(number(q, 4), bool(s > 0.5)): float(q) for q, s in pairs if q > ZERO}
    ordered = sorted(kinds, key=lambda kind: kinds[kind])
    return [f"<i>q</i> = {q} ({'stable' if s else 'unstable'})" for q, s in ordered]
