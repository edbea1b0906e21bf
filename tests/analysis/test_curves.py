"""Variables side by side: means, theory, and which of them is half-way first."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from pydantic import ValidationError

from hdica.analysis.trajectories import Curves
from hdica.analysis.trajectories.runs import curves, half_way
from hdica.analysis.trajectories.runs import curves_findings as findings
from hdica.analysis.trajectories.runs import curves_panels as drawn
from hdica.show.finding import Form
from hdica.show.panel import Line, Points
from tests.analysis import waves


def computed(**settings: object) -> xr.Dataset:
    asked = Curves(**{**waves.SETTINGS, **settings})
    return curves(waves.store(), asked)


def test_means_and_errors_are_those_over_seeds() -> None:
    found = computed()
    expected = np.mean([waves.value("late", 2.0, s) for s in range(waves.SEEDS)], axis=0)
    here = found.sel(variable="late", pace=2.0)
    assert here["mean"].values == pytest.approx(expected)
    error = np.std(range(waves.SEEDS), ddof=1) / np.sqrt(waves.SEEDS)
    assert here["se"].values == pytest.approx(np.full(len(waves.TIMES), error))
    assert np.all(found["count"] == waves.SEEDS)
    theory = found["theory"].sel(variable="early")
    assert theory.values == pytest.approx(found["mean"].sel(variable="early").values)
    assert found["theory"].sel(variable="late").isnull().all()


def test_what_rises_first_is_found_whatever_its_direction_and_size() -> None:
    found = computed()
    assert found["rise"].sel(variable="early").values.tolist() == [4.0, 4.0]
    assert found["rise"].sel(variable="late").values.tolist() == [8.0, 8.0]
    assert found["first"].sel(variable="early").values.tolist() == [1.0, 1.0]
    assert found["first"].sel(variable="late").values.tolist() == [0.0, 0.0]
    first, *rises = findings(found)
    assert "early" in first.quantity.plain
    assert (first.value, first.unit.plain) == (100.0, "%")
    assert [(one.place["pace"], one.value) for one in rises] == [
        (1.0, 4.0), (2.0, 4.0), (1.0, 8.0), (2.0, 8.0),
    ]  # fmt: skip
    assert {one.unit.plain for one in rises} == {"steps"}
    assert ["late" in one.quantity.plain for one in rises] == [False, False, True, True]


def test_the_variable_that_is_first_in_most_runs_is_named_with_its_share() -> None:
    found = computed()
    found["first"].loc[{"variable": "early", "pace": 1.0}] = 0.25
    found["first"].loc[{"variable": "late"}] = [0.75, 0.75]
    first = findings(found)[0]
    assert "late" in first.quantity.plain
    assert first.value == 75.0


def test_without_halves_maxima_inside_are_found() -> None:
    found = computed(rises=False)
    assert not findings(found)
    found["mean"].loc[{"variable": "late", "pace": 2.0, "time": 4.0}] = 50.0
    (one,) = findings(found)
    assert one.form is Form.LARGEST
    assert one.quantity.plain == "late"
    assert one.place == {"pace": 2.0, "t": 4.0}
    assert one.value == 50.0
    assert one.error == pytest.approx(float(found["se"].sel(variable="late", pace=2.0, time=4.0)))
    # A plateau has no maximum.
    found["mean"].loc[{"variable": "late", "pace": 2.0}] = [0.0, 0.5, 0.9, 1 + 1e-15, 1.0, 1.0]
    assert not findings(found)


def test_a_seed_that_is_not_done_counts_nowhere() -> None:
    store = waves.store()
    store["walk"]["status"][{"pace": 0, "seed": 0}] = 0
    found = curves(store, Curves(**waves.SETTINGS))
    assert found["count"].sel(variable="early").values.tolist() == [waves.SEEDS - 1, waves.SEEDS]
    left = np.mean([waves.value("early", 1.0, s) for s in range(1, waves.SEEDS)], axis=0)
    assert found["mean"].sel(variable="early", pace=1.0).values == pytest.approx(left)


def test_half_way_needs_a_first_and_a_last_value() -> None:
    at = np.array([1.0, 2.0, 3.0])
    assert half_way(at, np.array([0.0, 1.0, 2.0])) == 2
    assert np.isnan(half_way(at, np.array([np.nan, 1.0, 2.0])))
    assert np.isnan(half_way(at, np.array([1.0, 1.0, 1.0])))


def test_a_panel_for_each_variable_and_one_for_all_at_a_grid_point() -> None:
    panels = drawn(computed())
    assert [panel.key for panel in panels] == [
        "curves_early", "curves_late", "curves_together_1", "curves_together_2",
    ]  # fmt: skip
    early = panels[0]
    assert early.title.plain == "Early & rising"
    assert early.x_label.plain == "t (steps)"
    lines = [item for item in early.items if isinstance(item, Line)]
    assert len(lines) == 2  # the law differs between the grid points
    # A logarithmic axis shows no time 0.
    assert all(item.x.min() == 1 for item in early.items if isinstance(item, Points))
    scaled = [item for item in panels[2].items if isinstance(item, Points)]
    assert all(item.y[-1] == pytest.approx(1) for item in scaled)
    assert len(drawn(computed(rises=False))) == 2
    linear = [item for item in drawn(computed(log=False))[0].items if isinstance(item, Points)]
    assert linear[0].x.min() == 0


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValidationError, match="each once"):
        Curves(method="walk", variables=("early", "early"))
