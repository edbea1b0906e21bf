"""The effective potential: where it is least, and when it is convex."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.landscapes.landscapes import potential_findings as findings
from hdica.show.finding import Finding
from tests.analysis import laws, toy

potential = toy.computed("potential")
LEAST = "the minimiser x of the effective potential"
CONVEX = "the share of output times at which the effective potential is convex"
LAST = "the last output time at which the effective potential is not convex"


def found(store: xr.DataTree) -> dict[str, list[Finding]]:
    """Findings with a value, by their quantity."""
    out: dict[str, list[Finding]] = {}
    for one in findings(potential(store, {"limit": "pde"})):
        if np.isfinite(one.value):
            out.setdefault(one.quantity.plain, []).append(one)
    return out


def test_where_the_potential_is_least() -> None:
    # m(3) = 0.7 (1 - exp(-3)), and the minimum of (x - 2 m)^2 + |x|/2 is at 2 m - 1/4.
    first, second = found(laws.store())[LEAST]
    assert first.place == {"tau": 0.1, "t": 3.0, "feature": 0.0}
    assert first.value == pytest.approx(0.0, abs=1e-3)
    assert second.place["feature"] == 2.0
    assert second.value == pytest.approx(1.4 * (1 - np.exp(-3)) - 0.25, abs=1e-3)


def test_a_potential_without_a_minimum_has_none() -> None:
    tree = laws.store()
    tree["pde"]["potential"].values[...] = -laws.X
    assert LEAST not in found(tree)


def test_when_the_potential_is_convex() -> None:
    tree = laws.store()
    assert [one.value for one in found(tree)[CONVEX]] == [50.0]
    assert [one.value for one in found(tree)[LAST]] == [0.5]
    tree["pde"]["convex"].values[...] = 1.0
    assert [one.value for one in found(tree)[CONVEX]] == [100.0]
    assert LAST not in found(tree)
