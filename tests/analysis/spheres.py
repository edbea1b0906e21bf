"""Stores of the landscape -sum_i v_i^4, whose critical points have equal entries on k axes."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from tests.analysis import escapes, toy

DIMENSIONS, RATES = [2, 3, 4], [0.1, 0.2]
POLAR, AZIMUTH = np.linspace(0, np.pi, 31), np.linspace(0, 2 * np.pi, 61)
SETTINGS = {"states": "critical_points", "landscape": "directions", "coordinates": "v"}
MOST = 3 ** DIMENSIONS[-1] - 1


def points(d: int) -> np.ndarray:
    """Every critical point, shape (3^d - 1, d)."""
    signs = np.array([one for one in product((-1, 0, 1), repeat=d) if any(one)], dtype=float)
    return np.asarray(signs / np.linalg.norm(signs, axis=1, keepdims=True))


def critical(missing: int = 0) -> xr.Dataset:
    """Critical points over dimension and a rate on which nothing depends; some may be missing."""
    shape = (len(DIMENSIONS), len(RATES), MOST)
    v = np.full((*shape, DIMENSIONS[-1]), np.nan)
    stable, unstable = np.full(shape, np.nan), np.full(shape, np.nan)
    for i, d in enumerate(DIMENSIONS):
        at = points(d)[missing:]
        support = (at != 0).sum(axis=1)
        v[i, :, : len(at), :d] = at
        stable[i, :, : len(at)] = support == 1
        unstable[i, :, : len(at)] = support - 1  # as many directions within the support descend
    dims = ("dimension", "rate", "fixed_point")
    data = xr.Dataset(
        {"v": ((*dims, "component"), v), "stable": (dims, stable), "unstable": (dims, unstable)},
        {"dimension": DIMENSIONS, "rate": RATES},
    )
    return escapes.group(data, "critical_points", {"fixed_point", "component"})


def directions(azimuth: np.ndarray = AZIMUTH) -> xr.Dataset:
    """The objective over the sphere, over its equator for d = 2, and nowhere for d = 4."""
    theta, phi = np.meshgrid(POLAR, azimuth, indexing="ij")
    x, y, z = np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)
    value = np.full((len(DIMENSIONS), len(RATES), *theta.shape), np.nan)
    equator = int(np.abs(POLAR - np.pi / 2).argmin())
    value[0, :, equator] = -(np.cos(azimuth) ** 4 + np.sin(azimuth) ** 4)
    value[1] = -(x**4 + y**4 + z**4)
    data = xr.Dataset(
        {"value": (("dimension", "rate", "polar", "azimuth"), value)},
        {"dimension": DIMENSIONS, "rate": RATES, "polar": POLAR, "azimuth": azimuth},
    )
    return escapes.group(data, "directions", {"polar", "azimuth"})


def store(missing: int = 0) -> xr.DataTree:
    """A store with landscape and critical points."""
    groups = {"critical_points": critical(missing), "directions": directions()}
    return toy.tree(groups, {"sphere": SETTINGS})
