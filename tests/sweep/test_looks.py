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
from hdica.sweep.files.paths import manifest_path
from hdica.sweep.outcome import looks
from hdica.sweep.outcome.answer import answer
from hdica.sweep.outcome.integrity import verify
from hdica.sweep.outcome.results import open_results, version_path
from hdica.sweep.run.working_lock import locked
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
@pytest.mark.parametrize("links", [True, False])
def test_reading_while_two_grids_are_published_in_turns(results: Path, links: bool) -> None:
    readers, published = republish.looked(results, 3, links, report=links)
    assert readers.wrong == []
    assert published > 2


@contextmanager
def half_published(out: Path, swapped: bool) -> Iterator[None]:
    """What a publication does before, or after, it has swapped in the new store."""
    manifest, old = manifest_path(out), out.with_name(f".{out.name}.old")
    with locked(out):
        content = manifest.read_bytes()
        manifest.unlink()
        if swapped:
            old.mkdir()
        else:
            out.rename(old)
        yield
        if swapped:
            old.rmdir()
        else:
            old.rename(out)
        manifest.write_bytes(content)


LOOKS: list[Callable[[Path], object]] = [
    lambda out: verify(out).code == 0,
    lambda out: open_results(out)["line"].Q.load().size,
    lambda out: answer(out, {}, "line").data.Q.size,
    version_path,
]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("look", LOOKS)
def test_what_is_half_done_is_waited_for(
    results: Path, look: Callable[[Path], object], swapped: bool
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with half_published(results, swapped):
            looking = pool.submit(look, results)
            time.sleep(0.3)
            # Only a store that is in its place without a manifest can be opened as it is.
            assert swapped or not looking.done()
        assert looking.result(60)


@pytest.mark.deep
def test_a_publication_that_hangs_is_no_damage(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "WAIT", 0.5)
    monkeypatch.setattr(looks, "TURN", 0.1)
    with half_published(results, False):
        for look in LOOKS:
            with pytest.raises(HdicaError, match="is still being published"):
                look(results)


def test_one_that_was_killed_is_told_at_once(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "WAIT", 0.0)
    manifest_path(results).unlink()
    results.rename(results.with_name(f".{results.name}.old"))
    assert verify(results).incomplete[-1] == f"{results} is not published yet: it is not there"
    with pytest.raises(HdicaError, match="is not published yet"):
        open_results(results)


def test_real_damage_is_told_at_once_while_somebody_plans(results: Path) -> None:
    (results / "line/Q/c/0/0/0").unlink()
    with locked(results):
        assert verify(results).code == 3
