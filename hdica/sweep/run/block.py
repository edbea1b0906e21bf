"""Compute one block: what a worker does, from reading its points to the commit record."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, Incomplete, Unwritable
from hdica.ingredients.save import Save
from hdica.sweep.files import blocks, processors, store
from hdica.sweep.files.writing import NO_ROOM, in_words, written
from hdica.sweep.spec.kept import from_plain
from hdica.systems import registry
from hdica.systems.method import Method, PointResult, Trial


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


@lru_cache(maxsize=256)
def _system(name: str, content: str) -> Any:
    return registry.system_class(name).model_validate(json.loads(content))


def method_of(working: store.Working) -> Method:
    """The method of a segment, if this process has the same numerical code.

    Raises
    ------
    HdicaError
        If the segment was planned with another version of the code.
    """
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
        system = _system(self.system, str(self.contents[place]))
        return system, int(self.seeds[place]) if self.method.stochastic else None

    def results(self, places: list[int]) -> list[PointResult]:
        """Results of some points."""
        trials = [self.trial(place) for place in places]
        return self.method.run_all(trials, self.times, self.n, self.save)


def _one(work: _Work, place: int, data: _Block) -> None:
    """Compute one point; an exception is its failure, but for want of memory or of files."""
    started = time.process_time()
    try:
        data.record(place, work.results([place])[0])
    except (MemoryError, OSError) as exc:
        # That is this machine's failure and not the point's: elsewhere or later it has its result.
        data.leave(place, exc)
        return
    except Exception as exc:
        data.fail(place, _failure(exc))
    data.cpu_seconds[place] = time.process_time() - started


def _all_at_once(work: _Work, places: list[int], data: _Block) -> bool:
    """Compute points together; each gets its share of the time. False if any of them raised.

    Then nobody knows which, and they are computed one by one.
    """
    started = time.process_time()
    try:
        for place, result in zip(places, work.results(places), strict=True):
            data.record(place, result)
    except Exception:
        return False
    data.cpu_seconds[places] = (time.process_time() - started) / len(places)
    return True


def _hindered(exc: Exception) -> Incomplete:
    """What to say of points that this machine could not compute."""
    if isinstance(exc, OSError) and exc.errno in NO_ROOM:
        return Unwritable(f"{exc.filename or 'a file'} cannot be written: {in_words(exc)}")
    if isinstance(exc, MemoryError):
        return Incomplete(f"out of memory ({_failure(exc)})")
    return Incomplete(_failure(exc))


def compute_block(path: Path, block: int) -> BlockSummary:
    """Compute the pending points of one block and commit it.

    An exception inside a point is recorded as that point's failure; the block goes on.

    Parameters
    ----------
    path
        Directory of the segment.
    block
        Index of the block.

    Raises
    ------
    Incomplete
        If points are still pending because this machine lacked memory or files for them.
    Unwritable
        If the block could not be written; then all of it is still pending.
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
    if not todo.size:
        return BlockSummary()
    times = np.asarray(working.attrs["times"], dtype=np.float64)
    n, name = working.attrs["n"], working.attrs["system"]
    save = from_plain(working.attrs.get("save", {}))
    with written(path.parent):
        processors.note(path.parent)
    work = _Work(method, name, contents, seeds, times, n, save)
    places = todo.tolist()
    if method.together is None or not _all_at_once(work, places, data):
        for place in places:
            _one(work, place, data)
    with written(path):
        chunks = {**data.values, "cpu_seconds": data.cpu_seconds}
        blocks.write(working, block, chunks, data.reasons, data.status)
    if data.hindrance is not None:
        raise _hindered(data.hindrance)
    ended = data.status[todo]
    counts = {store.STATUS_NAMES[s]: int((ended == s).sum()) for s in range(1, 4)}
    return BlockSummary(int(todo.size), counts, float(data.cpu_seconds[todo].sum()))
