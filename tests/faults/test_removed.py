"""Somebody removes the stores while a run computes: it ends, and leaves no fragments of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hdica.store.paths import manifest_path, work_path
from hdica.store.verify import verify
from tests.faults.bench import LOCAL, SERIAL, Bench

pytestmark = [pytest.mark.faults, pytest.mark.deep]


def removed(path: Path) -> None:
    """``rm -rf``, again where the run has just put something into it."""
    for _ in range(20):
        if subprocess.run(["rm", "-rf", str(path)], stderr=subprocess.DEVNULL).returncode == 0:
            return
    shutil.rmtree(path)


@pytest.mark.parametrize("cluster", [SERIAL, LOCAL], ids=["here", "workers"])
@pytest.mark.parametrize("what", ["work", "segment", "folder"])
def test_stores_are_removed_during_a_run(
    bench: Bench, cluster: dict[str, object], what: str
) -> None:
    run = bench.start(cluster)
    run.until(lambda: bench.done() > 4, "the first blocks")
    work = work_path(bench.out)
    gone = {"work": work, "segment": next(work.glob("walk-n10-*")), "folder": work.parent}[what]
    removed(gone)
    assert run.ended() in (1, 2), run.text
    assert "Traceback" not in run.text
    assert "was removed while the run went on" in run.sentence
    run.gone()
    verdict = verify(bench.out) if work.exists() else None
    assert verdict is None or not verdict.damaged, verdict.damaged
    assert not bench.out.exists()
    assert not manifest_path(bench.out).exists()
    bench.out.parent.mkdir(exist_ok=True)
    bench.finish()
