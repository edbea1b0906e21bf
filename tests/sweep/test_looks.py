"""Looking while a publication goes on: the old results or the new ones, never damage."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from hdica.errors import HdicaError
from hdica.run import compute as computed
from hdica.run.settings import ClusterSettings
from hdica.store.files import write_whole
from hdica.store.paths import locked, manifest_path, previous_path
from hdica.store.query import answer
from hdica.store.results import open_results
from hdica.store.verify import verify
from hdica.study.study import study_from
from tests.sweep import republish, toy

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    toy.register()
    out = tmp_path_factory.mktemp("looks") / "results" / "toy.zarr"
    republish.computed(out)
    return out.parent


@pytest.fixture
def results(template: Path, out: Path) -> Path:
    """A fresh copy of a study of which two grids were published."""
    shutil.copytree(template, out.parent)
    return out


@pytest.mark.deep
@pytest.mark.parametrize("exchange", [True, False])
def test_reading_while_two_grids_are_published_in_turns(results: Path, exchange: bool) -> None:
    readers, published = republish.looked(results, 3, exchange, report=exchange)
    assert readers.wrong == []
    assert published > 2


@contextmanager
def half_published(out: Path, exchanged: bool) -> Iterator[None]:
    """What a publication does before, or after, the new store has its place."""
    manifest, previous = manifest_path(out), previous_path(out)
    with locked(out):
        content = manifest.read_bytes()
        manifest.unlink()
        if not exchanged:
            shutil.rmtree(previous)
            out.rename(previous)
        yield
        if not exchanged:
            previous.rename(out)
        write_whole(manifest, content)


LOOKS: list[Callable[[Path], object]] = [
    lambda out: verify(out).code == 0,
    lambda out: open_results(out)["line"].Q.load().size,
    lambda out: answer(out, {}, "line").data.Q.size,
]


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("look", LOOKS)
def test_what_is_half_done_is_waited_for(
    results: Path, look: Callable[[Path], object], exchanged: bool
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with half_published(results, exchanged):
            looking = pool.submit(look, results)
            time.sleep(0.3)
            # A store that is in its place can be opened, with its manifest or without.
            assert exchanged or not looking.done()
        assert looking.result(60)


def test_a_publication_that_was_killed_is_reported(results: Path) -> None:
    manifest_path(results).unlink()
    shutil.rmtree(previous_path(results))
    results.rename(previous_path(results))
    assert verify(results).incomplete[-1] == f"{results} is not published yet: it is not there"
    with pytest.raises(HdicaError, match="is not published yet"):
        open_results(results)


def test_real_damage_is_reported_while_somebody_plans(results: Path) -> None:
    (results / "line/Q/c/0/0/0").unlink()
    with locked(results):
        assert verify(results).code == 3


def test_a_run_begins_while_its_target_is_exchanged(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was listed is gone when it is looked at, since another run has published."""
    looks: list[Path] = []

    def check(target: Path) -> None:
        looks.append(target)
        if len(looks) == 1:
            metadata = target / "zarr.json"
            content = metadata.read_bytes()
            metadata.unlink()
            metadata.write_bytes(content)
            raise FileNotFoundError(metadata)

    monkeypatch.setattr(computed, "check_target", check)
    study = study_from(republish.content(republish.GRIDS[0]))
    assert computed.compute(study, results, ClusterSettings(), progress=False, tell=print).published
    assert looks == [results, results]
