"""One thread for every BLAS, those that come later too."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import numpy
from hdica.process.machine import one_thread
assert "scipy.linalg" not in sys.modules, "nothing to show"
with one_thread():
    from threadpoolctl import threadpool_info
    found = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]
print(len(found), *found)
"""


def test_a_blas_that_was_not_loaded_yet_has_one_thread_too() -> None:
    made = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        env={"OPENBLAS_NUM_THREADS": "2", "PATH": "/usr/bin"},
    )
    count, *threads = made.stdout.split()
    # NumPy's and SciPy's own, where wheels bring one each.
    assert int(count) >= 1
    assert set(threads) == {"1"}
