from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.study.study import Study, study_from
from tests.sweep import toy

KEPT = {"snapshots": [0.5, 2.0], "x": {"start": -3, "stop": 3, "num": 31}}
GRID = {"tau": [0.1, 0.13, 0.17, 0.2], "Q0": [0.25, 0.5]}


@pytest.fixture(autouse=True, scope="module")
def toy_system() -> Iterator[None]:
    toy.register()
    yield
    toy.forget()


@pytest.fixture(scope="module")
def study() -> Study:
    """With densities, points that fail (tau = 0.13), and points that diverge (tau = 0.17)."""
    methods = {"walk": {"n": [10, 30], "seeds": 6}, "line": {}, "profile": {}}
    return study_from(toy.study(grid=GRID, methods=methods, save=KEPT))


@pytest.fixture(scope="module")
def half(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of which every other block is computed, and that is not published."""
    out = tmp_path_factory.mktemp("half") / "toy.zarr"
    run(study, out, shard=(0, 2), progress=False, block=4)
    return out


@pytest.fixture(scope="module")
def whole(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published store."""
    out = tmp_path_factory.mktemp("whole") / "toy.zarr"
    run(study, out, progress=False, block=4)
    publish(study, out)
    return out
