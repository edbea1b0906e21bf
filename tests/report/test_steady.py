"""The bifurcation diagram."""

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.analysis.steady.figure import steady
from hdica.report.interactive import figure
from hdica.report.page import panels
from hdica.report.printed import draw
from hdica.show.panel import Line, Points, Vertical
from tests.analysis import bifurcation, toy
from tests.report.shown import of


@pytest.fixture(scope="module")
def panel(aggregated_steady):
    (found,) = panels(aggregated_steady)["steady"]
    return found


def test_stable_is_solid_unstable_dashed_and_condensed_grey(panel):
    styles = {i.label.plain: (i.color, i.dash) for i in of(panel, Line)}
    assert styles == {
        "condensed, stable": ("#888888", "solid"),
        "unstable": ("ink", "dash"),
        "stable": ("ink", "solid"),
    }
    listed = [i.label.plain for i in of(panel, Line) if i.listed]
    assert sorted(listed) == sorted(styles)


def test_transitions_are_labelled_lines(panel):
    assert [(v.x, v.label.plain) for v in of(panel, Vertical)] == [
        (0.2, "fold 0.2"),
        (0.6, "transcritical point 0.6"),
    ]


def test_labels_of_neighbouring_transitions_stand_in_rows(aggregated_steady):
    data = aggregated_steady["steady"].to_dataset()
    near = data["transition_value"].copy(data=[0.3, 0.31, np.nan, 0.9])
    kind = data["transition_kind"].copy(data=[0.0, 2.0, np.nan, 1.0])
    panel = steady(data.assign(transition_value=near, transition_kind=kind))[0]
    found = [(v.label.plain, v.row, v.anchor) for v in of(panel, Vertical)]
    assert found == [
        ("fold 0.3", 0, "center"),
        ("junction 0.31", 1, "center"),
        ("transcritical point 0.9", 0, "right"),
    ]
    notes = figure(panel)["layout"]["annotations"]
    assert notes[1]["yshift"] > notes[0]["yshift"] == 0
    draw(panel).draw_without_rendering()


def test_every_start_has_its_marker_with_two_standard_errors(panel, aggregated_steady):
    marks = of(panel, Points)
    assert [m.label.plain for m in marks] == ["Q₀ = 0.1", "Q₀ = 0.9"]
    assert len({(m.color, m.symbol) for m in marks}) == 2
    here = aggregated_steady["steady"].to_dataset().sel(simulation="vector", Q0=0.9, n=6400)
    assert marks[1].y == pytest.approx(here["overlap"].values)
    assert marks[1].high - marks[1].y == pytest.approx(2 * here["overlap_se"].values)


def test_curves_of_another_swept_word_have_their_own_colours():
    groups = {k: v.to_dataset() for k, v in bifurcation.store().children.items()}
    words = xr.DataArray(["l1", "<0>"], dims="regularizer", name="regularizer")
    joined = {k: xr.concat([v, v], dim=words) for k, v in groups.items()}
    found = aggregate(toy.tree(joined, {"steady": bifurcation.STEADY}))
    (panel,) = panels(found)["steady"]
    solid = {i.color for i in of(panel, Line) if i.bold and i.color != "#888888"}
    assert len(solid) == 2
    assert solid == {m.color for m in of(panel, Points)} == {v.color for v in of(panel, Vertical)}
    assert "&lt;0&gt;" in of(panel, Points)[-1].label.html
    draw(panel).draw_without_rendering()


def test_fixed_points_are_markers_where_there_are_no_branches(aggregated_steady):
    data = aggregated_steady["steady"].to_dataset()
    bare = data.drop_vars([k for k in data if str(k).startswith("branch_")])
    marks = next(m for m in of(steady(bare)[0], Points) if m.label.plain == "fixed points")
    assert marks.filled.sum() == 7  # stable ones: 1 + 2 + 2 + 1 + 1


def test_fixed_points_that_depend_on_the_series_are_markers_too(aggregated_steady):
    """As where each series has a source of its own."""
    data = aggregated_steady["steady"].to_dataset()
    bare = data.drop_vars([k for k in data if str(k).startswith("branch_")])
    own = {k: bare[k].expand_dims(Q0=bare["Q0"].values) for k in ("fixed_Q", "fixed_stable")}
    once, twice = (
        next(m for m in of(steady(each)[0], Points) if m.label.plain == "fixed points")
        for each in (bare, bare.assign(own))
    )
    assert twice.filled.sum() == 2 * once.filled.sum()
    places = sorted(zip(once.x, once.y, strict=True))
    assert sorted(set(zip(twice.x, twice.y, strict=True))) == sorted(set(places))


def test_branches_that_depend_on_the_series_are_lines_for_each_of_its_values(aggregated_steady):
    data = aggregated_steady["steady"].to_dataset()
    values = data["Q0"].values
    own = {k: data[k].expand_dims(Q0=values).copy() for k in data if str(k).startswith("branch_")}
    own["branch_Q"].values[-1] *= 0.5
    once, each = (of(steady(one)[0], Line) for one in (data, data.assign(own)))
    assert len(each) == values.size * len(once)
    # Each line is that of its own value: those of the last are half as high, and no others.
    last = len(once) * (values.size - 1)
    for k, line in enumerate(once):
        assert np.allclose(each[k].y, line.y, equal_nan=True)
        assert np.allclose(each[last + k].y, line.y / 2, equal_nan=True)
        assert str(values[-1]) in each[last + k].label.plain
    assert "not drawn" not in steady(data.assign(own))[0].caption


def test_branches_that_cannot_be_drawn_are_said(aggregated_steady):
    data = aggregated_steady["steady"].to_dataset()
    unknown = {"branch_Q": data["branch_Q"].expand_dims(limit=["a", "b"])}
    panel = steady(data.drop_dims("limit", errors="ignore").assign(unknown))[0]
    assert "Branches are not drawn: they depend on" in panel.caption


def test_critical_values_over_another_parameter():
    data, at = bifurcation.critical(), xr.DataArray([0.1, 0.2, 0.3], dims="rho", name="rho")
    swept = xr.concat([data, data, data], dim=at)
    swept["value"].attrs["long_name"] = "critical value of omega"
    swept["value"].values[1, 0] = 0.15
    found = aggregate(toy.tree({"critical": swept}, {"transition": {"x": "rho"}}))
    first, second = panels(found)["transition"]
    assert of(first, Points)[0].y.tolist() == [0.2, 0.15, 0.2]
    assert of(second, Points)[0].y.tolist() == [0.5, 0.5, 0.5]
