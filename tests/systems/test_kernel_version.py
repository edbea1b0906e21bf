"""A change of the numerical code cannot pass without a new version of its folder."""

import ast
import hashlib
import json
from functools import cache
from pathlib import Path

import pytest

from hdica.systems.method import BASE, KERNEL_VERSION, kernel_of, version_of
from hdica.systems.system import systems
from tests.systems.reach import PACKAGE, folder_of, folders, reached

RECORD = Path(__file__).parent / "kernel_digest.json"
COMPUTING = ("ingredients", "inputs", "finite", "limits", "systems")
METHODS = [(name, m) for name, record in systems().items() for m in record.methods]


def _bare(path: Path) -> str:
    """A source without comments, docstrings and imports of our own: none can change a number."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        if body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                body.pop(0)
        ours = [
            one
            for one in body
            if isinstance(one, ast.ImportFrom) and str(one.module).startswith("hdica")
        ]
        for one in ours:
            body.remove(one)
    return ast.unparse(tree)


def sources(folder: str) -> list[Path]:
    """Files of a folder at any depth, without those of folders inside it that have a version."""
    root, known = PACKAGE.joinpath(*folder.split(".")[1:]), folders()
    found = []
    for path in (*root.rglob("*.py"), *root.parent.glob(f"{root.name}.py")):
        module = ".".join(("hdica", *path.relative_to(PACKAGE).with_suffix("").parts))
        if folder_of(module, known) == folder and path.name != "__init__.py":
            found.append(path)
    return sorted(found)


@cache
def digests() -> dict[str, dict[str, object]]:
    """Version and digest of every folder; where a file lies in it, and its name, do not matter."""
    found = {}
    for folder in folders():
        each = sorted(hashlib.sha256(_bare(p).encode()).hexdigest() for p in sources(folder))
        whole = hashlib.sha256("".join(each).encode()).hexdigest()
        found[folder] = {"version": version_of(folder), "digest": whole}
    return found


@pytest.mark.deep
@pytest.mark.parametrize("folder", folders())
def test_the_version_of_a_folder_belongs_to_its_sources(folder: str) -> None:
    record = json.loads(RECORD.read_text())
    assert record.get(folder) == digests()[folder], (
        f"the numerical sources of {folder} changed: if any number can change, raise VERSION in "
        "its __init__.py; then run python -m tests.systems.test_kernel_version"
    )


def test_every_file_that_computes_is_in_a_guarded_folder() -> None:
    guarded = {path for folder in folders() for path in sources(folder)}
    there = {
        path
        for top in COMPUTING
        for path in (PACKAGE / top).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert guarded == there


@pytest.mark.parametrize(("name", "method"), METHODS, ids=[f"{n}-{m.name}" for n, m in METHODS])
def test_a_method_declares_the_folders_that_its_code_reaches(name: str, method: object) -> None:
    assert set(method.about.engines) == reached(method)  # type: ignore[attr-defined]


def test_a_new_version_of_a_folder_is_told_to_those_that_use_it_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import hdica.ingredients as other
    import hdica.limits.overlap as folder

    monkeypatch.setattr(folder, "VERSION", BASE)
    monkeypatch.setattr(other, "VERSION", BASE)
    assert kernel_of(["hdica.limits.overlap", "hdica.ingredients"]) == KERNEL_VERSION == str(BASE)
    monkeypatch.setattr(folder, "VERSION", 5)
    assert kernel_of(["hdica.limits.overlap", "hdica.ingredients"]) == "4, limits.overlap 5"
    assert kernel_of(["hdica.limits.numerics", "hdica.ingredients"]) == "4"
    assert kernel_of(["tests.systems", "hdica.ingredients"]) == "4, tests.systems 1"


if __name__ == "__main__":
    RECORD.write_text(json.dumps(digests(), indent=1) + "\n")
