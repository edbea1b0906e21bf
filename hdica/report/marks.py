"""How figures and films on disk are known as ours."""

from __future__ import annotations

import re

TITLE = "hdica figure "
"""What the title of a figure's files begins with; its key follows."""


def is_figure(name: str, content: bytes) -> bool:
    """Whether a file is a figure or a film of ours, under the name that it had then."""
    key = re.sub(r"\.(svg|pdf|gif|mp4)$", "", name)
    found = re.search(re.escape(TITLE.encode()) + rb"(\w+)(?:[<)\0]|\Z)", content)
    return key != name and found is not None and found[1] == key.encode()
