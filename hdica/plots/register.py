"""The accessor ``.hdica`` is there as soon as xarray is, whichever is imported first.

``import hdica`` takes no time because it imports neither. xarray cannot be told beforehand of an
accessor, so that its import is waited for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

XARRAY = "xarray"


def registered() -> None:
    """Make the accessor known to xarray, now or when it is imported."""
    if XARRAY in sys.modules:
        _register()
    elif not any(isinstance(finder, _Waiting) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Waiting())


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


class _Waiting(MetaPathFinder):
    """Finds xarray as everybody else does, once, and registers the accessor after it is loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != XARRAY:
            return None
        sys.meta_path.remove(self)
        found = find_spec(fullname)
        if found is not None and found.loader is not None:
            found.loader = _Loading(found.loader)
        return found


class _Loading(Loader):
    """A loader that registers the accessor when its module is there."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            spec.loader = self.loader  # whoever asks for it later gets the usual one
        module.__loader__ = self.loader
        self.loader.exec_module(module)
        _register()
