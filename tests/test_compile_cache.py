"""Compiled code on disk follows every source it was made of, and damage costs a compilation."""

import os
import runpy
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest

from hdica.process import function_cache
from hdica.process.compile_cache import COMPILED, drop_stale, guard


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for folder in COMPILED:
        (tmp_path / folder / "__pycache__").mkdir(parents=True)
        (tmp_path / folder / "code.py").write_text("x = 1\n")
    drop_stale(tmp_path)
    return tmp_path


def compiled(package: Path) -> Path:
    path = package / "limits" / "__pycache__" / "other.f-1.py311.nbi"
    path.write_text("compiled")
    return path


def test_an_unchanged_source_keeps_the_cache(package: Path) -> None:
    path = compiled(package)
    assert not drop_stale(package)
    assert path.exists()


@pytest.mark.parametrize("folder", COMPILED)
def test_a_change_anywhere_drops_it_once(package: Path, folder: str) -> None:
    path, source = compiled(package), package / folder / "code.py"
    before = source.stat()
    source.write_text("x = 2\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert drop_stale(package)
    assert not path.exists()
    assert not drop_stale(package)


def test_a_new_file_drops_it(package: Path) -> None:
    path = compiled(package)
    (package / "finite" / "more.py").write_text("y = 1\n")
    assert drop_stale(package)
    assert not path.exists()


def test_a_folder_that_cannot_be_written_to_is_left_alone(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError

    (package / "finite" / "more.py").write_text("y = 1\n")
    monkeypatch.setattr(Path, "write_text", refuse)
    assert not drop_stale(package)


def add(folder: Path) -> Any:
    """A function that numba compiles once a machine, as a new process has it."""
    source = folder / "added.py"
    if not source.exists():
        source.write_text("def add(x):\n    return x + 1.5\n")
    return numba.njit("float64(float64)", cache=True)(runpy.run_path(str(source))["add"])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of compiled functions that has one of hdica's own."""
    guard()
    monkeypatch.setattr(function_cache, "PACKAGE", tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    assert not add(tmp_path).stats.cache_hits
    assert add(tmp_path).stats.cache_hits
    return tmp_path


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def flip(file: Path) -> None:
    """One wrong bit in the middle, which of compiled code would compute something else."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def zero(file: Path) -> None:
    """What a power failure leaves of a file whose end had not reached the disk."""
    content = file.read_bytes()
    file.write_bytes(content[:-600] + bytes(600))


def lock(file: Path) -> None:
    """Something that can be neither read nor replaced, even by root."""
    file.unlink()
    file.mkdir()
    (file / "in").touch()


@pytest.mark.filterwarnings("ignore:no compiled function can be written")
@pytest.mark.parametrize("damage", [empty, cut, flip, zero, lock])
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_damaged_cache_costs_a_compilation_and_heals(
    cache: Path, damage: Callable[[Path], None], suffix: str
) -> None:
    (file,) = cache.rglob(f"*{suffix}")
    damage(file)
    again = add(cache)
    assert (again(1.0), bool(again.stats.cache_hits)) == (2.5, False)
    assert bool(add(cache).stats.cache_hits) == (damage is not lock)


def test_a_cache_of_numba_alone_is_read_but_for_our_own_functions(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in cache.rglob("*.nb[ic]"):
        file.write_bytes(file.read_bytes().rpartition(function_cache.MARK)[0])
    monkeypatch.setattr(function_cache, "PACKAGE", cache / "elsewhere")
    assert add(cache).stats.cache_hits
    monkeypatch.setattr(function_cache, "PACKAGE", cache)
    assert not add(cache).stats.cache_hits
    # And numba alone reads what is written here.
    dispatcher = "numba.core.dispatcher.FunctionCache"
    monkeypatch.setattr(dispatcher, function_cache.FunctionCache)
    assert add(cache).stats.cache_hits


def test_numba_has_this_cache_as_soon_as_it_is_imported() -> None:
    code = (
        "import sys, hdica.limits; assert 'numba' not in sys.modules; "
        "import numba.core.dispatcher as d; print(d.FunctionCache.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "hdica.process.function_cache\n"


def test_where_there_is_no_folder_it_costs_a_compilation() -> None:
    guard()
    function_cache.say_once.cache_clear()
    code = compile("lambda x: x + 1.5", "nowhere.py", "eval")
    function = types.FunctionType(code.co_consts[0], {"__name__": "nowhere"})
    with pytest.warns(match=r"no compiled function can be written to .* compiles them again"):
        assert numba.njit("float64(float64)", cache=True)(function)(1.0) == 2.5
