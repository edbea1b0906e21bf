import numpy as np
import pytest
import xarray as xr
from matplotlib import rc_context, rcParams

from hdica.analysis.aggregate import aggregate
from hdica.analysis.convergence.figure import fluctuation_and_bias, trajectories
from hdica.analysis.phase.figure import unstable
from hdica.report.drawn import thumbnail
from hdica.report.interactive import figure
from hdica.report.page import panels
from hdica.report.parts import file_name
from hdica.report.place import is_figure
from hdica.report.printed import STYLE, draw, files, in_lines, own_style
from hdica.report.ticks import ticks
from hdica.show.choose import grouped, shown, spread
from hdica.show.panel import Heat, Line, Panel, Points, Surface, Vertical
from hdica.show.words import clock, count, number, place, symbol, words
from tests.analysis import toy
from tests.report.shown import of


@pytest.fixture(scope="module")
def drawn(aggregated):
    return {p.key: p for found in panels(aggregated).values() for p in found}


def test_trajectories_show_mean_band_and_limit(drawn, aggregated):
    panel = drawn["trajectories_1"]
    data = aggregated["convergence"].sel(simulation="chain", tau=0.02, Q0=0.3, n=100)
    line = next(i for i in of(panel, Line) if i.low is not None)
    assert line.y == pytest.approx(data["mean"].values)
    assert line.high - line.y == pytest.approx(data["sd"].values)
    limits = [i for i in of(panel, Line) if i.color == "ink"]
    assert len(limits) == 2  # two starts
    assert [i.listed for i in limits] == [True, False]
    assert panel.items[-1] is limits[-1]  # theory on top


def test_slope_guides_have_their_slopes(drawn):
    for key, slope in (("fluctuation", -0.5), ("bias", -1.0)):
        guide = next(i for i in of(drawn[key], Line) if i.dash == "dot")
        x, y = np.log(guide.x), np.log(guide.y)
        assert (y[1] - y[0]) / (x[1] - x[0]) == pytest.approx(slope)
        assert drawn[key].log_x
        assert drawn[key].log_y


def test_heat_maps_carry_the_theory(drawn):
    panel = drawn["phase_overlap"]
    assert of(panel, Heat)[0].z.shape == (2, 2)
    boundary = next(i for i in of(panel, Line) if "Q_u" in i.label.plain)
    assert boundary.y[0] == pytest.approx(toy.roots(0.02)[1])
    assert (boundary.x[-1], boundary.y[-1]) == (toy.TAU_C, toy.MIDDLE**0.5)  # ends at the fold
    assert of(panel, Vertical)[0].x == toy.TAU_C


def test_stable_fixed_points_are_filled_and_unstable_open(drawn):
    marks = of(drawn["flow"], Points)
    assert marks[0].filled.tolist() == [True, False, True]
    symbols = figure(drawn["flow"])["data"][-2]["marker"]["symbol"]
    assert symbols == ["circle", "circle-open", "circle"]


def test_slices_have_wilson_bars(drawn, aggregated):
    mark = of(drawn["phase_slices"], Points)[0]
    here = aggregated["phase"].isel(n=-1, tau=0)
    assert mark.low == pytest.approx(here["probability_low"].values, nan_ok=True)
    assert mark.high == pytest.approx(here["probability_high"].values, nan_ok=True)


@pytest.mark.deep
def test_printed_figures_are_the_same_bytes_twice(drawn):
    for key in ("trajectories_1", "phase_overlap"):
        first = files(drawn[key])
        assert files(drawn[key]) == first
        assert b"<svg" in first[f"{key}.svg"]
        assert first[f"{key}.pdf"].startswith(b"%PDF")


HOSTILE = """
text.usetex: True
font.size: 31
axes.grid: True
axes.facecolor: black
figure.dpi: 33
savefig.dpi: 7
savefig.bbox: tight
savefig.transparent: True
lines.linewidth: 9
lines.linestyle: :
legend.framealpha: 0.1
xtick.minor.visible: True
axes3d.grid: False
image.cmap: gray
path.simplify: False
svg.fonttype: none
"""


@pytest.mark.deep
def test_figures_do_not_depend_on_the_readers_matplotlibrc(drawn, tmp_path):
    rc = tmp_path / "matplotlibrc"
    rc.write_text(HOSTILE)
    hill = Surface(*(np.arange(4.0).reshape(2, 2) for _ in range(4)), words("h"))
    landscape = Panel("hill", words("a hill"), words("x"), words("y"), (hill,))
    few = (drawn["phase_overlap"], landscape)
    plain = [(files(panel), thumbnail(panel)) for panel in few]
    with rc_context(fname=rc):
        assert rcParams["text.usetex"]
        assert [(files(panel), thumbnail(panel)) for panel in few] == plain
        assert (rcParams["text.usetex"], rcParams["savefig.dpi"]) == (True, 7.0)


def test_a_printed_figure_says_which_one_it_is(drawn):
    for name, content in files(drawn["phase_overlap"]).items():
        assert is_figure(name, content)
        assert not is_figure(f"my_{name}", content)
        assert not is_figure(name.replace("overlap", "over"), content)
        assert not is_figure("phase_overlap.txt", content)
        assert not is_figure(name, b"something else")


def test_all_twins_are_written(written, drawn):
    names = {p.name for p in written}
    figures = {f"{k}.{end}" for k in drawn for end in ("svg", "pdf")}
    shared = {"index.html", file_name()}
    pages = {"report.html", "report-alone.html"}
    assert names == {"aggregate.nc", "card.json", "captions.rst"} | pages | shared | figures
    assert all(p.stat().st_size > 0 for p in written)


def test_few_grid_points_are_chosen_evenly_with_both_ends():
    assert spread(3) == [0, 1, 2]
    assert spread(11) == [0, 2, 4, 6, 8, 10]
    chain = toy.store().to_dataset()
    wide = chain.assign_coords(tau=np.arange(10) / 10.0, Q0=np.arange(9) / 10.0)
    points = shown(wide, ["tau", "Q0"])
    assert len(points) == 6
    assert {p["tau"] for p in points} == {0.0, 0.9}
    assert [len(members) for _, members in grouped(points, "Q0")] == [3, 3]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.162179260629823, "0.162"), (-2.5e-7, "−2.5 × 10⁻⁷"), (1e-5, "10⁻⁵"), (float("nan"), "–")],
)
def test_numbers_are_written_for_readers(value, text):
    assert number(value) == text


def test_dimensions_are_written_for_readers():
    assert [count(n) for n in (1000, 10_000, 1_000_000, 27922)] == [
        "1000",
        "10\u202f000",
        "10⁶",
        "27\u202f922",
    ]


def test_symbols_and_user_text():
    assert place({"tau": 0.05, "Q0": 0.7}).plain == "τ = 0.05, Q₀ = 0.7"
    assert symbol("tau").tex == r"$\tau$"
    assert words("50% of a_b for $1").tex == r"50% of a_b for \$1"
    assert words("<b>").html == "&lt;b&gt;"


def test_an_unstable_state_divides_starts_only_where_the_overlap_alone_evolves(aggregated):
    data = aggregated["phase"].to_dataset()
    assert data.attrs["divides"] == 1
    assert "the boundary in theory" in unstable(data)
    assert "no boundary" in unstable(data.assign_attrs(divides=0))


def test_grid_points_without_a_finished_run_leave_the_others_drawn(aggregated):
    data = aggregated["convergence"].to_dataset()
    first = {d: data[d].values[0] for d in ("tau", "Q0")}
    here = xr.ones_like(data["count"], dtype=bool)
    here.loc[first] = False
    gone = data.assign(count=data["count"].where(here, 0), mean=data["mean"].where(here))
    drawn, less = (trajectories(d) for d in (data, gone))
    items = [sum(len(panel.items) for panel in some) for some in (drawn, less)]
    assert 0 < items[1] < items[0]
    nobody = data.assign(count=data["count"] * 0, mean=data["mean"] * np.nan)
    trajectories(nobody)


@pytest.mark.parametrize(
    ("units", "label"),
    [
        (None, "t = k/n"),
        ("samples per dimension", "t = k/n"),
        ("samples per dimension (k/n)", "t = k/n"),
        ("steps", "t (steps)"),
        ("$ per <hour>", "t ($ per <hour>)"),
    ],
)
def test_the_axis_of_time_is_labelled_by_the_clock(units, label):
    found = clock({} if units is None else {"units": units})
    assert found.plain == label
    assert "<hour>" not in found.html
    assert found.tex.replace(r"\$", "").count("$") == 2


@pytest.mark.parametrize(("last", "power"), [(2e4, "10^{4}"), (2e3, "")])
def test_long_times_are_written_with_a_power_of_ten_in_print(last, power):
    line = Line(np.array([0.0, last]), np.array([0.0, 1.0]), words("a run"), "ink")
    with rc_context(STYLE):
        shown_here = draw(Panel("long", words("Long"), words("t"), words("y"), (line,)))
        shown_here.draw_without_rendering()
        said = shown_here.axes[0].xaxis.get_offset_text().get_text()
    assert power in said
    assert bool(said) == bool(power)


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (250, 1000, "300 500 700 1000"),
        (125, 187, "140 160 180"),
        (100, 1600, "100 300 1000"),
        (3e-5, 3e-4, "3×10⁻⁵ 10⁻⁴ 3×10⁻⁴"),
        (0.1, 4, "0.1 0.3 1 3"),
        (1e-4, 1e4, "10⁻⁴ 10⁻² 1 10² 10⁴"),
        (1e-9, 5e-8, "10⁻⁹ 3×10⁻⁹ 10⁻⁸ 3×10⁻⁸"),
        (2, 2, "2"),
    ],
)
def test_ticks_of_a_log_axis_are_whole_numbers_on_the_page_and_in_print(low, high, labels):
    places, texts = ticks(low, high, level=True)
    assert [one.plain.replace(" ", "") for one in texts] == labels.split()
    x = np.array([low, high], float)
    one = Line(x, x, words("one"), "ink")
    panel = Panel("one", words(""), words("x"), words("y"), (one,), log_x=True, x_range=(low, high))
    axis = figure(panel)["layout"]["xaxis"]
    assert axis["tickvals"] == places.tolist()
    if high > low:
        printed = draw(panel).axes[0].xaxis.get_majorticklabels()
        assert [label.get_text() for label in printed] == [one.tex for one in texts]


@pytest.mark.parametrize(
    ("title", "label"),
    [
        ("Measured over predicted · settled runs, source = Rademacher", "mean"),
        ("Short", "time of the fall / (its scale times the power of n)"),
    ],
)
def test_long_titles_and_labels_are_whole_in_print(title: str, label: str) -> None:
    one = Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), words("one"), "ink")
    with own_style():
        drawn = draw(Panel("one", words(title), words("x"), words(label), (one,)))
        drawn.draw_without_rendering()
        axes, sheet = drawn.axes[0], drawn.bbox
        for text in (axes._left_title, axes.yaxis.label):
            box = text.get_window_extent()
            assert sheet.x0 <= box.x0 < box.x1 <= sheet.x1, text
            assert sheet.y0 <= box.y0 < box.y1 <= sheet.y1, text


def test_a_long_title_is_not_broken_beside_a_sign() -> None:
    title = "Excess overlap |Pw|²/|w|² − k/d, mean over filters"
    assert in_lines(title, 42) == "Excess overlap |Pw|²/|w|² − k/d,\nmean over filters"


def test_the_title_stands_above_all_labels_of_vertical_lines_in_print() -> None:
    labels = [Vertical(x, words(f"at {x}"), row=row) for row, x in enumerate((0.3, 0.6))]
    one = Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), words("one"), "ink")
    with own_style():
        drawn = draw(Panel("one", words("Title"), words("x"), words("y"), (*labels, one)))
        drawn.draw_without_rendering()
        axes = drawn.axes[0]
        title = axes._left_title.get_window_extent()
        highest = max(label.get_window_extent().y1 for label in axes.texts)
    assert axes._left_title.get_text() == "Title"
    assert highest < title.y0 < title.y1 <= drawn.bbox.y1


def test_predictions_that_differ_are_in_the_colours_of_their_points() -> None:
    """One that all points share is in ink; several in one ink could not be told apart."""
    data = aggregate(toy.store())["convergence"].to_dataset()
    data["rms_sd_predicted"] = data["rms_sd"].copy(data=np.ones(data["rms_sd"].shape))
    for grows, shared in ((False, True), (True, False)):
        if grows:
            data["rms_sd_predicted"] = data["rms_sd_predicted"] * (1 + data["tau"])
        items = fluctuation_and_bias(data)[0].items
        marks = {one.color for one in items if isinstance(one, Points) and np.isfinite(one.y).any()}
        lines = [one for one in items if isinstance(one, Line) and one.dash != "dot"]
        drawn = {one.color for one in lines if np.isfinite(one.y).any()}
        assert len(marks) > 1
        assert drawn == ({"ink"} if shared else marks)
        assert sum(one.listed for one in lines) == 1
