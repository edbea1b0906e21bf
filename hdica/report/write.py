"""Write reports of results; what computes and draws is imported late, after the first checks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hdica.errors import HdicaError
from hdica.report import gallery
from hdica.report.place import check
from hdica.store.paths import refuse_own, results_path
from hdica.store.results import stable, standing, with_study

if TYPE_CHECKING:
    import xarray as xr

    from hdica.study.study import Study


def report_of(
    source: Path,
    results: Path | None = None,
    out: Path | None = None,
    one_file: bool = False,
    animate: bool = False,
) -> list[Path]:
    """Write the report of a store, or of a study file as it is now, whose store is ``results``.

    By default that is ``results/<study>.zarr``, and ``out`` the store's path without ``.zarr``; all
    else is as of :func:`write`.
    """
    if source.suffix not in (".yaml", ".yml"):
        if results is not None:
            raise HdicaError(f"--results {results} is not allowed ({source} is no study file)")
        return write(source, out or folder_of(source), one_file=one_file, animate=animate)
    from hdica.study.study import load_study

    study = load_study(source)
    store = results_path(results or Path("results") / f"{study.study}.zarr")
    return write(store, out or folder_of(store), study, one_file=one_file, animate=animate)


def folder_of(store: Path) -> Path:
    """Where the report of a store goes."""
    return store.with_suffix("")


def write(
    results: Path | xr.DataTree,
    out: Path,
    study: Study | None = None,
    *,
    one_file: bool = False,
    animate: bool = False,
    store: Path | None = None,
) -> list[Path]:
    """Write the report of results, a store or what one holds, as far as they are computed.

    In the folder ``out`` stand then ``report.html``, ``aggregate.nc``, ``card.json`` and
    ``figures/*.svg``, ``*.pdf`` with ``captions.rst``, and above it ``index.html``, the gallery of
    all reports there, and ``assets`` with the script that they share. Both are in the folder itself
    if neither the store (that of results in memory is ``store``) lies beside it nor a gallery.
    Every file is replaced whole, the page last. Title and analysis are those of ``study``, or else
    those that were stored. With ``one_file`` the page is also written as ``report-alone.html``,
    with everything in it; with ``animate`` densities over time are written as GIF and, where the
    program ffmpeg is, as MP4: at most 60 frames and 2 MB each.

    The files are returned, the page first and ``index.html`` last. If there are no such results, or
    they are not those of the study, :class:`~hdica.errors.HdicaError` is raised.
    """
    out = Path(out)
    refuse_own(out, "out")
    top = gallery.gallery_of(out, results if isinstance(results, Path) else store)

    def aggregated(tree: xr.DataTree) -> xr.DataTree:
        """What results come to, if their report has a place."""
        gallery.check_gallery(top)
        check(out)
        from hdica.analysis.aggregate import aggregate

        return aggregate(tree)

    def read(store: Path) -> xr.DataTree:
        with standing(store, study) as tree:
            return aggregated(tree)

    if isinstance(results, Path):
        content = stable(results, lambda: read(results), whole=True)
    else:
        content = aggregated(results if study is None else with_study(results, study))
    from hdica.report.drawn import write_aggregate

    return write_aggregate(content, out, top, one_file=one_file, animate=animate)
