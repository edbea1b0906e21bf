"""``python -P -m hdica.sweep.workers.node``: Dask's scheduler or workers, in a private folder.

It takes ``scheduler`` or ``worker`` and the arguments that ``dask`` takes for it. There are no web
pages unless a scheduler is started with ``--dashboard``: then every user of the machine can read
them. What killed ones of the same user have left on the machine is removed.
"""

from __future__ import annotations

import sys

from hdica.process.loopback import HOST
from hdica.process.private import scratch
from hdica.sweep.workers.folder import keep_sockets, own_folder
from hdica.sweep.workers.local import for_children

KINDS = ("scheduler", "worker")
PAGES = "--dashboard"
NO_PAGES = ("--no-dashboard", "--dashboard-address", f"{HOST}:0")
"""What holds unless arguments that follow differ."""


def main() -> None:
    """Run the scheduler or the workers until they end."""
    from distributed.cli import dask_scheduler, dask_worker

    kind, *arguments = sys.argv[1:] or [""]
    if kind not in KINDS:
        sys.exit(f"hdica: {kind!r} is not allowed ({' or '.join(KINDS)}, and the options of dask)")
    command = {"scheduler": dask_scheduler, "worker": dask_worker}[kind].main
    folder = scratch()
    keep_sockets(folder)
    with for_children(), own_folder(folder, PAGES in arguments):
        command([*NO_PAGES, *arguments], prog_name=f"dask {kind}")


if __name__ == "__main__":
    main()
