"""One shelf of reports for all processes of the tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from hdica.report import drawn
from tests.analysis import toy
from tests.browser import shipped

# What the pages of the tests of reports hold: hostile titles, and everything that a page can have.
from tests.report.conftest import aggregated, aggregated_laws, once  # noqa: F401


@pytest.fixture(scope="session")
def written(shared: Path, request: pytest.FixtureRequest) -> list[Path]:
    """Files of the toy study's report, without figures for print, at which no browser looks."""
    with patch.object(drawn, "files", lambda panel: {}):
        return once(shared / "toy-in-browser", lambda: request.getfixturevalue("aggregated"))


@pytest.fixture(scope="session")
def report(shared: Path) -> Callable[[str], Path]:
    """The page of a shipped study: made small and computed, or of a gallery that is there."""
    return lambda name: shipped.page(name, shared / "shipped")


@pytest.fixture(scope="session")
def pictures(shared: Path) -> Path:
    """Where pictures that are compared are kept."""
    return Path(os.environ.get("HDICA_SCREENSHOTS") or shared / "screenshots")


@pytest.fixture(scope="session")
def kept() -> Callable[[str], Path | None]:
    """Where a picture for people lies; none is taken unless ``HDICA_SCREENSHOTS`` says where."""
    place = os.environ.get("HDICA_SCREENSHOTS")
    return lambda name: Path(place) / name if place else None


@pytest.fixture(scope="session")
def axe() -> Any:
    """Deque's axe, which knows what keeps people from reading a page."""
    reason = "needs: pip install axe-playwright-python"
    return pytest.importorskip("axe_playwright_python.sync_playwright", reason=reason).Axe()


@pytest.fixture(scope="session")
def aggregated_plain() -> xr.DataTree:
    """The toy study's aggregate under a plain title: the same numbers and words everywhere."""
    about = "A rule whose limit is known, with a fold at 0.06."
    return aggregate(toy.store(title="A toy rule and its limit", description=about))
