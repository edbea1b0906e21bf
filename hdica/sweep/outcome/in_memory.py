"""Results that are kept in memory and leave no file behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hdica.process.private import scratch
from hdica.sweep.outcome.results import open_results

if TYPE_CHECKING:
    import xarray as xr


@contextmanager
def passing_folder() -> Iterator[Path]:
    """A folder for this user alone that is gone after the body, however it ends.

    If the process is killed in it, the next run removes it.
    """
    with TemporaryDirectory(prefix="study-", dir=scratch(), ignore_cleanup_errors=True) as made:
        yield Path(made)


def loaded(results: Path) -> xr.DataTree:
    """What a published store holds, which it needs no longer."""
    with open_results(results) as tree:
        found = tree.load().copy(deep=True)
    for node in found.subtree:
        node.encoding.pop("source", None)
    return found
