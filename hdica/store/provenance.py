"""What made a store: versions, commit, time."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

PACKAGES = ("numpy", "scipy", "numba", "sympy", "xarray", "zarr", "dask", "pydantic")


@cache
def git_commit() -> str:
    """Commit of the source tree that runs, empty outside a checkout."""
    here = Path(__file__).resolve()
    try:
        # Only a tree that tracks this very file: a checkout around a site-packages is not ours.
        for command in (["ls-files", "--error-unmatch", here.name], ["rev-parse", "HEAD"]):
            done = subprocess.run(
                ["git", "-C", str(here.parent), *command],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


@cache
def package_versions() -> str:
    """Versions of Python and of the packages that numbers depend on, as JSON."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        versions[name] = importlib.metadata.version(name)
    return json.dumps(versions, sort_keys=True)


def now() -> str:
    """Time now, ISO 8601, UTC, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")
