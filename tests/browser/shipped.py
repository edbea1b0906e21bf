"""Reports of the shipped studies, each made once for all processes of the tests.

With ``HDICA_GALLERY`` the pages are those of that folder, as ``make run`` writes it into
``results``, at their full size.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from unittest.mock import patch

from filelock import FileLock

from hdica.inputs.plain_yaml import read_yaml
from hdica.report import drawn
from hdica.report.printed import draw, files
from hdica.report.write import write
from hdica.run.runner import run
from hdica.show.panel import Panel
from tests.browser.small import small

STUDIES = Path(__file__).parents[2] / "config/studies"
GALLERY = os.environ.get("HDICA_GALLERY")


def names() -> list[str]:
    """Every study whose page is looked at."""
    if GALLERY:
        return sorted(path.parent.name for path in Path(GALLERY).glob("*/report.html"))
    return sorted(path.stem for path in STUDIES.glob("*.yaml"))


@cache
def judged() -> list[str]:
    """Few studies whose pages together have every analysis: each time the one with most more."""
    asked = {name: _asked(name) for name in names()}
    left = set().union(*asked.values())
    found = []
    while left:
        found.append(max(asked, key=lambda name: len(asked[name] & left)))
        left -= asked[found[-1]]
    return found


def _asked(name: str) -> set[str]:
    """Analyses that a study asks for; a study that is not shipped counts as one of its own."""
    path = STUDIES / f"{name}.yaml"
    return set(read_yaml(path).get("analysis", {})) if path.exists() else {name}


def unwritten(panel: Panel) -> dict[str, bytes]:
    """A figure for print that is drawn and not written, which takes most of a report's time."""
    draw(panel)
    return {}


def page(name: str, shelf: Path, printed: bool = False) -> Path:
    """The page of a study on a shelf; it is computed and written unless it is there.

    Figures for print lie beside it only if they are asked for.
    """
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
            with patch.object(drawn, "files", files if printed else sparing):
                write(shelf / f"{name}.zarr", found.parent, study)
    return found
