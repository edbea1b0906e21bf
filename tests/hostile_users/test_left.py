"""What SIGKILL leaves among the temporary files, and who removes it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import trouble
from tests.faults.bench import LOCAL, SERIAL, Bench, Run
from tests.sweep import toy

pytestmark = pytest.mark.faults


@pytest.fixture
def bench(tmp_path: Path, common: Path) -> Iterator[Bench]:
    """A bench with temporary files of its own."""
    trouble.register()
    with Bench(tmp_path, variables={"TMPDIR": str(common)}) as made:
        yield made
    toy.forget()


def killed(bench: Bench, group: bool) -> Run:
    """A run on two processes, killed once it has computed something."""
    before = len(bench.calls)
    run = bench.start(LOCAL)
    run.until(lambda: len(bench.calls) > before + 4, "the first points")
    (os.killpg if group else os.kill)(run.process.pid, signal.SIGKILL)
    assert run.ended() == -signal.SIGKILL
    run.gone()
    return run


@pytest.mark.deep
def test_a_killed_run_leaves_one_folder_and_the_next_run_removes_it(
    bench: Bench, common: Path
) -> None:
    killed(bench, group=False)
    (left,) = common.iterdir()
    assert left.name.startswith("hdica-")
    # Sockets of multiprocessing, and what Dask's scheduler, nannies and workers had.
    assert any(path.is_socket() for path in left.rglob("*"))
    assert list(left.glob("dask-scratch-space/scheduler-*"))
    killed(bench, group=True)
    (other,) = common.iterdir()
    assert other != left
    # Also by a run that needs no folder itself.
    assert bench.start(SERIAL).ended() == 0
    assert not list(common.iterdir())
    bench.finish()


@pytest.mark.deep
def test_a_run_leaves_the_folder_of_a_living_one_alone(bench: Bench, common: Path) -> None:
    bench.trouble.write_text("hang")
    run = bench.start(LOCAL)
    run.until(bench.met, "the trouble")
    (theirs,) = common.iterdir()
    other = Bench(bench.folder / "other", variables=bench.variables)
    other.folder.mkdir()
    with other:
        assert other.start(LOCAL).ended() == 0
    assert list(common.iterdir()) == [theirs]
    os.kill(run.process.pid, signal.SIGTERM)
    assert run.ended() == 128 + signal.SIGTERM
    assert not list(common.iterdir())
