"""Nothing outside a system's own folder names a system, one of its methods or order parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import hdica
from hdica.analysis.registry import analyses
from hdica.systems.method import Role
from hdica.systems.system import systems

PACKAGE = Path(hdica.__file__).parent
SYSTEMS = PACKAGE / "systems"
LIST = SYSTEMS / "built_in.py"
FAMILIES = ("projected", "rules")
"""Folders of systems/ that belong to several systems, which share their methods' names."""
WORDS = frozenset({"overlap", "P"})
"""Words of all: whatever is learned has an overlap, and so has a start; P is a type."""
KEPT = {
    "analysis/steady/transition.py": "Q",
    "ingredients/plain.py": "vector",
    "ingredients/schedules.py": "observed",
    "ingredients/update.py": "v",
}
"""Names of columns in files that users have, keys of theirs, and a variable of their formulas."""
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
    # A method may be called like what it gives, or like the analysis that shows it.
    outputs = {
        o.name for record in records for method in record.methods for o in method.outputs.always
    }
    found -= set(analyses()) | outputs
    found |= {one.name for record in records for one in record.order_parameters}
    return frozenset(found - {str(role) for role in Role} - set(vars_of_hdica()) - WORDS)


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


def test_no_line_names_a_system() -> None:
    forbidden, found = names(), []
    for path in FILES:
        place = path.relative_to(PACKAGE).as_posix()
        lines = named(path.read_text(), forbidden - {KEPT.get(place, "")})
        found += [f"{place}:{line} names {name!r}" for line, name in lines]
    assert not found


ACROSS = ("hebbian_ica/api.py", "online_rule/system.py")
"""Where one system leads to another."""
INSIDE = sorted(
    path
    for path in SYSTEMS.rglob("*.py")
    if path.parent != SYSTEMS and path.relative_to(SYSTEMS).as_posix() not in ACROSS
)


def test_a_system_and_a_family_name_no_other_system() -> None:
    homes = {name: record.parameters.__module__ for name, record in systems().items()}
    found = []
    for path in INSIDE:
        place = path.relative_to(SYSTEMS)
        own = place.parts[0]
        others = [n for n, home in homes.items() if not home.startswith(f"hdica.systems.{own}.")]
        lines = named(path.read_text(), frozenset(others), own)
        found += [f"{place.as_posix()}:{line} names {name!r}" for line, name in lines]
    assert not found


@pytest.mark.parametrize(
    "source",
    [
        "x = 'OnlineICA'",
        "def f(data):\n    return data['R']",
        "if method.name == 'pde':\n    pass",
        "USUAL = {'tau': ['chain', 'vector']}",
        "from hdica.systems.sparse_pca.system import drift",
        "def f(system):\n    from hdica.systems.hebbian_ica import fields",
        "isinstance(system, HebbianICA)",
    ],
)
def test_a_name_that_is_put_there_is_found(source: str) -> None:
    assert list(named(source, names()))


def test_a_docstring_may_have_an_example() -> None:
    assert not list(named('"""Such as OnlineICA."""\n\ndef f():\n    """Q"""\n', names()))
