"""How much longer kernels take where registers are narrow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hdica.process import speed


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    speed.slowness.cache_clear()
    yield
    speed.slowness.cache_clear()


@pytest.mark.parametrize(
    ("current", "expected"),
    [("X86_V4", 1.0), ("AVX512_SKX", 1.0), ("X86_V3", speed.NARROW), ("NEON", speed.NARROW)],
)
def test_kernels_cost_more_where_logarithms_are_computed_in_narrow_registers(
    monkeypatch: pytest.MonkeyPatch, current: str, expected: float
) -> None:
    asked = []

    def told(name: str, kind: str) -> dict[str, dict[str, dict[str, str]]]:
        asked.append((name, kind))
        return {"log": {"dd": {"current": current, "available": "X86_V4 X86_V3"}}}

    monkeypatch.setattr(np.lib.introspect, "opt_func_info", told)
    assert speed.slowness() == expected
    assert speed.slowness() == expected
    assert asked == [("^log$", "float64")]


def test_numpy_tells_how_it_computes_logarithms() -> None:
    found = np.lib.introspect.opt_func_info("^log$", "float64")
    assert [one["current"] for ways in found.values() for one in ways.values()]
    assert speed.slowness() in (1.0, speed.NARROW)
