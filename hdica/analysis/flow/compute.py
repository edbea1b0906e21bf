"""The drift as a curve, with its zeros."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.describe import described
from hdica.analysis.flow.record import Flow
from hdica.analysis.reading import finished, group, overlap_in, steady_states
from hdica.status import DONE

LONG_NAMES = {
    "drift": "g(q) = (1/tau) dq/dt",
    "fixed_q": "q = Q^2 of the fixed point",
    "fixed_Q": "Q of the fixed point",
    "stable": "1 if stable, 0 if unstable",
}


def flow(tree: xr.DataTree, settings: Flow) -> xr.Dataset:
    """Flow curves g(q) = (1/tau) dq/dt against q = Q^2, and the fixed points on them.

    ``drift`` over the swept parameters and ``q``; ``fixed_q``, ``fixed_Q`` and ``stable`` over the
    swept parameters and ``fixed_point``, NaN where there are fewer.
    """
    curves = group(tree, settings.method)
    out = {"drift": finished(curves, "drift")}
    points = settings.fixed_points or steady_states(tree)
    if points is not None and points in tree.children:
        fixed = group(tree, points)
        at = fixed[overlap_in(tree, fixed)].where(fixed["status"] == DONE)
        out |= {"fixed_q": at**2, "fixed_Q": at, "stable": fixed["stable"].where(at.notnull())}
    return described(xr.Dataset(out).reset_coords(drop=True), LONG_NAMES)
