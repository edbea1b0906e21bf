"""Compute one block: what a worker does, from reading its points to the commit record."""

from __future__ import annotations

import errno
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import DataGone, HdicaError, Incomplete, Unwritable
from hdica.ingredients.save import Save
from hdica.status import damaged_file, of_machine
from hdica.sweep.files import blocks, processors, store
from hdica.sweep.files.writing import NO_ROOM, in_words, kept
from hdica.sweep.run.pulse import Pulse
from hdica.sweep.study.kept import from_plain
from hdica.sweep.workers.care import USUAL, Care
from hdica.systems import registry
from hdica.systems.method import Method, PointResult, Trial
from hdica.systems.points import check_until


@dataclass(frozen=True)
class BlockSummary:
    """What a finished block tells the driver.

    Parameters
    ----------
    points
        Points computed now.
    counts
        How many of them ended with each status.
    cpu_seconds
        What they cost.
    """

    points: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    cpu_seconds: float = 0.0


class Again(HdicaError):
    """A block is to be computed once more; what was computed before is stored.

    Parameters
    ----------
    message
        Why, a sentence.
    summary
        What has been computed and stored.
    singly
        Whether points are to be computed one by one, to find the one that is in the way.
    without
        A point to be left pending and why, if there is one.
    alarmed
        A point at which the clock has ended a process, if there is one.
    """

    def __init__(
        self,
        message: str = "",
        summary: BlockSummary | None = None,
        singly: bool = False,
        without: tuple[tuple[int, str], ...] = (),
        alarmed: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message)
        self.summary = summary or BlockSummary()
        self.singly, self.without, self.alarmed = singly, without, alarmed

    def next(self, care: Care) -> Care:
        """How the block is computed then."""
        return replace(
            care,
            singly=care.singly or self.singly,
            without=care.without + self.without,
            alarmed=care.alarmed + self.alarmed,
        )


def method_of(working: store.Working) -> Method:
    """The method of a segment, if this process has the same numerical code."""
    system, name = working.attrs["system"], working.attrs["method"]
    method = registry.methods_of(system, working.attrs["noise"])[name]
    if method.kernel != working.attrs["kernel"]:
        raise HdicaError(
            f"this process runs kernel {method.kernel} of {system}.{name}, but {working.path} "
            f"was planned with {working.attrs['kernel']} (plan again with the same version)"
        )
    return method


def _failure(exc: Exception) -> str:
    text = " ".join(str(exc).split())
    return f"{type(exc).__name__}: {text[:300]}" if text else type(exc).__name__


@dataclass
class _Block:
    """Arrays of one block while it is computed, and what kept points of it from being computed."""

    values: dict[str, NDArray[np.float64]]
    cpu_seconds: NDArray[np.float64]
    reasons: list[str]
    status: NDArray[np.uint8]
    hindrance: Exception | None = None

    def record(self, place: int, result: PointResult) -> None:
        for name, array in self.values.items():
            if name not in result.values:
                raise HdicaError(f"{name} is missing from what the method returned")
            value = np.asarray(result.values[name], dtype=np.float64)
            if value.shape != array.shape[1:]:
                raise HdicaError(f"{name} has shape {value.shape}, expected {array.shape[1:]}")
            array[place] = value
        self.status[place] = store.DIVERGED if result.diverged else store.DONE
        self.reasons[place] = result.diverged

    def copy(self) -> _Block:
        """The same, for a thread that may still be at the original."""
        values = {name: array.copy() for name, array in self.values.items()}
        kept = self.cpu_seconds.copy(), list(self.reasons), self.status.copy()
        return _Block(values, *kept, self.hindrance)

    def fail(self, place: int, reason: str) -> None:
        self._clear(place, store.FAILED)
        self.reasons[place] = reason

    def leave(self, place: int, hindrance: Exception) -> None:
        self._clear(place, store.PENDING)
        self.hindrance = hindrance

    def _clear(self, place: int, status: int) -> None:
        for array in self.values.values():
            array[place] = np.nan
        self.status[place], self.reasons[place] = status, ""


def _empty(working: store.Working) -> _Block:
    values = {
        name: np.full((working.block, *working.array(name).shape[1:]), np.nan)
        for name in working.outputs
    }
    blank = np.full(working.block, np.nan)
    status = np.zeros(working.block, dtype=np.uint8)
    return _Block(values, blank, [""] * working.block, status)


def _resumed(working: store.Working, block: int, status: NDArray[np.uint8]) -> _Block:
    """What a block holds already; all of it pending if some of it cannot be read."""
    span = working.span(block)
    try:
        values = {name: working.read(name, span).copy() for name in working.outputs}
        cpu = working.read("cpu_seconds", span).copy()
        reasons = [str(r) for r in working.read("reason", span)]
    except store.DamageError:
        return _empty(working)
    return _Block(values, cpu, reasons, status.copy())


@dataclass(frozen=True)
class _Work:
    """What the points of a block share, and what tells them apart."""

    method: Method
    system: str
    contents: NDArray[Any]
    seeds: NDArray[np.int64]
    times: NDArray[np.float64]
    n: int | None
    save: Save

    def trial(self, place: int) -> Trial:
        """System and seed of one point."""
        system = registry.built(self.system, str(self.contents[place]))
        return system, int(self.seeds[place]) if self.method.stochastic else None

    def seconds(self, places: tuple[int, ...]) -> float:
        """What the cost model says of some points."""
        systems = [registry.built(self.system, str(self.contents[place])) for place in places]
        return sum(self.method.seconds(one, self.n, float(self.times[-1])) for one in systems)

    def results(self, places: list[int]) -> list[PointResult]:
        """Results of some points."""
        # Once for all seeds: a point may take a microsecond.
        for content in dict.fromkeys(str(self.contents[place]) for place in places):
            check_until(registry.built(self.system, content), self.times)
        trials = [self.trial(place) for place in places]
        return self.method.run_all(trials, self.times, self.n, self.save)


def _spent() -> float:
    """Seconds of a processor that this process has used.

    While an alarm is set on them, Linux adds what a running thread uses at the clock's next tick
    alone, milliseconds late, unless the thread is asked first.
    """
    time.thread_time()
    return time.process_time()


def _one(work: _Work, place: int, data: _Block, pulse: Pulse) -> None:
    """Compute one point; an exception is its failure, unless it is that of the machine."""
    started = _spent()
    try:
        data.record(place, work.results([place])[0])
    except Exception as exc:
        pulse.heed(exc)
        if of_machine(exc):
            data.leave(place, exc)
            return
        data.fail(place, _failure(exc))
    data.cpu_seconds[place] = _spent() - started


def _all_at_once(work: _Work, places: list[int], data: _Block, pulse: Pulse) -> bool:
    """Compute points together; each gets its share of the time. False if any of them raised.

    Then nobody knows which, and they are computed one by one.
    """
    started = _spent()
    try:
        for place, result in zip(places, work.results(places), strict=True):
            data.record(place, result)
    except Exception as exc:
        pulse.heed(exc)
        return False
    data.cpu_seconds[places] = (_spent() - started) / len(places)
    return True


def _hindered(exc: Exception) -> Incomplete:
    """What to say of points that this machine could not compute, and what to do about it."""
    if isinstance(exc, Incomplete):
        return exc
    if isinstance(exc, DataGone):
        return Incomplete(str(exc))
    if isinstance(exc, OSError) and exc.errno in NO_ROOM:
        place = exc.filename or f"a file of a point (temporary ones go to {tempfile.gettempdir()})"
        return Unwritable(f"{place} cannot be written: {in_words(exc)}")
    if isinstance(exc, MemoryError):
        return Incomplete(f"out of memory ({_failure(exc)}); run with fewer workers")
    if isinstance(exc, OSError) and exc.errno in (errno.EMFILE, errno.ENFILE):
        return Incomplete(f"{_failure(exc)} (raise the limit: ulimit -n)")
    if file := damaged_file(exc):
        return Incomplete(f"{file} is damaged: remove it, Python writes it again")
    return Incomplete(_failure(exc))


@dataclass(frozen=True)
class Begun:
    """A block that is being computed: what a watcher needs to store what there is of it.

    Parameters
    ----------
    working, block
        Segment, and index of the block in it.
    todo
        Places that were pending.
    work, data
        What is computed, and what has been.
    """

    working: store.Working
    block: int
    todo: NDArray[np.int64]
    work: _Work
    data: _Block

    def commit(self) -> BlockSummary:
        """Store what there is; what another run has computed meanwhile is kept."""
        with kept(self.working.path):
            data = self.data
            chunks = {**data.values, "cpu_seconds": data.cpu_seconds}
            blocks.write(self.working, self.block, chunks, data.reasons, data.status)
        ended = self.data.status[self.todo]
        counts = {store.STATUS_NAMES[s]: int((ended == s).sum()) for s in range(1, 4)}
        cpu = float(self.data.cpu_seconds[self.todo][ended != store.PENDING].sum())
        return BlockSummary(int((ended != store.PENDING).sum()), counts, cpu)


def begin_block(path: Path, block: int) -> Begun:
    """Read the points of a block, and what is known of them already.

    Parameters
    ----------
    path
        Directory of the segment.
    block
        Index of the block.
    """
    working = store.open_cached(path)
    method = method_of(working)
    span = working.span(block)
    contents, seeds = working.read("parameters", span), working.read("seed", span)
    keys = working.read("key", span)
    status = working.read("status", span)
    used = keys.any(axis=1)
    done_before = used & (status != store.PENDING)
    data = _resumed(working, block, status) if done_before.any() else _empty(working)
    todo = np.flatnonzero(used & (data.status == store.PENDING))
    times = np.asarray(working.attrs["times"], dtype=np.float64)
    n, name = working.attrs["n"], working.attrs["system"]
    save = from_plain(working.attrs.get("save", {}))
    return Begun(working, block, todo, _Work(method, name, contents, seeds, times, n, save), data)


def compute_block(
    path: Path, block: int, care: Care = USUAL, pulse: Pulse | None = None
) -> BlockSummary:
    """Compute the pending points of one block and commit it.

    An exception inside a point is recorded as that point's failure; the block goes on.

    Parameters
    ----------
    path
        Directory of the segment.
    block
        Index of the block.
    care
        What to mind.
    pulse
        Told of every point that is begun.
    """
    pulse = pulse or Pulse()
    begun = begin_block(path, block)
    if not begun.todo.size:
        return BlockSummary()
    with kept(path.parent):
        processors.note(path.parent)
    pulse.begun = begun
    _compute(begun, care, pulse)
    pulse.rest()
    summary = begun.commit()
    if begun.data.hindrance is not None:
        raise _hindered(begun.data.hindrance)
    return summary


def _compute(begun: Begun, care: Care, pulse: Pulse) -> None:
    """Compute all points, together where that is cheaper and none of them stands in the way."""
    work, data, places = begun.work, begun.data, begun.todo.tolist()
    if work.method.together is not None and not (care.singly or care.without):
        pulse.begin(tuple(places))
        if _all_at_once(work, places, data, pulse):
            return
    without = dict(care.without)
    for place in places:
        if place in without:
            data.leave(place, Incomplete(without[place]))
            continue
        pulse.begin((place,))
        _one(work, place, data, pulse)
