"""Power losses in small; ``python -m tests.power --operations 2000`` does it at length."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.faults.nursery import ROOT
from tests.power.trace import why_not

WHY = why_not()
RUNS = 8
pytestmark = [
    pytest.mark.faults,
    pytest.mark.deep,
    pytest.mark.skipif(bool(WHY), reason=WHY),
]


def test_a_power_loss_at_any_moment_loses_nothing_that_was_committed_or_published() -> None:
    """Looks after every operation that was recorded, and the next run after some of them."""
    command = [sys.executable, "-m", "tests.power", "--suite", "--states", str(RUNS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == [], found["wrong"][:5]
    assert found["runs"] == RUNS
    assert found["moments"] > 500
    assert found["looks"] > 100
    # The same with no sync at all: each look sees it.
    assert found["seen"] == found["control"] > 10
