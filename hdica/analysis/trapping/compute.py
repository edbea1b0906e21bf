"""The potential that holds an overlap near zero."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.describe import described
from hdica.analysis.reading import finished, group
from hdica.analysis.trapping.record import Trapping

LONG_NAMES = {
    "U": "potential U/D of r = sqrt(n) R, D the variance of its noise in a unit of time",
    "barrier": "height of the barrier of U/D",
    "summit": "r at the top of the barrier",
}


def trapping(tree: xr.DataTree, settings: Trapping) -> xr.Dataset:
    """U(r)/D of r = sqrt(n) R near R = 0 (Rattray 2002, (25)-(26)), with its barrier.

    ``U`` over the swept parameters, ``projection``, ``source`` and ``r``; ``barrier`` and
    ``summit`` without ``r``, infinite where the potential confines.
    """
    data = group(tree, settings.limit)
    kept = {k: finished(data, k) for k in ("U", "barrier", "summit")}
    out = xr.Dataset(kept).reset_coords(drop=True)
    out.attrs = {"limit_method": settings.limit}
    return described(out, LONG_NAMES)
