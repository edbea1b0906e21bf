"""Figures and findings on densities, distances, support, potential and methods."""

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate, frame
from hdica.analysis.laws.densities import panels as densities
from hdica.report.interactive import figure
from hdica.report.page import panels, render
from hdica.report.printed import draw
from hdica.show.panel import Line, Points
from tests.analysis import laws
from tests.report.shown import of


@pytest.fixture(scope="module")
def drawn(aggregated_laws):
    return {p.key: p for found in panels(aggregated_laws).values() for p in found}


def test_density_panels_are_rows_of_snapshots_and_columns_of_groups(drawn):
    titles = [drawn[f"density_{k}"].title.plain for k in (1, 2, 3, 4)]
    assert titles == [f"t = {t}, ξ = {xi} · τ = 0.1" for t in ("0.5", "3") for xi in (0, 2)]
    assert "density_5" not in drawn


def test_histograms_are_steps_with_a_band_under_the_limit(drawn, aggregated_laws):
    steps, limit = of(drawn["density_4"], Line)
    here = aggregated_laws["densities"].to_dataset().sel(tau=0.1, snapshot=3.0, feature=2.0)
    assert steps.y[::2].tolist() == steps.y[1::2].tolist() == here["density"].values.tolist()
    assert steps.x[:2].tolist() == laws.EDGES[:2].tolist()
    assert steps.high - steps.y == pytest.approx(2 * np.repeat(here["density_se"].values, 2))
    assert limit.color == "ink"
    assert "vector, n = 4000" in steps.label.plain
    low, high = drawn["density_4"].x_range
    assert -1 < low < high < 3.6  # where there is something to see


def test_three_groups_stand_in_three_columns(aggregated_laws):
    data = aggregated_laws["densities"].to_dataset()
    third = data.isel(feature=[1]).assign_coords(feature=[4.0])
    wide = xr.concat([data, third], dim="feature", data_vars="minimal")
    assert {p.columns for p in densities(wide)} == {3}
    assert {p.columns for p in densities(data)} == {0}


def test_distances_fall_along_the_lines_of_independent_draws(drawn):
    panel = drawn["distance_ks"]
    marks = [m for m in of(panel, Points) if np.isfinite(m.x).all()]
    lines = [i for i in of(panel, Line) if i.dash == "dash" and not i.listed]
    assert len(marks) == len(lines) == 4
    for mark, line in zip(marks, lines, strict=True):
        assert mark.color == line.color
        assert np.abs(np.log(mark.y / line.y)).max() < 0.35
    assert panel.log_x
    assert panel.log_y


def test_curves_of_support_recovery_pass_through_the_simulation(drawn):
    panel = drawn["support_roc"]
    lines = [i for i in of(panel, Line) if i.bold]
    for line, mark in zip(lines, of(panel, Points), strict=True):
        order = np.argsort(line.x)
        assert mark.y == pytest.approx(np.interp(mark.x, line.x[order], line.y[order]), abs=0.03)
    assert panel.columns == 3
    dashed = [i for i in of(drawn["support_rates"], Line) if i.dash == "dash"]
    assert len(dashed) == 2


def test_the_potential_has_its_minimum_marked(drawn):
    marks = of(drawn["potential_2"], Points)
    center = 2 * laws.center(3.0)
    assert marks[1].x[0] == pytest.approx(center - 0.25, abs=0.06)  # biased towards 0
    assert "convex" in drawn["potential_2"].caption
    assert "<em>not</em> convex" in drawn["potential_1"].caption


def test_methods_side_by_side_have_bars_of_the_band(drawn, aggregated_laws):
    mark = of(drawn["compare"], Points)[0]
    sd = aggregated_laws["compare"]["sd"].sel(simulation="vector", tau=0.1).values
    assert mark.high - mark.y == pytest.approx(2 * sd)
    assert "2 standard deviations" in drawn["compare"].caption
    assert "2 standard deviations" in drawn["trajectories_1"].caption
    band = next(i for i in of(drawn["trajectories_1"], Line) if i.low is not None)
    assert (band.high - band.y).max() > 2 * sd.max()  # a smaller n is drawn first


def test_without_a_predicted_fluctuation_none_is_claimed(drawn, aggregated_laws):
    assert "central limit" not in drawn["fluctuation"].caption
    assert not frame(aggregated_laws)["quantity"].str.contains("central limit").any()


def test_laws_and_supports_are_among_the_findings(aggregated_laws):
    found = frame(aggregated_laws)
    assert {"densities", "distances", "support"} <= set(found["analysis"])
    laws_ = found[found["quantity"] == "the law of the entries of the estimate"]
    assert laws_["verdict"].value_counts().to_dict() == {"": 2, "agrees": 1, "undecided": 1}
    assert sorted(laws_["xi"]) == [0.0, 0.0, 2.0, 2.0]
    assert set(laws_["t"]) == {0.5, 3.0}


def test_a_single_n_draws_no_distances_and_has_no_power():
    tree = aggregate(laws.store(ladder=[1000]))
    assert "distances" not in panels(tree)
    found = frame(tree)
    here = found[found["analysis"] == "distances"]["quantity"]
    assert "the law of the entries of the estimate" in set(here)
    assert not here.str.endswith("of one run").any()  # what a power is of


def test_a_store_without_results_has_figures_all_the_same():
    empty = laws.store(ladder=[500, 1000], seeds=2)
    for node in empty.children.values():
        node["status"].values[...] = 0
    found = aggregate(empty)
    sections = panels(found)
    assert "no finished" in render(found, sections) or "pending" in render(found, sections)
    for panel in (p for some in sections.values() for p in some):
        draw(panel).draw_without_rendering()
        assert "layout" in figure(panel)
