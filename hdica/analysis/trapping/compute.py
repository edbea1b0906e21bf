"""The potential that holds an overlap near zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from hdica.analysis.describe import TRAPPING, described
from hdica.analysis.reading import finished, group


def trapping(tree: xr.DataTree, settings: Mapping[str, Any]) -> xr.Dataset:
    """U(r)/D of r = sqrt(n) R near R = 0 (Rattray 2002, (25)-(26)), with its barrier.

    Parameters
    ----------
    tree
        A published store.
    settings
        ``limit`` (a method, default ``"trapping"``).

    Returns
    -------
    xarray.Dataset
        ``U`` over the swept parameters, ``projection``, ``source`` and ``r``; ``barrier`` and
        ``summit`` without ``r``, infinite where the potential confines.

    Raises
    ------
    HdicaError
        If the method or its potential is missing.
    """
    name = str(settings.get("limit") or "trapping")
    data = group(tree, name)
    kept = {k: finished(data, k) for k in ("U", "barrier", "summit")}
    out = xr.Dataset(kept).reset_coords(drop=True)
    out.attrs = {"limit_method": name}
    return described(out, table=TRAPPING)
