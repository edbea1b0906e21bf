"""What a kernel points at lives until the kernel ends.

Numba frees an array after the last use of its name, so one that is made in a kernel and used by
pointers alone would be written over by the next that needs memory.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import hdica

PACKAGE = Path(hdica.__file__).parent


def freed(source: str) -> Iterator[str]:
    """Arrays that functions make, point at, and neither keep nor hand out by name in a loop."""
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        made, pointed, kept = set[str](), dict[str, ast.Call](), set[str]()
        for node in ast.walk(function):
            if isinstance(node, ast.Assign):
                pairs = [(node.targets[0], node.value)]
                if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(node.targets[0].elts, node.value.elts, strict=True))
                made |= {
                    target.id
                    for target, value in pairs
                    if isinstance(target, ast.Name) and ast.unparse(value).startswith("np.")
                }
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
                name = node.args[0].id if isinstance(node.args[0], ast.Name) else ""
                if node.func.id == "keep_alive":
                    kept.add(name)
                if node.func.id == "pointer":
                    pointed[name] = node
        loops = [one for one in ast.walk(function) if isinstance(one, ast.For | ast.While)]
        for name, call in pointed.items():
            inside = any(call in ast.walk(loop) for loop in loops)
            if name in made and name not in kept and not inside:
                yield f"{function.name}: {name}"


KERNELS = sorted(path for path in PACKAGE.rglob("*.py") if "pointer(" in path.read_text())


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_arrays_that_are_pointed_at_are_kept(path: Path) -> None:
    assert not list(freed(path.read_text()))


def test_one_that_is_not_kept_is_seen() -> None:
    kernel = PACKAGE / "finite/rules/chain_kernels.py"
    without = kernel.read_text().replace("    keep_alive(roots)\n", "")
    assert list(freed(without)) == ["rule_chain_steps: roots"]


@pytest.mark.parametrize("start", [{"overlap": 0.1, "norm": 1.0}, {"overlap": [[0.1], [0.2]]}])
def test_constants_that_change_nothing_change_no_chain(start: dict[str, object]) -> None:
    """However many arguments the update has: their memory is of many sizes."""
    ends = []
    for count in range(13):
        some = [f"a{k}" for k in range(count)]
        rule = hdica.OnlineRule(
            update=" + ".join(["tau*(v + s*z - k*u)", *(f"{name}*u" for name in some)]),
            constants={"tau": 0.5, "s": 0.5, "k": 1.0, **dict.fromkeys(some, 0.0)},
            noise={"z": "gaussian"},
            start=start,
        )
        runs = hdica.simulate(rule, n=50, times=[0, 4], seeds=9, method="chain", noise="shared")
        ends.append(runs.P.isel(time=-1).to_numpy())
    for one in ends[1:]:
        assert abs(one / ends[0] - 1).max() < 1e-9
