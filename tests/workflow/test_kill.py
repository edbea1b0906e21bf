"""kill -9 of everything in the middle of a study, and the plain rerun after it."""

import os
import signal
import subprocess
import time

import numpy as np
import psutil
import pytest

from hdica import open_results
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.study.study import load_study
from tests.workflow.conftest import Checkout

pytestmark = [pytest.mark.faults, pytest.mark.deep]


def chunks(checkout: Checkout) -> int:
    """Blocks committed so far: a block's status is written last."""
    return len(list(checkout.folder.glob("results/long.work/chain-*/*.block")))


def kill_after(checkout: Checkout, blocks: int) -> None:
    """Start the workflow, and kill all its processes once some blocks are stored."""
    with subprocess.Popen(
        checkout.command("--cores", "2"),
        cwd=checkout.folder,
        env=checkout.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as snakemake:
        deadline = time.monotonic() + 90
        while chunks(checkout) < blocks:
            assert snakemake.poll() is None, "the workflow ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        for process in (*psutil.Process(snakemake.pid).children(recursive=True), snakemake):
            os.kill(process.pid, signal.SIGKILL)


def test_plain_rerun_after_kill_resumes_and_gives_the_same_bits(checkout: Checkout) -> None:
    study = checkout.study("long", n="[50000]", seeds=150)
    checkout.config("studies: [long]\n")
    kill_after(checkout, blocks=2)
    stored = chunks(checkout)
    assert not (checkout.folder / "results/long.manifest.json").exists()
    ran = checkout.jobs("results/long.manifest.json")
    assert ran == {"shard": {"long"}, "publish": {"long"}}
    log = (checkout.folder / "logs/long/shard-0-of-1.log").read_text()
    left = int(log.split("long: ")[1].split(" points to compute")[0])
    assert stored >= 2
    assert 0 < left < 604
    whole = checkout.folder / "uninterrupted" / "long.zarr"
    run(load_study(study), whole, progress=False)
    publish(load_study(study), whole)
    resumed = open_results(checkout.folder / "results/long.zarr")
    for method, node in open_results(whole).children.items():
        for name in ("Q", "status"):
            np.testing.assert_array_equal(resumed[method][name], node[name])
