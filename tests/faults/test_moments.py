"""kill -9 at seeded moments, in small; ``python -m tests.faults.campaign`` does it at length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.crash import Crash
from tests.faults.moments import FAULTS, fraction

pytestmark = pytest.mark.faults

MOMENTS = {"worker": 2, "nanny": 1, "scheduler": 1, "driver": 1, "group": 1, "snakemake": 1}
MOST = 8
"""Moments that are tried until one of them finds something to kill."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.deep] * (name != "nanny")) for name in MOMENTS]
)
def test_a_kill_at_any_moment_loses_and_changes_nothing(name: str, tmp_path: Path) -> None:
    fault, outcomes = FAULTS[name](tmp_path), []
    try:
        # Where runs have become faster since one was timed, all may have ended by then.
        while len(outcomes) < MOMENTS[name] or not any(each.hit for each in outcomes):
            assert len(outcomes) < MOST, "nothing was left to kill at any moment"
            outcomes.append(fault.trial(len(outcomes)))
    finally:
        fault.close()
    assert name not in ("worker", "nanny") or all(outcome.alone for outcome in outcomes)


@pytest.mark.deep
def test_a_kill_before_any_change_of_a_file_loses_and_changes_nothing(tmp_path: Path) -> None:
    crash = Crash(tmp_path)
    total = crash.count()
    assert total > 100
    operations = [1 + int(fraction(crash.name, moment)[0] * total) for moment in range(4)]
    assert crash.killed(operations) == [True] * len(operations)


def test_the_same_seed_is_the_same_moment() -> None:
    assert fraction("worker", 7) == fraction("worker", 7)
    assert len({fraction(name, k)[0] for name in FAULTS for k in range(50)}) == 50 * len(FAULTS)
