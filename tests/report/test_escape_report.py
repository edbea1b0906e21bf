"""Figures, sentences and pages on escape times, single runs, learning curves and trapping."""

import json
import re

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.analysis.convergence.compute import findings as of_limits
from hdica.analysis.escape.figure import escape as drawn_escape
from hdica.analysis.escape.figure import findings as records
from hdica.analysis.trajectories.runs import paths_panels as drawn_paths
from hdica.report.interactive import figure
from hdica.report.page import panels, render
from hdica.report.printed import draw
from hdica.show.finding import Form, verdict_of
from hdica.show.panel import Heat, Line, Points
from hdica.verdict.cells import NEAR
from tests.analysis import escapes, toy
from tests.report.shown import of

CURVES = {"curves": ["chain", "ode"]}
ASKED = {
    "escape": escapes.SIMULATED,
    "paths": {"simulation": "chain", "runs": 3, "threshold": 0.8},
    "decay": CURVES,
    "trapping": {},
    "convergence": {"simulation": "chain", "limit": "ode", "variable": "R"},
    "compare": {**CURVES, "variable": "R"},
}


@pytest.fixture(scope="module")
def found():
    groups = {**escapes.groups(runs=200), **escapes.overlaps(), "trapping": escapes.trap()}
    return aggregate(toy.tree(groups, ASKED))


@pytest.fixture(scope="module")
def drawn(found):
    return {p.key: p for some in panels(found).values() for p in some}


def of_escapes(tree):
    """What an aggregate says of its escape times, after it is drawn from a study."""
    return records(tree["escape"].to_dataset())


def about(found, quantity):
    """Findings whose quantity begins with these words."""
    return [one for one in found if one.quantity.plain.startswith(quantity)]


def by_label(items):
    return {i.label.plain: i for i in items}


def test_means_stand_on_theory_with_exact_intervals(drawn, found):
    panel = drawn["escape_mean"]
    marks = by_label(of(panel, Points))
    here = found["escape"].to_dataset().sel(simulation="escape_times", n=100, nu=[0.5, 1.0, 2.0])
    assert marks["n = 100"].y == pytest.approx(here["mean"].values)
    assert marks["n = 100"].low == pytest.approx(here["mean_low"].values)
    lines = by_label(of(panel, Line))
    assert set(lines) == {
        *("n = 100, theory", "n = 200, theory", "n → ∞, theory"),
        *("Kramers", "Kramers, exponent as printed"),
    }
    assert lines["n = 200, theory"].color == marks["n = 200"].color
    assert (lines["n → ∞, theory"].color, lines["n → ∞, theory"].bold) == ("ink", True)
    assert (lines["Kramers"].dash, lines["Kramers, exponent as printed"].dash) == ("dot", "dashdot")
    assert panel.log_y
    assert panel.log_x


def test_lower_bounds_are_triangles_with_a_bar_upwards(drawn, found):
    mark = by_label(of(drawn["escape_mean"], Points))["n = 100, lower bound"]
    here = found["escape"].to_dataset().sel(simulation="escape_times", n=100, nu=10.0)
    assert mark.symbol == "triangle"
    assert mark.y.tolist() == [float(here["mean_low"])]
    assert mark.low.tolist() == mark.y.tolist()
    assert mark.high[0] > mark.y[0]
    assert "Triangles" in drawn["escape_mean"].caption
    low, high = drawn["escape_mean"].y_range
    assert low < mark.y[0] < mark.high[0]
    assert high == pytest.approx(30 * mark.high[0])  # theory is cut above


def test_survival_has_a_band_and_every_theory(drawn, found):
    assert "escape_survival_4" in drawn
    lines = of(drawn["escape_survival_2"], Line)
    bands = [i for i in lines if i.low is not None]
    assert [i.label.plain for i in bands] == ["n = 100", "n = 200"]
    assert np.isfinite(np.concatenate([np.r_[i.low, i.high] for i in bands])).all()
    assert [i.dash for i in lines if i.low is None] == ["dash", "dash", "solid"]
    assert drawn["escape_survival_2"].caption.endswith(
        "Solid line without a band: theory for <i>n</i> → ∞."
    )
    here = found["escape"].to_dataset().sel(nu=1.0, limit="escape", n=100)
    assert lines[-1].y == pytest.approx(here["theory_survival"].values)


def test_the_map_has_lower_bounds_and_says_its_scale(drawn, found):
    panel = drawn["escape_map"]
    heat = of(panel, Heat)[0]
    data = found["escape"].to_dataset().sel(simulation="escape_times").transpose(..., "n", "nu")
    known = np.where(np.isfinite(data["mean"]), data["mean"], data["mean_low"])
    z = np.log10(known)
    assert heat.z == pytest.approx(z)
    assert (heat.low, heat.high) == (z.min(), z.max())
    assert "lower bounds where no run escaped" in panel.caption
    assert heat.y == pytest.approx(np.log10([100, 200]))


def test_theory_alone_has_its_figures_and_findings():
    asked = {"escape": {"x": "nu", "limits": ["escape_diffusion", "escape"]}}
    alone = aggregate(escapes.store(asked))
    keys = [p.key for p in panels(alone)["escape"]]
    assert keys[0] == "escape_mean"
    assert keys[-1] == "escape_map"
    assert not any(of(p, Points) for p in panels(alone)["escape"])
    captions = [p.caption for p in panels(alone)["escape"] if p.key.startswith("escape_survival")]
    assert captions
    assert not any("band" in caption for caption in captions)
    at_n, infinite = (one for one in of_escapes(alone) if one.form is Form.SMALLEST)
    assert at_n.quantity.plain == "the mean escape time in theory"
    assert at_n.place == {"nu": 1.0, "n": 200}
    assert at_n.value == pytest.approx(escapes.mean(1.0, 200))
    assert infinite.quantity.plain == "the mean escape time in theory for n → ∞"
    assert (infinite.place, infinite.unit.plain) == ({"nu": 1.0}, "n³ steps")
    factors = about(of_escapes(alone), "the ratio of predicted mean escape times")
    assert [one.place for one in factors] == [{"nu": nu, "n": 200} for nu in escapes.NUS]
    assert [1 / one.value for one in factors] == pytest.approx([1 + nu / 4 for nu in escapes.NUS])


def test_a_limit_without_n_and_one_n_of_runs_have_no_map():
    asked = {"escape": {"x": "nu", "limits": "escape"}}
    keys = {p.key for p in panels(aggregate(escapes.store(asked)))["escape"]}
    assert "escape_mean" in keys
    assert "escape_map" not in keys


def test_another_swept_parameter_has_panels_of_its_own():
    at = xr.DataArray([0.2, 0.5], dims="alpha", name="alpha")
    groups = escapes.groups()
    groups["escape_times"] = xr.concat(
        [escapes.times(stream=k) for k in range(2)], dim=at, combine_attrs="override"
    )
    found = aggregate(toy.tree(groups, {"escape": escapes.SIMULATED}))
    keys = [p.key for p in panels(found)["escape"]]
    assert keys[:2] == ["escape_mean_1", "escape_mean_2"]
    assert sum(k.startswith("escape_survival") for k in keys) == 6
    fastest = [one for one in of_escapes(found) if one.form is Form.SMALLEST]
    assert [one.place["alpha"] for one in fastest] == [0.2, 0.5]
    render(found, panels(found))


def test_the_fastest_escape_is_at_the_largest_n_with_its_interval(found):
    first = of_escapes(found)[0]
    here = found["escape"].to_dataset().isel(simulation=0).sel(n=200)
    best = float(here["nu"][int(here["mean"].where(np.isfinite(here["mean"])).argmin("nu"))])
    assert (first.form, first.place) == (Form.SMALLEST, {"n": 200, "nu": best})
    assert (first.quantity.plain, first.unit.plain) == ("the mean escape time", "n³ steps")
    assert first.low < first.value < first.high
    assert first.low < escapes.mean(best, 200) < first.high
    assert first.predicted == pytest.approx(escapes.mean(best, 200))


def test_every_cell_is_compared_with_the_first_theory(found):
    data = found["escape"].to_dataset().isel(simulation=0)
    judged = [one for one in of_escapes(found) if one.verdict]
    assert [one.place for one in judged] == [
        {"nu": nu, "n": n} for nu in escapes.NUS for n in escapes.LADDER
    ]
    for one in judged:
        assert one.predicted == pytest.approx(escapes.mean(one.place["nu"], one.place["n"]))
        assert one.verdict == str(data["verdict"].isel(limit=0).sel(one.place).item())
    verdicts = [one.verdict for one in judged]
    assert (verdicts.count("agrees"), verdicts.count("undecided")) == (6, 2)
    assert all(one.seeds > 200 for one in judged if one.verdict == "undecided")
    others = about(of_escapes(found), "the ratio of predicted mean escape times")
    assert [1 / one.value for one in others] == pytest.approx([1 + nu / 4 for nu in escapes.NUS])


@pytest.mark.parametrize("error", [1.0, 1.5])
def test_a_wrong_theory_differs(error):
    tree = aggregate(escapes.store(runs=400, error=error, end=1e9))
    assert verdict_of(of_escapes(tree)) == ("agrees" if error == 1 else "differs")


@pytest.mark.parametrize("follows", [True, False])
def test_a_theory_of_large_n_is_judged_at_the_largest_n_alone(follows):
    asked = {"escape": {**escapes.SIMULATED, "limits": ["escape"]}}
    tree = escapes.store(asked, runs=400, end=1e9, stream=1)
    if follows:
        slower = [escapes.mean(nu, escapes.LADDER[-1]) / escapes.mean(nu) for nu in escapes.NUS]
        tree["escape_times"]["first"].values[:, -1] /= np.array(slower)[:, None]
    found = of_escapes(aggregate(tree))
    judged = [one for one in found if one.verdict]
    assert {one.place["n"] for one in judged} == {escapes.LADDER[-1]}
    assert verdict_of(judged) == ("agrees" if follows else "differs")
    below = about(found, "the ratio of measured to predicted mean escape time below the largest n")
    assert [one.place["n"] for one in below] == [escapes.LADDER[0]] * 4
    known = [escapes.mean(nu, escapes.LADDER[0]) / escapes.mean(nu) for nu in escapes.NUS]
    assert [one.value for one in below] == pytest.approx(known, rel=0.2)


def test_a_rejection_near_the_level_is_undecided(found):
    data = found["escape"].to_dataset().copy(deep=True)
    here = {"simulation": 0, "limit": 0, "nu": 0, "n": 0}
    level = data.attrs["level"] / data.attrs["tests"]
    data["verdict"][here], data["why"][here], data["p_value"][here] = "undecided", NEAR, level / 2
    (near,) = [one for one in records(data) if one.verdict and one.place == {"nu": 0.5, "n": 100}]
    assert near.verdict == "undecided"
    assert "too close to the level" in near.evidence
    data["verdict"][here], data["why"][here], data["p_value"][here] = "differs", "", 1e-6
    assert verdict_of(records(data)) == "differs"


def test_runs_without_an_escape_bound_the_mean(found):
    data = found["escape"].to_dataset().isel(simulation=0)
    none = about(of_escapes(found), "the lower bound (97.5 %) of the mean escape time where no run")
    cells = [one.place for one in none]
    assert {"nu": 10.0, "n": 100} in cells
    assert [one.value for one in none] == [float(data["mean_low"].sel(p)) for p in cells]


@pytest.mark.parametrize("seen", [[], [1], [0, 1]])
def test_where_runs_bound_the_mean_too_little_the_least_is_of_those_that_escape(seen):
    tree = escapes.store(runs=400)
    trapped = [k for k in range(len(escapes.NUS)) if k not in seen]
    # As after a short time: bounds lie below the means that are known.
    tree["escape_times"]["first"].values[trapped] = escapes.END / 1e6
    tree["escape_times"]["first_seen"].values[trapped] = 0.0
    found = of_escapes(aggregate(tree))
    fastest = [one for one in found if one.form is Form.SMALLEST and np.isfinite(one.low)]
    assert [one.quantity.plain for one in fastest] == [
        "the mean escape time where runs escape" for _ in seen[:1]
    ]
    assert [one.place for one in fastest] == [{"n": 200, "nu": 1.0} for _ in seen[:1]]
    bounds = about(found, "the lower bound")
    assert len(bounds) == 2 * len(trapped)
    # No event of a constant rate in a time T: the mean is above T / 3.69, at 2.5 %.
    bound = 400 * escapes.END / 1e6 / 3.689
    assert [one.value for one in bounds] == pytest.approx([bound] * len(bounds), rel=0.01)


def test_runs_that_are_not_done_leave_theory_alone():
    tree = escapes.store(runs=40)
    tree["escape_times"]["status"].values[...] = 0
    found = of_escapes(aggregate(tree))
    assert found[0].quantity.plain == "the mean escape time in theory"
    assert not any(one.verdict for one in found)


def test_the_last_escape_is_drawn_and_told_without_a_law():
    asked = {"escape": {**escapes.SIMULATED, "event": "last"}}
    found = aggregate(escapes.store(asked, runs=100, end=200.0))
    panel = panels(found)["escape"][0]
    assert panel.title.plain == "Mean time of the last escape"
    marks = by_label(of(panel, Points))
    assert {"n = 100", "n = 100, lower bound"} <= set(marks)
    assert len(marks["n = 100"].y) == 3
    assert "not every run escaped" in panel.caption
    assert not any("Kramers" in i.label.plain for i in panel.items)
    first = of_escapes(found)[0]
    assert first.quantity.plain.startswith("the mean time of the last escape")
    assert not any(one.verdict for one in of_escapes(found))
    render(found, panels(found))


def test_cells_without_a_constant_rate_are_counted():
    groups = escapes.groups(runs=200)
    data = groups["escape_times"]
    late = data["first"].where(data["first_seen"] == 0, data["first"] / 6 + 5)
    late = late.where(data["nu"] < 0.8, data["first"])
    groups["escape_times"] = data.assign(first=late)
    tree = aggregate(toy.tree(groups, {"escape": escapes.SIMULATED}))
    (varying,) = about(of_escapes(tree), "the number of cells, of 6 tested, where the escape rate")
    assert varying.value == 2


def test_runs_are_thin_lines_by_source_and_projection(drawn):
    panel = drawn["paths_1"]
    limits = [i for i in of(panel, Line) if i.label.plain == "threshold"]
    assert [i.y[0] for i in limits] == [0.8, -0.8]
    runs = of(panel, Line)[2:]
    assert len(runs) == 3 * 4
    assert not any(i.bold for i in runs)
    styles = {(i.color, i.dash) for i in runs}
    assert len(styles) == 4
    assert sum(i.listed for i in runs) == 4
    assert panel.y_range == (-1.05, 1.05)
    assert panel.title.plain == "n = 1000"


def test_runs_that_are_not_done_are_counted():
    groups = escapes.overlaps()
    groups["chain"]["status"].values[1, 1] = 2
    found = aggregate(toy.tree(groups, {"paths": {"simulation": "chain"}}))
    (panel,) = panels(found)["paths"]
    assert panel.caption.startswith("3 runs (chain)")
    assert "1 more diverged" in panel.caption
    wide = found["paths"].to_dataset()
    assert drawn_paths(wide.assign(path=3 * wide["path"]))[0].y_range is None


def test_learning_curves_are_on_logarithmic_axes(drawn):
    panel = drawn["decay"]
    assert panel.log_x
    assert panel.log_y
    assert panel.y_label.plain == "|1 − mean R|"
    lines, marks = of(panel, Line), of(panel, Points)
    assert [i.label.plain for i in lines] == ["source 1, ODE", "source 2, ODE"]
    assert [i.color for i in lines] == [m.color for m in marks]
    x, y = np.log(lines[0].x[-2:]), np.log(lines[0].y[-2:])
    assert (y[1] - y[0]) / (x[1] - x[0]) == pytest.approx(-1, abs=2e-3)
    assert all(m.x.min() > 0 for m in marks)


def test_the_barrier_is_marked(drawn, found):
    panel = drawn["trapping_1"]
    data = found["trapping"].to_dataset()
    marks = of(panel, Points)
    assert [m.y[0] for m in marks] == pytest.approx(
        data["barrier"].sel(projection=0.0, source=0.0).values
    )
    assert len(of(panel, Line)) == 2
    assert "Barrier: 0.132 at " in panel.caption
    assert of(drawn["trapping_2"], Points) == []
    assert "it confines" in drawn["trapping_2"].caption


def test_matrices_have_rows_and_panels_of_their_own(drawn, found):
    assert drawn["trajectories_1"].title.plain == "R₁₁"
    verdicts = [one.verdict for one in of_limits(found["convergence"].to_dataset()) if one.verdict]
    assert verdicts.count("agrees") >= 4
    labels = {i.label.plain for i in of(drawn["compare"], Line)}
    assert "R₂₁, ODE" in labels


@pytest.mark.deep
def test_the_page_is_strict_json_although_times_are_infinite(found, drawn, tmp_path):
    assert np.isinf(found["escape"]["mean"]).any()
    assert np.isinf(found["trapping"]["barrier"]).any()
    text = render(found, panels(found))

    def refuse(name):
        raise AssertionError(name)

    for key in ("figure-data", "table-data"):
        body = re.search(rf'id="{key}">(.*?)</script>', text, re.S).group(1)
        loaded = json.loads(body, parse_constant=refuse)
        assert loaded
    means = loaded["escape by simulation, nu, n"]["columns"]["mean"]
    assert means.count(None) == int(np.isinf(found["escape"]["mean"]).sum())
    for heading in ("Escape times", "Single runs", "Learning curves", "Trapping potential"):
        assert f"<h2>{heading}</h2>" in text
    found.to_netcdf(tmp_path / "aggregate.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "aggregate.nc", engine="h5netcdf") as again:
        assert np.isinf(again["escape"]["mean"]).any()
    for key in ("escape_mean", "escape_map", "decay"):
        draw(drawn[key]).draw_without_rendering()


@pytest.mark.deep
def test_stores_without_results_have_pages_all_the_same():
    groups = {**escapes.groups(), **escapes.overlaps(), "trapping": escapes.trap()}
    for data in groups.values():
        data["status"].values[...] = 0
    found = aggregate(toy.tree(groups, ASKED))
    assert "pending" in render(found, panels(found))
    for panel in (p for some in panels(found).values() for p in some):
        draw(panel).draw_without_rendering()
        assert "layout" in figure(panel)


def test_runs_that_never_escape_anywhere_have_figures():
    found = aggregate(
        escapes.store({"escape": {"x": "nu", "simulation": "escape_times"}}, end=1e-9)
    )
    sections = panels(found)
    assert all("lower bound" in i.label.plain for i in sections["escape"][0].items)
    text = render(found, sections)
    bounds = about(of_escapes(found), "the lower bound")
    assert len(bounds) == 8
    assert "lies between" in text


def test_swept_words_are_escaped():
    bad = "<b>x</b>"
    at = xr.DataArray([bad], dims="nonlinearity", name="nonlinearity")
    groups = {k: v.expand_dims(nonlinearity=at) for k, v in escapes.groups().items()}
    found = aggregate(toy.tree(groups, {"escape": escapes.SIMULATED}))
    assert bad not in render(found, panels(found))
    assert drawn_escape(found["escape"].to_dataset())


def test_phase_and_steady_take_matrices():
    parts = [escapes.overlaps(noise=k) for k in (0.02, 0.04, 0.08, 0.02)]
    groups = {}
    for name in ("chain", "ode"):
        rows = [xr.concat([parts[2 * i][name], parts[2 * i + 1][name]], dim="nu") for i in range(2)]
        groups[name] = xr.concat(rows, dim="mu").assign_coords(mu=[0.1, 0.2], nu=[1.0, 2.0])
    asked = {
        "phase": {"simulation": "chain", "limit": "ode", "x": "mu", "y": "nu", "variable": "R"},
        "steady": {"x": "mu", "simulation": "chain", "limits": "ode", "variable": "R"},
    }
    found = aggregate(toy.tree(groups, asked))
    assert {"projection", "source"} <= set(found["phase"]["overlap"].dims)
    sections = panels(found)
    assert {"phase", "steady"} <= set(sections)
    render(found, sections)


def test_a_second_theory_at_n_has_a_dash_and_its_factor():
    groups = escapes.groups(runs=400)
    wrong = groups["escape_diffusion"].copy(deep=True)
    factors = xr.DataArray([1.0, 1.0, 1.5, 3.0], {"nu": escapes.NUS})
    wrong["mean"] = wrong["mean"] * factors
    asked = {**escapes.SIMULATED, "limits": ["escape_diffusion", "escape_wkb", "escape"]}
    groups = {**groups, "escape_wkb": wrong}
    tree = aggregate(toy.tree(groups, {"escape": asked}))
    panel = drawn_escape(tree["escape"].to_dataset())[0]
    lines = by_label(of(panel, Line))
    dashes = {one.dash for label, one in lines.items() if "200" in label}
    assert dashes == {"solid", "dash"}
    ratios = about(of_escapes(tree), "the ratio of predicted mean escape times")
    own, _ = (ratios[:4], ratios[4:])
    assert [one.value for one in own] == pytest.approx([1.0, 1.0, 1.5, 3.0])
    assert own[0].quantity.plain.endswith("(escape wkb to escape diffusion)")
