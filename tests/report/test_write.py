from pathlib import Path

import pytest
import xarray as xr

from hdica.analysis import aggregate
from hdica.errors import HdicaError
from hdica.report import write
from hdica.report.figures import panels
from hdica.report.page import render
from hdica.report.printed import draw
from hdica.sweep.outcome.publish import publish
from hdica.sweep.run.runner import run
from hdica.sweep.spec.study import Study
from tests.analysis import toy

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


def test_a_published_store_becomes_a_report(tmp_path):
    study, store = Study.model_validate(STUDY), tmp_path / "small.zarr"
    run(study, store, workers=1)
    publish(study, store)
    files = write(store, tmp_path / "report")
    assert files[0] == tmp_path / "report" / "report.html"
    assert all(f.stat().st_size > 0 for f in files)
    text = files[0].read_text(encoding="utf-8")
    assert "0.05913" in text  # tau_c of the uniform source
    with xr.open_datatree(tmp_path / "report" / "aggregate.nc", engine="h5netcdf") as tree:
        assert set(tree.children) == {"runs", "convergence", "phase", "flow"}
        assert int(tree["runs"]["done"].sum()) == 2 * 2 * 2 * 6 + 4 + 2 + 2 + 1


def test_the_same_store_gives_the_same_page(written, aggregated):
    assert render(aggregated, panels(aggregated)) == written[0].read_text(encoding="utf-8")


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
