"""How much longer kernels take where registers are narrow, and all else where code is slower."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hdica.process import machine


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    machine.slowness.cache_clear()
    machine.pace.cache_clear()
    yield
    machine.slowness.cache_clear()
    machine.pace.cache_clear()


@pytest.mark.parametrize(
    ("current", "expected"),
    [("X86_V4", 1.0), ("AVX512_SKX", 1.0), ("X86_V3", machine.NARROW), ("NEON", machine.NARROW)],
)
def test_kernels_cost_more_where_logarithms_are_computed_in_narrow_registers(
    monkeypatch: pytest.MonkeyPatch, current: str, expected: float
) -> None:
    asked = []

    def told(name: str, kind: str) -> dict[str, dict[str, dict[str, str]]]:
        asked.append((name, kind))
        return {"log": {"dd": {"current": current, "available": "X86_V4 X86_V3"}}}

    monkeypatch.setattr(np.lib.introspect, "opt_func_info", told)
    assert machine.slowness() == expected
    assert machine.slowness() == expected
    assert asked == [("^log$", "float64")]


def test_numpy_tells_how_it_computes_logarithms() -> None:
    found = np.lib.introspect.opt_func_info("^log$", "float64")
    assert [one["current"] for ways in found.values() for one in ways.values()]
    assert machine.slowness() in (1.0, machine.NARROW)


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_the_pace_is_that_of_the_quickest_of_some_loops(
    monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    # Whatever else runs makes a loop longer, never shorter.
    waits = iter(machine.LOOP * factor * np.array([1.7, 1.0, 9.0, 1.2, 1.1, 0.1]))
    monkeypatch.setattr(machine, "_interpreted", lambda: float(next(waits)))
    assert machine.pace() == pytest.approx(factor)
    assert machine.pace() == pytest.approx(factor)


def test_the_time_of_other_programs_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.time, "perf_counter", iter([0.0, 1.0]).__next__)
    monkeypatch.setattr(machine.time, "thread_time", iter([0.0, 0.003]).__next__)
    assert machine._interpreted() == 0.003


def test_a_loop_takes_milliseconds() -> None:
    assert 1e-4 < machine.pace() * machine.LOOP < 1.0
