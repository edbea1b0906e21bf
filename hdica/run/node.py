"""What runs in Dask's servers; ``python -P -m hdica.run.node`` starts them by hand.

It takes ``scheduler`` or ``worker`` and the arguments that ``dask`` takes for it. A scheduler has
web pages with ``--dashboard`` alone: then every user of the machine can read them.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import Scheduler, Worker
from distributed.core import Status

from hdica.process.private import HOST, NO_HOST, is_loopback, is_same
from hdica.run.processes import for_children, own_dask, unload

if TYPE_CHECKING:
    from tornado.httpserver import HTTPServer

PAGES, NO_PAGES = "--dashboard", ("--no-dashboard", "--dashboard-address", f"{HOST}:0")
LOOK = 0.1  # seconds between looks at whether a block has ended
REPORTED = 0.5  # seconds after which the scheduler knows of a block that has ended


class DrainingWorker(Worker):
    """A worker that begins no block after its lifetime and closes when the last one has ended.

    Dask's own worker gives its block away at the end of its lifetime: another one begins it anew.
    Use it with ``--worker-class hdica.run.node.DrainingWorker --lifetime 55m``.
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
            await asyncio.sleep(REPORTED)
        await super().close_gracefully(restart=restart, reason=reason)


def dask_setup(server: Worker | Scheduler) -> None:
    """Called by Dask when a scheduler or a worker starts: no web pages, no code in its folder.

    Pages of ``--dashboard``, on this machine alone, answer under its own names alone.
    """
    import dask

    if isinstance(server, Worker):
        unload(Path(server.local_directory).parent)
    elif dask.config.get("distributed.scheduler.http.routes"):
        if server.http_server.address in (HOST, "::1"):
            _check_hosts(server.http_server)
        return
    server.http_server.stop()
    del server.services["dashboard"]


def _check_hosts(server: HTTPServer) -> None:
    """Refuse what is sent to a server under another name, or by a page of another address.

    Bokeh lets any page open a websocket, and every browser that shows one reaches this machine.
    """
    from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest
    from tornado.routing import Router
    from tornado.web import Application, RequestHandler

    class Refused(RequestHandler):
        def prepare(self) -> None:
            self.set_status(403)
            self.finish(f"403: the scheduler {NO_HOST}, and no page of another address\n")

    answers, refusing = server.request_callback, Application([(r".*", Refused)])

    class Names(Router):
        def find_handler(
            self, request: HTTPServerRequest, **kwargs: Any
        ) -> HTTPMessageDelegate | None:
            own = is_loopback(request.host) and is_same(request.headers.get("Origin"), request.host)
            chosen = answers if own else refusing
            return chosen.find_handler(request, **kwargs)

    server.request_callback = Names()


def main() -> None:
    """Run the scheduler or the workers until they end."""
    from distributed.cli import dask_scheduler, dask_worker

    kind, *arguments = sys.argv[1:] or [""]
    kinds = {"scheduler": dask_scheduler, "worker": dask_worker}
    if kind not in kinds:
        sys.exit(f"hdica: {kind!r} is not allowed ({' or '.join(kinds)}, and the options of dask)")
    with for_children(), own_dask(PAGES in arguments):
        kinds[kind].main([*NO_PAGES, *arguments], prog_name=f"dask {kind}")


if __name__ == "__main__":
    main()
