"""Reports of the shipped studies, each made once for all processes of the tests.

With ``HDICA_GALLERY`` the pages are those of that folder, as ``make run`` writes it into
``results``, at their full size.
"""

from __future__ import annotations

import os
from pathlib import Path

from filelock import FileLock

from hdica.report.write import write
from hdica.sweep.run.runner import run
from tests.browser.small import small

STUDIES = Path(__file__).parents[2] / "config/studies"
GALLERY = os.environ.get("HDICA_GALLERY")


def names() -> list[str]:
    """Every study whose page is looked at."""
    if GALLERY:
        return sorted(path.parent.name for path in Path(GALLERY).glob("*/report.html"))
    return sorted(path.stem for path in STUDIES.glob("*.yaml"))


def page(name: str, shelf: Path) -> Path:
    """The page of a study on a shelf; it is computed and written unless it is there."""
    if GALLERY:
        return Path(GALLERY) / name / "report.html"
    shelf.mkdir(parents=True, exist_ok=True)
    found = shelf / name / "report.html"
    with FileLock(shelf / f"{name}.making"):
        if not found.exists():
            study = small(STUDIES / f"{name}.yaml")
            run(study, shelf / f"{name}.zarr", progress=False)
            write(shelf / f"{name}.zarr", found.parent, study)
    return found
