"""The accessor ``.hdica`` is there as soon as xarray is, whichever is imported first.

xarray cannot be told beforehand of an accessor, so that its import is waited for.
"""

from __future__ import annotations

from hdica.process.after_import import after_import


def registered() -> None:
    """Make the accessor known to xarray, now or when it is imported."""
    after_import("xarray", _register)


def _register() -> None:
    import xarray as xr

    from hdica.plots.accessor import Hdica
    from hdica.plots.tree import HdicaTree

    for known, register, kind in (
        (xr.Dataset, xr.register_dataset_accessor, Hdica),
        (xr.DataTree, xr.register_datatree_accessor, HdicaTree),
    ):
        if "hdica" not in vars(known):
            register("hdica")(kind)
