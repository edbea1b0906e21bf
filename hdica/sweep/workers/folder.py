"""Where Dask keeps its files, and no web pages: what its servers would open to other users.

By default the files are in ``dask-scratch-space`` among the temporary files, whoever made it, and
the folder comes first where Python looks for modules, in every process of a cluster. And by default
every scheduler and worker has an HTTP server, also without a dashboard: it tells any user of the
machine, and any web page that uses a name of its own for 127.0.0.1, what runs and where.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hdica.process.loopback import HOST, NO_HOST, is_loopback, is_same

PRELOAD = __name__
"""What Dask's schedulers and workers load, so that they call :func:`dask_setup`."""


@contextmanager
def own_folder(base: Path, pages: bool = False) -> Iterator[None]:
    """Let Dask's servers that are started here, and their workers, keep their files in a folder.

    It is made in a private one, and removed. The servers have no web pages, but with ``pages`` a
    scheduler has Dask's.
    """
    import dask
    import distributed  # noqa: F401  (its defaults must be there before ours come and go)

    ours: dict[str, Any] = {}
    for kind in ("worker", "scheduler"):
        given = dask.config.get(f"distributed.{kind}.preload", None) or []
        ours[f"distributed.{kind}.preload"] = [
            *([given] if isinstance(given, str) else given),
            PRELOAD,
        ]
        if kind == "worker" or not pages:
            # The server listens for the moment until it is stopped.
            ours[f"distributed.{kind}.http.routes"] = []
    # Workers may still be ending.
    with TemporaryDirectory(prefix="dask-", dir=base, ignore_cleanup_errors=True) as made:
        try:
            with dask.config.set({"temporary-directory": made, **ours}):
                yield
        finally:
            _unload(Path(made))


def dask_setup(server: Any) -> None:
    """Called by Dask when a scheduler or a worker starts: no web pages, no code in its folder.

    Pages that were asked for, and are on this machine alone, answer under its own names alone.
    """
    import dask
    from distributed import Worker

    is_worker = isinstance(server, Worker)
    if not is_worker and dask.config.get("distributed.scheduler.http.routes"):
        if server.http_server.address in (HOST, "::1"):
            _check_hosts(server.http_server)
    else:
        server.http_server.stop()
        del server.services["dashboard"]
    if is_worker:  # a scheduler has no folder
        _unload(Path(server.local_directory).parent)


def _check_hosts(server: Any) -> None:
    """Refuse what is sent to a server under another name, or by a page of another address.

    Bokeh lets any page open a websocket, and every browser that shows one reaches this machine.
    """
    from tornado.routing import Router
    from tornado.web import Application, RequestHandler

    class Refused(RequestHandler):
        def prepare(self) -> None:
            self.set_status(403)
            self.finish(f"403: the scheduler {NO_HOST}, and no page of another address\n")

    answers, refusing = server.request_callback, Application([(r".*", Refused)])

    class Names(Router):
        def find_handler(self, request: Any, **kwargs: Any) -> Any:
            own = is_loopback(request.host) and is_same(request.headers.get("Origin"), request.host)
            chosen = answers if own else refusing
            return chosen.find_handler(request, **kwargs)

    server.request_callback = Names()


def _unload(folder: Path) -> None:
    """Load no module from a folder, or from what lies in it."""
    sys.path[:] = [path for path in sys.path if not Path(path).is_relative_to(folder)]


def keep_sockets(folder: Path) -> None:
    """Let multiprocessing have its sockets in a private folder, unless it has a place already.

    Its own place, ``pymp-*`` among the temporary files, stays where its process is killed.
    """
    from multiprocessing import process

    config: dict[str, Any] = process.current_process()._config  # type: ignore[attr-defined]
    if config.get("tempdir") is None:
        config["tempdir"] = str(folder)
