"""Critical values over a parameter: where they are largest and smallest."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.steady.transition import findings
from hdica.show.finding import Finding, Form
from tests.analysis import bifurcation, toy

transition = toy.computed("transition")
AT = [0.1, 0.2, 0.3]


def found(first: list[float], source: list[str] | None = None) -> list[Finding]:
    """Findings on critical points whose first has these values, the same at every source."""
    swept = bifurcation.critical().expand_dims(rho=AT).copy(deep=True)
    swept["value"].values[:, 0] = first
    if source:
        swept = swept.expand_dims(source=source).copy(deep=True)
        swept["value"].values[1:] *= 2
    swept = swept.assign_attrs(bifurcation.critical().attrs)
    data: xr.Dataset = transition(toy.tree({"critical": swept}, {}), {"x": "rho"})
    return findings(data)


def folds(some: list[Finding]) -> list[tuple[Form, float, float]]:
    return [
        (one.form, one.place["rho"], one.value) for one in some if "(fold)" in one.quantity.plain
    ]


def test_an_extreme_inside_the_range_comes_before_one_at_an_end() -> None:
    assert folds(found([0.3, 0.2, 0.25])) == [(Form.SMALLEST, 0.2, 0.2), (Form.LARGEST, 0.1, 0.3)]
    assert folds(found([0.2, 0.3, 0.25])) == [(Form.LARGEST, 0.2, 0.3), (Form.SMALLEST, 0.1, 0.2)]


def test_a_critical_value_that_rises_has_its_ends() -> None:
    assert folds(found([0.2, 0.3, 0.4])) == [(Form.LARGEST, 0.3, 0.4), (Form.SMALLEST, 0.1, 0.2)]


def test_one_that_does_not_change_has_one_value() -> None:
    assert folds(found([0.2, 0.2, 0.2])) == [(Form.VALUE, 0.1, 0.2)]
    assert folds(found([np.nan, 0.2, np.nan])) == [(Form.VALUE, 0.2, 0.2)]


def test_cells_share_a_sentence() -> None:
    some = found([0.3, 0.2, 0.25], ["uniform", "laplace"])[:2]
    assert [one.place["source"] for one in some] == ["uniform", "laplace"]
    assert [one.value for one in some] == pytest.approx([0.2, 0.4])
    assert some[0].subject == some[1].subject


def test_transitions_of_a_kind_have_numbers() -> None:
    swept = bifurcation.critical().expand_dims(rho=AT).copy(deep=True)
    swept["kind"].values[:, :2] = 0
    swept["value"].values[:, :2] = [[0.3, 0.7], [0.2, 0.8], [0.25, 0.6]]
    swept["Q"].values[:, :2] = 0.5
    swept = swept.assign_attrs(bifurcation.critical().attrs)
    some = findings(transition(toy.tree({"critical": swept}, {}), {"x": "rho"}))
    second = [one for one in some if "(fold 2)" in one.quantity.plain]
    assert [one.value for one in second] == [0.8, 0.6]


def test_nothing_is_found_where_nothing_is_done() -> None:
    swept = bifurcation.critical().expand_dims(rho=AT).copy(deep=True)
    swept["value"].values[...] = np.nan
    swept = swept.assign_attrs(bifurcation.critical().attrs)
    assert not findings(transition(toy.tree({"critical": swept}, {}), {"x": "rho"}))
