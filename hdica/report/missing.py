"""What a report lacks because its run has not finished, for the top of its page."""

from __future__ import annotations

import xarray as xr

from hdica.show.wording import listed
from hdica.show.words import count, plural


def missing(runs: xr.Dataset) -> str:
    """Sentences on points that are pending, in plain text; empty if none is.

    ``runs`` is the account of what was run, over ``method``.
    """
    total, open_ = int(runs["points"].sum()), int(runs["pending"].sum())
    if not open_:
        return ""
    of = [
        f"{method} {count(int(many))} of {count(int(points))}"
        for method, many, points in zip(
            runs["method"].values, runs["pending"].values, runs["points"].values, strict=True
        )
        if many
    ]
    are = "is" if open_ == 1 else "are"
    return (
        f"This run has not finished: {count(open_)} of {plural(total, 'point')} {are} pending "
        f"({listed(of)}). What follows is of the points that are done."
    )
