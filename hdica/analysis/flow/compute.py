"""The drift as a curve, with its zeros."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from hdica.analysis.describe import FLOW, described
from hdica.analysis.reading import finished, group
from hdica.status import DONE


def flow(tree: xr.DataTree, settings: Mapping[str, Any]) -> xr.Dataset:
    """Flow curves g(q) = (1/tau) dq/dt against q = Q^2, and the fixed points on them.

    Parameters
    ----------
    tree
        A published store.
    settings
        ``method`` (default ``"drift"``) and ``fixed_points`` (a method, default
        ``"fixed_points"``; left out if the store lacks it).

    Returns
    -------
    xarray.Dataset
        ``drift`` over the swept parameters and ``q``; ``fixed_q``, ``fixed_Q`` and ``stable`` over
        the swept parameters and ``fixed_point``, NaN where there are fewer.

    Raises
    ------
    HdicaError
        If the store lacks the drift.
    """
    curves = group(tree, str(settings.get("method") or "drift"))
    out = {"drift": finished(curves, "drift")}
    points = str(settings.get("fixed_points") or "fixed_points")
    if points in tree.children:
        fixed = group(tree, points)
        at = fixed["Q"].where(fixed["status"] == DONE)
        out |= {"fixed_q": at**2, "fixed_Q": at, "stable": fixed["stable"].where(at.notnull())}
    return described(xr.Dataset(out).reset_coords(drop=True), table=FLOW)
