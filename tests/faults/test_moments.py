"""kill -9 at seeded moments, in small; ``python -m tests.faults.campaign`` does it at length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.crash import Crash
from tests.faults.moments import FAULTS, fraction

pytestmark = [pytest.mark.faults, pytest.mark.slow]

MOMENTS = {"worker": 2, "nanny": 2, "scheduler": 2, "driver": 1, "group": 2, "snakemake": 1}


@pytest.mark.parametrize("name", MOMENTS)
def test_a_kill_at_any_moment_loses_and_changes_nothing(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name](tmp_path)
    try:
        outcomes = [fault.trial(moment) for moment in range(MOMENTS[name])]
    finally:
        fault.close()
    assert any(outcome.hit for outcome in outcomes)
    assert name not in ("worker", "nanny") or all(outcome.alone for outcome in outcomes)


def test_a_kill_before_any_change_of_a_file_loses_and_changes_nothing(tmp_path: Path) -> None:
    crash = Crash(tmp_path)
    total = crash.count()
    assert total > 100
    operations = [1 + int(fraction(crash.name, moment)[0] * total) for moment in range(12)]
    assert crash.killed(operations) == [True] * len(operations)


def test_the_same_seed_is_the_same_moment() -> None:
    assert fraction("worker", 7) == fraction("worker", 7)
    assert len({fraction(name, k)[0] for name in FAULTS for k in range(50)}) == 50 * len(FAULTS)
