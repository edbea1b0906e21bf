"""What a measurement was made on: processor, cores, versions, day."""

from __future__ import annotations

import datetime
import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "jax",
    "py-pde",
    "diffrax",
    "fipy",
    "bice",
    "pycont-lite",
    "xyzpy",
    "xsweep",
    "joblib",
)


def processor() -> str:
    """Model name of the processor, as the system gives it."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Versions of Python, of the libraries that are installed, and of gcc."""
    known = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            known[package] = version(package)
        except PackageNotFoundError:
            continue
    if shutil.which("gcc"):
        said = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True)
        known["gcc"] = said.stdout.strip()
    return known


def machine() -> dict[str, object]:
    """All of it as plain data."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": processor(),
        "cores": cores,
        "system": platform.system(),
        "versions": versions(),
        "date": datetime.date.today().isoformat(),
    }
