"""From results to a page, figures for print and the aggregated data, in a gallery."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.analysis.terms import speaking_of
from hdica.errors import HdicaError
from hdica.report import captions, gallery
from hdica.report.answers import told
from hdica.report.card import card_of
from hdica.report.movies import Shown, movies
from hdica.report.page import headings, panels, render
from hdica.report.place import ALONE, CARD, check, place
from hdica.report.printed import files
from hdica.sweep.files.paths import results_path
from hdica.sweep.outcome.looks import settled
from hdica.sweep.outcome.standing import as_said, standing
from hdica.sweep.outcome.versions import is_version
from hdica.sweep.study.study import Study, load_study


def report_of(
    source: Path,
    results: Path | None = None,
    out: Path | None = None,
    one_file: bool = False,
    animate: bool = False,
) -> list[Path]:
    """Write the report of a study file, as it is now, or of a store; see :func:`write`.

    Parameters
    ----------
    source
        The study file, or the path of a store, which ends in ``.zarr`` or is a folder.
    results
        The store of the study file; by default ``results/<study>.zarr``.
    out
        Folder of the report; by default the store's path without ``.zarr``.
    one_file
        Whether the page is written as one file, too.
    animate
        Whether what has a time is written as an animation, too.

    Raises
    ------
    HdicaError
        If there are no such results, or a store is given twice.
    """
    if source.suffix not in (".yaml", ".yml"):
        if results is not None:
            raise HdicaError(f"--results {results} is not allowed ({source} is no study file)")
        return write(source, out or folder_of(source), one_file=one_file, animate=animate)
    study = load_study(source)
    store = results_path(results or Path("results") / f"{study.study}.zarr")
    return write(store, out or folder_of(store), study, one_file=one_file, animate=animate)


def folder_of(store: Path) -> Path:
    """Where the report of a store, or of a version of one, goes."""
    return (store.parent if is_version(store) else store).with_suffix("")


def write(
    results: Path | xr.DataTree,
    out: Path,
    study: Study | None = None,
    *,
    one_file: bool = False,
    animate: bool = False,
    store: Path | None = None,
) -> list[Path]:
    """Write the report of results, as far as they are computed; nothing is computed here.

    In the folder stand then ``report.html``, ``aggregate.nc``, ``card.json`` and ``figures/*.svg``,
    ``*.pdf`` with ``captions.rst``, and above it ``index.html``, the gallery of all reports there,
    and ``assets`` with the script that they share. Both are in the folder itself if neither the
    store lies beside it nor a gallery. Every file is replaced whole, the page last; whatever ends
    this, the files of before are there or the new ones. A page never stands beside the figures of
    another study.

    Parameters
    ----------
    results
        Path of a store, published or not, or what one holds.
    out
        Folder of the report, made if need be.
    study
        The study whose title and analysis are shown; None for those that were stored.
    one_file
        Whether the page is written once more, as ``report-alone.html``, with everything in it.
    animate
        Whether densities over time are written as ``figures/densities_1.gif`` and so on, and as
        ``*.mp4`` where the program ffmpeg is: at most 60 frames and 2 MB each.
    store
        Where results in memory are or would have been stored; by default nowhere.

    Returns
    -------
    list[pathlib.Path]
        The files, the page first and ``index.html`` last.

    Raises
    ------
    HdicaError
        If there are no such results, or they are not those of the study.
    """
    out = Path(out)
    top = gallery.gallery_of(out, results if isinstance(results, Path) else store)
    if isinstance(results, xr.DataTree):
        _check(out, top)
        found = aggregate(results if study is None else as_said(results, study))
        return write_aggregate(found, out, top, one_file=one_file, animate=animate)

    def read() -> xr.DataTree:
        with standing(results, study) as tree:
            _check(out, top)
            return aggregate(tree)

    return write_aggregate(settled(results, read), out, top, one_file=one_file, animate=animate)


def _check(out: Path, top: Path) -> None:
    """Refuse folders that cannot take a report, before the work for it."""
    gallery.check_gallery(top)
    check(out)


def write_aggregate(
    found: xr.DataTree,
    out: Path,
    top: Path | None = None,
    *,
    one_file: bool = False,
    animate: bool = False,
) -> list[Path]:
    """Write the report of an aggregate that is at hand; see :func:`write`.

    ``top`` is the folder of the gallery, by default that of the report itself.
    """
    top = out if top is None else top
    drawn: dict[str, bytes] = {}
    with speaking_of(str(found.attrs.get("system", ""))):
        sections = panels(found)
        said = told(found)
        shown: list[Shown] = []
        if animate:
            drawn, shown = movies(found)
        page = render(found, sections, gallery.assets(out, top), said, shown).encode()
        beside = {CARD: card_of(found, sections, said.headline).written()}
        if one_file:
            beside[ALONE] = render(found, sections, None, said).encode()
        drawn[captions.NAME] = captions.captions(said.headline.html, sections, headings())
        for panel in (panel for section in sections.values() for panel in section):
            drawn.update(files(panel))
    # In memory: HDF5 would lock the file, and say of a full disk what it was doing when it failed.
    data = bytes(found.to_netcdf(engine="h5netcdf"))
    shared = gallery.place_script(top)
    return [*place(out, page, data, drawn, beside), shared, gallery.update(top)]
