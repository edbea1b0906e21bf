"""Reports of study files as they are now, and of runs that have not finished."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import xarray as xr
from ruamel.yaml import YAML

from hdica.cli import call
from hdica.errors import HdicaError
from hdica.report import report_of, write
from hdica.run.runner import run
from hdica.store.paths import work_path
from hdica.store.results import standing
from hdica.study.study import study_from

pytestmark = pytest.mark.usefixtures("unprinted")

CONTENT = {
    "study": "part",
    "title": "A part",
    "system": "OnlineICA",
    "parameters": {"source": "uniform", "nonlinearity": "x**3"},
    "grid": {"tau": [0.02, 0.08]},
    "times": [0, 1, 2],
    "methods": {"chain": {"n": [50, 100], "seeds": 6}, "ode": {}},
}


def file_of(folder: Path, content: dict[str, object]) -> Path:
    path = folder / f"{content['study']}.yaml"
    with path.open("w") as file:
        YAML(typ="safe", pure=True).dump(content, file)
    return path


def pending(tree: xr.DataTree) -> int:
    return sum(int((node["status"] == 0).sum()) for node in tree.children.values())


@pytest.fixture(scope="module")
def unpublished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of which a part is computed and nothing is published."""
    store = tmp_path_factory.mktemp("part") / "part.zarr"
    small = study_from(CONTENT | {"methods": {"chain": {"n": [50], "seeds": 6}, "ode": {}}})
    run(small, store, workers=1)
    return store


@pytest.mark.deep
def test_a_run_that_has_not_finished_has_a_report_that_says_so(
    unpublished: Path, tmp_path: Path
) -> None:
    study = file_of(tmp_path, CONTENT)
    before = sorted(p.name for p in unpublished.parent.iterdir())
    files = report_of(study, unpublished, tmp_path / "out")
    text = " ".join(files[0].read_text(encoding="utf-8").split())
    said = "This run has not finished: 12 of 26 points are pending (chain 12 of 24)."
    assert said in text
    card = json.loads((tmp_path / "out/card.json").read_bytes())
    assert card["missing"].startswith(said)
    assert said in files[-1].read_text(encoding="utf-8")
    assert sorted(p.name for p in unpublished.parent.iterdir()) == before


@pytest.mark.deep
def test_a_store_that_is_not_published_is_shown_as_planned(
    unpublished: Path, tmp_path: Path
) -> None:
    text = write(unpublished, tmp_path / "out")[0].read_text(encoding="utf-8")
    assert "A part" in text
    assert "has not finished" not in text


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from hdica.store.publish import publish

    study = study_from(CONTENT)
    store = tmp_path_factory.mktemp("whole") / "part.zarr"
    run(study, store, workers=1)
    publish(study, store)
    return store


@pytest.mark.deep
def test_a_study_file_is_shown_as_it_is_now(published: Path, tmp_path: Path) -> None:
    asked = {"convergence": {"simulation": "chain", "limit": "ode", "variable": "Q"}}
    study = file_of(tmp_path, CONTENT | {"title": "Said later", "analysis": asked})
    report_of(study, published, tmp_path / "out")
    text = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert "<h1>Said later</h1>" in text
    with xr.open_datatree(tmp_path / "out/aggregate.nc", engine="h5netcdf") as tree:
        assert "convergence" in tree.children
    with standing(published) as tree:
        assert tree.attrs["title"] == "A part"


def test_a_smaller_grid_needs_nothing_computed(published: Path) -> None:
    fewer = study_from(CONTENT | {"grid": {"tau": [0.08]}})
    with standing(published, fewer) as tree:
        assert pending(tree) == 0
        assert tree["chain"]["tau"].values.tolist() == [0.08]


def test_a_copy_of_the_published_store_alone_is_enough(published: Path, tmp_path: Path) -> None:
    copy = tmp_path / "part.zarr"
    shutil.copytree(published, copy)
    shutil.copy(published.with_suffix(".manifest.json"), tmp_path)
    with standing(copy, study_from(CONTENT)) as tree:
        assert pending(tree) == 0
    other = study_from(CONTENT | {"times": [0, 1]})
    with (
        pytest.raises(HdicaError, match="no point of study 'part' as it is now"),
        standing(copy, other),
    ):
        pass


def test_what_is_not_computed_is_one_sentence(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = file_of(tmp_path, CONTENT | {"times": [0, 3]})
    out = tmp_path / "out"
    assert call(["report", str(study), "--results", str(published), "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "has no point of study 'part' as it is now yet (hdica run computes them)" in said.err
    assert not out.exists()
    assert call(["report", str(study)]) == 2
    assert "results/part.zarr does not exist" in capsys.readouterr().err
    assert call(["report", str(published), "--results", str(published)]) == 2
    assert "is no study file" in capsys.readouterr().err


@pytest.mark.deep
def test_the_last_line_names_the_gallery(
    published: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("part.zarr", "part.work", "part.manifest.json"):
        source = published.with_name(name)
        copy = shutil.copytree if source.is_dir() else shutil.copy
        (tmp_path / "results").mkdir(exist_ok=True)
        copy(source, tmp_path / "results" / name)
    study = file_of(tmp_path, CONTENT)
    for given in (str(study), "results/part.zarr"):
        assert call(["report", given, "--one-file"]) == 0
        out = capsys.readouterr().out.splitlines()
        assert out[0] == "page: results/part/report.html"
        assert out[-1] == "reports: results/index.html"
    assert (tmp_path / "results/part/report-alone.html").is_file()
    assert work_path(Path("results/part.zarr")).is_dir()
