"""Nothing outside a system's own folder names a system, one of its methods or order parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import hdica
from hdica.systems.method import Role
from hdica.systems.registry import systems

PACKAGE = Path(hdica.__file__).parent
SYSTEMS = PACKAGE / "systems"
LIST = SYSTEMS / "built_in.py"
FAMILIES = ("projected",)
"""Folders of systems/ that belong to several systems, which share their methods' names."""
FILES = sorted(
    path
    for path in PACKAGE.rglob("*.py")
    if path != LIST and not (path.is_relative_to(SYSTEMS) and path.parent != SYSTEMS)
)


def names() -> frozenset[str]:
    """What must not be named: words that hdica's own functions and roles have are no names."""
    records = [record for record in systems().values() if record.name != "Toy"]
    found = {record.name for record in records}
    found |= {method.name for record in records for method in record.methods}
    found |= {one.name for record in records for one in record.order_parameters}
    return frozenset(found - {str(role) for role in Role} - set(vars_of_hdica()))


def vars_of_hdica() -> list[str]:
    """Names of functions that belong to no system."""
    return list(hdica._HOME)


def docstrings(tree: ast.AST) -> set[int]:
    """Strings that are statements: docstrings, and those below constants."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def named(source: str, forbidden: frozenset[str], own: str = "") -> Iterator[tuple[int, str]]:
    """Lines that name what is forbidden, with the name."""
    tree = ast.parse(source)
    silent = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value in forbidden and id(node) not in silent:
                yield node.lineno, node.value
        elif isinstance(node, ast.Name) and node.id in forbidden and node.id in systems():
            yield node.lineno, node.id
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            inside = parts[:2] == ["hdica", "systems"] and len(parts) > 2
            folder = parts[2] if inside and (SYSTEMS / parts[2]).is_dir() else ""
            if folder and folder not in (own, *FAMILIES):
                yield node.lineno, node.module


@pytest.mark.parametrize("path", FILES, ids=[str(p.relative_to(PACKAGE)) for p in FILES])
def test_no_line_names_a_system(path: Path) -> None:
    found = [
        f"{path.name}:{line} names {name!r}" for line, name in named(path.read_text(), names())
    ]
    assert not found
