"""From a published store to a page, figures for print and the aggregated data."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from hdica.analysis import aggregate
from hdica.report.figures import panels
from hdica.report.page import render
from hdica.report.printed import save
from hdica.sweep.outcome.looks import settled
from hdica.sweep.outcome.results import open_results


def write(results: Path, out: Path) -> list[Path]:
    """Write the report of a study.

    Parameters
    ----------
    results
        A published store, ``results/<study>.zarr``.
    out
        Folder for ``report.html`` (self-contained), ``aggregate.nc`` and
        ``figures/*.svg``, ``*.pdf``; made if needed.

    Returns
    -------
    list of Path
        The files written, the page first.

    Raises
    ------
    HdicaError
        If the store is not there or lacks what the study's analysis needs.
    """

    def read() -> xr.DataTree:
        with open_results(results) as tree:
            return aggregate(tree)

    return write_aggregate(settled(results, read), Path(out))


def write_aggregate(found: xr.DataTree, out: Path) -> list[Path]:
    """Write the report of an aggregate that is at hand; see :func:`write`."""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    sections = panels(found)
    page, data = out / "report.html", out / "aggregate.nc"
    page.write_text(render(found, sections), encoding="utf-8", newline="\n")
    found.to_netcdf(data, engine="h5netcdf")
    printed = [path for drawn in sections.values() for p in drawn for path in save(p, folder)]
    return [page, data, *printed]
