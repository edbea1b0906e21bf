"""The script that draws the plots: one packed copy for all pages, or one inside a page."""

from __future__ import annotations

import base64
import gzip
import hashlib
from functools import cache

ASSETS = "assets"
"""Folder of a gallery that holds what its pages share."""
VARIABLE = "hdicaPlotly"
"""What the shared file sets; the page unpacks it, and its policy runs it only if it is this one."""


@cache
def _plotly() -> str:
    """The script as it is drawn with; who only looks for its file does not read it."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _version() -> str:
    from plotly.offline import get_plotlyjs_version

    return str(get_plotlyjs_version())


def file_name() -> str:
    """Name of the shared file, which changes with its content."""
    return f"plotly-{_version()}.js"


@cache
def packed() -> str:
    """The script, compressed and as text: 2 MB in place of 4.8."""
    raw = gzip.compress(_plotly().encode(), compresslevel=9, mtime=0)
    return base64.b64encode(raw).decode()


def shared() -> bytes:
    """Content of the shared file.

    It holds the script as text and does nothing but to name it. A page from a disk may not read
    files, but may load scripts; and so it can write itself down with the script in it.
    """
    about = f"plotly.js {_version()}, plotly.com/javascript, MIT license: gzip, base64"
    return f'/* {about} */\nglobalThis.{VARIABLE}="{packed()}";\n'.encode()


@cache
def plotting_digest() -> str:
    """Digest of the unpacked script, as a content security policy names it."""
    return digest(_plotly())


def digest(script: str) -> str:
    """Digest of a script, as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
