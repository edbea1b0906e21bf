"""What other packages bring by their entry points."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any


def load(group: str, what: str, kind: type, register: Callable[[Any], object]) -> None:
    """Load the entry points of a group and register the records among them.

    What fails is named in a warning, and the others are loaded all the same. What is no record, of
    class ``kind``, registers by itself.
    """
    for point in entry_points(group=group):
        try:
            found = point.load()
            if isinstance(found, kind):
                register(found)
        except Exception as exc:  # another's package: say which, and go on without it
            said = f"the {what} {point.name} of {point.value} cannot be loaded ({exc})"
            warnings.warn(said, stacklevel=3)
