"""Workers that end their block before they close."""

from __future__ import annotations

import asyncio
from typing import Any

from distributed import Worker
from distributed.core import Status

LOOK = 0.1
"""Seconds between looks at whether a block has ended."""
TOLD = 0.5
"""Seconds after which the scheduler knows of a block that has ended."""


class DrainingWorker(Worker):
    """A worker that begins no block after its lifetime and closes when the last one has ended.

    Dask's own worker gives its block away at the end of its lifetime: another one begins it anew.
    Use it with ``--worker-class hdica.sweep.workers.draining.DrainingWorker --lifetime 55m``.
    """

    async def close_gracefully(
        self, restart: bool | None = None, reason: str = "worker-close-gracefully"
    ) -> None:
        """Close after the block that is being computed."""
        worker: Any = self
        if worker.status == Status.running:
            worker.memory_manager.memory_pause_fraction = False  # below it, it would go on
            worker.status = Status.paused
            while worker.state.executing and worker.status == Status.paused:
                await asyncio.sleep(LOOK)
            await asyncio.sleep(TOLD)
        await super().close_gracefully(restart=restart, reason=reason)
