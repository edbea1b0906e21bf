"""What is known while a trace is read: names, open files, and the operations so far.

A call that changes something below the folder and is not modelled ends it all: what is not seen
could not be missed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.power.disk import Disk, Image, Node, image
from tests.power.operations import Kind, Make, Mark, Operation
from tests.power.processes import Argument, Description, Processes, descriptor
from tests.power.trace import Call, Unsupported, hexed, text_of
from tests.power.variants import seen, summary, whole

MAKERS = frozenset({"clone", "clone3", "fork", "vfork"})
"""Calls that make a process, which begins before they return."""
HOLDS = "holds"
"""In what a command says: all that the folder holds, in short."""


@dataclass
class Recorder:
    """Turns calls into operations, and does them on a disk of its own.

    Parameters
    ----------
    folder
        What is recorded: a path without links.
    marks
        File to which the command says what it does.
    cwd
        Folder that the command was started in.
    handlers
        What is done with calls, by name.
    """

    folder: str
    marks: str
    cwd: str
    handlers: dict[str, Handler]
    disk: Disk = field(default_factory=Disk)
    operations: list[Operation] = field(default_factory=list)
    said: list[Mark] = field(default_factory=list)
    processes: Processes = field(init=False)

    def __post_init__(self) -> None:
        self.processes = Processes(self.cwd)
        self.hexed = hexed(self.folder.encode())

    def do(self, operation: Operation) -> None:
        self.disk.apply(operation)
        self.operations.append(operation)

    # Which file is meant.

    def inside(self, path: str) -> str | None:
        """A path relative to the folder, None if it lies outside."""
        path = os.path.normpath(path)
        if path == self.folder:
            return ""
        start = self.folder + "/"
        return path.removeprefix(start) if path.startswith(start) else None

    def node(self, path: str) -> Node | None:
        """What has a name below the folder now."""
        here = self.disk.root
        for part in path.split("/") if path else ():
            if here.kind == "link":
                raise Unsupported(f"a link stands on the way to {path}")
            if part not in here.entries:
                return None
            here = here.entries[part]
        return here

    def there(self, path: str) -> Node:
        """What has a name below the folder now, which has to be."""
        found = self.node(path)
        if found is None:
            raise Unsupported(f"{path} was never made")
        return found

    def parent(self, path: str) -> tuple[int, str]:
        """Number of the folder of a name, and the last part of that."""
        if not path:
            raise Unsupported("the folder itself is made, renamed or removed")
        folder, _, name = path.rpartition("/")
        return self.there(folder).number, name

    def at(self, call: Call, path: str, folder: str = "") -> str | None:
        """A path that a call names, relative to the folder; None if it lies outside."""
        name = text_of(path).decode()
        base = descriptor(folder).path if folder else self.processes.of(call.process).cwd.path
        if not base and not name.startswith("/"):
            raise Unsupported(f"nobody knows what {call.name} of {name} is relative to")
        return self.inside(os.path.join(base, name))

    def opened(self, call: Call, argument: str) -> Description | None:
        """The open file that a call names; None if it lies outside of the folder.

        What the system says of its name has to agree with what is known of the descriptor.
        """
        meant = descriptor(argument)
        path = self.inside(meant.path) if meant.path.startswith("/") else None
        if path is None:
            return None
        found = self.processes.of(call.process).open.get(meant.number)
        if found is None:
            raise Unsupported(f"{call.name}: nobody has opened descriptor {meant.number}, {path}")
        self._agree(call, meant, path, found)
        return found

    def _agree(self, call: Call, meant: Argument, path: str, found: Description) -> None:
        if meant.deleted:
            return
        if self.there(path).number != found.node:
            raise Unsupported(f"{call.name}: descriptor {meant.number} should not be {path}")

    # Calls.

    def take(self, call: Call, before: int) -> None:
        """A call has returned.

        Parameters
        ----------
        call
            The call.
        before
            How many operations had ended when it began.
        """
        if call.failed or call.name in MAKERS:
            return
        known = self.handlers.get(call.name)
        if known is not None:
            known(self, call, before)
        elif self.hexed in call.inner + call.result:
            raise Unsupported(f"{call.name} is not modelled ({call.inner[:300]})")

    def mark(self, said: dict[str, Any]) -> None:
        """The command has said something; what it says of the folder has to be so."""
        holds = said.pop(HOLDS, None)
        if holds is not None:
            known = summary(self.seen())
            wrong = [path for path in {**holds, **known} if holds.get(path) != known.get(path)]
            if wrong:
                told = [f"{path}: {holds.get(path)}, not {known.get(path)}" for path in wrong[:5]]
                raise Unsupported(f"calls do not explain what the folder holds ({told}, {said})")
        self.said.append(Mark(len(self.operations), said))

    def made(self, path: str, kind: Kind, target: str = "") -> Node:
        """Something new, with its first name."""
        number = len(self.disk.nodes)
        self.do(Make(number, kind, *self.parent(path), target))
        return self.disk.nodes[number]

    def seen(self) -> Image:
        """What programs find below the folder now."""
        return image(self.disk.root, seen, whole)


Handler = Callable[[Recorder, Call, int], None]
