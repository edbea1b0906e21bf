"""Operations on files, as they reach the disk: each names files by number, whatever their name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

ROOT = 0
"""Number of the folder that everything lies in."""

Kind = Literal["file", "folder", "link"]


@dataclass(frozen=True)
class Make:
    """A new file, folder or symbolic link with its first name."""

    node: int
    kind: Kind
    parent: int
    name: str
    target: str = ""


@dataclass(frozen=True)
class Write:
    """Bytes at some place of a file."""

    node: int
    offset: int
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Cut:
    """A file gets a size; what is new is zeros."""

    node: int
    size: int


@dataclass(frozen=True)
class Link:
    """One more name of a file."""

    node: int
    parent: int
    name: str


@dataclass(frozen=True)
class Move:
    """A rename; what had the new name loses it."""

    parent: int
    name: str
    to: int
    to_name: str


@dataclass(frozen=True)
class Swap:
    """Two names in one folder take each other's place, at once."""

    parent: int
    name: str
    other: str


@dataclass(frozen=True)
class Remove:
    """A name of a file goes, or an empty folder."""

    parent: int
    name: str


@dataclass(frozen=True)
class Sync:
    """What a file or a folder held reaches the disk.

    Parameters
    ----------
    node
        Which one; None for everything.
    since
        How many operations had ended when it began: of later ones nothing is promised.
    """

    node: int | None
    since: int


Operation = Make | Write | Cut | Link | Move | Swap | Remove | Sync


@dataclass(frozen=True)
class Mark:
    """What the command said of itself, and after how many operations."""

    after: int
    said: dict[str, Any]


@dataclass(frozen=True)
class Recording:
    """All operations of a command below one folder, and what it said meanwhile."""

    operations: tuple[Operation, ...]
    marks: tuple[Mark, ...]

    def unsynced(self) -> Recording:
        """The same, as if nothing had ever been made to last."""
        found = (replace(one, since=0) if isinstance(one, Sync) else one for one in self.operations)
        return Recording(tuple(found), self.marks)
