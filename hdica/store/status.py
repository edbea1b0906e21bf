"""Points of a study by status, also while a run goes on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hdica.errors import HdicaError
from hdica.status import STATUS_NAMES
from hdica.store.manifest import status_counts
from hdica.store.paths import refuse_file, work_path
from hdica.store.results import open_results, stable
from hdica.store.working import place, recorded_study

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class MethodStatus:
    """Points of one method at one n: how many, and how many have each status."""

    method: str
    n: int | None  # None for a method without
    points: int
    pending: int
    done: int
    diverged: int
    failed: int
    cpu_seconds: float  # cost of the computed ones


@dataclass(frozen=True)
class Status:
    """Points of a study by status."""

    study: str  # its name
    source: str  # "working store" or "published store"
    rows: tuple[MethodStatus, ...]  # one entry a method and n

    def total(self, what: str) -> int:
        """Sum over all rows of ``points``, ``pending``, ``done``, ``diverged`` or ``failed``."""
        return int(sum(getattr(row, what) for row in self.rows))

    @property
    def whole(self) -> bool:
        """Whether every point has its numbers, or the record that it diverged."""
        return not self.total("pending") and not self.total("failed")

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        totals = {name: self.total(name) for name in ("points", *STATUS_NAMES)}
        rows = [asdict(row) for row in self.rows]
        return {"study": self.study, "source": self.source, **totals, "rows": rows}


def _row(method: str, n: int | None, status: np.ndarray, cpu: np.ndarray) -> MethodStatus:
    counts = status_counts(status)
    return MethodStatus(method, n, int(status.size), **counts, cpu_seconds=float(np.nansum(cpu)))


def working_status(out: str | Path) -> Status | None:
    """Status of the study that was run last, from its working store; None without one."""
    study = recorded_study(out)
    if study is None:
        return None
    rows = (
        _row(p.segment.method.name, p.segment.n, p.statuses, p.cpu_seconds)
        for p in place(study, out)
    )
    return Status(study.study, "working store", tuple(rows))


def published_status(out: str | Path) -> Status:
    """Status of a published store, from the store alone."""
    tree = open_results(out)
    rows = []
    for name, node in tree.children.items():
        data = node.to_dataset()
        parts: list[tuple[int | None, xr.Dataset]] = [(None, data)]
        if "n" in data["status"].dims:
            parts = [(int(n), data.sel(n=n)) for n in data["n"].to_numpy()]
        for n, part in parts:
            rows.append(_row(name, n, part["status"].to_numpy(), part["cpu_seconds"].to_numpy()))
    return Status(str(tree.attrs["study"]), "published store", tuple(rows))


def status(path: str | Path) -> Status:
    """Status of a study whose published store may not exist yet."""
    return stable(path, lambda: _status(path), whole=True)


def _status(path: str | Path) -> Status:
    found = working_status(path) if work_path(path).is_dir() else None
    if found is not None:
        return found
    refuse_file(Path(path))
    if Path(path).is_dir():
        return published_status(path)
    raise HdicaError(f"{path} does not exist and no run of it was started (hdica run writes it)")
