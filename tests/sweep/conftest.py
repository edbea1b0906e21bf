from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.store.results import open_results
from hdica.study.study import Study
from tests.sweep import toy


@pytest.fixture(autouse=True)
def toy_system() -> Iterator[None]:
    toy.register()
    yield
    toy.forget()


@pytest.fixture(autouse=True, scope="session")
def dask_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder for clusters of tests: the usual one has a name that anybody can take first."""
    import dask

    with dask.config.set({"temporary-directory": str(tmp_path_factory.mktemp("dask"))}):
        yield


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results" / "toy.zarr"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with one line for every point computed."""
    path = tmp_path / "calls.txt"
    path.touch()
    monkeypatch.setenv("TOY_CALLS", str(path))
    return path


@pytest.fixture
def toy_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Dask workers that know the toy system."""
    import dask
    import distributed  # noqa: F401  (its defaults must be there before ours come and go)

    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", str(root))
    with dask.config.set({"distributed.worker.preload": ["tests.sweep.preload"]}):
        yield


def made(study: Study, out: Path, **how: Any) -> dict[str, bytes]:
    """Compute and publish a study; every published number of it."""
    assert run(study, out, progress=False, **how).complete
    publish(study, out)
    return values(out)


def values(path: Path) -> dict[str, bytes]:
    """Every published number but the processor time, as bytes."""
    tree: xr.DataTree = open_results(path)
    found = {}
    for group in tree.children.values():
        for name, variable in group.to_dataset().variables.items():
            if name != "cpu_seconds":
                raw = np.asarray(variable.values)
                text = repr(raw.tolist()).encode() if raw.dtype == object else raw.tobytes()
                found[f"{group.name}/{name}"] = str(variable.dims).encode() + text
    return found
