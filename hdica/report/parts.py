"""What pages are made of: templates, styles, scripts, and the plotting script that they share."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from numpy.typing import NDArray

from hdica.show.typeset import formula, prose, tied, unmarked

if TYPE_CHECKING:
    from PIL import Image

START = "data:image/png;base64,"  # of the address of a picture that holds its data
ASSETS = "assets"  # folder of a gallery that holds what its pages share
VARIABLE = "hdicaPlotly"
"""What the shared file sets; the page unpacks it, and its policy runs it only if it is this one."""
STYLES = ("base.css", "page.css", "explore.css")  # style sheets of a page, in this order
EXPLORER = ("explore_data.js", "explore_figures.js", "explore.js")
"""Scripts of the explorer, in the order in which they are run, before those of the page."""


def template(name: str) -> Template:
    """A template; whatever is put into it is escaped."""
    return _environment().get_template(name)


def joined(*names: str) -> str:
    """The text of styles or scripts, one after another."""
    folder = files("hdica.report").joinpath("templates")
    return "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("hdica.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters |= {"formula": formula, "prose": prose, "tied": tied, "unmarked": unmarked}
    return made


def rounded(values: NDArray[Any] | Sequence[float], digits: int) -> list[Any]:
    """Nested lists of numbers to some significant digits, None for NaN and infinity."""
    values = np.asarray(values, dtype=float)
    if values.ndim > 1:
        return [rounded(row, digits) for row in values]
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in values]


@cache
def plotly() -> str:
    """The script that draws the plots."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _version() -> str:
    from plotly.offline import get_plotlyjs_version

    return str(get_plotlyjs_version())


def file_name() -> str:
    """Name of the shared file, which changes with its content."""
    return f"plotly-{_version()}.js"


def embedded(content: bytes) -> str:
    """Content as the text of an element of a page: compressed, base64."""
    return base64.b64encode(gzip.compress(content, compresslevel=9, mtime=0)).decode()


def data_address(picture: Image.Image, optimize: bool = False) -> str:
    """A picture as an address that holds its data."""
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=optimize)
    return START + base64.b64encode(out.getvalue()).decode()


@cache
def packed_plotly() -> str:
    """The script, compressed and as text: 2 MB in place of 4.8."""
    return embedded(plotly().encode())


def shared() -> bytes:
    """The shared file: the script as text, since a page from a disk may load scripts, not files."""
    about = f"plotly.js {_version()}, plotly.com/javascript, MIT license: gzip, base64"
    return f'/* {about} */\nglobalThis.{VARIABLE}="{packed_plotly()}";\n'.encode()


def digest(script: str) -> str:
    """Digest of a script, as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
