"""A private Slurm for the session, and in each test a folder as a user of a cluster has it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest
from filelock import Timeout

from hdica.process.compile_cache import PLACE, set_cache_folder
from hdica.status import DONE, PENDING
from hdica.store.publish import publish
from hdica.store.results import open_results
from hdica.store.verify import verify
from hdica.study.study import load_study
from tests.cluster.commands import (
    PATH,
    SECONDS,
    ask,
    node_states,
    resume_nodes,
    stop_jobs,
    wait_for,
)
from tests.cluster.daemons import NODES, private_slurm, refusal
from tests.sweep.conftest import values
from tests.workflow.conftest import ROOT, Checkout, copy_workflow

VENV = ROOT / ".venv-slurm"
NAME = "across"
# Four seconds of one processor, in blocks of a fifth of a second: a few for each n.
STUDY = """\
study: across
title: A study that is computed on several nodes
system: OnlineICA
parameters: {source: uniform, nonlinearity: x**3}
grid:
  tau: [0.02, 0.05]
  Q0: [0.5, 0.8]
times: [0, 1, 2]
methods:
  chain: {n: [100000, 120000, 140000, 160000, 180000, 200000], seeds: 80}
  ode: {}
"""
POINTS = 4 * (6 * 80 + 1)


@dataclass(frozen=True)
class Site(Checkout):
    """A copy of the workflow in a folder that all nodes see."""

    @property
    def study_file(self) -> str:
        """The study, as commands in the folder name it."""
        return f"config/studies/{NAME}.yaml"

    @property
    def results(self) -> str:
        """The store, as commands in the folder name it."""
        return f"results/{NAME}.zarr"

    @property
    def out(self) -> Path:
        """The store."""
        return self.folder / self.results

    def command(self, *arguments: str) -> list[str]:
        """The command line of Snakemake."""
        return [str(VENV / "bin/snakemake"), *arguments]

    def environment(self) -> dict[str, str]:
        """What a user has who has activated the environment."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        compiled = {PLACE: str(set_cache_folder())}
        return {"PATH": f"{VENV / 'bin'}:{PATH}", "HOME": str(home), **compiled}

    def publish(self) -> None:
        """Publish what is computed, without Slurm."""
        hdica = [str(VENV / "bin/hdica"), "publish", self.study_file, "--out", self.results]
        ask(*hdica, cwd=self.folder, env=self.environment())

    def blocks(self) -> int:
        """Blocks committed so far: a block's status is written last."""
        return len(list(self.folder.glob(f"results/{NAME}.work/*/*.block")))

    def begun(self, blocks: int) -> None:
        """Wait until so many blocks are there."""
        wait_for(lambda: self.blocks() >= blocks, f"{blocks} blocks")

    def deserted(self) -> None:
        """Wait until no process works here, whatever Slurm has lost sight of."""
        wait_for(lambda: not self.at_work(), "the end of all processes")

    def at_work(self) -> list[psutil.Process]:
        """Processes of this folder."""
        # Slurm may take a process that was put into the background for gone.
        found = psutil.process_iter(["cwd"])
        return [process for process in found if process.info["cwd"] == str(self.folder)]


@dataclass(frozen=True)
class Undisturbed:
    """The same study by a serial ``hdica run``, outside Slurm."""

    out: Path

    def same_bits(self, out: Path) -> bool:
        """Whether a finished store is whole and holds these very bits."""
        verdict = verify(out)
        assert verdict.code == 0, (verdict.damaged, verdict.incomplete)
        return values(out) == values(self.out)

    def pending_in(self, site: Site) -> int:
        """Points an interrupted run has left, having checked that it has lost nothing else.

        What says done has the undisturbed bits, and what does not has no number at all.
        """
        look = site.folder / "look"
        shutil.copytree(site.out.parent, look)
        out, pending = look / site.out.name, 0
        verdict = verify(out)
        assert verdict.code == 1, verdict.damaged
        publish(load_study(site.folder / site.study_file), out)
        tree = open_results(out)
        for method, node in open_results(self.out).children.items():
            seen, whole = tree[method].to_dataset().load(), node.to_dataset().load()
            done = seen.status == DONE
            assert (done | (seen.status == PENDING)).all()
            for output in whole.attrs["outputs"].split():
                np.testing.assert_array_equal(seen[output].where(done), whole[output].where(done))
                assert seen[output].where(~done).isnull().all()
            pending += int((~done).sum())
        shutil.rmtree(look)
        return pending


def lacking() -> str:
    """What tests with Slurm lack on this machine; empty if nothing."""
    if not (VENV / "bin/snakemake").exists():
        return "needs the Python packages for Slurm: make slurm"
    return refusal()


@pytest.fixture(scope="session")
def daemons() -> Iterator[Path]:
    """A private Slurm with two nodes; the folder of its logs."""
    reason = lacking()
    if reason:
        pytest.skip(reason)
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(private_slurm())
        except Timeout:
            pytest.skip("another test run on this machine has its private Slurm up")
        yield folder


@pytest.fixture
def slurm(daemons: Path) -> Iterator[Path]:
    """The private Slurm with idle nodes and an empty queue, as the test must leave it."""
    yield daemons
    stop_jobs()
    resume_nodes()
    wait_for(lambda: node_states() == dict.fromkeys(NODES, "idle"), "idle nodes")


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """The study's store as one process makes it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / f"{NAME}.yaml").write_text(STUDY)
    out = folder / f"{NAME}.zarr"
    command = [str(Path(sys.executable).parent / "hdica"), "run", f"{NAME}.yaml", "--quiet"]
    subprocess.run([*command, "--out", str(out)], cwd=folder, check=True, timeout=SECONDS)
    return Undisturbed(out)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A fresh copy of the workflow with the study in it; its processes end with the test."""
    fresh = Site(copy_workflow(tmp_path).folder)
    (fresh.folder / fresh.study_file).write_text(STUDY)
    fresh.config(f"studies: [{NAME}]\n")
    yield fresh
    for process in fresh.at_work():
        with suppress(psutil.NoSuchProcess):
            process.kill()
