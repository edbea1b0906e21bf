"""Files of pictures as arrays of pixels, and the photographs that installed packages bring.

Files are read in the formats of :data:`FORMATS`. The photographs come with scikit-learn and
scikit-image, and are read from where these lie.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, extras, no_room, suggestion

FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM", "JPEG2000")
"""Formats that Pillow decodes by itself. It looks at the first bytes of a file and not at its name;
EPS, for one, is a program, and Pillow would start Ghostscript to run it."""
_PLAIN = ("L", "RGB", "F")  # modes of Pillow whose arrays are what is wanted
_SIXTEEN = ("I;16", "I;16B", "I;16L", "I;16N", "I")  # those of 16 bit, in some versions kept in 32
_DEEP = 2**16 - 1
_TILE = (322, 323)  # tags of a TIFF: width and height of its tiles
SMALL, SMALL_FILES, MOST_RATIO = 2**24, 3 * 2**20, 40
"""Pixels of pictures that are read whatever the size of their files, and for each byte of these
from some on: photographs have ten at most. A pixel takes 40 bytes while it is read, then 24."""
MOST_SCANS = 100
"""Scans of a JPEG, in each of which the decoder goes over the whole picture: usual ones have ten at
most, and one of 30 bytes is enough."""


@extras()
def decoded(path: Path) -> NDArray[Any]:
    """Pixels of a file: (H, W) grey or (H, W, 3) colours, of 8 or 16 bit or numbers in [0, 1].

    It is turned as its camera was held (EXIF); palettes and other spaces of colours become RGB;
    what is transparent lies on white; of several frames the first is taken.

    Refused if it cannot be read as a picture, or its numbers are outside their range.
    """
    from PIL import Image, ImageOps

    try:
        # Pillow warns of what it leaves out of damaged files, and of sizes, which are looked at.
        with warnings.catch_warnings(action="ignore"), Image.open(path, formats=FORMATS) as opened:
            _check_size(opened, path)
            opened.load()
            return _pixels(ImageOps.exif_transpose(opened), path)
    except HdicaError:
        raise
    except MemoryError as exc:
        raise no_room(path.name) from exc
    # Decoders of damaged files raise whatever they run into.
    except Exception as exc:
        why = str(exc).split("\n")[0] or type(exc).__name__
        raise HdicaError(f"{path} cannot be read as a picture ({why})", ["path"]) from exc


def most_pixels(stored: int) -> int:
    """Most pixels that pictures in files of so many bytes may have."""
    return SMALL + MOST_RATIO * max(0, stored - SMALL_FILES)


def _check_size(image: Any, path: Path) -> None:
    """Refuse a picture that takes far more than its file lets one expect."""
    # What is decoded at once: of a TIFF in tiles these may be larger than it is.
    tags = getattr(image, "tag_v2", {})
    width, height = (max(n, tags.get(tag) or 1) for n, tag in zip(image.size, _TILE, strict=True))
    stored = path.stat().st_size
    if width * height > most_pixels(stored):
        raise HdicaError(
            f"{path} cannot be read as a picture ({width} x {height} pixels in {stored} bytes)",
            ["path"],
        )
    # The mark of a scan stands nowhere else but in a preview, which is a picture of its own. Of a
    # JPEG in a TIFF, libtiff counts the scans by itself.
    if (
        image.format in ("JPEG", "MPO")
        and (scans := path.read_bytes().count(b"\xff\xda")) > MOST_SCANS
    ):
        raise HdicaError(f"{path} cannot be read as a picture (it has {scans} scans)", ["path"])


def _pixels(image: Any, path: Path) -> NDArray[Any]:
    from PIL import Image

    if image.mode in _SIXTEEN:
        deep = np.asarray(image)
        if deep.min() < 0 or deep.max() > _DEEP:
            raise HdicaError(
                f"{path} holds numbers outside 0 ... {_DEEP}, and it is not known what they mean"
            )
        return deep.astype(np.uint16)
    if image.has_transparency_data:
        colours = image.convert("RGBA")
        white = Image.new("RGBA", colours.size, "white")
        flat = Image.alpha_composite(white, colours).convert("RGB")
        image = flat.convert("L") if image.mode in ("LA", "La", "L", "1") else flat
    elif image.mode == "1":
        image = image.convert("L")
    elif image.mode not in _PLAIN:
        image = image.convert("RGB")
    pixels = np.asarray(image)
    if pixels.dtype.kind == "f" and not (np.all(pixels >= 0) and np.all(pixels <= 1)):
        raise HdicaError(f"{path} holds numbers outside [0, 1], and it is not known what they mean")
    return pixels.copy()


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
BUNDLED_NAMES = tuple(_FILES)  # names of the photographs, in the order in which they are used


def bundled_file(name: str) -> Path:
    """Where a photograph lies; refused if there is none, or no package that brings it."""
    if name not in _FILES:
        raise HdicaError(f"bundled = {name!r} is not known ({suggestion(name, BUNDLED_NAMES)})")
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


@lru_cache(maxsize=len(BUNDLED_NAMES))
def bundled_pixels(name: str) -> NDArray[Any]:
    """Pixels of a photograph as its library gives them: 8 bit, (H, W) grey or (H, W, 3)."""
    pixels = decoded(bundled_file(name))
    pixels.flags.writeable = False
    return pixels


@cache
def bundled_digest(names: Sequence[str]) -> str:
    """SHA-256 of photographs: of names, shapes and pixels, whatever their files look like."""
    sha256 = hashlib.sha256()
    for name in names:
        pixels = bundled_pixels(name)
        sha256.update(f"{name} {' '.join(map(str, pixels.shape))} {pixels.dtype}\n".encode())
        sha256.update(np.ascontiguousarray(pixels).tobytes())
    return sha256.hexdigest()
