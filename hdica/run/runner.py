"""Run a study: compute what is pending, block by block, here or wherever Dask runs; publish it."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, Incomplete, OutOfMemory, Removed, Stopped, Unwritable
from hdica.process.compile_cache import nothing_compiled, refuse_interpreter
from hdica.process.private import remove_ended_scratch
from hdica.run.block import Block, block_of
from hdica.run.cluster import LOOK, NO_SCHEDULER, Patience, connect, ready, spread
from hdica.run.console import Progress, Wanted, aside, heeding, report, unbroken
from hdica.run.plan import Task, check_room, tasks
from hdica.run.processes import WARM_START, start_loading, start_seconds, unguarded
from hdica.run.refine import add_cells, without_boundary
from hdica.run.settings import ClusterSettings, cluster_settings
from hdica.run.worker import Care, new_worker, run_block
from hdica.status import PENDING, STATUS_NAMES
from hdica.store import files
from hdica.store.paths import STUDY, locked, names_in, running, work_path
from hdica.store.sealed import sealed_text, status_counts
from hdica.store.working import Placed, place, refuse_another
from hdica.study.study import Study
from hdica.systems.system import check_installed

if TYPE_CHECKING:
    from distributed import Client

LEAST_LOOK, LOOK_SHARE = 0.2, 0.02
"""Seconds at least between looks at what other runs have committed, and the share of a run's time
that these looks may take."""
WHOLE = (0, 1)  # the shard that is all of a study
MOST_LOST = 8  # blocks that may be lost before a run gives up: then it is no accident


@dataclass
class RunSummary:
    """What a run did."""

    computed: int = 0  # points
    counts: Counter[str] = field(default_factory=Counter)  # of these points by status
    cpu_seconds: float = 0.0
    pending: int = 0  # points of this shard that still are
    lost: list[str] = field(default_factory=list)  # one sentence a block that could not be computed
    note: str = ""  # what a user should know of a refinement

    def after(self, before: RunSummary) -> RunSummary:
        """The same with what a run before it did."""
        computed, seconds = before.computed + self.computed, before.cpu_seconds + self.cpu_seconds
        counts = before.counts + self.counts
        return replaced(self, computed=computed, counts=counts, cpu_seconds=seconds)

    @property
    def complete(self) -> bool:
        """Whether nothing of this shard is pending."""
        return not self.pending


def run(
    study: Study,
    out: str | Path,
    workers: int = 1,
    shard: tuple[int, int] = (0, 1),
    cluster: ClusterSettings | dict[str, Any] | str | None = None,
    progress: Wanted = None,
    retry_failed: bool = False,
    block: int | None = None,
    replace: bool = False,
) -> RunSummary:
    """Compute the pending points of a study, or of one shard of it. Nothing is published.

    Killed at any moment it loses at most the blocks in flight; the next call goes on. Two calls at
    once compute the same bits: each leaves out what the other has committed. ``out`` is the path of
    the published store, and ``shard`` is ``(i, m)``, part i of m. ``cluster`` names the place where
    Dask runs, and ``workers`` holds where it names none. ``progress`` is False for silence, None
    for a bar on a terminal and sparse lines elsewhere, or a stream for lines with bars. ``block``
    are points a block, on which shards have to agree; None leaves it to the cost model. With
    ``replace`` the results of another study may be there.
    """
    index, count = shard
    if count < 1 or not 0 <= index < count:
        raise HdicaError(f"shard = {index}/{count} is not allowed (i/m with 0 <= i < m)")
    if not replace:
        refuse_another(study, out)
    if _simulates(study):
        refuse_interpreter()
    settings = cluster_settings(cluster, workers)
    if study.refine is not None:
        if index:
            all_by = "shard 0 computes all points of a study with refine"
            return RunSummary(note=f"shard {index}/{count}: nothing to do, {all_by}")
        shard = WHOLE
    if settings.kind != "serial":
        settings = ready(settings)
    if settings.kind == "local":
        try:
            check_installed(study.system)
        except HdicaError:
            import dask

            # What else workers load is for their configuration to decide.
            if not dask.config.get("distributed.worker.preload", None):
                raise
    remove_ended_scratch()

    def once(retry_failed: bool) -> RunSummary:
        """Compute the points that are pending now."""
        placed = place(study, out)
        if settings.kind not in ("scheduler", "slurm"):
            check_room(study, placed)
        with heeding(), ExitStack() as part:
            with files.written(work_path(out)):
                alone = part.enter_context(running(out))
                _begin(study, out, placed, replace)
            todo = tasks(placed, shard, retry_failed, block, settings.workers)
            if not alone and shard == WHOLE:
                # The other run begins at the other end: what it commits is not computed here.
                todo.reverse()
            care = Care(settings.budget, settings.memory_each)
            return _Run(study, placed, todo, settings, care).run(progress)

    summary = once(retry_failed)
    while study.refine is not None and summary.complete and not summary.lost:
        if not add_cells(study, out):
            return replaced(summary, note=without_boundary(study, out))
        summary = once(retry_failed=False).after(summary)
    return summary


def points_in_words(many: int) -> str:
    """So many points."""
    return f"{many} point{'' if many == 1 else 's'}"


def _simulates(study: Study) -> bool:
    """Whether some methods of a study are simulations, which are compiled."""
    engines = (one for method in study.methods_used().values() for one in method.about.engines)
    return any(one.startswith("hdica.finite") for one in engines)


def _begin(study: Study, out: str | Path, placed: list[Placed], replace: bool) -> None:
    """Record the study in its working store, and make the folders of its segments."""
    text = sealed_text(study.model_dump(mode="json"))
    with locked(out) as work:
        if not replace:
            # Again: two studies may have begun at once, and the first that comes here has the path.
            refuse_another(study, out)
        file = files.no_link(work / STUDY)
        if not file.is_file() or file.read_bytes() != text.encode():
            files.write_whole(file, text.encode())
    for folder in (work.parent, work):
        files.remove_partials(folder)
    for each in placed:
        if (each.statuses == PENDING).any():
            files.make_folder(files.no_link(each.path))
        files.remove_partials(each.path)


@dataclass
class _Run:
    """One run of a study: its tasks, and what has become of them."""

    study: Study
    placed: list[Placed]
    todo: list[Task]
    settings: ClusterSettings
    care: Care
    summary: RunSummary = field(default_factory=RunSummary)
    there: dict[Path, NDArray[np.uint8]] = field(default_factory=dict)  # statuses at the last look
    next_look: float = field(default_factory=lambda: time.monotonic() + LEAST_LOOK)

    def run(self, progress: Wanted) -> RunSummary:
        points = sum(task.points.size for task in self.todo)
        seconds = sum(task.seconds for task in self.todo)
        compiles = _simulates(self.study) and nothing_compiled()
        about = (progress, self.settings.workers, "compiling, once" if compiles else "")
        try:
            with report(self.study.study, points, seconds, *about) as shown:
                if left := self._here(shown):
                    self._distributed(left, shown)
            self._count()
        except Removed:
            raise
        except (Incomplete, Stopped, files.DamageError) as exc:
            if gone := next((f for f in self._folders() if not f.is_dir()), None):
                raise files.removed(gone) from exc
            if not isinstance(exc, files.DamageError):
                exc.args = (f"{exc}; {self._left()}",)
            raise
        return self.summary

    def _folders(self) -> list[Path]:
        return list(dict.fromkeys(task.placed.path for task in self.todo))

    def _committed(self) -> int:
        """Files in the folders of the tasks."""
        return sum(len(names_in(folder)) for folder in self._folders())

    def _now(self) -> dict[Path, Placed]:
        """The segments of the tasks with the blocks that there are now."""
        folders = set(self._folders())
        return {each.path: each.again() for each in self.placed if each.path in folders}

    def _count(self) -> None:
        """Count what has become of the points that were to compute: the store says it."""
        now, summary = self._now(), self.summary
        for task in self.todo:
            there = now[task.placed.path]
            counts = Counter(status_counts(there.statuses[task.points]))
            summary.pending += counts.pop(STATUS_NAMES[PENDING])
            summary.computed += counts.total()
            summary.counts += counts
            summary.cpu_seconds += float(np.nansum(there.cpu_seconds[task.points]))

    def _left(self) -> str:
        """What a run that ends early leaves to the next one."""
        name = self.study.study
        with suppress(HdicaError, OSError):
            self._count()
            if not (count := self.summary.pending):
                return f"all points of {name} are computed, and a rerun publishes them"
            return f"{count} points of {name} are pending, and a rerun computes them"
        return "what was committed is kept"

    def _blocks(self, todo: list[Task], shown: Progress) -> Iterator[Block]:
        """Blocks to compute, without the points that another run has committed meanwhile."""
        for task in todo:
            if (begun := time.monotonic()) >= self.next_look:
                self.there = {path: each.statuses for path, each in self._now().items()}
                took = time.monotonic() - begun
                self.next_look = begun + took + max(LEAST_LOOK, took / LOOK_SHARE)
            placed, points = task.placed, task.points
            if (now := self.there.get(placed.path)) is not None:
                points = task.unchanged(now)
                others = task.points.size - points.size
                shown.advance(others, task.seconds * others / task.points.size)
            if points.size:
                yield block_of(placed, points)

    def _here(self, shown: Progress) -> list[Task]:
        """Compute blocks in a process of this machine as long as no cluster pays; the tasks left.

        The cost model judges, corrected by the time that the blocks so far have taken. Where a
        cluster would pay if its workers' libraries were loaded, they are loaded meanwhile.
        """
        settings, todo = self.settings, self.todo
        if settings.kind in ("scheduler", "slurm") or settings.mode == "local":
            return todo
        gained = 0.0 if settings.kind == "serial" else 1 - 1 / settings.workers
        left, modelled, taken = sum(task.seconds for task in todo), 0.0, 0.0
        with closing(new_worker()) as worker:
            for number, task in enumerate(todo):
                gain = gained * left * (taken / modelled if modelled else 1.0)
                if gain and gain > start_seconds():
                    return todo[number:]
                if gain > WARM_START:
                    start_loading()
                started = time.perf_counter()
                for block in self._blocks([task], shown):
                    try:
                        run_block(block, self.care, worker, shown.note)
                        shown.advance(block.size, block.seconds)
                    except Incomplete as exc:
                        if isinstance(exc, Unwritable):
                            raise
                        if not self._lose(block, str(exc)):
                            return []
                left -= task.seconds
                # The first block may have had to load or even to compile code.
                if number:
                    modelled, taken = modelled + task.seconds, taken + time.perf_counter() - started
        return []

    def _lose(self, block: Block, why: str) -> bool:
        """Note a block that could not be computed; whether others may be."""
        points = "1 point" if block.size == 1 else f"{block.size} points"
        self.summary.lost.append(f"a block of {block.label} ({points}): {why}")
        return len(self.summary.lost) < MOST_LOST

    def _distributed(self, todo: list[Task], shown: Progress) -> None:
        """Compute blocks on a cluster; what jobs were too small for again, in larger ones."""
        settings: ClusterSettings | None = self.settings
        while settings is not None and todo:
            settings = settings.larger(*self._on_cluster(settings, todo, shown))
            if settings is not None:
                self.summary.lost.clear()
                now = self._now()
                left = (Task(t.placed, t.unchanged(now[t.placed.path].statuses)) for t in todo)
                todo = [task for task in left if task.points.size]
                points = points_in_words(sum(task.points.size for task in todo))
                shown.note(
                    f"{points} lacked memory or time: again, in jobs of {settings.slurm.size}"
                )

    def _on_cluster(
        self, settings: ClusterSettings, todo: list[Task], shown: Progress
    ) -> tuple[bool, bool]:
        """Compute blocks on a cluster; whether some were lost for want of memory, and of time."""
        memory = walltime = False
        care = Care(settings.budget, settings.memory_each)
        patience = Patience(
            settings.patience, settings.kind != "local", shown.note, self._committed
        )
        with ExitStack() as cluster:
            # A local cluster that is half made cannot be closed; the others may wait for hours.
            making = unbroken if settings.kind == "local" else nullcontext
            for last in (False, True):  # once more, if a worker has died as it started
                try:
                    with making():
                        client = cluster.enter_context(connect(settings, len(todo)))
                    break
                except (RuntimeError, OSError) as exc:
                    text = " ".join(str(exc).split()) or type(exc).__name__
                    text = f"the workers did not start: {text[:200]}{unguarded()}"
                    if last:
                        raise Incomplete(text) from exc
            cluster.enter_context(_ended_at_once(client))
            for block, failure in spread(client, self._blocks(todo, shown), care, patience):
                if failure is None:
                    shown.advance(block.size, block.seconds)
                    continue
                if isinstance(failure, Unwritable):
                    # Each of the others would end like this, too.
                    raise failure
                # Why its workers were killed nobody knows.
                walltime |= (killed := type(failure).__name__ == "KilledWorker")
                memory |= killed or isinstance(failure, OutOfMemory)
                if not self._lose(block, _why(failure, client)) or client.status != "running":
                    break
        return memory, walltime


@contextmanager
def _ended_at_once(client: Client) -> Iterator[None]:
    """Kill the processes of a local cluster if the body raises: a hung worker never closes."""
    try:
        yield
    except BaseException:
        # What connections report as they break is no news.
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        for nanny in getattr(client.cluster, "workers", {}).values():
            with suppress(AttributeError, TypeError, OSError):  # not a nanny, or no process
                nanny.close_gracefully("the run ends")  # or it would start another worker
                os.kill(nanny.pid, signal.SIGKILL)
        raise


def _why(failure: Exception, client: Client) -> str:
    """Why a block has no result, in a few words."""
    kind = type(failure).__name__
    if kind in ("CancelledError", "CommClosedError", "FutureCancelledError"):
        return NO_SCHEDULER
    text = " ".join(str(failure).split())
    if kind != "KilledWorker":
        return text if isinstance(failure, HdicaError) else f"{kind}: {text[:200]}"
    text = "its workers were killed again and again"
    with suppress(Exception):  # as their nannies report to the scheduler
        events = aside(client.get_events, "worker-restart-memory", seconds=LOOK)
        most = max(event["rss"] for _, event in events)
        return f"{text}, beyond their memory ({most / 2**20:.0f} MiB were in use)"
    return text
