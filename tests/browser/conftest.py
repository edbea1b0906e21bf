"""One browser for every process of the tests, and one shelf of reports for all of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate
from tests.analysis import toy
from tests.browser import look, shipped

# What the pages of the tests of reports hold: hostile titles, and everything that a page can have.
from tests.report.conftest import aggregated, written  # noqa: F401


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Debian's Chromium without a screen; a page of it is opened by :func:`tests.browser.look`."""
    if look.CHROMIUM is None:
        pytest.skip("needs Chromium: install the Debian package chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs: pip install playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=look.CHROMIUM, args=look.FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of these tests have."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def report(shared: Path) -> Callable[[str], Path]:
    """The page of a shipped study: made small and computed, or of a gallery that is there."""
    return lambda name: shipped.page(name, shared / "shipped")


@pytest.fixture(scope="session")
def pictures(shared: Path) -> Path:
    """Where pictures of pages are kept."""
    return Path(os.environ.get("HDICA_SCREENSHOTS") or shared / "screenshots")


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
