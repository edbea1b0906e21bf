"""How tests are spread over processes: a file stays together, and so does everything on Slurm."""

from __future__ import annotations

import os
from typing import Any

import pytest

SLURM = "tests/cluster/"
# Nothing here outlives the power, but for what tests/power runs on purpose.
os.environ.setdefault("HDICA_SYNC", "off")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first, so that no process is at one of them when the others end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One process more than processors: many tests wait, for runs of their own or for a clock."""
    return min(4, 1 + len(os.sched_getaffinity(0)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Spread by files, in the order in which they stand, whatever ``--dist`` says."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            # One Slurm at a time fits on a machine: its configuration lies in /etc.
            return SLURM if nodeid.startswith(SLURM) else super()._split_scope(nodeid)

    config.option.loadscopereorder = False
    return Together(config, log)
