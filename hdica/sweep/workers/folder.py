"""Where Dask keeps its files: it also lets code be loaded from there.

By default that is ``dask-scratch-space`` among the temporary files, whoever made it, and the folder
comes first where Python looks for modules, in every process of a cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PRELOAD = __name__
"""What Dask's workers load, so that they call :func:`dask_setup`."""


@contextmanager
def own_folder(base: Path) -> Iterator[None]:
    """Let Dask's servers that are started here, and their workers, keep their files in a folder.

    It is made in a private one, and removed.
    """
    import dask
    import distributed  # noqa: F401  (its defaults must be there before ours come and go)

    given = dask.config.get("distributed.worker.preload", None) or []
    preload = [*([given] if isinstance(given, str) else given), PRELOAD]
    # Workers may still be ending.
    with TemporaryDirectory(prefix="dask-", dir=base, ignore_cleanup_errors=True) as made:
        ours = {"temporary-directory": made, "distributed.worker.preload": preload}
        try:
            with dask.config.set(ours):
                yield
        finally:
            _unload(Path(made))


def dask_setup(worker: Any) -> None:
    """Called by Dask when a worker has started: no code is ever sent to its folder."""
    _unload(Path(worker.local_directory).parent)


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
