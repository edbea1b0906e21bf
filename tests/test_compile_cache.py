"""Compiled code on disk follows every source it was made of, and damage costs a compilation."""

import os
import runpy
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest

from hdica.process import compile_cache
from hdica.process.compile_cache import COMPILED, UNUSED_SECONDS, set_cache_folder


def put(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let numba keep compiled functions in a folder."""
    monkeypatch.setenv(compile_cache.PLACE, str(folder))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a source in each folder; its compiled functions lie beside it."""
    for folder in COMPILED:
        (tmp_path / "package" / folder).mkdir(parents=True)
        (tmp_path / "package" / folder / "code.py").write_text("x = 1\n")
    put(tmp_path / "cache", monkeypatch)
    return tmp_path / "package"


def folder_of(package: Path) -> Path:
    """The folder that a new process takes."""
    found = set_cache_folder.__wrapped__(package)
    assert numba.config.CACHE_DIR == os.environ[compile_cache.PLACE] == str(found)
    return found


def test_unchanged_sources_keep_their_folder(package: Path) -> None:
    folder = folder_of(package)
    assert folder.parent == package.parent / "cache"
    source = package / "limits" / "code.py"
    os.utime(source, (1.0, 1.0))
    # It is not made again below the folder that a parent process has chosen.
    assert folder_of(package) == folder


@pytest.mark.parametrize("folder", COMPILED)
def test_a_change_anywhere_is_another_folder(package: Path, folder: str) -> None:
    before, source = folder_of(package), package / folder / "code.py"
    about = source.stat()
    source.write_text("x = 2\n")
    os.utime(source, ns=(about.st_atime_ns, about.st_mtime_ns))
    after = folder_of(package)
    assert (after.parent, before.exists()) == (before.parent, True)
    assert after != before
    source.write_text("x = 1\n")
    assert folder_of(package) == before


def test_a_new_file_and_a_new_name_are_other_folders(package: Path) -> None:
    found = [folder_of(package)]
    (package / "finite" / "more.py").write_text("y = 1\n")
    found.append(folder_of(package))
    (package / "finite" / "more.py").rename(package / "finite" / "other.py")
    found.append(folder_of(package))
    assert len(set(found)) == 3


def test_folders_of_other_sources_are_removed_when_nobody_has_used_them(package: Path) -> None:
    old, used = folder_of(package), time.time() - UNUSED_SECONDS
    (package / "finite" / "code.py").write_text("x = 2\n")
    names = ["compiled-0123456789abcdef", "compiled-mine", "compiled-00"]
    late, *foreign = [old.with_name(name) for name in names]
    for folder in (late, *foreign):
        folder.mkdir()
        os.utime(folder, (used + 600, used + 600) if folder is late else (1.0, 1.0))
    (old / "functions").mkdir()
    os.utime(old, (used - 600, used - 600))
    new = folder_of(package)
    assert sorted(new.parent.iterdir()) == sorted([new, late, *foreign])
    os.utime(new, (1.0, 1.0))
    assert folder_of(package).stat().st_mtime > used, "it is in use again"


def add(folder: Path) -> Any:
    """A function that numba compiles once a machine, as a new process has it."""
    source = folder / "added.py"
    if not source.exists():
        source.write_text("def add(x):\n    return x + 1.5\n")
    return numba.njit("float64(float64)", cache=True)(runpy.run_path(str(source))["add"])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of compiled functions that has one."""
    set_cache_folder()
    put(tmp_path / "cache", monkeypatch)
    with warnings.catch_warnings(action="error"):  # of a function that cannot be written
        assert not add(tmp_path).stats.cache_hits
    assert add(tmp_path).stats.cache_hits, sorted((tmp_path / "cache").rglob("*"))
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
def test_a_damaged_cache_costs_a_compilation_and_heals(
    cache: Path, damage: Callable[[Path], None]
) -> None:
    (file,) = (path for path in cache.rglob("*") if path.is_file() and path.suffix != ".py")
    damage(file)
    again = add(cache)
    assert (again(1.0), bool(again.stats.cache_hits)) == (2.5, False)
    assert bool(add(cache).stats.cache_hits) == (damage is not lock)


def test_what_was_compiled_for_another_key_is_not_loaded(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = cache.rglob("*.nbc")
    monkeypatch.setattr(compile_cache, "_path", lambda files, key: file)
    other = numba.njit("float64(float32)", cache=True)(add(cache).py_func)
    assert not other.stats.cache_hits
    assert not add(cache).stats.cache_hits, "the file is the other's now"


@pytest.mark.parametrize("of", ["numba", "llvmlite"])
def test_another_version_of_the_compiler_compiles_anew(
    cache: Path, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{of}.__version__", "0.0")
    assert not add(cache).stats.cache_hits
    assert add(cache).stats.cache_hits


def test_a_function_can_be_compiled_again(cache: Path) -> None:
    again, (before,) = add(cache), cache.rglob("*.nbc")
    again.recompile()
    (after,) = cache.rglob("*.nbc")
    # numba has another key for a signature without what the function returns.
    assert (again(1.0), after == before) == (2.5, False)


def test_a_function_without_a_source_is_not_kept(cache: Path) -> None:
    """Of such a one nobody could say whether it has changed."""
    code = compile("lambda x: x + 1.5", "nowhere.py", "eval")
    function = types.FunctionType(code.co_consts[0], {"__name__": "nowhere"})
    with pytest.raises(RuntimeError, match="no locator available"):
        numba.njit("float64(float64)", cache=True)(function)


def test_files_elsewhere_are_never_taken_instead(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """numba alone would take those beside the source, which may be of another day."""
    compile_cache._warn_once.cache_clear()
    folder = cache / "file"
    folder.touch()  # nothing can be made below it
    put(folder, monkeypatch)
    with pytest.warns(match=r"no compiled .* written to .* \(Not a directory\): .* compiles them"):
        assert add(cache)(1.0) == 2.5
    assert not (cache / "__pycache__").exists()


def test_another_way_to_find_files_is_not_asked(cache: Path) -> None:
    code = "import hdica.limits.numerics.compiled as d; print(d.interpolate.stats.cache_path)"
    wanted = {"NUMBA_CACHE_LOCATOR_CLASSES": "InTreeCacheLocator"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **wanted},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout).is_relative_to(cache / "cache")


@pytest.mark.parametrize("first", ["hdica.limits", "numba"])
def test_numba_has_this_cache_as_soon_as_both_are_imported(first: str) -> None:
    code = (
        f"import sys, {first}; assert ('numba' in sys.modules) == ({first!r} == 'numba'); "
        "import hdica.limits, numba.core.caching as c; "
        "print(c.IndexDataCacheFile.load.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "hdica.process.compile_cache\n"
