"""Figures, sentences and pages on escape times, single runs, learning curves and trapping."""

import json
import re

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.analysis.escape.answer import answer
from hdica.analysis.escape.figure import escape as drawn_escape
from hdica.analysis.paths.figure import paths as drawn_paths
from hdica.analysis.show.panel import Heat, Line, Points
from hdica.report.answers import findings
from hdica.report.interactive import figure
from hdica.report.page import panels, render
from hdica.report.printed import draw
from tests.analysis import escapes, toy
from tests.report.shown import of, plain

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


@pytest.fixture(scope="module")
def said(found):
    return plain(findings(found))


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


def test_theory_alone_has_its_figures_and_sentences():
    asked = {"escape": {"x": "nu", "limits": ["escape_diffusion", "escape"]}}
    alone = aggregate(escapes.store(asked))
    keys = [p.key for p in panels(alone)["escape"]]
    assert keys[0] == "escape_mean"
    assert keys[-1] == "escape_map"
    assert not any(of(p, Points) for p in panels(alone)["escape"])
    captions = [p.caption for p in panels(alone)["escape"] if p.key.startswith("escape_survival")]
    assert captions
    assert not any("band" in caption for caption in captions)
    texts = plain(findings(alone))
    best = min(escapes.mean(nu, 100) for nu in escapes.NUS)
    assert any(f"At n = 100 in theory (diffusion at n) escape is fastest at ν = 1: mean "
               f"{best:.4g} n³ steps" in t for t in texts)  # fmt: skip
    assert any(
        "In theory for n → ∞ (diffusion in the limit) escape is fastest at ν = 1" in t
        for t in texts
    )
    assert any("furthest off at ν = 10, n = 100: the mean for that n is 6 times" in t
               for t in texts)  # fmt: skip


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
    assert any("At α = 0.2, n = 100 escape is fastest" in s for s in plain(findings(found)))
    render(found, panels(found))


def test_the_fastest_escape_is_named_with_its_interval(said):
    first = said[0]
    assert first.startswith("At n = 100 escape is fastest at ν = ")
    assert re.search(r"mean [\d.]+ \[[\d.]+, [\d.]+\] n³ steps \(chains, 95 % interval\)", first)
    assert re.search(r"; theory at that n [\d.]+; theory for n → ∞ [\d.]+\.", first)


def test_agreement_is_counted_by_theory(said):
    lead = "Of 8 comparisons of runs with theory at that n (diffusion at n) 6 agree, 0 differ"
    assert any(s.startswith(lead) for s in said)
    other = next(
        s for s in said if "theory for n → ∞ (diffusion in the limit)" in s and s.startswith("Of 8")
    )
    assert "0 differ" not in other
    assert any(s.startswith("Theory for n → ∞ is furthest off at chains, ν = 2") for s in said)


def test_runs_without_an_escape_bound_the_mean(said, found):
    here = found["escape"].to_dataset().sel(simulation="escape_times", nu=10.0, n=100)
    text = (
        "In 200 runs of up to 6 n³ steps at chains, ν = 10, n = 100 there was no escape: "
        f"mean above {float(here['mean_low']):.0f} (95 % interval)."
    )
    assert text in said


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
    texts = plain(findings(found))
    assert any("At n = 100 escape of the last projection is fastest at ν = " in t for t in texts)
    assert not any(t.startswith("Of 8 comparisons") for t in texts)
    render(found, panels(found))


def test_diverged_runs_are_told():
    store = escapes.store()
    store["escape_times"]["status"].values[0, 0, :7] = 2
    texts = plain(findings(aggregate(store)))
    assert "7 of 480 runs diverged and are not counted as runs." in texts


def test_escapes_without_a_constant_rate_are_told():
    groups = escapes.groups(runs=200)
    data = groups["escape_times"]
    late = data["first"].where(data["first_seen"] == 0, data["first"] / 6 + 5)
    late = late.where(data["nu"] < 0.8, data["first"])
    groups["escape_times"] = data.assign(first=late)
    texts = plain(findings(aggregate(toy.tree(groups, {"escape": escapes.SIMULATED}))))
    assert any("In 2 of 6 cells escapes do not have a constant rate" in t for t in texts)


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


def test_learning_curves_have_their_slopes(drawn, said):
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
    text = next(s for s in said if s.startswith("At source 2: |1 − mean R| falls as ta"))
    assert re.search(r"a = −0\.49\d+ ± 0\.00\d+ \(chain, n = 1000\) and −0\.498\d \(ODE\)", text)
    product = next(s for s in said if s.startswith("At source 1: t (mean R − 1) at t = 1000 is"))
    assert re.search(r"−0\.4995 \(ODE\); chain and ODE are [\d.]+ standard errors apart", product)


def test_the_barrier_is_marked_and_stated(drawn, said, found):
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
    assert any(
        "has a barrier 0.1318 D high at r = 1.677 at ν = 0.5 and 1.055 D high" in s for s in said
    )
    assert any(s.startswith("For R12 the potential confines R") for s in said)


def test_matrices_have_rows_and_panels_of_their_own(drawn, said):
    assert drawn["trajectories_1"].title.plain == "R₁₁"
    assert any(s.startswith("Of 4 comparisons of simulation and limit 4 agree") for s in said)
    labels = {i.label.plain for i in of(drawn["compare"], Line)}
    assert "R₂₁, ODE" in labels


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
    assert "there was no escape" in text
    assert "more cells had none either" in text


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
    assert any("majority of seeds is on the limit" in s for s in plain(findings(found)))
    render(found, sections)


def test_a_second_theory_at_n_has_a_dash_and_is_told_by_its_factor():
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
    said = " ".join(plain([answer(tree["escape"].to_dataset()).html]))
    assert re.search(r"; .* has 3 times that mean at n = \d+, ν = 10\.$", said)
    same = aggregate(
        toy.tree({**groups, "escape_wkb": groups["escape_diffusion"]}, {"escape": asked})
    )
    assert "times that mean" not in " ".join(plain([answer(same["escape"].to_dataset()).html]))
