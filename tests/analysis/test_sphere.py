"""A landscape with known critical points: numbers, kinds, pictures, and points that are missing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate, summary
from hdica.analysis.pictures.sphere import findings
from hdica.analysis.pictures.sphere import panels as draw
from hdica.errors import HdicaError
from hdica.report import printed
from hdica.report.interactive import figure
from hdica.report.page import panels, render
from hdica.show.finding import verdict_of
from hdica.show.panel import Line, Panel, Places, Points, Surface
from hdica.show.wording import sentence
from hdica.study.study import study_from
from hdica.systems.method import Output, Outputs
from hdica.systems.system import systems
from tests.analysis import spheres, toy
from tests.analysis.spheres import SETTINGS
from tests.sweep import toy as cheap

sphere = toy.computed("sphere")
KINDS = ("minimisers", "maximisers", "saddles")
NUMBERS = {2: (4, 4, 0), 3: (6, 8, 12), 4: (8, 16, 56)}
"""Minimisers, maximisers and saddles by dimension: 2d, 2^d, and the rest of 3^d - 1."""


def numbers(data: xr.Dataset, of: str) -> list[float]:
    return [one.value for one in findings(data) if one.quantity.plain == f"the number of {of}"]


@pytest.fixture(scope="module")
def found() -> xr.Dataset:
    return sphere(spheres.store(), SETTINGS)


def _changed(group: str, **variables: Any) -> xr.DataTree:
    groups = {"critical_points": spheres.critical(), "directions": spheres.directions()}
    attrs = groups[group].attrs
    groups[group] = groups[group].assign(variables).assign_attrs(attrs)
    return toy.tree(groups, {})


def test_numbers_of_critical_points_are_counted(found):
    assert found["space"].values.tolist() == spheres.DIMENSIONS
    for d in spheres.DIMENSIONS:
        here = found.sel(dimension=d)
        many = tuple(int(here[k]) for k in ("minimisers", "maximisers", "saddles"))
        assert many == NUMBERS[d]
        assert sum(many) == 3**d - 1
        assert int(here["index_sum"]) == int(here["characteristic"]) == (2 if d % 2 else 0)


def test_parameters_on_which_nothing_depends_are_left_out(found):
    assert "rate" not in found.dims
    data = spheres.directions()["value"]
    other = _changed("directions", value=data * xr.DataArray([1.0, 2.0], dims="rate"))
    assert sphere(other, SETTINGS)["objective"].sizes["rate"] == 2


def test_a_landscape_may_depend_on_more_than_its_critical_points_do():
    states = spheres.critical().isel(dimension=1, rate=0, drop=True)
    data = spheres.directions()
    grid = data.isel(dimension=1, drop=True)
    grid["value"] = grid["value"] * xr.DataArray([1.0, 2.0], dims="rate")
    groups = {"critical_points": states, "directions": grid.assign_attrs(data.attrs)}
    groups["critical_points"].attrs = spheres.critical().attrs
    here = sphere(toy.tree(groups, {}), SETTINGS)
    assert [panel.title.plain[-10:] for panel in draw(here)] == ["rate = 0.1", "rate = 0.2"]
    assert [numbers(here, kind) for kind in KINDS] == [[6], [8], [12]]


def test_a_report_has_both_its_findings_and_its_panels():
    found = aggregate(spheres.store())
    assert "learning" not in found.children  # a value in a direction is no transition
    assert [panel.key for panel in panels(found)["sphere"]] == ["sphere_1", "sphere_2"]
    assert "Euler characteristic" in summary(found).headline
    assert render(found, panels(found))


def test_every_kind_is_counted_and_the_indices_are_judged(found):
    assert numbers(found, "critical points") == [8, 26, 80]
    for k, kind in enumerate(KINDS):
        assert numbers(found, kind) == [NUMBERS[d][k] for d in spheres.DIMENSIONS]
    assert numbers(found, "minimisers off the coordinate axes") == [0, 0, 0]
    sums = findings(found)[-3:]
    assert [one.place["dimension"] for one in sums] == spheres.DIMENSIONS
    assert [one.value for one in sums] == [one.predicted for one in sums] == [0, 2, 0]
    assert {one.verdict for one in sums} == {"agrees"}
    # Equal whole numbers agree exactly, not to within 0.
    assert sentence(tuple(sums)).endswith("sphere in all 3 comparisons.")


def test_a_point_that_is_missing_differs():
    fewer = sphere(spheres.store(missing=1), SETTINGS)
    assert numbers(fewer, "maximisers") == [3, 7, 15]
    sums = findings(fewer)[-3:]
    assert [one.value - one.predicted for one in sums] == [1, -1, 1]
    assert {one.verdict for one in sums} == {"differs"}


def test_minimisers_off_the_axes_are_counted():
    data = spheres.critical()
    turned = data["v"].copy(data=data["v"].values)
    lowest = np.flatnonzero(data["stable"].values[1, 0] == 1)[0]
    turned.values[1, :, lowest, :3] = [0.6, 0.8, 0.0]
    here = sphere(_changed("critical_points", v=turned), SETTINGS)
    assert numbers(here, "minimisers off the coordinate axes") == [0, 1, 0]


def test_points_that_stand_for_several_are_counted_so():
    data = spheres.critical().isel(dimension=[1])
    support = (data["v"] != 0).where(data["v"].notnull()).sum("component")
    first = [int(np.flatnonzero(support.values[0, 0] == k)[0]) for k in (1, 2, 3)]
    some = data.isel(fixed_point=first)
    some["multiplicity"] = xr.zeros_like(some["stable"]) + xr.DataArray(
        [6.0, 12.0, 8.0], dims="fixed_point"
    )
    some.attrs = data.attrs
    here = sphere(
        toy.tree({"critical_points": some}, {}), {"states": "critical_points", "coordinates": "v"}
    )
    assert [numbers(here, kind) for kind in KINDS] == [[6], [8], [12]]
    assert verdict_of(findings(here)) == "agrees"
    assert draw(here) == []


def test_degenerate_points_are_no_minimisers():
    unsure = sphere(
        _changed("critical_points", stable=spheres.critical()["stable"] * 0.0), SETTINGS
    )
    assert (unsure["minimisers"] == 0).all()


def test_a_point_that_is_not_done_is_not_counted():
    groups = {"critical_points": spheres.critical(), "directions": spheres.directions()}
    groups["critical_points"]["status"].values[1] = 3
    here = sphere(toy.tree(groups, {}), SETTINGS)
    assert np.isnan(here["minimisers"].sel(dimension=3))
    assert {one.place["dimension"] for one in findings(here)} == {2, 4}
    assert [panel.key for panel in draw(here)] == ["sphere"]


def _items(panel: Panel, kind: type) -> list[Any]:
    return [item for item in panel.items if isinstance(item, kind)]


def test_the_circle_has_its_critical_points_on_the_curve(found):
    panel = draw(found)[0]
    assert panel.equal
    curve = _items(panel, Line)[1]
    radius = np.hypot(curve.x, curve.y)
    assert (radius.min(), radius.max()) == pytest.approx((1.0, 1.6))
    least, largest = _items(panel, Points)
    assert least.label.plain == "minimisers (stable)"
    assert np.hypot(least.x, least.y) == pytest.approx(np.ones(4))
    assert np.hypot(largest.x, largest.y) == pytest.approx(np.full(4, 1.6), abs=0.005)
    assert least.filled.all()
    assert not largest.filled.any()
    assert abs(largest.x) == pytest.approx(abs(largest.y))
    assert panel.x_label.plain == "v₁"


def test_the_sphere_has_the_objective_as_its_colour(found):
    panel = draw(found)[1]
    (surface,) = _items(panel, Surface)
    assert surface.x**2 + surface.y**2 + surface.z**2 == pytest.approx(np.ones_like(surface.x))
    known = -(surface.x**4 + surface.y**4 + surface.z**4)
    assert surface.color == pytest.approx(known)
    assert [len(item.x) for item in _items(panel, Places)] == [6, 12, 8]
    for item in _items(panel, Places):
        assert item.x**2 + item.y**2 + item.z**2 == pytest.approx(1.02**2)
    assert len(draw(found)) == 2  # of four dimensions there is no picture


def test_grids_that_do_not_close_are_closed():
    data = spheres.directions(spheres.AZIMUTH[:-1])
    groups = {"critical_points": spheres.critical(), "directions": data}
    here = draw(sphere(toy.tree(groups, {}), SETTINGS))
    curve, (surface,) = _items(here[0], Line)[1], _items(here[1], Surface)
    assert (curve.x[0], curve.y[0]) == pytest.approx((curve.x[-1], curve.y[-1]))
    assert surface.x[:, 0] == pytest.approx(surface.x[:, -1])
    assert surface.color[:, 0] == pytest.approx(surface.color[:, -1])


def test_a_landscape_over_azimuth_alone_is_a_circle(found):
    data = spheres.directions()
    row = data.isel(dimension=[0], polar=15, drop=True).assign_attrs(data.attrs)
    groups = {"critical_points": spheres.critical().isel(dimension=[0]), "directions": row}
    groups["critical_points"].attrs = spheres.critical().attrs
    (panel,) = draw(sphere(toy.tree(groups, {}), SETTINGS))
    known, here = (_items(one, Line)[1] for one in (draw(found)[0], panel))
    assert here.x == pytest.approx(known.x)


@pytest.mark.deep
def test_both_are_drawn_for_print_and_for_the_page(found):
    for panel in draw(found):
        assert printed.files(panel)
        assert figure(panel)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"coordinates": "u"}, "no variable 'u'"),
        ({"value": "height"}, "no variable 'height'"),
        ({"states": "ode"}, "no method 'ode'"),
    ],
)
def test_refusals_are_one_sentence(settings, words):
    with pytest.raises(HdicaError, match=words):
        sphere(spheres.store(), {**SETTINGS, **settings})


def test_critical_points_without_their_stability_are_refused():
    groups = {"critical_points": spheres.critical().drop_vars("unstable")}
    with pytest.raises(HdicaError, match="no variable 'unstable'"):
        sphere(toy.tree(groups, {}), {"states": "critical_points", "coordinates": "v"})


def test_what_a_study_names_is_checked_before_anything_runs(monkeypatch):
    made = cheap.make()
    at, each = ("fixed_point", "component"), ("fixed_point",)
    outputs = (Output("v", at, "v"), Output("stable", each, "s"), Output("unstable", each, "u"))
    grid = (Output("value", ("polar", "azimuth"), "f"),)
    methods = {
        "states": replace(
            made["steady"], name="states", outputs=replace(made["steady"].outputs, always=outputs)
        ),
        "bare": replace(
            made["steady"], name="bare", outputs=replace(made["steady"].outputs, always=outputs[:2])
        ),
        "grid": replace(made["line"], name="grid", outputs=Outputs(grid)),
    }
    monkeypatch.setitem(systems(), "Toy", cheap.record(made | methods))

    def asked(**settings: Any) -> Any:
        settings = {"coordinates": "v"} | settings
        named = {"methods": {name: {} for name in methods}, "analysis": {"sphere": settings}}
        return study_from(cheap.study(**named)).analysis.sphere

    assert asked(states="states", coordinates="v", landscape="grid").value == "value"
    for settings, text in (
        ({"states": "bare"}, r"states = 'bare' is not allowed \(it has no 'unstable'"),
        ({"states": "grid"}, r"it has no 'v' over fixed_point, component"),
        ({"states": "states", "landscape": "states"}, "it has no 'value' over azimuth or polar"),
    ):
        with pytest.raises(HdicaError, match=text):
            asked(**settings)
