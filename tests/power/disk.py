"""A file system with what its programs see, and what a power loss leaves of it for certain.

``fsync`` of a file makes its content last and not its name; ``fsync`` of a folder makes its entries
last and not what they lead to. Nothing else makes anything last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.power.operations import (
    ROOT,
    Cut,
    Kind,
    Link,
    Make,
    Move,
    Operation,
    Remove,
    Swap,
    Sync,
    Write,
)

Image = dict[str, bytes | str | None]
"""What a disk holds, by path: the content of a file, the target of a link, None for a folder."""


@dataclass(frozen=True)
class Change:
    """A change of a folder's entries that is one step.

    Parameters
    ----------
    moment
        Number of the operation that made it.
    gone
        Name that goes, if any.
    name, node
        Name that comes or is taken over, if any, and what it leads to.
    also
        One more such name, that changes in the same step.
    """

    moment: int
    gone: str = ""
    name: str = ""
    node: Node | None = None
    also: tuple[str, Node] | None = None

    def apply(self, entries: dict[str, Node]) -> None:
        if self.gone:
            entries.pop(self.gone, None)
        if self.node is not None:
            entries[self.name] = self.node
        if self.also is not None:
            entries[self.also[0]] = self.also[1]


@dataclass(eq=False)
class Node:
    """A file, a folder or a symbolic link.

    Parameters
    ----------
    number
        Its number.
    kind
        What it is.
    target
        Where a link leads.
    content, kept
        What programs read in a file, and what the disk has of it for certain.
    versions
        Contents since then that the disk may have, with the moments when they were written.
    entries, names
        What programs find in a folder, and what the disk has of it for certain.
    waiting
        Changes of entries since then, in order.
    """

    number: int
    kind: Kind
    target: str = ""
    content: bytes = b""
    kept: bytes = b""
    versions: list[tuple[int, bytes]] = field(default_factory=list)
    entries: dict[str, Node] = field(default_factory=dict)
    names: dict[str, Node] = field(default_factory=dict)
    waiting: list[Change] = field(default_factory=list)

    @property
    def dirty(self) -> bool:
        """Whether it was written since it was made to last."""
        return bool(self.versions)

    def write(self, moment: int, content: bytes) -> None:
        self.content = content
        self.versions.append((moment, content))

    def change(self, change: Change) -> None:
        change.apply(self.entries)
        self.waiting.append(change)

    def sync(self, since: int) -> None:
        """Let last what was there after some operation."""
        while self.versions and self.versions[0][0] <= since:
            self.kept = self.versions.pop(0)[1]
        while self.waiting and self.waiting[0].moment <= since:
            self.waiting.pop(0).apply(self.names)


class Disk:
    """Everything below one folder, empty at first."""

    def __init__(self) -> None:
        self.root = Node(ROOT, "folder")
        self.nodes = {ROOT: self.root}
        self.moment = 0

    def apply(self, operation: Operation) -> None:
        """Do the next operation."""
        self.moment += 1
        nodes, now = self.nodes, self.moment
        match operation:
            case Make(number, kind, parent, name, target):
                nodes[number] = Node(number, kind, target)
                nodes[parent].change(Change(now, name=name, node=nodes[number]))
            case Write(number, offset, data):
                old = nodes[number].content.ljust(offset, b"\0")
                nodes[number].write(now, old[:offset] + data + old[offset + len(data) :])
            case Cut(number, size):
                nodes[number].write(now, nodes[number].content[:size].ljust(size, b"\0"))
            case Link(number, parent, name):
                nodes[parent].change(Change(now, name=name, node=nodes[number]))
            case Move():
                self._move(operation)
            case Swap(parent, name, other):
                entries = nodes[parent].entries
                one, two = entries[name], entries[other]
                nodes[parent].change(Change(now, name=name, node=two, also=(other, one)))
            case Remove(parent, name):
                nodes[parent].change(Change(now, gone=name))
            case Sync(number, since):
                for node in nodes.values() if number is None else [nodes[number]]:
                    node.sync(since)

    def _move(self, move: Move) -> None:
        parent, to = self.nodes[move.parent], self.nodes[move.to]
        node = parent.entries[move.name]
        if to.entries.get(move.to_name) is node:
            return  # two names of one file: POSIX leaves both
        if parent is to:
            parent.change(Change(self.moment, move.name, move.to_name, node))
            return
        to.change(Change(self.moment, name=move.to_name, node=node))
        parent.change(Change(self.moment, gone=move.name))


def image(
    root: Node, names: Callable[[Node], dict[str, Node]], content: Callable[[Node], bytes]
) -> Image:
    """What lies below a folder.

    Parameters
    ----------
    root
        The folder.
    names
        Which entries a folder has.
    content
        What a file holds.
    """
    found: Image = {}

    def walk(node: Node, path: str, above: tuple[Node, ...]) -> None:
        for name, child in names(node).items():
            if child.kind == "file":
                found[path + name] = content(child)
            elif child.kind == "link":
                found[path + name] = child.target
            elif child not in above:  # half of a rename may have closed a circle
                found[path + name] = None
                walk(child, f"{path}{name}/", (*above, child))

    walk(root, "", (root,))
    return found
