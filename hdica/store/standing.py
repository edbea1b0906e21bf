"""Results of a study as far as they are computed, under what the study says now.

A published store is opened as it is. Where nothing is published yet, or points of it are pending
and more may have been computed since, the working store is put together in a folder that goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.process.private import scratch
from hdica.status import PENDING
from hdica.store.paths import results_path, work_path
from hdica.store.results import open_results

if TYPE_CHECKING:
    import xarray as xr

    from hdica.study.study import Study


@contextmanager
def standing(store: Path, study: Study | None = None) -> Iterator[xr.DataTree]:
    """What is computed of a study, nothing of which is written or computed here.

    Parameters
    ----------
    store
        Path of the published store, which may not exist yet.
    study
        The study as it is now; None for the one that the store is of.

    Raises
    ------
    HdicaError
        If there is no such store, or no point of the study in it.
    """
    with ExitStack() as opened:
        published = _published(store, study)
        if published is not None:
            opened.enter_context(published)
        if published is None or (_is_open(published) and _has_work(store)):
            planned = study or _recorded(store)
            if planned is not None and (published is None or _is_of(published, planned)):
                published = opened.enter_context(_computed(planned, store))
        if published is None:
            raise _not_there(store, study)
        yield published if study is None else with_study(published, study)


def _recorded(store: Path) -> Study | None:
    if not _has_work(store):
        return None
    # Imported here: a store that is refused needs nothing of what reads studies and blocks.
    from hdica.store.working import recorded_study

    return recorded_study(store)


@contextmanager
def passing_folder() -> Iterator[Path]:
    """A folder for this user alone that is removed after the body.

    If the process is killed in the body, the next run removes it.
    """
    with TemporaryDirectory(prefix="study-", dir=scratch(), ignore_cleanup_errors=True) as made:
        yield Path(made)


def loaded(results: Path) -> xr.DataTree:
    """Content of a published store, in memory."""
    with open_results(results) as tree:
        found = tree.load().copy(deep=True)
    for node in found.subtree:
        node.encoding.pop("source", None)
    return found


@contextmanager
def _computed(study: Study, store: Path) -> Iterator[xr.DataTree]:
    """The points of a study that the working store has, as a publication would lay them out."""
    import xarray as xr

    from hdica.store.publish import lay_out

    if not _has_work(store):
        raise _not_there(store, study)
    with passing_folder() as folder:
        target = folder / "standing.zarr"
        lay_out(target, study, store)
        with xr.open_datatree(target, engine="zarr", chunks=None, consolidated=False) as tree:
            if not _has_any(tree):
                raise _not_there(store, study)
            yield tree


def with_study(tree: xr.DataTree, study: Study) -> xr.DataTree:
    """Results of a study under its title and its analysis of now; refused if of another one."""
    from hdica.store.publish import about_study

    if not _is_of(tree, study):
        raise HdicaError(
            f"results of study {tree.attrs.get('study')!r} are not allowed for the report of "
            f"{study.study!r} (its own results: run it as it is now)"
        )
    found = tree.copy()
    found.attrs.update(about_study(study))
    return found


def _published(store: Path, study: Study | None) -> xr.DataTree | None:
    """The published store, if there is one and it is of the study."""
    if not Path(store).is_dir() and _has_work(store):
        return None
    tree = open_results(store)
    return tree if study is None or _is_of(tree, study) else None


def _has_work(store: Path) -> bool:
    return Path(store).suffix == ".zarr" and work_path(store).is_dir()


def _is_of(tree: xr.DataTree, study: Study) -> bool:
    return bool(tree.attrs.get("study_hash") == study.content_hash())


def _statuses(tree: xr.DataTree) -> Iterator[NDArray[Any]]:
    return (node["status"].to_numpy() for node in tree.children.values() if "status" in node)


def _is_open(tree: xr.DataTree) -> bool:
    return any(bool(np.any(status == PENDING)) for status in _statuses(tree))


def _has_any(tree: xr.DataTree) -> bool:
    return any(bool(np.any(status != PENDING)) for status in _statuses(tree))


def _not_there(store: Path, study: Study | None) -> HdicaError:
    whose = "" if study is None else f" of study {study.study!r} as it is now"
    return HdicaError(f"{results_path(store)} has no point{whose} yet (hdica run computes them)")
