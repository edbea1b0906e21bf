"""Counts of nodes, panels and places that no refinement sets: twice as many change nothing.

Each quadrature rule and each even grid of ``limits``, ``systems`` and ``ingredients`` is listed in
docs/errors.md with what protects it; a rule in a file that is not listed there fails here.
"""

import ast
import importlib
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError

ROOT = Path(__file__).parents[2]
RULES = {
    *("leggauss", "hermgauss", "hermegauss", "laggauss", "roots_legendre", "roots_hermitenorm"),
    *("roots_jacobi", "panel_nodes", "gaussian_nodes", "half_normal_nodes", "uniform_nodes"),
    *("gauss", "chi2_nodes", "sphere_nodes", "gauss_legendre", "composite_rule", "chebpts1"),
    *("chebpts2", "linspace", "geomspace", "logspace"),
}
ROOMS = ("limits", "systems", "ingredients")


def files_with_rules():
    """Files that call a quadrature rule or make an even grid, as docs/errors.md names them."""
    names = set()
    for path in (one for room in ROOMS for one in (ROOT / "hdica" / room).rglob("*.py")):
        calls = (
            node.func
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call)
        )
        if any(getattr(f, "attr", getattr(f, "id", "")) in RULES for f in calls):
            names.add(path.relative_to(ROOT / "hdica").with_suffix("").as_posix())
    return names


def listed():
    """File and protection, from the table in docs/errors.md."""
    text = (ROOT / "docs" / "errors.md").read_text().split("## Fixed counts")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", text, re.M)[1:]
    return {f: how for files, _, how in rows for f in re.findall(r"`([\w/]+)`", files)}


def test_every_rule_is_listed_with_what_protects_it():
    assert files_with_rules() == set(listed())


def test_every_doubled_count_is_listed_as_such():
    doubled = {f for f, how in listed().items() if how.startswith("twice as many")}
    assert doubled == {module.replace(".", "/") for module, *_ in COUNTS}


def trap(nu):
    ica = hdica.OnlineICA(source="rademacher", start={"overlap": 0}, nu=nu)
    return hdica.escape_time(ica)["survival"]


def states(tau, regularizer):
    pca = hdica.SparsePCA(omega=1.0, prior={"sparse": 0.05}, tau=tau, regularizer=regularizer)
    return hdica.fixed_points(pca)["Q"]


def race(nu):
    several = {"sources": ["rademacher", "uniform"], "sigma": [-1], "nu": nu}
    return hdica.escape_time(hdica.HebbianICA(**several))["mean"]


SMOOTH = "0.3*x/(1 + x**2)"
COUNTS = [  # the number of so few is wrong, twice as many change the result by less than the last
    ("limits.diffusion.escape", "_NODES", 2, partial(trap, 0.5), 1e-6),
    ("limits.diffusion.escape", "_NODES", 2, partial(trap, 2.0), 1e-6),
    ("systems.hebbian_ica.escape.copies", "_NODES", 2, partial(race, 0.5), 1e-6),
    ("systems.hebbian_ica.escape.copies", "_NODES", 2, partial(race, 20.0), 1e-6),
    ("limits.mean_field.steady.boltzmann", "_ORDER", 2, partial(states, 0.5, SMOOTH), 1e-9),
]


def without_caches():
    for module in [m for name, m in sys.modules.items() if name.startswith("hdica.")]:
        for value in list(vars(module).values()):
            if callable(getattr(value, "cache_clear", None)):
                value.cache_clear()


@pytest.mark.parametrize(("module", "name", "few", "compute", "off"), COUNTS)
def test_twice_as_many_change_nothing(module, name, few, compute, off, monkeypatch):
    room, results = importlib.import_module(f"hdica.{module}"), []
    usual = getattr(room, name)
    for count in (usual, 2 * usual, few):
        monkeypatch.setattr(room, name, count)
        without_caches()
        try:
            results.append(compute().values)
        except HdicaError:
            results.append(np.array(np.nan))
    without_caches()
    alone, twice, rough = results
    assert twice == pytest.approx(alone, rel=off, abs=off)
    # Else the count is not the one that matters.
    assert rough.shape != alone.shape or not np.allclose(rough, alone, rtol=off, atol=off)
