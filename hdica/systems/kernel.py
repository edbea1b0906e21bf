"""Versions of the numerical code, folder by folder: part of every study's hash and point's key.

A folder's package says ``VERSION``: it is raised with any change in the folder that can change a
number, and only points of methods that use the folder are computed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

BASE = 4
"""Version that every folder had when it was given one of its own; not told in keys."""
KERNEL_VERSION = str(BASE)
PREFIX = "hdica."


def version_of(folder: str) -> int:
    """Version of a folder, such as ``"hdica.finite.projected"`` or the package of a plug-in."""
    return int(getattr(import_module(folder), "VERSION", 1))


def kernel_of(folders: Iterable[str]) -> str:
    """Version of all code that a method uses, in packages with a ``VERSION``."""
    told = []
    for folder in sorted(set(folders)):
        version = version_of(folder)
        if version != BASE or not folder.startswith(PREFIX):
            told.append(f"{folder.removeprefix(PREFIX)} {version}")
    return ", ".join([KERNEL_VERSION, *told])


def home_of(function: Callable[..., Any]) -> str:
    """The package that a function belongs to; of a module outside any package itself."""
    name: str = function.__module__
    return name.rpartition(".")[0] or name


COMMON = ("hdica.ingredients", "hdica.systems")
FINITE = (*COMMON, "hdica.finite", "hdica.finite.random")
PROJECTED = (*FINITE, "hdica.finite.projected")
AVERAGES = "hdica.limits.averages"
NUMERICS = "hdica.limits.numerics"
OVERLAP = "hdica.limits.overlap"
DIFFUSIONS = "hdica.limits.diffusion"
PASSAGES = "hdica.limits.passage"
COLLAPSE = "hdica.limits.collapse"
MEAN_FIELD = "hdica.limits.mean_field"
MOVING = "hdica.limits.moving"
BANDS = "hdica.limits.bands"
