"""Animations of a report: which there are, who links to them, and what is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from PIL import Image

from hdica.analysis.laws.densities import FILMS
from hdica.cli import call
from hdica.report.drawn import film_notes, films, write_aggregate
from hdica.report.place import is_figure
from tests.analysis import laws, toy


@pytest.fixture(scope="module")
def kept(aggregated_laws: xr.DataTree) -> xr.DataTree:
    """The densities of the toy study of laws, at its two snapshots, and what was run."""
    parts = {name: aggregated_laws[name].to_dataset() for name in ("runs", "densities")}
    found = xr.DataTree.from_dict(parts)
    found.attrs = aggregated_laws.attrs
    return found


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program that writes MP4."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.mark.deep
@pytest.mark.usefixtures("alone", "unprinted")
def test_they_are_written_linked_and_gone_with_the_next_report(kept, tmp_path):
    out = tmp_path / "toy"
    written = write_aggregate(kept, out, tmp_path, animate=True)
    gif = out / "figures/densities_1.gif"
    assert gif in written
    assert is_figure(gif.name, gif.read_bytes())
    assert not is_figure("densities_2.gif", gif.read_bytes())
    assert gif.stat().st_size < 2_000_000
    with Image.open(gif) as image:
        assert image.n_frames == len(laws.SNAPSHOTS)
    assert 'href="figures/densities_1.gif">GIF<' in (out / "report.html").read_text()
    assert 'href="toy/figures/densities_1.gif">GIF<' in (tmp_path / "index.html").read_text()
    write_aggregate(kept, out, tmp_path)
    assert not gif.exists()
    assert "densities_1.gif" not in (out / "report.html").read_text()
    assert "densities_1.gif" not in (tmp_path / "index.html").read_text()


def test_frames_hold_the_numbers_of_the_aggregate(kept):
    (film,) = films(kept)
    data = kept["densities"].to_dataset()
    for frame, t in zip(film.frames, laws.SNAPSHOTS, strict=True):
        here = data.sel(snapshot=t).squeeze("tau")
        assert frame.title.plain == f"t = {t:g} · τ = 0.1"
        steps = [one for one in frame.items if one.low is not None]
        limits = [one for one in frame.items if one.low is None]
        assert len(steps) == len(limits) == here.sizes["feature"]
        for k, (own, limit) in enumerate(zip(steps, limits, strict=True)):
            assert own.y[::2].tolist() == here["density"].isel(feature=k).values.tolist()
            assert limit.y.tolist() == here["limit"].isel(feature=k).values.tolist()
            error = 2 * here["density_se"].isel(feature=k).values
            assert own.high[::2] - own.y[::2] == pytest.approx(error)
    assert len({(frame.x_range, frame.y_range) for frame in film.frames}) == 1


def test_of_a_grid_a_few_points_are_shown_and_named(kept):
    one = kept["densities"].to_dataset()
    many = xr.concat([one] * 7, "tau").assign_coords(tau=np.arange(1, 8) / 100)
    tree = xr.DataTree.from_dict({"densities": many})
    found = films(tree)
    assert [film.key for film in found] == [f"densities_{k}" for k in range(1, FILMS + 1)]
    assert [film.title.plain for film in found] == [
        f"densities over time · τ = {tau}" for tau in (0.01, 0.04, 0.07)
    ]
    assert found[1].frames[0].title.plain == "t = 0.5 · τ = 0.04"


def test_one_snapshot_is_no_animation_and_that_is_said(kept):
    single = kept["densities"].to_dataset().isel(snapshot=[0])
    assert films(xr.DataTree.from_dict({"densities": single})) == []
    assert film_notes([Path("report.html")]) == [
        "no animation: nothing here keeps densities at two or more snapshots"
    ]


@pytest.mark.deep
@pytest.mark.usefixtures("alone", "unprinted")
def test_the_command_says_what_it_wrote_and_what_is_missing(tmp_path, capsys, monkeypatch):
    from hdica.report import write

    tree = toy.tree(
        {name: node.to_dataset() for name, node in laws.store().children.items()},
        {"densities": {"simulation": "vector", "limit": "pde"}},
    )
    monkeypatch.setattr(
        "hdica.report.report_of",
        lambda source, results, out, one_file, animate: write(tree, out, animate=animate),
    )
    assert call(["report", "toy.zarr", "--out", str(tmp_path / "toy"), "--animate"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == f"reports: {tmp_path / 'toy/index.html'}"
    lines = err.splitlines()
    assert lines == [
        f"animation: {tmp_path / 'toy/figures/densities_1.gif'}",
        "no MP4: the program ffmpeg is not installed (install it for MP4; GIF needs nothing)",
    ]
