"""Reports of shipped studies that together have all that pages have, each made once for all tests.

With ``HDICA_GALLERY`` the pages are all those of that folder, as ``make reproduce`` writes it into
``results``, at their full size.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from unittest.mock import patch

from filelock import FileLock

from hdica.inputs.plain_yaml import read_yaml
from hdica.report import drawn
from hdica.report.printed import draw
from hdica.report.write import write
from hdica.run.runner import run
from hdica.show.panel import Panel
from tests.browser.small import small

STUDIES = Path(__file__).parents[2] / "config/studies"
GALLERY = os.environ.get("HDICA_GALLERY")


@cache
def every() -> list[str]:
    """Every study that has a page."""
    if GALLERY:
        return sorted(path.parent.name for path in Path(GALLERY).glob("*/report.html"))
    return sorted(path.stem for path in STUDIES.glob("*.yaml"))


@cache
def names() -> list[str]:
    """Studies whose pages are read: of a gallery all, else few with every analysis and method."""
    few = every() if GALLERY else [*judged(), *_few(lambda name: _analyses(name) | _methods(name))]
    return sorted(set(few))


@cache
def judged() -> list[str]:
    """Few studies whose pages together have every analysis."""
    return _few(_analyses)


PLAIN = {
    *("collapse", "convergence", "decay", "ensemble", "exponents", "samples", "success"),
    "transition",
}
"""Analyses of which every panel has curves and points alone, as panels of others have, too."""


@cache
def turned() -> list[str]:
    """Those of them with an analysis that is not plain, or of a study that is not shipped."""
    return [name for name in judged() if not _analyses(name) <= PLAIN]


def _few(has: Callable[[str], set[str]]) -> list[str]:
    """Few studies that together have what all have: each time the one with most more."""
    by_name = {name: has(name) for name in every()}
    left = set().union(*by_name.values())
    chosen = []
    while left:
        chosen.append(max(by_name, key=lambda name: len(by_name[name] & left)))
        left -= by_name[chosen[-1]]
    return chosen


def _analyses(name: str) -> set[str]:
    """Analyses of a study; a study that is not shipped counts as one of its own."""
    path = STUDIES / f"{name}.yaml"
    return set(read_yaml(path).get("analysis", {})) if path.exists() else {name}


def _methods(name: str) -> set[str]:
    """Methods of a shipped study, each of its system."""
    content = read_yaml(STUDIES / f"{name}.yaml")
    return {f"{content['system']}.{method}" for method in content["methods"]}


def unwritten(panel: Panel) -> dict[str, bytes]:
    """A figure for print that is drawn and not written, which takes most of a report's time."""
    draw(panel)
    return {}


def page(name: str, shelf: Path) -> Path:
    """The page of a study on a shelf, without figures for print; it is computed unless there."""
    if GALLERY:
        return Path(GALLERY) / name / "report.html"
    shelf.mkdir(parents=True, exist_ok=True)
    found = shelf / name / "report.html"
    with FileLock(shelf / f"{name}.making"):
        if not found.exists():
            study = small(STUDIES / f"{name}.yaml")
            run(study, shelf / f"{name}.zarr", progress=False)
            # Every kind of panel is on a page that is judged, and drawn for print there.
            sparing = unwritten if name in judged() else lambda panel: {}
            with patch.object(drawn, "files", sparing):
                write(shelf / f"{name}.zarr", found.parent, study)
    return found
