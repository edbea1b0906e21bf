"""Which tests concern a room, a folder or a module of ``hdica/``: its own and those of rooms above.

A room is above another if it imports it, directly or not. A test of a room may use others, as one
of the sweep that calls the command line: it concerns them, too.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import grimp

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "hdica"
COMMANDS = "command"
OF_OTHERS = {
    "bars": "limits",
    "benchmarks": "finite",
    "browser": "report",
    "cluster": "sweep",
    "errata": "systems",
    "faults": "sweep",
    "fuzz": "sweep",
    "hostile_users": "sweep",
    "power": "sweep",
    "workflow": COMMANDS,
}
"""Folders of tests that have not the name of a room, and the room that they test."""


def names() -> list[str]:
    """Every room."""
    return sorted(
        path.stem
        for path in PACKAGE.iterdir()
        if (path / "__init__.py").exists() or (path.suffix == ".py" and path.stem != "__init__")
    )


def of(path: Path) -> str:
    """The room that a file of tests is of."""
    folder = path.relative_to(HERE).parts[0] if path.parent != HERE else COMMANDS
    return OF_OTHERS.get(folder, folder)


@cache
def used(path: Path) -> frozenset[str]:
    """The rooms that a file of tests names."""
    names = re.findall(r"\bhdica(?:\.| import )(\w+)", path.read_text(encoding="utf-8"))
    return frozenset(names)


def concerns(room: str, path: Path) -> bool:
    """Whether a file of tests is of a room or of one above it, or uses one."""
    return not above(room).isdisjoint({of(path), *used(path)})


def steps(room: str, path: Path) -> int:
    """0 for a file of tests of a room, 1 for one that uses it, 2 for all others."""
    return 0 if of(path) == room else 1 if room in used(path) else 2


@cache
def above(room: str) -> frozenset[str]:
    """A room and the rooms that import it, directly or not."""
    graph = grimp.build_graph("hdica", cache_dir=None)
    for name in names():
        if graph.find_children(f"hdica.{name}"):
            graph.squash_module(f"hdica.{name}")
    found = graph.find_downstream_modules(f"hdica.{room}")
    return frozenset({room, *(name.removeprefix("hdica.") for name in found)})
