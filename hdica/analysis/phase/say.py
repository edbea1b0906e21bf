"""What the phase diagram says."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.phase.boundary import agreement, boundary
from hdica.analysis.phase.figure import critical_symbol, critical_values, success
from hdica.analysis.phase.odds import sentence
from hdica.analysis.show.choose import at_last_n
from hdica.analysis.show.sentences import among, size_of
from hdica.analysis.show.words import (
    count,
    number,
    place,
    plural,
    rounded,
    size,
    symbol,
    with_error,
)
from hdica.analysis.terms import steps


def phase(data: xr.Dataset) -> list[str]:
    """Sentences on where learning stops."""
    side, beyond = ("up to", "") if data.attrs["x"] in steps() else ("from", " on")
    out = agreement(data)
    for value, overlap in critical_values(data):
        critical = critical_symbol(data).html
        out.append(
            f"In theory learning is possible {side} {critical} = {number(value, 6)}{beyond}, "
            f"where the informative fixed points meet at "
            f"{symbol(data.attrs['variable']).html} = {number(overlap, 4)}."
        )
    out += [text for text in (unseparated(data),) if text]
    out += _agreement(data)
    out += boundary(data)
    out += sentence(data)
    return out + _decaying(data)


def unseparated(data: xr.Dataset, most: bool = False) -> str:
    """In how many points runs have not separated yet, and when they would have.

    Empty without such a point, or with ``most`` if they are no more than half.
    """
    top = at_last_n(data)
    begun = top["trials"] > 0
    many, total = int((begun & top["probability"].isnull()).sum()), int(begun.sum())
    if not many or (most and 2 * many <= total):
        return ""
    needed = top["time_needed"].values[np.isfinite(top["time_needed"].values)]
    time, until = number(data.attrs["time"]), ""
    if needed.size:
        until = rounded(float(np.median(needed)), 1)
        until = f"; most of them need about <i>t</i> = {until}"
    lead = "Success is not decided"
    where = "" if many == total else f" in {count(many)} of {count(total)} points"
    return (
        f"{lead}{where} at <i>t</i> = {time}, because most runs are still closer to their start "
        f"than to the state to which they go{until}."
    )


def _agreement(data: xr.Dataset) -> list[str]:
    if "agreement_share" not in data:
        return []
    share = float(at_last_n(data)["agreement_share"])
    cells = compared(data)
    if not np.isfinite(share):
        return []
    # Cells that are all alike would scatter so; those that are sure scatter less.
    error = 100 * np.sqrt(share * (1 - share) / max(cells, 1))
    own = error > 0 and "agreement_share_low" not in data
    told = with_error(100 * share, error) if own else number(100 * share, 4)
    size = f"{size_of(data)} and " if size_of(data) else ""
    return [
        f"At {size}<i>t</i> = {number(data.attrs['time'])} the "
        f"majority of seeds is on the limit's side in {told} % of "
        f"{count(cells)} cells{_over_seeds(data)}. Here {success(data)}."
    ]


def compared(data: xr.Dataset) -> int:
    """Cells in which both simulation and limit have a result."""
    return int(at_last_n(data)["agreement"].notnull().sum())


def _over_seeds(data: xr.Dataset) -> str:
    """Interval of the share of cells, where they share seeds."""
    if "agreement_share_low" not in data:
        return ""
    top = at_last_n(data)
    ends = [number(100 * float(top[f"agreement_share_{k}"]), 4) for k in ("low", "high")]
    return f" (95 % interval over seeds, which the cells share: {ends[0]} … {ends[1]} %)"


def _decaying(data: xr.Dataset) -> list[str]:
    """Runs that are large at the last time and yet fail."""
    top = at_last_n(data)
    many, total = int(top["decaying"].sum()), int(top["trials"].sum())
    if not many:
        return []
    x = data.attrs["x"]
    along = top["decaying"].sum([d for d in top["decaying"].dims if d != x])
    most = along[x].values[int(along.values.argmax())]
    at = f"at {size_of(data)} " if size_of(data) else ""
    return [
        f"{plural(many, 'run')} of {count(total)} {at}"
        f"{'is' if many == 1 else 'are'} above {size(data.attrs['variable']).html} = "
        f"{number(data.attrs['success'])} at <i>t</i> = {number(data.attrs['time'])} and still "
        f"decaying, which is no success; most of them{among()} at {place({x: most}).html}."
    ]
