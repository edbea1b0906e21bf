"""Do something as soon as a module is imported, by whoever imports it.

Importing hdica takes no time because it imports no large library. What has to be changed in one is
changed when somebody else imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType


def after_import(module: str, action: Callable[[], None]) -> None:
    """Call ``action()`` after a module is imported; at once if it has been."""
    if module in sys.modules:
        action()
    elif not any(isinstance(one, Waiting) and one.module == module for one in sys.meta_path):
        sys.meta_path.insert(0, Waiting(module, action))


class Waiting:
    """Finds a module as everybody else does, once, and acts after it is loaded."""

    def __init__(self, module: str, action: Callable[[], None]) -> None:
        self.module, self.action = module, action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The usual specification, whose loader calls the action at its end."""
        if fullname != self.module:
            return None
        sys.meta_path.remove(self)
        found = find_spec(fullname)
        if found is not None and found.loader is not None:
            load, loader = found.loader.exec_module, found.loader

            def load_and_act(module: ModuleType) -> None:
                del loader.exec_module  # whoever loads it again does nothing else
                load(module)
                self.action()

            loader.exec_module = load_and_act  # type: ignore[method-assign]
        return found
