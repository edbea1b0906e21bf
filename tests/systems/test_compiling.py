"""What a plan knows of compiling: times that are recorded for every method, of modules in use."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import hdica
from hdica.process import compiled
from hdica.systems import compiling
from hdica.systems.registry import systems
from hdica.systems.system import System

BUILT_IN = [one for one in systems().values() if one.parameters.__module__.startswith("hdica.")]
ICA = systems()["OnlineICA"]
VECTOR, CHAIN = (next(m for m in ICA.methods if m.name == name) for name in ("vector", "chain"))


@pytest.mark.parametrize("record", BUILT_IN, ids=lambda record: record.name)
def test_every_method_has_its_times_and_no_other(record: System) -> None:
    known = compiling.recorded(record.parameters)
    assert set(known) == {method.name for method in record.methods}


@pytest.mark.parametrize("record", BUILT_IN, ids=lambda record: record.name)
def test_times_are_those_of_modules_in_which_functions_are_compiled(record: System) -> None:
    root = Path(hdica.__file__).parents[1]
    for times in compiling.recorded(record.parameters).values():
        for module, seconds in times.items():
            source = root.joinpath(*module.split(".")).with_suffix(".py")
            assert compiled.KEPT.search(source.read_text(encoding="utf-8")), module
            assert 0 < seconds < 300


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, and two methods of which one uses a module of the other for longer."""
    times = {
        VECTOR.name: {"hdica.finite.one": 20.0, "hdica.finite.both": 3.0},
        CHAIN.name: {"hdica.finite.both": 5.0},
    }
    (tmp_path / compiling.RECORDED).write_text(json.dumps(times))
    monkeypatch.setattr(compiling, "place", lambda parameters: tmp_path / compiling.RECORDED)
    monkeypatch.setattr(compiling, "recorded", compiling.recorded.__wrapped__)
    monkeypatch.setattr(compiled, "PACKAGE", tmp_path)
    monkeypatch.delenv(compiled.PLACE, raising=False)
    return tmp_path


def test_what_methods_share_is_compiled_once(cold: Path) -> None:
    assert compiling.compile_seconds(ICA, [VECTOR]) == 23
    assert compiling.compile_seconds(ICA, [CHAIN]) == 5
    assert compiling.compile_seconds(ICA, [VECTOR, CHAIN]) == 25


def test_what_a_cache_holds_is_not_compiled(cold: Path) -> None:
    cache = cold / "finite" / "__pycache__"
    cache.mkdir(parents=True)
    (cache / "one.steps-12.py311.nbi").touch()
    assert compiling.compile_seconds(ICA, [VECTOR, CHAIN]) == 5


def test_without_times_functions_are_counted(cold: Path) -> None:
    source = cold / "finite" / "some.py"
    source.parent.mkdir(exist_ok=True)
    source.write_text("import numba\n\n@numba.njit(cache=True)\ndef f(x):\n    return x\n")
    other = replace(VECTOR, name="other", engines=("hdica.finite",))
    assert compiling.compile_seconds(ICA, [other]) == compiling.EACH
