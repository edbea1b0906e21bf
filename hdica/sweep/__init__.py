"""Sweeps: a validated study, its grid, its stores and the runner that fills them."""

import sys

from hdica.errors import HdicaError

if sys.flags.optimize:
    raise HdicaError(
        "python -O and PYTHONOPTIMIZE are not allowed (Zarr does a part of its work in assertions, "
        "which they leave out)"
    )
