"""Animations of a report: what has a time, as files beside its figures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import xarray as xr

from hdica.analysis.registry import analyses
from hdica.show.panel import Film

ENDINGS = (".gif", ".mp4")

Shown = tuple[str, list[str]]
"""What a film shows, HTML, and the names of its files."""


def films(aggregate: xr.DataTree) -> list[Film]:
    """Everything that has a time in what :func:`hdica.analysis.aggregate` returns."""
    return [
        film
        for one in analyses().values()
        if one.name in aggregate
        for section in one.sections
        if section.films is not None
        for film in section.films(aggregate[one.name].to_dataset())
    ]


def movies(aggregate: xr.DataTree) -> tuple[dict[str, bytes], list[Shown]]:
    """All of them as GIF, and as MP4 where the program ffmpeg is: contents by name, and links."""
    from hdica.report.animated import files  # who asks for none does not wait for its imports

    found: dict[str, bytes] = {}
    shown: list[Shown] = []
    for film in films(aggregate):
        made = files(film)
        found.update(made)
        shown.append((film.title.html, list(made)))
    return found, shown


def told(written: Iterable[Path]) -> list[str]:
    """What there is to say of the animations among the files of a report."""
    from hdica.report.animated import NO_PROGRAM, has_program

    made = [path for path in written if path.suffix in ENDINGS]
    if not made:
        return ["no animation: nothing here keeps densities at two or more snapshots"]
    missing = [] if has_program() else [f"no MP4: {NO_PROGRAM}"]
    return [*(f"animation: {path}" for path in made), *missing]
