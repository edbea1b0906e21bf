"""Where the effective potential is least and whether it is convex, in one sentence."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.potential.say import potential
from hdica.analysis.show.answer import Answer


def answer(data: xr.Dataset) -> Answer | None:
    """What is said of the first grid point."""
    said = potential(data)
    return Answer(said[0]) if said else None
