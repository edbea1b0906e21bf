"""An aggregate as the files of its report."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from hdica.analysis.findings import summary
from hdica.report import captions, gallery
from hdica.report.movies import Shown, movies
from hdica.report.page import headings, panels, render
from hdica.report.place import ALONE, CARD, place
from hdica.report.printed import files
from hdica.report.summary import card_of
from hdica.show.terms import speaking_of


def write_aggregate(
    found: xr.DataTree,
    out: Path,
    top: Path | None = None,
    *,
    one_file: bool = False,
    animate: bool = False,
) -> list[Path]:
    """Write the report of an aggregate; see :func:`hdica.report.write.write`.

    ``top`` is the folder of the gallery, by default that of the report itself.
    """
    top = out if top is None else top
    drawn: dict[str, bytes] = {}
    with speaking_of(str(found.attrs.get("system", ""))):
        sections = panels(found)
        content = summary(found)
        shown: list[Shown] = []
        if animate:
            drawn, shown = movies(found)
        page = render(found, sections, gallery.assets(out, top), content, shown).encode()
        beside = {CARD: card_of(found, sections, content).written()}
        if one_file:
            beside[ALONE] = render(found, sections, None, content).encode()
        drawn[captions.NAME] = captions.captions(str(content.headline), sections, headings())
        for panel in (panel for section in sections.values() for panel in section):
            drawn.update(files(panel))
    # In memory: HDF5 would lock the file, and say of a full disk what it was doing when it failed.
    data = bytes(found.to_netcdf(engine="h5netcdf"))
    shared = gallery.place_script(top)
    return [*place(out, page, data, drawn, beside), shared, gallery.update(top)]
