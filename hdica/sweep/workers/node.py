"""``python -m hdica.sweep.workers.node``: Dask's workers on a node, in a private folder.

It takes the arguments of ``dask worker``. What killed jobs of the same user have left on the node
is removed.
"""

from __future__ import annotations

from hdica.private import scratch
from hdica.sweep.workers.folder import keep_sockets, own_folder


def main() -> None:
    """Run the workers until they end."""
    from distributed.cli import dask_worker

    folder = scratch()
    keep_sockets(folder)
    with own_folder(folder):
        dask_worker.main()


if __name__ == "__main__":
    main()
