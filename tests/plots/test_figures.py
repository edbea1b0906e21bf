"""What is on the axes: lines, labels, and nothing where there is nothing."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import FillBetweenPolyCollection, QuadMesh

import hdica
from tests.plots.conftest import TIMES, about, simulated, theory


def labels(ax) -> list[str]:
    return ax.get_legend_handles_labels()[1]


def line(ax, label: str):
    return next(one for one in ax.lines if one.get_label() == label)


def predicted(ax):
    """The lower end of the predicted band."""
    dotted = [one for one in ax.lines if one.get_linestyle() == ":" and len(one.get_xdata()) > 1]
    return dotted[0].get_ydata()


def test_trajectories_show_median_band_and_limit(runs, limit):
    ax = runs.hdica.plot(limit=limit)
    assert labels(ax) == ["$n$ = 100", "predicted 90 % of runs", "limit (ODE)"]
    band = runs.hdica.bands(0.9)
    assert line(ax, "$n$ = 100").get_ydata() == pytest.approx(band["middle"].values)
    (filled,) = [one for one in ax.collections if isinstance(one, FillBetweenPolyCollection)]
    heights = filled.get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(float(band["low"].min()))
    assert heights.max() == pytest.approx(float(band["high"].max()))
    low = predicted(ax)
    assert low == pytest.approx(limit["Q"].values - 1.6448536 * 0.2 / 10, abs=1e-6)
    assert ax.get_xlabel() == "$t = k/n$"
    assert ax.get_ylabel() == "overlap $Q$"
    assert ax.get_title(loc="left") == "median of 11 runs, band: their range"
    other = runs.hdica.plot(level=0.5)
    assert other.get_title(loc="left") == "median of 11 runs, band: 50 % of them"


def test_the_mean_is_predicted_more_narrowly(runs, limit):
    ax = runs.hdica.plot(limit=limit, band="mean", level=0.95)
    assert "predicted 95 % interval" in labels(ax)
    low = predicted(ax)
    assert low == pytest.approx(limit["Q"].values - 1.959964 * 0.02 / np.sqrt(11), abs=1e-6)


def test_a_curve_for_every_point_and_n():
    grid = {"tau": [0.1, 0.2]}
    ax = simulated(grid, n=[100, 400]).hdica.plot(limit=theory(grid))
    assert "$\\tau$ = 0.2, $n$ = 400" in labels(ax)
    assert len([one for one in labels(ax) if "tau" in one]) == 4
    assert labels(ax).count("limit (ODE)") == 1


def test_a_limit_alone_is_one_black_line(limit):
    ax = limit.hdica.plot()
    assert len(ax.lines) == 1
    assert ax.lines[0].get_color() == "black"
    assert ax.get_legend() is None


def test_axes_in_are_axes_out(runs, limit):
    figure, (left, right) = plt.subplots(1, 2)
    assert runs.hdica.plot(ax=left, limit=limit) is left
    assert runs.hdica.plot(ax=right, legend=False) is right
    assert left.get_legend() is not None
    assert right.get_legend() is None
    assert plt.get_fignums() == [figure.number]


def test_a_legend_lies_below_axes_whose_figure_makes_room(runs, limit):
    _, ax = plt.subplots(layout="constrained")
    runs.hdica.plot(ax=ax, limit=limit)
    ax.figure.canvas.draw()
    legend, axes = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert legend.y1 < axes.y0


def test_a_new_figure_is_one_column_wide(runs):
    ax = runs.hdica.plot()
    assert ax.figure.get_figwidth() == pytest.approx(3.4)
    with hdica.plots.style("page", height=4):
        assert runs.hdica.plot().figure.get_figwidth() == pytest.approx(7.0)


def test_style_is_for_its_context_alone():
    before = plt.rcParams["font.size"]
    with hdica.plots.style():
        assert plt.rcParams["font.size"] == 8
        assert plt.rcParams["pdf.fonttype"] == 42
    assert plt.rcParams["font.size"] == before
    with pytest.raises(hdica.HdicaError, match="width = 'wide'"):
        hdica.plots.style("wide")


def test_a_grid_of_two_parameters_is_a_phase_diagram(states, fold):
    grid = {"tau": [0.01, 0.02, 0.03, 0.04], "Q0": [0.2, 0.4, 0.6, 0.8]}
    runs = simulated(grid)
    assert runs.hdica.plot.kinds == ("phase", "trajectories", "dependence")
    ax = runs.hdica.plot(states=states, critical=fold)
    (mesh,) = [one for one in ax.collections if isinstance(one, QuadMesh)]
    mean = np.abs(runs["Q"].values[:, :, :-1, -1]).mean(axis=-1)
    assert np.asarray(mesh.get_array()).reshape(4, 4) == pytest.approx(mean.T, rel=1e-12)
    assert ax.get_xlabel() == "step size $\\tau$"
    assert ax.get_ylabel() == "initial overlap $Q_0$"
    boundary = line(ax, "$Q_\\mathrm{u}$ (theory)")
    assert boundary.get_ydata()[0] == pytest.approx(0.5 - np.sqrt(0.025), rel=1e-9)


def test_a_style_leaves_the_interactive_mode_that_a_first_figure_turns_on() -> None:
    before = matplotlib.is_interactive()
    try:
        for mode in (True, False):
            with hdica.plots.style():
                matplotlib.interactive(mode)
            assert matplotlib.is_interactive() is mode
            assert matplotlib.rcParams["figure.figsize"] != [3.4, 2.4]
    finally:
        matplotlib.interactive(before)


@pytest.mark.parametrize("with_states", [False, True])
@pytest.mark.parametrize("with_fold", [False, True])
def test_a_phase_diagram_needs_neither_states_nor_critical_values(
    states, fold, with_states, with_fold
):
    """Control parameters of the system on the axes, and no study that says the others."""
    runs = simulated({"tau": [0.01, 0.02, 0.03], "Q0": [0.2, 0.5, 0.8]})
    more = ({"states": states} if with_states else {}) | ({"critical": fold} if with_fold else {})
    drawn = runs.hdica.plot.phase(x="tau", y="Q0", **more)
    (mesh,) = [one for one in drawn.collections if isinstance(one, QuadMesh)]
    assert np.asarray(mesh.get_array()).size == 9
    assert runs.hdica.plot() is not None
    tree = xr.DataTree.from_dict({"chain": runs})
    if with_states:
        others = runs.assign_coords(tau=[0.01, 0.02, 0.99])
        with pytest.raises(hdica.HdicaError, match=r"states: tau = .*0\.99.* is not there"):
            others.hdica.plot.phase(x="tau", y="Q0", states=states)
    assert tree.hdica["chain"].plot.phase(x="tau", y="Q0", **more).get_xlabel()


def test_a_phase_diagram_is_of_the_largest_n_or_of_one_that_is_chosen(states, fold):
    grid = {"tau": [0.01, 0.02, 0.03, 0.04], "Q0": [0.2, 0.4, 0.6, 0.8]}
    runs = simulated(grid, [100, 400])
    for k, n in ((0, 100), (1, 400), (1, None)):
        at = runs.hdica.plot.phase(n=n, states=states, critical=fold)
        mean = np.abs(runs["Q"].isel(n=k, time=-1).values[..., :-1]).mean(axis=-1)
        (mesh,) = [one for one in at.collections if isinstance(one, QuadMesh)]
        assert np.asarray(mesh.get_array()).reshape(4, 4) == pytest.approx(mean.T, rel=1e-12)
    with pytest.raises(hdica.HdicaError, match=r"n = 7 is not allowed \(allowed: "):
        runs.hdica.plot.phase(n=7, states=states, critical=fold)


def test_the_end_of_a_limit_over_two_parameters_is_a_map():
    grid = {"tau": [0.01, 0.02, 0.03], "Q0": [0.2, 0.4, 0.6]}
    ax = theory(grid).hdica.plot()
    (mesh,) = [one for one in ax.collections if isinstance(one, QuadMesh)]
    assert np.unique(np.asarray(mesh.get_array())) == pytest.approx([0.8 * np.exp(-1)])


def test_branches_are_solid_where_stable_and_dashed_where_not(states):
    ax = states.hdica.plot()
    assert sorted(set(labels(ax))) == ["stable", "unstable"]
    unstable = line(ax, "unstable")
    assert unstable.get_linestyle() == "--"
    assert unstable.get_xdata().tolist() == [0.01, 0.02, 0.03]
    assert unstable.get_ydata() == pytest.approx(0.5 - np.sqrt([0.025, 0.015, 0.005]))
    solid = [one for one in ax.lines if one.get_linestyle() == "-"]
    assert sorted(len(one.get_xdata()) for one in solid) == [3, 4]


def test_with_the_critical_value_branches_end_in_the_fold(states, fold):
    ax = states.hdica.plot(critical=fold)
    folded = [one for one in ax.lines if one.get_xdata()[-1] == 0.035]
    assert len(folded) == 2
    assert all(one.get_ydata()[-1] == 0.5 for one in folded)


def test_runs_beside_the_branches(states):
    runs = simulated({"tau": [0.01, 0.02]})
    ax = states.hdica.plot(runs=runs)
    (points,) = [one for one in ax.lines if len(one.get_xdata()) == 2 and one.get_marker() == "o"]
    mean = np.abs(runs["Q"].values[:, :-1, -1]).mean(axis=-1)
    assert points.get_ydata() == pytest.approx(mean, rel=1e-12)


def test_states_at_one_point_are_no_branch(states):
    with pytest.raises(hdica.HdicaError, match="no branch"):
        states.isel(tau=0).hdica.plot()


def test_critical_values_are_a_line_for_every_kind():
    kinds = [["fold", "transcritical"], ["fold", ""]]
    data = {
        "value": (("rho", "transition"), [[0.3, 0.1], [0.4, np.nan]]),
        "kind": (("rho", "transition"), np.array(kinds, object)),
    }
    one = xr.Dataset(data, {"rho": [0.1, 0.2], "transition": [0, 1]}, about("critical"))
    ax = one.assign_attrs(parameter="tau").hdica.plot()
    assert labels(ax) == ["fold", "transcritical point"]
    joined = [one for one in ax.lines if one.get_linestyle() == "-" and len(one.get_xdata()) == 2]
    assert joined[0].get_ydata().tolist() == [0.3, 0.4]
    assert ax.get_xlabel() == "sparsity $\\rho$"
    assert ax.get_ylabel() == "$\\tau_\\mathrm{c}$"


@pytest.fixture
def density() -> xr.Dataset:
    x = np.linspace(-3, 3, 25)
    values = np.exp(-((x - np.array([[0.0], [1.0]])) ** 2) / 2) / np.sqrt(2 * np.pi)
    dims = ("snapshot", "feature", "x")
    coords = {"snapshot": [0.0, 5.0], "feature": [0.0, 1.0], "x": x}
    found = {"density": values, "potential": values * 0 + x**2}
    data = {name: (dims, np.stack([one, one])) for name, one in found.items()}
    return xr.Dataset(data, coords, about("pde"))


@pytest.fixture
def histograms(density) -> xr.Dataset:
    values = xr.concat([density["density"] * (1 + 0.1 * k) for k in (-1, 0, 1)], "seed")
    found = xr.Dataset({"density": values}).assign_coords(seed=[0, 1, 2], n=50)
    found["status"] = ("seed", np.ones(3, np.uint8))
    return found.assign_attrs(about("vector"))


def test_densities_are_steps_beside_the_limit(histograms, density):
    ax = histograms.hdica.plot(limit=density)
    assert labels(ax) == [
        "$\\xi$ = 0, vector, $n$ = 50",
        "$\\xi$ = 1, vector, $n$ = 50",
        "limit (PDE)",
    ]
    steps = line(ax, "$\\xi$ = 0, vector, $n$ = 50").get_ydata()
    assert steps[::2] == pytest.approx(density["density"].values[1, 0], rel=1e-12)
    assert steps[::2].tolist() == steps[1::2].tolist()
    assert ax.get_title(loc="left") == "$t$ = 5"


def test_a_snapshot_that_was_not_kept_is_not_there(histograms):
    assert histograms.hdica.plot(snapshot=0).get_title(loc="left") == "$t$ = 0"
    with pytest.raises(hdica.HdicaError, match="snapshot = 3 is not there"):
        histograms.hdica.plot(snapshot=3)


def test_potentials_have_their_minima(density):
    ax = density.drop_vars("density").hdica.plot()
    assert ax.get_ylabel() == r"$E_t(x, \xi) - E_t(0, \xi)$"
    dots = [one for one in ax.lines if one.get_marker() == "o" and len(one.get_xdata()) == 1]
    assert all(one.get_xdata()[0] == 0 for one in dots)
    assert len(dots) == 2


def test_escapes_count_runs_that_ended_before():
    runs = xr.Dataset(
        {
            "first": ("seed", [1.0, 2.0, 3.0, 4.0]),
            "first_seen": ("seed", [1.0, 1.0, 0.0, 0.0]),
            "status": ("seed", np.ones(4, np.uint8)),
        },
        {"seed": np.arange(4), "n": 50},
        {"system": "HebbianICA", "method": "escape_times"},
    )
    ax = runs.hdica.plot()
    (drawn,) = ax.lines
    assert drawn.get_ydata()[0] == 1.0
    assert drawn.get_ydata()[-1] == 0.5  # two of four are still there
    swept = xr.concat([runs, runs], "nu").assign_coords(nu=[1.0, 2.0])
    means = swept.hdica.plot().lines
    assert any(y == pytest.approx(10 / 2) for one in means for y in one.get_ydata())


def test_results_without_time_are_drawn_over_a_parameter():
    runs = simulated({"tau": [0.1, 0.2, 0.3]}).isel(time=-1, drop=True)
    ax = runs.hdica.plot()
    mean = runs["Q"].values[:, :-1].mean(axis=1)
    (points,) = [one for one in ax.lines if one.get_marker() == "o" and len(one.get_xdata()) == 3]
    assert points.get_ydata() == pytest.approx(mean, rel=1e-12)


def test_nothing_is_drawn_where_there_is_nothing(runs):
    lost = runs.assign(status=runs["status"] * 0 + 3)
    with pytest.raises(hdica.HdicaError, match="nothing to draw"):
        lost.hdica.plot()
    figure, ax = plt.subplots()
    with pytest.raises(hdica.HdicaError, match="nothing to draw"):
        lost.hdica.plot(ax=ax)
    assert not ax.lines
    assert plt.get_fignums() == [figure.number]


def test_what_is_not_there_is_refused_in_a_sentence(runs):
    with pytest.raises(hdica.HdicaError, match="densities: this result has nothing of it"):
        runs.hdica.plot.densities()
    with pytest.raises(hdica.HdicaError, match="snapshot is no option of trajectories"):
        runs.hdica.plot(snapshot=1)
    with pytest.raises(hdica.HdicaError, match="no figure suits"):
        xr.Dataset({"a": 1.0}).hdica.plot()
    with pytest.raises(hdica.HdicaError, match="limit: tau = 0.2 is not there"):
        simulated({"tau": [0.1, 0.2]}).hdica.plot(limit=theory({"tau": [0.1, 0.3]}))


def test_data_stay_as_they_are(runs, limit):
    before = runs.copy(deep=True)
    runs.hdica.plot(limit=limit)
    assert runs.identical(before)
    assert TIMES.tolist() == limit["time"].values.tolist()
