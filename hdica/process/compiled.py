"""Which compiled functions are there already, and which are compiled first.

numba compiles a function once a machine and keeps it beside its source, or in ``NUMBA_CACHE_DIR``.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from hdica.errors import HdicaError
from hdica.process.compile_cache import COMPILED, PACKAGE

KEPT = re.compile(r"^@(?:numba\.)?(?:njit|jit|vectorize|guvectorize|stencil)\b", re.MULTILINE)
"""Head of a function that is compiled."""
PLACE = "NUMBA_CACHE_DIR"
THREADS = "NUMBA_NUM_THREADS"
PLAIN = "NUMBA_DISABLE_JIT"
"""Variable by which numba compiles nothing, and Python runs the functions."""


def sources(package: str) -> list[Path]:
    """Sources of a package of hdica in which functions are compiled; none of other packages.

    Folders inside it that have a version of their own are packages of their own.
    """
    _, *parts = package.split(".")
    if not parts or parts[0] not in COMPILED or not package.startswith("hdica."):
        return []
    found: list[Path] = []
    for folder, names, files in os.walk(PACKAGE.joinpath(*parts)):
        names[:] = [name for name in names if not _versioned(Path(folder, name))]
        found += [Path(folder, name) for name in files if name.endswith(".py")]
    return sorted(found)


@cache
def _versioned(folder: Path) -> bool:
    """Whether a folder says its own version of its numerical code."""
    start = folder / "__init__.py"
    return start.is_file() and "\nVERSION = " in f"\n{start.read_text(encoding='utf-8')}"


def _kept(source: Path) -> bool:
    """Whether a cache holds any function of a source."""
    folders = [source.parent / "__pycache__"]
    if given := os.environ.get(PLACE):
        folders = [*Path(given).glob(f"{source.parent.name}_*")]
    return any(True for folder in folders for _ in folder.glob(f"{source.stem}.*.nbi"))


def is_cold(module: str) -> bool:
    """Whether no cache holds any function of a module of hdica."""
    _, *parts = module.split(".")
    return not _kept(PACKAGE.joinpath(*parts).with_suffix(".py"))


def cold(packages: Iterable[str]) -> int:
    """How many functions are compiled first where some packages compute.

    A package counts if no cache holds any of its functions: of one that was used before, nobody
    knows which ones the next method needs.

    Parameters
    ----------
    packages
        Such as the ``engines`` of a method.
    """
    count = 0
    for package in set(packages):
        found = {path: _functions(path) for path in sources(package)}
        having = {path: number for path, number in found.items() if number}
        if not any(map(_kept, having)):
            count += sum(having.values())
    return count


@cache
def _functions(source: Path) -> int:
    """How many functions of a source are compiled."""
    return len(KEPT.findall(source.read_text(encoding="utf-8")))


def refuse_interpreter() -> None:
    """Refuse to simulate where numba compiles nothing.

    Random numbers are drawn side by side by instructions that Python itself does not have.
    """
    config = sys.modules.get("numba.core.config")
    value = os.environ.get(PLAIN, "") if config is None else config.DISABLE_JIT
    if str(value).strip() not in ("", "0"):
        raise HdicaError(
            f"{PLAIN} = {value} is not allowed with simulations (they are compiled with vector "
            "instructions that Python lacks; unset it: limits alone can be computed without)"
        )


def refuse_threads() -> None:
    """Refuse a number of threads with which numba cannot be imported, or is with a traceback."""
    given = os.environ.get(THREADS)
    if given is None or "numba.core.config" in sys.modules:
        return
    with suppress(ValueError):
        if int(given) > 0:
            return
    raise HdicaError(
        f"{THREADS} = {given!r} is not allowed (a whole number above 0, or unset it: functions of "
        "hdica use one thread)"
    )


@contextmanager
def heard(say: Any) -> Iterator[None]:
    """Call ``say(name)`` with every function that numba begins to compile in the body."""
    from numba.core import event

    class Told(event.Listener):
        def on_start(self, found: Any) -> None:
            say(found.data["dispatcher"].py_func.__name__)

        def on_end(self, found: Any) -> None:
            """Nothing is said of the end."""

    listener = Told()
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)
