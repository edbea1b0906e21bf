"""Every result goes through netCDF 3 and 4, Zarr 2 and 3 and pickle, and comes back equal."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from zarr.storage import MemoryStore

import hdica
from hdica.cli import call
from hdica.study.study import study_from
from tests.sweep import toy
from tests.sweep.conftest import made

ICA = hdica.OnlineICA(tau=0.05, source="uniform", start={"overlap": 0.7})
PCA = hdica.SparsePCA(tau=0.5, omega=1.0, start={"overlap": 0.3})
WORDS: dict[str, Any] = {"tau": [0.02, 0.04], "source": ["uniform", "laplace"]}


def zarr_copy(data: xr.Dataset, version: Any) -> xr.Dataset:
    store = MemoryStore()
    data.to_zarr(store, zarr_format=version, consolidated=version == 2)
    return xr.open_zarr(store, chunks=None, consolidated=version == 2)


def netcdf_copy(data: xr.Dataset, engine: Any) -> xr.Dataset:
    return xr.load_dataset(bytes(data.to_netcdf(engine=engine)), engine=engine)


FORMATS: dict[str, Callable[[xr.Dataset], xr.Dataset]] = {
    "netCDF 3": lambda data: netcdf_copy(data, "scipy"),
    "netCDF 4": lambda data: netcdf_copy(data, "h5netcdf"),
    "Zarr 2": lambda data: zarr_copy(data, 2),
    "Zarr 3": lambda data: zarr_copy(data, 3),
    "pickle": lambda data: pickle.loads(pickle.dumps(data)),  # noqa: S301
}


def assert_every_format(data: xr.Dataset) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for copied in FORMATS.values():
            xr.testing.assert_identical(copied(data), data)


CALLS: dict[str, Callable[[], xr.Dataset]] = {
    "simulate": lambda: hdica.simulate(
        ICA, n=50, seeds=2, times=[0, 1], method="vector", snapshots=[1], x=[-1, 0, 1],
        estimate=True),
    "simulate, grid": lambda: hdica.simulate(ICA, n=[50, 100], seeds=2, times=[0, 1], over=WORDS),
    "limit": lambda: hdica.limit(ICA, times=[0, 1], bands=True, bias=True),
    "limit, grid": lambda: hdica.limit(ICA, times=[0, 1], over=WORDS),
    "limit, density": lambda: hdica.limit(
        ICA, times=[0, 1], method="pde", snapshots=[0, 1], thresholds=[0.5],
        functionals={"fourth": "x**4"}),
    "fixed_points": lambda: hdica.fixed_points(ICA),
    "fixed_points, grid": lambda: hdica.fixed_points(ICA, over={"source": WORDS["source"]}),
    "critical": lambda: hdica.critical(ICA, "tau"),
    "critical, grid": lambda: hdica.critical(ICA, "tau", over={"source": WORDS["source"]}),
    "critical_curve": lambda: hdica.critical_curve(
        PCA, "tau", kind="transcritical", along="omega", values=[1, 1.5, 2]),
    "effective_potential": lambda: hdica.effective_potential(ICA, times=[0, 1]),
    "optimal_schedule": lambda: hdica.optimal_schedule(
        hdica.SparsePCA(tau=0.1, start={"overlap": 0.3})
    ),
    "infer": lambda: hdica.infer(
        hdica.simulate(PCA, n=400, times=[0, 5], method="chain").Q, PCA, {"omega": (0.5, 2)}
    ),
    "samples_to_overlap": lambda: hdica.samples_to_overlap(
        hdica.SparsePCA(tau=0.1, start={"overlap": 0.3}), 1000
    ),
    "escape_time": lambda: hdica.escape_time(
        hdica.OnlineICA(nu=2.0, source="rademacher", start={"overlap": 0}), n=50),
    "best": lambda: hdica.best(PCA, {"tau": (0.05, 2)}, {"time to": 0.9}),
    "sensitivity": lambda: hdica.sensitivity(PCA, at=1.0, wrt=["tau", "omega"]),
    "whiten": lambda: hdica.whiten(np.random.default_rng(0).normal(size=(50, 4))),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_what_a_call_gives(name: str) -> None:
    result = CALLS[name]()
    assert_every_format(result)
    for column in result.variables.values():
        if column.dtype.kind in "iuf" and name != "whiten":  # which has the units of one's samples
            assert column.attrs["long_name"]
            assert "units" in column.attrs


def test_every_public_call_that_gives_a_result_is_here() -> None:
    others = {"Analysis", "HdicaError", "OutOfTime", "Study", "System", "cite", "open_results",
              "register"}  # fmt: skip
    assert set(hdica._HOME) - others <= {name.partition(",")[0] for name in CALLS}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with words on an axis, points that failed or diverged, densities and seeds."""
    toy.register()
    out = tmp_path_factory.mktemp("formats") / "toy.zarr"
    grid = {"tau": [0.1, 0.13, 0.17], "source": ["uniform", "laplace"]}
    made(study_from(toy.study(grid=grid, parameters={})), out)
    return out


@pytest.mark.deep
def test_a_published_store(published: Path) -> None:
    tree = hdica.open_results(published)
    for one in (tree, xr.open_datatree(published, engine="zarr", chunks=None)):
        kinds = {type(v) for group in one.subtree for v in group.attrs.values()}
        assert kinds <= {str, int, float}
    for group in tree.subtree:
        assert_every_format(group.to_dataset())
    assert "reason" in tree["walk"]
    assert tree["walk"].reason.sel(tau=0.13, source="laplace").values.tolist()[0][0]


def test_a_word_is_selected_of_every_axis_of_words(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["query", str(published), "--sel", "source=laplace", "--to", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["source"] for row in rows} == {"laplace"}
    assert call(["query", str(published), "--sel", "source=gauss"]) == 2
    assert "source=gauss is not there (values: uniform, laplace)" in capsys.readouterr().err
