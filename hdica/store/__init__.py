"""Files of a study: its blocks of points, its published store, and how both are read and mended."""

import sys

from hdica.errors import HdicaError

if sys.flags.optimize:
    raise HdicaError(
        "python -O and PYTHONOPTIMIZE are not allowed (Zarr does a part of its work in assertions, "
        "which they leave out)"
    )
