"""From a published store to a page, figures for print and the aggregated data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.analysis.terms import speaking_of
from hdica.report.page import panels, render
from hdica.report.place import check, place
from hdica.report.printed import files
from hdica.sweep.outcome.looks import settled
from hdica.sweep.outcome.results import open_results


def write(
    results: Path | xr.DataTree,
    out: Path,
    about: Callable[[xr.DataTree], xr.DataTree] = lambda tree: tree,
) -> list[Path]:
    """Write the report of a published store or of what it holds; returns the files, the page first.

    In the folder stand then ``report.html`` (self-contained), ``aggregate.nc`` and
    ``figures/*.svg``, ``*.pdf``. Every file is replaced whole, the page last; whatever ends this,
    the files of before are there or the new ones. A page never stands beside the figures of another
    study. ``about`` is given what the store holds, and gives it as it is to be shown.
    """
    if isinstance(results, xr.DataTree):
        check(Path(out))
        return write_aggregate(aggregate(about(results)), Path(out))
    store = results

    def read() -> xr.DataTree:
        with open_results(store) as tree:
            check(Path(out))
            return aggregate(about(tree))

    return write_aggregate(settled(store, read), Path(out))


def write_aggregate(found: xr.DataTree, out: Path) -> list[Path]:
    """Write the report of an aggregate that is at hand; see :func:`write`."""
    drawn: dict[str, bytes] = {}
    with speaking_of(str(found.attrs.get("system", ""))):
        sections = panels(found)
        page = render(found, sections).encode()
        for panel in (panel for section in sections.values() for panel in section):
            drawn.update(files(panel))
    # In memory: HDF5 would lock the file, and say of a full disk what it was doing when it failed.
    data = bytes(found.to_netcdf(engine="h5netcdf"))
    return place(out, page, data, drawn)
