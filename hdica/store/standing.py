"""A study as far as it is computed: points by status, and results, also while a run goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.process.private import scratch
from hdica.status import PENDING, STATUS_NAMES
from hdica.store.paths import refuse_file, results_path, work_path
from hdica.store.results import open_results, stable
from hdica.store.sealed import status_counts

if TYPE_CHECKING:
    import xarray as xr

    from hdica.study.study import Study


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
    from hdica.store.working import place, recorded_study

    if (study := recorded_study(out)) is None:
        return None
    rows = [
        _row(p.segment.method.name, p.segment.n, p.statuses, p.cpu_seconds)
        for p in place(study, out)
    ]
    return Status(study.study, "working store", tuple(rows))


def published_status(out: str | Path) -> Status:
    """Status of a published store, from the store alone."""
    tree, rows = open_results(out), []
    for name, node in tree.children.items():
        data, has_n = node.to_dataset(), "n" in node["status"].dims
        for n in data["n"].to_numpy().tolist() if has_n else (None,):
            part = data.sel(n=n) if has_n else data
            rows.append(_row(name, n, part["status"].to_numpy(), part["cpu_seconds"].to_numpy()))
    return Status(str(tree.attrs["study"]), "published store", tuple(rows))


def status(path: str | Path) -> Status:
    """Status of a study whose published store may not exist yet."""

    def look() -> Status:
        if work_path(path).is_dir() and (working := working_status(path)) is not None:
            return working
        refuse_file(Path(path))
        if Path(path).is_dir():
            return published_status(path)
        text = f"{path} does not exist and no run of it was started (hdica run writes it)"
        raise HdicaError(text)

    return stable(path, look, whole=True)


@contextmanager
def standing(store: Path, study: Study | None = None) -> Iterator[xr.DataTree]:
    """What is computed of a study, nothing of which is written or computed here.

    A published store is opened as it is. Where nothing is published yet, or points of it are
    pending and more may have been computed since, the working store is put together in a folder
    that goes. ``store`` is the path of the published store, ``study`` the study as it is now, None
    for the one that the store is of.

    Raises
    ------
    HdicaError
        If there is no such store, or no point of the study in it.
    """
    has_work = Path(store).suffix == ".zarr" and work_path(store).is_dir()
    whose = "" if study is None else f" of study {study.study!r} as it is now"
    empty = HdicaError(f"{results_path(store)} has no point{whose} yet (hdica run computes them)")
    results: xr.DataTree | None = None
    with ExitStack() as opened:
        if Path(store).is_dir() or not has_work:
            tree = opened.enter_context(open_results(store))
            results = tree if study is None or _is_of(tree, study) else None
        if has_work and (results is None or any((s == PENDING).any() for s in _statuses(results))):
            # Imported here: a store that is refused needs nothing of what reads studies.
            import xarray

            from hdica.store.publish import lay_out
            from hdica.store.working import recorded_study

            planned = study or recorded_study(store)
            if planned is not None and (results is None or _is_of(results, planned)):
                target = opened.enter_context(passing_folder()) / "standing.zarr"
                lay_out(target, planned, store)
                results = opened.enter_context(
                    xarray.open_datatree(target, engine="zarr", chunks=None, consolidated=False)
                )
                if all((status == PENDING).all() for status in _statuses(results)):
                    raise empty
        if results is None:
            raise empty
        yield results if study is None else with_study(results, study)


@contextmanager
def passing_folder() -> Iterator[Path]:
    """A folder for this user alone that is removed after the body, or by the next run."""
    with TemporaryDirectory(prefix="study-", dir=scratch(), ignore_cleanup_errors=True) as made:
        yield Path(made)


def loaded(results: Path) -> xr.DataTree:
    """Content of a published store, in memory."""
    with open_results(results) as tree:
        content = tree.load().copy(deep=True)
    for node in content.subtree:
        node.encoding.pop("source", None)
    return content


def with_study(tree: xr.DataTree, study: Study) -> xr.DataTree:
    """Results of a study under its title and its analysis of now; refused if of another one."""
    from hdica.store.publish import about_study

    if not _is_of(tree, study):
        raise HdicaError(
            f"results of study {tree.attrs.get('study')!r} are not allowed for the report of "
            f"{study.study!r} (its own results: run it as it is now)"
        )
    renewed = tree.copy()
    renewed.attrs.update(about_study(study))
    return renewed


def _is_of(tree: xr.DataTree, study: Study) -> bool:
    return bool(tree.attrs.get("study_hash") == study.content_hash())


def _statuses(tree: xr.DataTree) -> Iterator[NDArray[Any]]:
    return (node["status"].to_numpy() for node in tree.children.values() if "status" in node)
