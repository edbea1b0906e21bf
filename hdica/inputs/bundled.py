"""Photographs that come with scikit-learn and scikit-image, read from where these lie."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, suggestion
from hdica.inputs.decode import decoded

_FILES = {
    "china": ("sklearn", "datasets/images/china.jpg"),
    "flower": ("sklearn", "datasets/images/flower.jpg"),
    "astronaut": ("skimage", "data/astronaut.png"),
    "camera": ("skimage", "data/camera.png"),
    "chelsea": ("skimage", "data/chelsea.png"),
    "coffee": ("skimage", "data/coffee.png"),
    "rocket": ("skimage", "data/rocket.jpg"),
    "motorcycle": ("skimage", "data/motorcycle_left.png"),
    "brick": ("skimage", "data/brick.png"),
    "grass": ("skimage", "data/grass.png"),
    "gravel": ("skimage", "data/gravel.png"),
}
_PACKAGES = {"sklearn": "scikit-learn", "skimage": "scikit-image"}
NAMES = tuple(_FILES)
"""Names of the photographs, in the order in which they are used."""


def bundled_file(name: str) -> Path:
    """Where a photograph lies.

    Raises
    ------
    HdicaError
        If there is none of that name, or the package that brings it is not installed or brings it
        no more.
    """
    if name not in _FILES:
        raise HdicaError(f"bundled = {name!r} is not known ({suggestion(name, NAMES)})")
    package, inner = _FILES[name]
    # The packages themselves take a second to import, and their files are all that is needed.
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise HdicaError(
            f"bundled = {name!r} is not allowed here ({_PACKAGES[package]} brings it and is not "
            f"installed: pip install {_PACKAGES[package]})",
            ["bundled"],
        )
    path = Path(spec.origin).parent / inner
    if not path.is_file():
        raise HdicaError(
            f"bundled = {name!r} is not allowed here (this {_PACKAGES[package]} has no {path})",
            ["bundled"],
        )
    return path


@lru_cache(maxsize=len(NAMES))
def bundled_pixels(name: str) -> NDArray[Any]:
    """Pixels of a photograph as its library gives them: 8 bit, (H, W) grey or (H, W, 3)."""
    pixels = decoded(bundled_file(name))
    pixels.flags.writeable = False
    return pixels


@cache
def bundled_digest(names: Sequence[str]) -> str:
    """SHA-256 of photographs: of names, shapes and pixels, whatever their files look like."""
    found = hashlib.sha256()
    for name in names:
        pixels = bundled_pixels(name)
        found.update(f"{name} {' '.join(map(str, pixels.shape))} {pixels.dtype}\n".encode())
        found.update(np.ascontiguousarray(pixels).tobytes())
    return found.hexdigest()
