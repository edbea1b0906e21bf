"""What a store offers to an analysis that its study did not ask for: methods and a grid."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.reading import OWN, gives, grid_of, system_of
from hdica.systems.method import Role


def offered(tree: xr.DataTree, role: Role, *axes: tuple[str, ...], n: bool | None = None) -> str:
    """The first method of a role that has the first order parameter over given dimensions.

    ``n`` says whether it must have a dimension n; empty if there is none.
    """
    record, known = system_of(tree), gives(tree)
    if record is None:
        return ""
    overlap = record.order_parameters[0]
    allowed = [(*axis, *overlap.dims) for axis in axes]
    for method in record.with_role(role):
        has = known.get(method.name)
        fits = has is not None and has.outputs.get(overlap.name) in allowed
        if has is not None and fits and n in (None, has.n):
            return method.name
    return ""


def numeric(tree: xr.DataTree, method: str) -> list[str]:
    """Swept parameters of a method with two values or more, which are numbers, in order."""
    data = tree[method].to_dataset()
    swept = [d for d in grid_of(data) if d not in OWN]
    return [d for d in swept if data[d].dtype.kind in "fiu" and data.sizes[d] > 1]


def control(tree: xr.DataTree, swept: list[str]) -> str:
    """The first of some swept parameters that has critical values; empty if none has."""
    record = system_of(tree)
    controls = [] if record is None else [one.name for one in record.controls]
    return next((name for name in controls if name in swept), "")
