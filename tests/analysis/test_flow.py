"""Flow: up to which parameter there is a stable informative state, and its q."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.landscapes.landscapes import flow_findings as findings


def states(q: list[float], stable: bool = True) -> xr.Dataset:
    """One fixed point at each step size 0.1, 0.2, …; NaN where it is pending."""
    data = {"fixed_q": (("tau", "fixed_point"), np.array(q)[:, None])}
    data["stable"] = (("tau", "fixed_point"), np.full((len(q), 1), float(stable)))
    return xr.Dataset(data, {"tau": [round(0.1 * (k + 1), 1) for k in range(len(q))]})


@pytest.mark.parametrize(
    ("q", "words", "ends"),
    [
        ([0.9, 0.7, 0.0], ("largest", "smallest"), [0.2, 0.3]),
        ([0.0, 0.7, 0.9], ("smallest", "largest"), [0.2, 0.1]),
    ],
)
def test_the_edge_of_the_informative_states_is_first(
    q: list[float], words: tuple[str, str], ends: list[float]
) -> None:
    last, beyond, *rest = findings(states(q))
    assert [last.value, beyond.value] == ends
    assert last.quantity.plain.startswith(f"the {words[0]} step size τ on the grid with a")
    assert beyond.quantity.plain.startswith(f"the {words[1]} step size τ on the grid without a")
    assert [one.value for one in rest] == [one for one in q if one]


def test_states_without_an_edge_are_counted() -> None:
    count, *rest = findings(states([0.9, 0.0, 0.7]))
    assert count.value == 2
    assert count.quantity.plain.endswith("out of 3,")
    assert [one.place["tau"] for one in rest] == [0.1, 0.3]
    for none in (states([0.0, 0.0]), states([0.9, 0.9], stable=False)):
        (count,) = findings(none)
        assert count.value == 0


def test_an_edge_waits_for_pending_points() -> None:
    count, _ = findings(states([0.9, np.nan, 0.0]))
    assert count.quantity.plain.startswith("the number of grid points")
    assert count.quantity.plain.endswith("out of 2,")
    assert count.value == 1


def test_where_all_points_have_one_its_q_is_found() -> None:
    (one,) = findings(states([0.9]))
    assert (one.place, one.value) == ({"tau": 0.1}, 0.9)
    assert not findings(states([np.nan, np.nan]))
