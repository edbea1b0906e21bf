"""kill -9 of one kind of process at a moment that a seed decides, and the plain rerun after it."""

from __future__ import annotations

import os
import signal
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.faults.bench import LOCAL, Bench, Run, kill, wait_for
from tests.faults.cluster import Cluster
from tests.faults.workflow import WorkflowBench

SEED = 20261121
LATEST = 0.97
"""Share of an undisturbed run after which nothing is killed: it might have ended by then."""


@dataclass(frozen=True)
class Outcome:
    """What became of one run in which something was killed.

    Parameters
    ----------
    hit
        Whether there was anything to kill at that moment.
    alone
        Whether the run went on by itself; otherwise the same command was given again.
    seconds
        How long it all took.
    """

    hit: bool
    alone: bool
    seconds: float


def fraction(fault: str, moment: int, seed: int = SEED) -> tuple[float, int]:
    """When, as a share of an undisturbed run, and a number that picks the victim."""
    stream = np.random.default_rng([seed, zlib.crc32(fault.encode()), moment])
    return LATEST * float(stream.random()), int(stream.integers(2**31))


class Fault:
    """One kind of process that is killed. A trial is one run in which that happens.

    Parameters
    ----------
    folder
        Where trials lie.
    seed
        Decides their moments.
    """

    name = ""
    survives = False
    """Whether the run has to go on by itself."""

    def __init__(self, folder: Path, seed: int = SEED) -> None:
        self.folder, self.seed = folder, seed
        self.span = 0.0

    def bench(self, name: str) -> Bench:
        """A fresh bench."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        return Bench(folder)

    def start(self, bench: Bench) -> Run:
        return bench.start(LOCAL)

    def started(self, bench: Bench, run: Run) -> bool:
        """Whether the clock starts."""
        return True

    def strike(self, bench: Bench, run: Run, pick: int) -> bool:
        """Kill; whether there was anybody."""
        raise NotImplementedError

    def close(self) -> None:
        """End what serves all trials."""

    def _begin(self, bench: Bench) -> Run:
        run = self.start(bench)
        wait_for(lambda: self.started(bench, run) or run.process.poll() is not None, "its start")
        return run

    def calibrate(self) -> None:
        """Measure an undisturbed run from the start of its clock to its end."""
        with self.bench("undisturbed") as bench:
            run = self._begin(bench)
            began = time.monotonic()
            assert run.ended() == 0, run.text
            self.span = time.monotonic() - began
            bench.whole()

    def trial(self, moment: int) -> Outcome:
        """Kill at one moment; whatever must hold afterwards is asserted."""
        if not self.span:
            self.calibrate()
        share, pick = fraction(self.name, moment, self.seed)
        began = time.monotonic()
        with self.bench(str(moment)) as bench:
            run = self._begin(bench)
            time.sleep(share * self.span)
            hit = run.process.poll() is None and self.strike(bench, run, pick)
            code = run.ended()
            assert code in (0, 1, 2, -signal.SIGKILL), run.text
            assert code in (0, -signal.SIGKILL) or (hit and run.sentence), run.text
            assert code == 0 or not self.survives, run.text
            self.orphans(run)
            bench.undamaged()
            if code:
                bench.rerun(self.cluster())
            for each in bench.runs:
                each.gone()
            bench.whole()
        return Outcome(hit, code == 0, time.monotonic() - began)

    def cluster(self) -> dict[str, object]:
        """Where a rerun computes."""
        return LOCAL

    def orphans(self, run: Run) -> None:
        """Nothing goes on for a driver that is dead."""
        run.gone()


class Worker(Fault):
    """One of two workers of a local cluster, whose nanny is a part of the driver."""

    name = "worker"

    def started(self, bench: Bench, run: Run) -> bool:
        return bool(run.workers())

    def strike(self, bench: Bench, run: Run, pick: int) -> bool:
        workers = run.workers()
        return bool(workers) and kill(workers[pick % len(workers)])


class Driver(Fault):
    """The process that plans, hands out blocks and publishes; its workers end by themselves."""

    name = "driver"

    def strike(self, bench: Bench, run: Run, pick: int) -> bool:
        return kill(run.process)


class Group(Fault):
    """Driver, workers and the process that they are forked from, all at once."""

    name = "group"

    def strike(self, bench: Bench, run: Run, pick: int) -> bool:
        with suppress(ProcessLookupError):
            os.killpg(run.process.pid, signal.SIGKILL)
            return True
        return False


class External(Fault):
    """A run on a scheduler that somebody else has started; it serves one trial after the other."""

    def __init__(self, folder: Path, seed: int = SEED) -> None:
        super().__init__(folder, seed)
        place = folder / "cluster"
        place.mkdir(parents=True)
        self.dask = Cluster(Bench(place))

    def start(self, bench: Bench) -> Run:
        return bench.start(self.cluster())

    def cluster(self) -> dict[str, object]:
        return self.dask.replenish().settings

    def close(self) -> None:
        self.dask.stop()


class Nanny(External):
    """The parent of one of two workers: its worker ends with it, and the other one goes on."""

    name = "nanny"
    survives = True

    def strike(self, bench: Bench, run: Run, pick: int) -> bool:
        return kill(self.dask.nannies[pick % len(self.dask.nannies)])


class Scheduler(External):
    """The scheduler: the run ends with a sentence, and a rerun on a new one goes on."""

    name = "scheduler"

    def strike(self, bench: Bench, run: Run, pick: int) -> bool:
        assert self.dask.scheduler is not None
        return kill(self.dask.scheduler)


class Snakemake(Fault):
    """Snakemake alone: its job goes on as an orphan, and the rerun meets it at the same store."""

    name = "snakemake"

    def bench(self, name: str) -> Bench:
        folder = self.folder / name
        folder.mkdir(parents=True)
        return WorkflowBench.made(folder)

    def strike(self, bench: Bench, run: Run, pick: int) -> bool:
        return kill(run.process)

    def orphans(self, run: Run) -> None:
        """The rerun does not wait for them."""


class Workflow(Snakemake):
    """Snakemake with its job, its workers and all."""

    name = "workflow"

    def strike(self, bench: Bench, run: Run, pick: int) -> bool:
        return bool([process for process in run.session() if kill(process)])

    def orphans(self, run: Run) -> None:
        run.gone()


FAULTS: dict[str, type[Fault]] = {
    fault.name: fault for fault in (Worker, Nanny, Scheduler, Driver, Group, Snakemake, Workflow)
}
