"""Plots and queries in Python: the accessor ``.hdica`` of xarray, and a style for print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hdica.process.compile_cache import after_import

if TYPE_CHECKING:
    import xarray as xr

    from hdica.plots.accessor import Hdica, HdicaTree
    from hdica.plots.canvas import style as style

__all__ = ["style"]


def __getattr__(name: str) -> object:
    # Matplotlib is imported by who draws, not by who imports this.
    if name == "style":
        from hdica.plots.canvas import style

        return style
    raise AttributeError(f"module 'hdica.plots' has no attribute {name!r}")


def register() -> None:
    """Give xarray the accessor ``.hdica``, now or when it is imported."""
    after_import("xarray", _register)


def _register() -> None:
    import xarray as xr

    if "hdica" not in vars(xr.Dataset):
        xr.register_dataset_accessor("hdica")(_of_dataset)
        xr.register_datatree_accessor("hdica")(_of_tree)


def _of_dataset(data: xr.Dataset) -> Hdica:
    from hdica.plots.accessor import Hdica

    return Hdica(data)


def _of_tree(tree: xr.DataTree) -> HdicaTree:
    from hdica.plots.accessor import HdicaTree

    return HdicaTree(tree)
