"""What a disk may hold when the power fails after some operation.

====  ======================================================================================
A     what was made to last, and nothing else
B     all names; files that were written since they were last made to last are empty
C0    all names; such files are zeros of their full length
C1    all names; such files have a part of their bytes, from the beginning
D     everything: the process was killed, the machine went on
E     of every folder some changes, in order, and of every such file what it held when it was
      last made to last, nothing, a part, zeros, or all of it, as a seed decides
F     everything but one thing that a seed picks: a change of a folder, or what a file holds
====  ======================================================================================
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

from tests.power.disk import Disk, Image, Node, image
from tests.power.operations import Operation

VARIANTS = ("A", "B", "C0", "C1", "D", "E", "F")
BY_CHANCE = ("E", "F")
SHARES = (0.15, 0.5, 0.85)
"""How likely a change of a folder has reached the disk; one of them holds for a whole disk."""


def seen(node: Node) -> dict[str, Node]:
    return node.entries


def certain(node: Node) -> dict[str, Node]:
    return node.names


def whole(node: Node) -> bytes:
    return node.content


def kept(node: Node) -> bytes:
    return node.kept


def empty(node: Node) -> bytes:
    return b"" if node.dirty else node.content


def zeros(node: Node) -> bytes:
    return bytes(len(node.content)) if node.dirty else node.content


def part(node: Node, draw: float = 0.5) -> bytes:
    return node.content[: int(len(node.content) * draw)] if node.dirty else node.content


def after(disk: Disk, variant: str, seed: str = "") -> Image:
    """What the disk may hold if the power fails now.

    Parameters
    ----------
    disk
        The file system as it is.
    variant
        One of :data:`VARIANTS`.
    seed
        Decides what is left to chance.
    """
    if variant == "A":
        return image(disk.root, certain, kept)
    if variant == "E":
        return by_chance(disk, Random(seed))
    if variant == "F":
        return all_but_one(disk, Random(seed))
    if variant == "C1":
        stream = Random(seed)
        return image(disk.root, seen, lambda node: part(node, stream.random()))
    return image(disk.root, seen, {"B": empty, "C0": zeros, "D": whole}[variant])


def by_chance(disk: Disk, stream: Random) -> Image:
    """Some changes of every folder, in order, and any state of every file."""
    share = stream.choice(SHARES)
    drawn: dict[int, bytes] = {}

    def names(node: Node) -> dict[str, Node]:
        found = dict(node.names)
        for change in node.waiting:
            if stream.random() < share:
                change.apply(found)
        return found

    def content(node: Node) -> bytes:
        if node.dirty and node.number not in drawn:
            state = stream.choice((kept, empty, zeros, whole, part))
            drawn[node.number] = part(node, stream.random()) if state is part else state(node)
        return drawn.get(node.number, node.content)

    return image(disk.root, names, content)


def all_but_one(disk: Disk, stream: Random) -> Image:
    """Everything, but for one change of a folder or the content of one file."""
    reached = [disk.root, *reached_from(disk.root)]
    files = [node for node in reached if node.dirty]
    changes = [(node, change) for node in reached for change in node.waiting]
    if changes and (not files or stream.random() < 0.5):
        folder, lost = stream.choice(changes)
        found = dict(folder.names)
        for change in folder.waiting:
            if change is not lost:
                change.apply(found)
        return image(disk.root, lambda node: found if node is folder else node.entries, whole)
    if not files:
        return image(disk.root, seen, whole)
    file, state = stream.choice(files), stream.choice((kept, empty, zeros, part))
    return image(disk.root, seen, lambda node: state(node) if node is file else node.content)


def reached_from(folder: Node) -> Iterator[Node]:
    """Everything that programs find below a folder, in the order of the names."""
    for name in sorted(folder.entries):
        node = folder.entries[name]
        yield node
        yield from reached_from(node)


@dataclass(frozen=True, order=True)
class Crash:
    """A power loss.

    Parameters
    ----------
    moment
        After how many operations.
    variant
        What it leaves, in kind.
    draw
        Which of several of that kind.
    """

    moment: int
    variant: str
    draw: int = 0


def every(operations: int, draws: int = 1, variants: tuple[str, ...] = VARIANTS) -> Iterator[Crash]:
    """Every power loss: before the first of some operations, and after each of them.

    Parameters
    ----------
    operations
        How many there are.
    draws
        How many there are of each variant that is left to chance.
    variants
        Which variants.
    """
    for moment in range(operations + 1):
        for variant in variants:
            for draw in range(draws if variant in BY_CHANCE else 1):
                yield Crash(moment, variant, draw)


def in_turn(operations: int) -> Iterator[Crash]:
    """Of every moment the variants A, B and D, and of the others one after the other."""
    for moment in range(operations + 1):
        for variant in ("A", "B", "D", ("C0", "C1", "E", "F")[moment % 4]):
            yield Crash(moment, variant)


def left(
    operations: tuple[Operation, ...], crashes: Iterable[Crash], seed: int
) -> Iterator[tuple[Crash, Image]]:
    """What some power losses would leave.

    Parameters
    ----------
    operations
        All operations.
    crashes
        The power losses, by their moments.
    seed
        Decides what is left to chance.
    """
    disk = Disk()
    for crash in crashes:
        for operation in operations[disk.moment : crash.moment]:
            disk.apply(operation)
        drawn = f"{seed}/{crash.moment}/{crash.variant}/{crash.draw}"
        yield crash, after(disk, crash.variant, drawn)


def summary(found: Image) -> dict[str, str]:
    """What a disk holds, by path, in short."""
    return {path: _short(content) for path, content in found.items()}


def _short(content: bytes | str | None) -> str:
    if content is None:
        return "folder"
    if isinstance(content, str):
        return f"link to {content}"
    return f"{len(content)} {hashlib.blake2b(content, digest_size=8).hexdigest()}"


def digest(found: Image, below: str = "") -> tuple[int, int]:
    """Of what a disk holds in one of its uppermost folders, and of everything else.

    A sum over files, so that it does not matter in which order they are found.
    """
    inside = rest = 0
    start = below + "/"
    for item in found.items():
        number = _NUMBERS.get(item)
        if number is None:
            raw = json.dumps([item[0], _short(item[1])]).encode()
            number = _NUMBERS[item] = int.from_bytes(hashlib.blake2b(raw, digest_size=16).digest())
        if item[0].startswith(start) or item[0] == below:
            inside += number
        else:
            rest += number
    return inside % 2**128, rest % 2**128


_NUMBERS: dict[tuple[str, bytes | str | None], int] = {}
