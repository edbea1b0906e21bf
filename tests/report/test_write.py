import os
from pathlib import Path

import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.cli import call
from hdica.errors import HdicaError
from hdica.report import write
from hdica.report.drawn import write_aggregate
from hdica.report.page import panels, render
from hdica.report.printed import draw
from hdica.run.runner import run
from hdica.show.terms import speaking_of
from hdica.store.publish import publish
from hdica.study.study import Study
from tests.analysis import toy
from tests.faults.crash import forked

STUDY = {
    "study": "small",
    "title": "A small study",
    "system": "OnlineICA",
    "parameters": {"source": "uniform", "nonlinearity": "x**3"},
    "grid": {"tau": [0.02, 0.08], "Q0": [0.2, 0.8]},
    "times": [0, 1, 2],
    "methods": {
        "chain": {"n": [50, 100], "seeds": 6},
        "ode": {},
        "drift": {},
        "fixed_points": {},
        "critical": {},
    },
    "analysis": {"convergence": toy.CONVERGENCE, "phase": toy.PHASE, "flow": toy.FLOW},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The study, computed and published."""
    study, store = Study.model_validate(STUDY), tmp_path_factory.mktemp("small") / "small.zarr"
    run(study, store, workers=1)
    publish(study, store)
    return store


@pytest.mark.usefixtures("unprinted")
def test_a_published_store_becomes_a_report(store, tmp_path):
    files = write(store, tmp_path / "report")
    assert files[0] == tmp_path / "report" / "report.html"
    assert all(f.stat().st_size > 0 for f in files)
    text = files[0].read_text(encoding="utf-8")
    assert "0.05913" in text  # tau_c of the uniform source
    with xr.open_datatree(tmp_path / "report" / "aggregate.nc", engine="h5netcdf") as tree:
        assert set(tree.children) == {"runs", "convergence", "phase", "flow", "points"}
        assert int(tree["runs"]["done"].sum()) == 2 * 2 * 2 * 6 + 4 + 2 + 2 + 1


@pytest.mark.deep
def test_two_reports_at_once_both_succeed(aggregated, tmp_path):
    parts = {name: aggregated[name].to_dataset() for name in ("runs", "flow")}
    found = xr.DataTree.from_dict(parts)
    found.attrs = aggregated.attrs
    out, alone = tmp_path / "report", tmp_path / "alone"

    def writing():
        for _ in range(2):
            write_aggregate(found, out)
        return 0

    child = os.fork()
    if not child:
        os._exit(forked(writing))
    assert writing() == 0
    assert os.waitpid(child, 0)[1] == 0
    files = [path.relative_to(alone) for path in write_aggregate(found, alone)]
    assert sorted(files) == sorted(p.relative_to(out) for p in out.rglob("*") if p.is_file())
    for file in files:
        assert (out / file).read_bytes() == (alone / file).read_bytes()


def test_a_file_where_the_report_goes_is_one_sentence(store, tmp_path, capsys):
    out = tmp_path / "report"
    out.write_text("mine")
    assert call(["report", str(store), "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert f"{out} is no folder (move it away, or take another name)" in said.err
    assert out.read_text() == "mine"


def test_the_same_store_gives_the_same_page(written, aggregated):
    with speaking_of(str(aggregated.attrs["system"])):
        again = render(aggregated, panels(aggregated))
    assert again == written[0].read_text(encoding="utf-8")


@pytest.mark.deep
def test_a_study_of_which_nothing_is_done_has_a_report():
    tree = toy.store()
    for node in tree.children.values():
        node["status"].values[...] = 0
    found = aggregate(tree)
    sections = panels(found)
    assert "no n has 6 finished seeds" in render(found, sections)
    for panel in (p for drawn in sections.values() for p in drawn):
        draw(panel).draw_without_rendering()


def test_a_store_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(HdicaError, match="does not exist"):
        write(Path(tmp_path / "none.zarr"), tmp_path)
