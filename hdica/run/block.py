"""A block of points to compute: what a worker needs of them, and how it computes them."""

from __future__ import annotations

import errno
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hdica.errors import DataGone, HdicaError, Incomplete, OutOfMemory, Unwritable, printable
from hdica.ingredients.save import Save
from hdica.status import DIVERGED, DONE, FAILED, PENDING, damaged_file, of_machine
from hdica.store.files import NO_ROOM, in_words, written
from hdica.store.provenance import this_processor
from hdica.store.sealed import Arrays, as_array, write_block
from hdica.store.working import Placed
from hdica.study.segment import Keys
from hdica.systems import system as registry
from hdica.systems.arguments import check_until
from hdica.systems.method import Method, PointResult, Simulation, Trial
from hdica.version import __version__


@dataclass(frozen=True, eq=False)
class Block:
    """Points of one segment that are computed, and committed, together."""

    folder: Path  # of the segment
    system: str
    method: str
    noise: str
    kernel: str
    n: int | None
    times: tuple[float, ...]
    save: Save  # what points keep
    shapes: dict[str, tuple[int, ...]]  # of every output of a point
    keys: Keys  # of the points
    contents: tuple[str, ...]  # JSON of the different systems
    cells: NDArray[np.int32]  # which of them each point has
    seeds: NDArray[np.int64]  # of the points; -1 for a method without
    seconds: float  # cost of all points on one core, by the method's cost model

    @property
    def size(self) -> int:
        """Number of points."""
        return int(self.keys.size)

    @property
    def label(self) -> str:
        """Its method and n, for a sentence."""
        return self.method if self.n is None else f"{self.method} with n = {self.n}"

    def point(self, place: int) -> Block:
        """One of its points, as a block."""
        at, method = slice(place, place + 1), self.method_record()
        # The mean over a grid says nothing of a point at its end.
        system, _ = self.trial(method, place)
        return replace(
            self,
            keys=self.keys[at],
            contents=(self.contents[int(self.cells[place])],),
            cells=np.zeros(1, dtype=np.int32),
            seeds=self.seeds[at],
            seconds=method.cost.seconds(system, self.n, float(self.times[-1])),
        )

    def method_record(self) -> Method:
        """The method, if this process has the same numerical code."""
        method = registry.methods_of(self.system, self.noise)[self.method]
        if method.about.kernel != self.kernel:
            raise HdicaError(
                f"this process runs kernel {method.about.kernel} of {self.system}.{self.method}, "
                f"but the run was started with {self.kernel} (install the same version of hdica)"
            )
        return method

    def trial(self, method: Method, place: int) -> Trial:
        """System and seed of one point."""
        system = registry.built(self.system, self.contents[int(self.cells[place])])
        return system, int(self.seeds[place]) if method.stochastic else None


def block_of(placed: Placed, points: NDArray[np.int64]) -> Block:
    """Some points of a segment as a block to compute."""
    segment = placed.segment
    cells, codes = np.unique(points // segment.per_cell, return_inverse=True)
    seeds = np.asarray(segment.seeds or (-1,), dtype=np.int64)[points % segment.per_cell]
    return Block(
        # Workers may have been started in another folder.
        placed.path.absolute(),
        segment.system,
        segment.method.name,
        segment.method.about.noise,
        segment.method.about.kernel,
        segment.n,
        segment.times,
        segment.save,
        {output.name: segment.shape(output.dims) for output in segment.outputs},
        placed.keys[points],
        tuple(segment.cells.systems(cells)),
        codes.astype(np.int32),
        seeds,
        points.size * segment.seconds_per_point,
    )


@dataclass
class Results:
    """Statuses and results of the points of a block while it is computed."""

    values: Arrays
    cpu_seconds: NDArray[np.float64]
    status: NDArray[np.uint8]
    reasons: list[str]
    hindrance: Incomplete | None = None  # why this machine could not compute some of the points

    @classmethod
    def empty(cls, block: Block) -> Results:
        """Nothing computed yet."""
        size = block.size
        values = {k: np.full((size, *shape), np.nan) for k, shape in block.shapes.items()}
        return cls(values, np.zeros(size), np.zeros(size, dtype=np.uint8), [""] * size)

    def record(self, place: int, result: PointResult) -> None:
        """Take the result of a point."""
        for name, array in self.values.items():
            if name not in result.values:
                raise HdicaError(f"{name} is missing from what the method returned")
            value = np.asarray(result.values[name], dtype=np.float64)
            if value.shape != array.shape[1:]:
                raise HdicaError(f"{name} has shape {value.shape}, expected {array.shape[1:]}")
            array[place] = value
        self.status[place] = DIVERGED if result.diverged else DONE
        self.reasons[place] = printable(str(result.diverged or ""))

    def fail(self, place: int, reason: str, status: int = FAILED) -> None:
        """Record that a point failed."""
        for array in self.values.values():
            array[place] = np.nan
        self.status[place], self.reasons[place] = status, reason

    def leave(self, place: int, hindrance: Incomplete) -> None:
        """Leave a point pending that this machine cannot compute."""
        self.fail(place, "", PENDING)
        self.hindrance = hindrance


def compute(block: Block) -> Results:
    """Compute the points of a block, together where that is cheaper.

    An exception in a point is its failure, unless its machine is to blame: then it stays pending.
    """
    method, results = block.method_record(), Results.empty(block)
    if isinstance(method, Simulation) and method.together is not None:
        # Where one of them raises they are computed one by one, to see which.
        with suppress(Exception):
            _compute(block, method, range(block.size), results)
            return results
    for place in range(block.size):
        started = time.process_time()
        try:
            _compute(block, method, [place], results)
        except Exception as exc:
            if of_machine(exc):
                results.leave(place, _hindered(exc))
            else:
                results.fail(place, failure(exc))
                results.cpu_seconds[place] = time.process_time() - started
    return results


def _compute(block: Block, method: Method, places: Sequence[int], results: Results) -> None:
    """Compute points together; each gets its share of the time."""
    started, times = time.process_time(), np.asarray(block.times, dtype=np.float64)
    # Once for all seeds: a point may take a microsecond.
    for cell in dict.fromkeys(block.cells[[*places]].tolist()):
        check_until(registry.built(block.system, block.contents[cell]), times)
    trials = [block.trial(method, place) for place in places]
    for place, result in enumerate(method.run_all(trials, times, block.n, block.save), places[0]):
        results.record(place, result)
    results.cpu_seconds[[*places]] = (time.process_time() - started) / len(places)


def commit(block: Block, results: Results) -> None:
    """Write the file of a block: all points that are not pending; ``Incomplete`` if some are."""
    ended = results.status != PENDING
    if ended.any():
        contents, cells = np.unique(block.cells[ended], return_inverse=True)
        arrays: Arrays = {
            "status": results.status[ended],
            "cpu_seconds": results.cpu_seconds[ended],
            "seed": block.seeds[ended],
            "cell": cells.astype(np.int32),
            "parameters": as_array([block.contents[int(cell)] for cell in contents]),
            **{name: values[ended] for name, values in results.values.items()},
        }
        if any(results.reasons):
            arrays["reason"] = as_array([results.reasons[p] for p in np.flatnonzero(ended)])
        about = {
            "segment": block.folder.name,
            "system": block.system,
            "method": block.method,
            "n": block.n,
            "kernel": block.kernel,
            "hdica": __version__,
            "processor": this_processor(),
        }
        with written(block.folder, own=True):
            write_block(block.folder, about, block.keys[ended], arrays)
    if results.hindrance is not None:
        raise results.hindrance


def compute_and_commit(block: Block) -> None:
    """Compute a block and write its file."""
    commit(block, compute(block))


def failure(exc: BaseException) -> str:
    """What an exception says, in letters that can be stored."""
    kind, text = type(exc).__name__, ""
    with suppress(Exception):  # another's exception, whose text cannot be read
        text = printable(" ".join(str(exc).split()))
    return f"{kind}: {text[:300]}" if text else kind


def _hindered(exc: Exception) -> Incomplete:
    """Why this machine could not compute a point, and what to do about it."""
    if isinstance(exc, Incomplete):
        return exc
    if isinstance(exc, OSError) and exc.errno in NO_ROOM:
        place = exc.filename or f"a file of a point (temporary ones go to {tempfile.gettempdir()})"
        return Unwritable(f"{place} cannot be written: {in_words(exc)}")
    text = str(exc) if isinstance(exc, DataGone) else failure(exc)
    if isinstance(exc, MemoryError):
        return OutOfMemory(f"out of memory ({text}); run with fewer workers")
    if isinstance(exc, OSError) and exc.errno in (errno.EMFILE, errno.ENFILE):
        text = f"{text} (raise the limit: ulimit -n)"
    elif file := damaged_file(exc):
        text = f"{file} is damaged: remove it, Python writes it again"
    return Incomplete(text)
