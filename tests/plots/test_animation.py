"""Densities over time: what each frame shows, on axes that stay, and the files."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.animation import FuncAnimation
from matplotlib.collections import FillBetweenPolyCollection
from PIL import Image

import hdica
from hdica.report import animated
from hdica.show.panel import CUT, FRAMES
from tests.plots.conftest import about

TIMES = [0.0, 1.0, 2.5, 5.0]
X = np.linspace(-4, 6, 41)


def limit_at(times: list[float], width: float = 1.0) -> xr.Dataset:
    """Normal densities of two groups that drift apart."""
    centre = np.array(times)[:, None, None] * np.array([0.0, 0.5])[:, None]
    values = np.exp(-((X - centre) ** 2) / (2 * width**2)) / (width * np.sqrt(2 * np.pi))
    coords = {"snapshot": times, "feature": [0.0, 1.0], "x": X}
    return xr.Dataset({"density": (("snapshot", "feature", "x"), values)}, coords, about("pde"))


def runs_at(times: list[float]) -> xr.Dataset:
    """Histograms of three seeds about them."""
    values = xr.concat([limit_at(times)["density"] * (1 + 0.1 * k) for k in (-1, 0, 1)], "seed")
    found = xr.Dataset({"density": values}).assign_coords(seed=[0, 1, 2], n=50)
    found["status"] = ("seed", np.ones(3, np.uint8))
    return found.assign_attrs(about("vector"))


@pytest.fixture
def film() -> animated.Animation:
    return runs_at(TIMES).hdica.animate(limit_at(TIMES))


def drawn(film: animated.Animation) -> dict[str, np.ndarray]:
    """Heights of the lines on the axes, by their labels."""
    return {str(one.get_label()): np.asarray(one.get_ydata()) for one in film.axes.lines}


def test_every_snapshot_is_a_frame_with_its_numbers(film):
    assert isinstance(film, FuncAnimation)
    assert len(film.film.frames) == len(TIMES)
    runs, limit = runs_at(TIMES).hdica.mean(), limit_at(TIMES)
    for k, t in enumerate(TIMES):
        film.show(k)
        lines = drawn(film)
        assert film.axes.get_title(loc="left") == f"$t$ = {t:g}"
        for group in (0, 1):
            here = {"snapshot": t, "feature": float(group)}
            steps = lines[f"$\\xi$ = {group}, vector, $n$ = 50"]
            assert steps[::2] == pytest.approx(runs["density"].sel(here).values, rel=1e-12)
        dashed = [one.get_ydata() for one in film.axes.lines if one.get_linestyle() == "--"]
        expected = limit["density"].sel(snapshot=t).values
        assert np.asarray(dashed) == pytest.approx(expected, rel=1e-12)


def test_the_band_is_two_standard_errors(film):
    film.show(2)
    errors = runs_at(TIMES).hdica.mean()["density_se"].sel(snapshot=TIMES[2])
    mean = limit_at(TIMES)["density"].sel(snapshot=TIMES[2])
    bands = [one for one in film.axes.collections if isinstance(one, FillBetweenPolyCollection)]
    tops = [one.get_paths()[0].vertices[:, 1].max() for one in bands]
    assert tops == pytest.approx((mean + 2 * errors).max("x").values)
    assert film.axes.get_ylabel() == "density (band: ± 2 s.e.)"


def test_axes_stay_and_hold_every_frame(film):
    limits = set()
    for k in range(len(TIMES)):
        film.show(k)
        limits.add((film.axes.get_xlim(), film.axes.get_ylim()))
        assert max(y.max() for y in drawn(film).values()) < film.axes.get_ylim()[1]
        assert len(film.axes.lines) == 4  # nothing of the frame before
    assert len(limits) == 1
    ((left, right), (bottom, _)) = limits.pop()
    assert bottom == 0
    assert left < -2
    assert right > 4  # where the second group is at the end, not at first


def test_many_snapshots_are_at_most_sixty_frames_from_first_to_last():
    times = np.linspace(0, 10, 150).round(6).tolist()
    frames = limit_at(times).hdica.animate().film.frames
    assert len(frames) == FRAMES
    assert [frames[0].title.tex, frames[-1].title.tex] == ["$t$ = 0", "$t$ = 10"]


def test_a_peak_far_above_the_others_is_cut_and_said():
    early, late = limit_at([0.0], width=0.05), limit_at([1.0, 2.0])
    film = xr.concat([early, late], "snapshot").hdica.animate().film
    top = film.frames[0].y_range[1]
    assert top == pytest.approx(1.06 * CUT * float(late["density"].max()), rel=1e-6)
    assert film.frames[0].title.plain.endswith("peak 7.98 beyond the axis")
    assert film.frames[1].title.plain == "t = 1"


def test_a_point_is_chosen_by_keyword():
    one = runs_at(TIMES)
    twice = one.assign(density=2 * one["density"])
    swept = xr.concat([one, twice], "tau", data_vars="all").assign_coords(tau=[0.02, 0.05])
    with pytest.raises(hdica.HdicaError, match="several values of tau are not allowed"):
        swept.hdica.animate()
    with pytest.raises(hdica.HdicaError, match=r"tau = 0\.03 is not there \(there: 0\.02, 0\.05"):
        swept.hdica.animate(tau=0.03)
    with pytest.raises(hdica.HdicaError, match="beta is no parameter that was swept"):
        swept.hdica.animate(beta=1)
    film = swept.hdica.animate(limit_at(TIMES), tau=0.05)
    assert film.axes.get_title(loc="left") == r"$t$ = 0 · $\tau$ = 0.05"
    top = 2 * limit_at(TIMES)["density"].isel(snapshot=0, feature=0).max()
    assert drawn(film)["$\\xi$ = 0, vector, $n$ = 50"].max() == pytest.approx(float(top))


def test_what_has_no_course_is_refused(runs):
    with pytest.raises(hdica.HdicaError, match="1 snapshot is no animation"):
        runs_at([1.0]).hdica.animate()
    with pytest.raises(hdica.HdicaError, match="this result has no densities"):
        runs.hdica.animate()
    with pytest.raises(hdica.HdicaError, match=r"limit: snapshot = 2\.5 is not there"):
        runs_at(TIMES).hdica.animate(limit_at([0.0, 1.0, 5.0]))


def test_own_axes_keep_what_is_theirs():
    _, (left, right) = plt.subplots(1, 2)
    (mine,) = left.plot([0, 1], [0.1, 0.1], label="mine")
    film = runs_at(TIMES).hdica.animate(ax=left)
    film.show(3)
    assert film.axes is left
    assert mine in left.lines
    assert left.get_legend() is not None
    assert not right.lines
    film.show(0)


def test_a_store_animates_a_simulation_beside_its_limit():
    groups = {"vector": runs_at(TIMES), "pde": limit_at(TIMES)}
    groups["pde"]["status"] = xr.DataArray(np.uint8(1))
    top = xr.Dataset(attrs={"system": "OnlineICA"})
    tree = xr.DataTree.from_dict({"/": top, **groups})
    film = tree.hdica.animate()
    lines = drawn(film)
    assert "limit (PDE)" in lines
    assert "$\\xi$ = 1, vector, $n$ = 50" in lines
    film.show(0)
    with pytest.raises(hdica.HdicaError, match="no method keeps densities"):
        xr.DataTree.from_dict({"/": top}).hdica.animate()


def test_gif_has_all_frames_and_the_same_bytes_again(film, tmp_path: Path):
    film.save(tmp_path / "a.gif")
    runs_at(TIMES).hdica.animate(limit_at(TIMES)).save(tmp_path / "b.gif")
    assert (tmp_path / "a.gif").read_bytes() == (tmp_path / "b.gif").read_bytes()
    with Image.open(tmp_path / "a.gif") as image:
        assert image.n_frames == len(TIMES)
        assert image.info["duration"] == 1000  # a frame a second where there are few
        shown = []
        for k in range(image.n_frames):
            image.seek(k)
            shown.append(image.convert("RGB").tobytes())
    assert len(set(shown)) == len(TIMES)


def test_a_style_that_has_ended_still_holds(tmp_path: Path):
    with hdica.plots.style("page"):
        film = runs_at(TIMES).hdica.animate(limit_at(TIMES))
        size = film.axes.title.get_fontsize()
    plt.rcParams["axes.titlesize"] = 30
    try:
        film.save(tmp_path / "a.gif", dpi=50)
        assert film.axes.title.get_fontsize() == size
    finally:
        plt.rcParams.update({"axes.titlesize": plt.rcParamsDefault["axes.titlesize"]})
    with Image.open(tmp_path / "a.gif") as image:
        assert image.size[0] == 350


def test_other_endings_and_a_missing_program_are_said(film, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(hdica.HdicaError, match=r"a\.mp4: the program ffmpeg is not installed"):
        film.save(tmp_path / "a.mp4")
    assert not (tmp_path / "a.mp4").exists()
    with pytest.raises(hdica.HdicaError, match=r"not allowed \(\*\.gif, or \*\.mp4\)"):
        film.save(tmp_path / "a.avi")
    assert list(animated.files(film.film)) == ["densities.gif"]


ENCODER = """#!{python}
import sys
data = sys.stdin.buffer.read()
size = sys.argv[sys.argv.index("-s") + 1]
open(sys.argv[-1], "w").write(" ".join([str(len(data)), size, *sys.argv]))
"""


@pytest.mark.deep
def test_mp4_is_given_every_frame(film, tmp_path, monkeypatch):
    """With a program of the name that notes what it is given."""
    import sys

    program = tmp_path / "ffmpeg"
    program.write_text(ENCODER.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    film.save(tmp_path / "a.mp4")
    said = (tmp_path / "a.mp4").read_text()
    found = re.match(r"(\d+) (\d+)x(\d+) ", said)
    assert found is not None
    length, width, height = map(int, found.groups())
    assert length == len(TIMES) * width * height * 4
    assert (width % 2, height % 2) == (0, 0)
    assert "-vcodec h264 -metadata title=hdica figure densities -pix_fmt yuv420p" in said
    assert list(animated.files(film.film)) == ["densities.gif", "densities.mp4"]
