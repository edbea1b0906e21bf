"""The accessor is there whichever is imported first, and importing hdica imports neither."""

from __future__ import annotations

import subprocess
import sys

import pytest

CASES = {
    "hdica first": "import hdica, sys; assert 'xarray' not in sys.modules; import xarray as xr",
    "xarray first": "import xarray as xr; import hdica",
    "hdica twice": "import hdica, importlib; importlib.reload(hdica); import xarray as xr",
    "from xarray": "import hdica; from xarray import Dataset; import xarray as xr",
}
CHECK = """
import xarray, sys, warnings
assert 'hdica' in vars(xarray.Dataset) and 'hdica' in vars(xarray.DataTree)
assert repr(xr.Dataset().hdica.plot) == '<figures: none>'
# The cache of compiled functions waits for numba; nothing else of ours stays.
ours = {one.module for one in sys.meta_path if 'hdica' in type(one).__module__}
assert ours <= {'numba.core.caching'}, ours
assert type(xarray.__spec__.loader).__module__.startswith(('importlib', '_frozen_importlib'))
"""


@pytest.mark.deep
@pytest.mark.parametrize("case", CASES, ids=list(CASES))
def test_the_accessor_is_there(case: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", f"{CASES[case]}{CHECK}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_it_draws_nothing_until_it_is_asked() -> None:
    text = (
        "import hdica, sys, xarray; xarray.Dataset().hdica; assert 'matplotlib' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
