"""What a study asks for: points, seconds and bytes, before anything runs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

BEGIN, START = 2.2, 2.0
"""Seconds from the start of a command to its first point and from its last to the published store,
and those until workers compute."""
LOAD = 0.5
"""Seconds to load what a method computes with."""
EACH_POINT = 2e-5
"""Seconds to plan, store and publish a point."""


def duration(seconds: float) -> str:
    """A time for a person: ``0.3 s``, ``12 min``, ``3.2 h``."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def megabytes(size: float) -> str:
    """A size for a person: ``0.4 MB``, ``3.1 GB``."""
    if size < 1e5:
        return f"{size / 1e3:.1f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"


@dataclass(frozen=True)
class SegmentPlan:
    """What one segment asks for."""

    method: str
    n: int | None
    points: int
    pending: int  # points that are not computed yet
    seconds_per_point: float  # from the method's cost model, on one core
    bytes_per_point: int  # results of one point, uncompressed
    block: int  # points a block
    arrays: int  # with a file for every block
    pace: float = 1.0  # how many times longer a point takes on this processor
    memory: float = 0.0  # bytes that the largest point needs at least while it is computed
    prepares: Mapping[Hashable, float] = field(default_factory=dict)  # seconds, once a process

    def __str__(self) -> str:
        """One line for a person."""
        name = self.method if self.n is None else f"{self.method} n={self.n}"
        cost = f"{duration(self.seconds)}, {megabytes(self.bytes)}"
        return f"{name}: {self.points} points, {self.pending} pending, {cost}"

    @property
    def bytes(self) -> int:
        """Results of all points, uncompressed."""
        return self.points * self.bytes_per_point

    @property
    def seconds(self) -> float:
        """Cost of the pending points on one core."""
        return self.pending * self.seconds_per_point * self.pace

    @property
    def blocks(self) -> int:
        """Blocks that the pending points need at least."""
        return -(-self.pending // self.block)

    @property
    def files(self) -> int:
        """Files of results in the working store at the end, at least."""
        return -(-self.points // self.block) * self.arrays


@dataclass(frozen=True, repr=False)
class Plan:
    """What a study asks for, before anything runs; it prints as a table."""

    study: str
    study_hash: str  # digest of everything that determines its numbers
    segments: tuple[SegmentPlan, ...]  # one entry a method and n
    keeps: str = ""  # which methods keep what beyond the order parameters, in words
    compiling: float = 0.0  # seconds that functions take to compile, once on a machine
    pace: float = 1.0  # how many times longer all else takes on this processor
    notes: tuple[str, ...] = ()  # what data are not that the rule assumes

    @property
    def points(self) -> int:
        """All points."""
        return sum(s.points for s in self.segments)

    @property
    def pending(self) -> int:
        """Points that are not computed yet."""
        return sum(s.pending for s in self.segments)

    @property
    def preparing(self) -> float:
        """Seconds in which a process prepares what points share, such as averages over a source."""
        pending = [s.prepares for s in self.segments if s.pending]
        return self.pace * sum({k: v for one in pending for k, v in one.items()}.values())

    @property
    def seconds(self) -> float:
        """Cost of the pending points on one core, with what they share."""
        return sum(s.seconds for s in self.segments) + self.preparing

    def wait(self, workers: int = 1) -> float:
        """How long a run of it takes about, from its start to what is published.

        Parameters
        ----------
        workers
            Processes that compute; few enough points are computed without them.
        """
        if not self.pending:
            return BEGIN * self.pace
        alone = self.seconds
        points = self.seconds - self.preparing
        shared = START * self.pace + self.preparing + points / max(1, min(workers, self.blocks))
        storing = self.points * EACH_POINT
        loading = LOAD * len({s.method for s in self.segments if s.pending})
        once = (BEGIN + storing + loading) * self.pace + self.compiling
        return once + (alone if workers == 1 else min(alone, shared))

    @property
    def bytes(self) -> int:
        """Results of all points, uncompressed."""
        return sum(s.bytes for s in self.segments)

    @property
    def memory(self) -> float:
        """Bytes that the largest of the pending points needs at least while it is computed."""
        return max((s.memory for s in self.segments if s.pending), default=0.0)

    @property
    def blocks(self) -> int:
        """Blocks that the pending points need at least."""
        return sum(s.blocks for s in self.segments)

    @property
    def files(self) -> int:
        """Files of results in the working store at the end, at least."""
        return sum(s.files for s in self.segments)

    def __repr__(self) -> str:
        """A line for the whole study, and one for each method and n."""
        total = f"{self.study}: {self.points} points, {self.pending} pending"
        lines = [f"{total}, {duration(self.seconds)} on one core, {megabytes(self.bytes)}"]
        lines += [f"  {segment}" for segment in self.segments]
        lines += [f"  keeps {self.keeps}"] if self.keeps else []
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def as_dict(self, workers: int = 1) -> dict[str, Any]:
        """Plain data for JSON; ``wait`` is that of a run with so many workers."""
        names = (
            "method", "n", "points", "pending", "seconds", "bytes", "bytes_per_point", "memory",
            "block", "blocks", "files",
        )  # fmt: skip
        return {
            "study": self.study,
            "study_hash": self.study_hash,
            "keeps": self.keeps,
            "notes": list(self.notes),
            "compiling": self.compiling,
            "wait": self.wait(workers),
            **{name: getattr(self, name) for name in names if hasattr(self, name)},
            "segments": [{name: getattr(s, name) for name in names} for s in self.segments],
        }
