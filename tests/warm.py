"""What every process of the tests would do for itself, once before the first of them begins."""

from __future__ import annotations

import compileall
import subprocess
import sys
from pathlib import Path

import pytest

from hdica.process.compile_cache import COMPILED, PACKAGE, nothing_compiled

HERE = Path(__file__).parent


def warm(config: pytest.Config) -> None:
    """Compile hdica and its tests, and the kernels if none is: they beside the tests' asserts."""
    # With PYTHONDONTWRITEBYTECODE every command that a test starts would compile hdica anew.
    for folder in (PACKAGE, HERE):
        compileall.compile_dir(folder, quiet=2)
    running = _kernels() if nothing_compiled() else []
    _asserts(config)
    for one in running:
        one.wait()


def _kernels() -> list[subprocess.Popen[bytes]]:
    """Two processes, each of which compiles half of all kernels.

    What systems share comes first, each folder of it in one process, and a system's own in one.
    """
    modules = [
        ("hdica", *path.relative_to(PACKAGE).with_suffix("").parts)
        for folder in COMPILED
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        if "cache=True" in path.read_text()
    ]
    apart = [module[:3] for module in modules if module[1] == "systems"]
    order = [module[:2] for module in modules if module[1] != "systems"] + apart
    order = list(dict.fromkeys(order))
    halves = []
    for k in range(2):
        mine = [m for top in order[k::2] for m in modules if m[: len(top)] == top]
        halves.append(f"import {', '.join('.'.join(module) for module in mine)}")
    return [subprocess.Popen([sys.executable, "-c", half]) for half in halves]


def _asserts(config: pytest.Config) -> None:
    """Rewrite the asserts of all tests, where the processes look for what pytest has rewritten.

    All would do it at the same time, for ten seconds each; with PYTHONDONTWRITEBYTECODE, at
    every start. Nothing of pytest's does it without running the tests' modules: should its own
    functions change, each process rewrites for itself again.
    """
    try:
        from _pytest.assertion import rewrite

        state = config.stash[rewrite.assertstate_key]
        for path in sorted([*HERE.rglob("test_*.py"), *HERE.rglob("conftest.py")]):
            kept = rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)
            if rewrite._read_pyc(path, kept) is None and rewrite.try_makedirs(kept.parent):
                source, code = rewrite._rewrite_test(path, config)
                rewrite._write_pyc(state, code, source, kept)
    except (ImportError, AttributeError, KeyError, TypeError, ValueError):
        return
