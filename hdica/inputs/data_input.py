"""A field of a system that is data: named by its path, known by its content; and pictures.

Wherever such a field is checked it takes its normal form, which holds the SHA-256 of the content.
That form goes into the keys of points: other pixels are other points, and a worker with other data
refuses it. Pictures are read in the formats of :data:`FORMATS`; the photographs that installed
packages bring come with scikit-learn and scikit-image, and are read from where these lie.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, Field

from hdica.errors import DataGone, HdicaError, extras, no_room, suggestion
from hdica.ingredients.plain import ARRAY, VECTOR
from hdica.inputs.place import check_listed, digest, place, relative

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


BUNDLED = "bundled"  # photographs that come with installed packages
DATA = (
    "a path below `data/`, `{path, sha256}`, `bundled`, or `{bundled: [names]}` of "
    f"{', '.join(BUNDLED_NAMES)}"
)
"""What such a field may hold, for the manual."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


def data_input(value: object) -> dict[str, Any]:
    """Normal form of what names data: ``{"path", "sha256"}`` or ``{"bundled", "sha256"}``.

    A path is relative to the folder of data (:func:`hdica.inputs.place.data_root`): a file or a
    folder. ``"bundled"`` are the photographs of :data:`BUNDLED_NAMES`,
    ``{"bundled": [names]}`` some of them. A normal form has a digest that the content has to have.

    Refused if there is no such data; if it is not what its digest or a manifest says.
    """
    form = _spelt(value)
    if BUNDLED in form:
        names = _names(form[BUNDLED])
        sha256 = bundled_digest(names)
        made = {BUNDLED: "all" if names == BUNDLED_NAMES else list(names), "sha256": sha256}
        what = f"bundled = {made[BUNDLED]!r}"
    else:
        path = relative(form["path"])
        where = place(path)
        check_listed(where)
        sha256 = digest(where)
        made, what = {"path": path, "sha256": sha256}, f"path = {path!r}"
    expected = form.get("sha256", sha256)
    if expected != sha256:
        raise DataGone(
            f"{what} is not allowed here (its sha256 is {sha256}, not {expected}: it is other "
            "data)",
            ["sha256"],
        )
    return made


def _spelt(value: object) -> dict[str, Any]:
    """The same as a mapping of its one name and, if given, its digest."""
    if isinstance(value, PurePath):
        value = value.as_posix()
    if isinstance(value, str):
        value = {BUNDLED: "all"} if value == BUNDLED else {"path": value}
    if isinstance(value, Mapping) and len(value.keys() & {"path", BUNDLED}) == 1:
        sha256 = value.get("sha256", "0" * 64)
        plain = value.keys() <= {"path", BUNDLED, "sha256"}
        hexadecimal = isinstance(sha256, str) and _SHA256.fullmatch(sha256)
        if plain and hexadecimal and isinstance(value.get("path", ""), str):
            return dict(value)
    raise HdicaError(
        f"{value!r} is not allowed (a path of data, {{path, sha256}}, bundled, or "
        "{bundled: [names]}; a sha256 has 64 hexadecimal digits)"
    )


def _names(names: object) -> tuple[str, ...]:
    """Names of photographs, in the order in which they are given."""
    if names == "all":
        return BUNDLED_NAMES
    each = [names] if isinstance(names, str) else names
    listed = each if isinstance(each, list | tuple) and each else [names]
    wrong = [name for name in listed if name not in BUNDLED_NAMES]
    if wrong or len(set(listed)) < len(listed):
        every = f"all, or different ones of {', '.join(BUNDLED_NAMES)}"
        near = suggestion(wrong[0] if wrong else "", ("all", *BUNDLED_NAMES), every)
        raise HdicaError(f"bundled = {names!r} is not allowed ({near})", [BUNDLED])
    return tuple(listed)


def path_of(data: Mapping[str, Any]) -> Path:
    """Where data in normal form lies, looked at once more, since it may have been changed."""
    return place(data_input(data)["path"])


def bundled_names(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the photographs that are meant; empty for data with a path."""
    return _names(data[BUNDLED]) if BUNDLED in data else ()


def digests_in(content: Mapping[str, Any]) -> dict[str, str]:
    """Digest of each field that holds the normal form of data, by its name."""
    maps = {name: form for name, form in content.items() if isinstance(form, Mapping)}
    inner = {name: form.get(VECTOR, form.get(ARRAY, form)) for name, form in maps.items()}
    return {
        name: form["sha256"]
        for name, form in inner.items()
        if isinstance(form, Mapping) and "sha256" in form
    }


@dataclass(frozen=True)
class Reads:
    """Mark of the type of a field that may name data."""


def fields_of_data(model: type[BaseModel]) -> frozenset[str]:
    """Names of the fields of a system that may name data."""
    fields = model.model_fields.items()
    return frozenset(
        name for name, one in fields if any(isinstance(mark, Reads) for mark in one.metadata)
    )


# A default that was not validated would lack its digest, and keys leave out what is a default.
DataInput = Annotated[
    str | dict[str, Any], BeforeValidator(data_input), Field(validate_default=True), Reads()
]
"""Type of a field that names data, which holds its normal form; see :func:`data_input`."""
