"""How tests are spread over processes: a file stays together, and so does all that waits."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hdica.process import machine
from tests import rooms
from tests.browser import look
from tests.warm import warm

WAITING = ("tests/cluster/", "tests/faults/")
"""Folders whose tests mostly wait, for Slurm and for runs that are killed.

Each in one process, beside which two others keep two processors busy. One Slurm at a time fits on
a machine: its configuration lies in /etc.
"""
COMPUTING = ("tests/limits/", "tests/systems/", "tests/finite/", "tests/errata/")
"""Folders whose tests compute all the time, as many processes as do not wait."""
SHIPPED = "tests/browser/test_shipped.py::"
BUILT = ("tests/workflow/test_build.py::", "tests/workflow/test_snakemake_report.py::")
"""Files that look at one build, which takes half a minute: in one process it is made once."""
LONG = (*BUILT, "tests/test_examples.py::", "tests/systems/test_targets.py::")
"""Files that take minutes."""
# Nothing here outlives the power, but for what tests/power runs on purpose.
os.environ.setdefault("HDICA_SYNC", "off")
# A shell ignores Ctrl-C for what it runs in the background, and so would every program that a test
# starts and interrupts.
_main = threading.current_thread() is threading.main_thread()
if _main and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Debian's Chromium without a screen; a page of it is opened by :func:`tests.browser.look`.

    One for a file of tests, never two at once; ended with it, since its driver is an event loop
    that runs in the main thread: tests after it in the process could begin none of their own.
    """
    if look.CHROMIUM is None:
        pytest.skip("needs Chromium: install the Debian package chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs: pip install playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=look.CHROMIUM, args=look.FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of the tests have."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture
def unprinted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without figures for print, which take most of the time of a small one."""
    monkeypatch.setattr("hdica.report.drawn.files", lambda panel: {})


@pytest.fixture
def wide_registers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Costs are those of the processor on which they were measured, on whatever tests run."""
    monkeypatch.setattr(machine, "_is_wide", lambda: True)
    monkeypatch.setattr(machine, "_interpreted", lambda: machine.LOOP)
    machine.slowness.cache_clear()
    machine.pace.cache_clear()
    yield
    machine.slowness.cache_clear()
    machine.pace.cache_clear()


def pytest_configure(config: pytest.Config) -> None:
    """Do once what several processes would each do at the same time."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        warm(config)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the choice of a room."""
    text = "only tests of this folder or module of hdica/ and of those that import it"
    parser.addoption("--room", choices=rooms.names(), metavar="ROOM", help=text)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what tests other rooms, and files without a deep test if only those are asked for.

    Else every process would import them all, half a minute for each.
    """
    if not collection_path.name.startswith("test_"):
        return None
    room = config.getoption("--room")
    elsewhere = room and not rooms.concerns(room, collection_path)
    quick = config.option.markexpr == "deep" and "deep" not in collection_path.read_text("utf-8")
    return True if elsewhere or quick else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest first, so that no process is at one of them when the others end.

    All that waits stays in its process for minutes, beside which others had better compute; then
    come files that are long, and those with deep tests. Before them come those of the room that is
    asked for, then those that use it, which notice a fault in it soonest.
    """
    room = config.getoption("--room") or ""
    deep = {item.path for item in items if item.get_closest_marker("deep")}

    def place(item: pytest.Item) -> tuple[int | bool, ...]:
        firsts = (not item.nodeid.startswith(some) for some in (WAITING, COMPUTING, LONG))
        return rooms.steps(room, item.path), *firsts, item.path not in deep

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than processors: many tests wait, for runs of their own or for a clock.

    Of deep tests alone two folders do little else.
    """
    return min(4, len(os.sched_getaffinity(0)) + (2 if config.option.markexpr == "deep" else 1))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Spread by files, in the order in which they stand, whatever ``--dist`` says."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid.startswith(SHIPPED) and "[" in nodeid:
                return f"{SHIPPED}[{nodeid.partition('[')[2]}"  # a page, in all its views
            if nodeid.startswith(BUILT):
                return BUILT[0]
            waits = (folder for folder in WAITING if nodeid.startswith(folder))
            return next(waits, None) or super()._split_scope(nodeid)

    config.option.loadscopereorder = False
    return Together(config, log)
