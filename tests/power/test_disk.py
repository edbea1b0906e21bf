"""The model of a disk: what writers that are known to be good or bad lose when the power fails."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from tests.power.disk import Disk, Image
from tests.power.operations import (
    ROOT,
    Cut,
    Link,
    Make,
    Mark,
    Move,
    Operation,
    Recording,
    Remove,
    Swap,
    Sync,
    Write,
)
from tests.power.owed import Promises
from tests.power.phases import SCENARIOS
from tests.power.variants import VARIANTS, Crash, after, digest, every, in_turn, left

OLD, NEW = b"what was there before", b"something new"
BEFORE: tuple[Operation, ...] = (
    Make(1, "file", ROOT, "data"),
    Write(1, 0, OLD),
    Sync(1, 2),
    Sync(ROOT, 3),
)
"""A file that is on the disk with its name."""
GOOD: tuple[Operation, ...] = (
    *BEFORE,
    Make(2, "file", ROOT, ".partial"),
    Write(2, 0, NEW[:4]),
    Write(2, 4, NEW[4:]),
    Sync(2, 7),
    Move(ROOT, ".partial", ROOT, "data"),
    Sync(ROOT, 9),
)
"""It is replaced as it should be."""


def without(operations: tuple[Operation, ...], *numbers: int) -> tuple[Operation, ...]:
    """The same operations with some syncs that do nothing."""
    recording = Recording(tuple(operations[number] for number in numbers), ()).unsynced()
    found = dict(zip(numbers, recording.operations, strict=True))
    return tuple(found.get(number, one) for number, one in enumerate(operations))


def outcomes(operations: tuple[Operation, ...], moment: int, variant: str) -> list[Image]:
    """What may be left at one moment, whatever chance decides."""
    found = []
    for seed in range(60 if variant in "EF" else 1):
        found += [image for _, image in left(operations, [Crash(moment, variant)], seed)]
    return found


def everywhere(operations: tuple[Operation, ...], start: int = 0) -> list[tuple[int, Image]]:
    """What may be left from some moment on."""
    moments = range(start, len(operations) + 1)
    return [
        (moment, image)
        for moment, variant in product(moments, VARIANTS)
        for image in outcomes(operations, moment, variant)
    ]


def test_an_exchange_of_two_names_is_one_step() -> None:
    operations = (
        *BEFORE,
        Make(2, "file", ROOT, ".new"),
        Write(2, 0, NEW),
        Sync(2, 6),
        Sync(ROOT, 7),
        Swap(ROOT, ".new", "data"),
        Remove(ROOT, ".new"),
        Sync(ROOT, 10),
    )
    for moment, image in everywhere(operations, 8):
        if moment < len(operations):
            assert image in (
                {"data": OLD, ".new": NEW},
                {"data": NEW, ".new": OLD},
                {"data": NEW},
                {"data": OLD},
            )
        else:
            assert image == {"data": NEW}


def test_a_good_writer_loses_nothing_at_any_moment() -> None:
    for moment, image in everywhere(GOOD, len(BEFORE)):
        assert image["data"] in ((OLD, NEW) if moment < len(GOOD) else (NEW,)), moment


@pytest.mark.parametrize(
    ("dropped", "variant", "lost"),
    [(7, "B", b""), (7, "C0", bytes(len(NEW))), (7, "A", b""), (9, "A", OLD)],
)
def test_a_writer_that_forgets_a_sync_is_found(dropped: int, variant: str, lost: bytes) -> None:
    operations = without(GOOD, dropped)
    assert outcomes(operations, len(GOOD), variant)[0]["data"] == lost
    assert any(image["data"] != NEW for _, image in everywhere(operations, len(GOOD)))


def test_writing_and_renaming_without_any_sync_leaves_an_empty_file() -> None:
    writer = (Make(1, "file", ROOT, "tmp"), Write(1, 0, NEW), Move(ROOT, "tmp", ROOT, "data"))
    assert outcomes(writer, 3, "B") == [{"data": b""}]
    assert outcomes(writer, 3, "C0") == [{"data": bytes(len(NEW))}]
    assert all(NEW.startswith(image["data"]) for image in outcomes(writer, 3, "C1"))  # type: ignore[arg-type]
    assert outcomes(writer, 3, "A") == [{}]
    assert outcomes(writer, 3, "D") == [{"data": NEW}]


def test_a_sync_of_a_file_does_not_keep_its_name_nor_that_of_a_folder_its_data() -> None:
    file = (Make(1, "file", ROOT, "a"), Write(1, 0, NEW), Sync(1, 2))
    assert outcomes(file, 3, "A") == [{}]
    assert outcomes(file, 3, "B") == [{"a": NEW}]
    name = (Make(1, "file", ROOT, "a"), Write(1, 0, NEW), Sync(ROOT, 2))
    assert outcomes(name, 3, "A") == [{"a": b""}]


def test_a_sync_covers_what_had_ended_when_it_began() -> None:
    late = (Make(1, "file", ROOT, "a"), Sync(ROOT, 1), Write(1, 0, b"abc"), Write(1, 3, b"def"))
    assert outcomes((*late, Sync(1, 4)), 5, "A") == [{"a": b"abcdef"}]
    assert outcomes((*late, Sync(1, 3)), 5, "A") == [{"a": b"abc"}]
    assert outcomes((*late, Sync(1, 3)), 5, "B") == [{"a": b""}]
    assert outcomes((*late, Sync(1, 2)), 5, "A") == [{"a": b""}]


def test_a_folder_that_is_renamed_takes_along_what_is_on_the_disk_of_it() -> None:
    tree = (
        Make(1, "folder", ROOT, ".new"),
        Make(2, "file", 1, "a"),
        Write(2, 0, NEW),
        Sync(2, 3),
        Move(ROOT, ".new", ROOT, "new"),
        Sync(ROOT, 5),
    )
    assert outcomes(tree, 6, "A") == [{"new": None}]
    assert outcomes((*tree, Sync(1, 6)), 7, "A") == [{"new": None, "new/a": NEW}]


def test_what_was_removed_may_still_be_there() -> None:
    gone = (*BEFORE, Remove(ROOT, "data"))
    assert outcomes(gone, 5, "A") == [{"data": OLD}]
    assert outcomes(gone, 5, "D") == [{}]
    assert outcomes((*gone, Sync(ROOT, 5)), 6, "A") == [{}]


def test_changes_of_a_folder_reach_the_disk_in_order_and_a_rename_within_it_at_once() -> None:
    found = {
        frozenset(image) for image in outcomes(without(GOOD, 9), len(GOOD), "E")
    }  # create .partial, rename to data
    assert found == {frozenset({"data"}), frozenset({"data", ".partial"})}
    operations = (Make(1, "file", ROOT, "a"), Move(ROOT, "a", ROOT, "b"))
    found = {frozenset(image) for image in outcomes(operations, 2, "E")}
    assert found == {frozenset(), frozenset({"a"}), frozenset({"b"})}


def test_a_rename_across_folders_may_be_half_done_by_chance_and_is_otherwise_whole() -> None:
    start = (
        Make(1, "folder", ROOT, "x"),
        Make(2, "folder", ROOT, "y"),
        Make(3, "file", 1, "a"),
        Sync(None, 3),
        Move(1, "a", 2, "a"),
    )
    found = {frozenset(image) - {"x", "y"} for image in outcomes(start, 5, "E")}
    assert found == {frozenset(), frozenset({"x/a"}), frozenset({"y/a"}), frozenset({"x/a", "y/a"})}
    for variant in ("B", "C0", "C1", "D"):
        assert set(outcomes(start, 5, variant)[0]) == {"x", "y", "y/a"}
    # Each folder keeps its own half, as POSIX has it.
    assert set(outcomes((*start, Sync(2, 5)), 6, "A")[0]) == {"x", "y", "x/a", "y/a"}


def test_chance_leaves_of_a_file_what_it_was_nothing_zeros_a_part_or_all() -> None:
    written = (*BEFORE, Cut(1, 0), Write(1, 0, NEW))
    found = {image["data"] for image in outcomes(written, 6, "E")}
    assert {OLD, b"", bytes(len(NEW)), NEW} < found
    others = found - {OLD, bytes(len(NEW))}
    assert all(NEW.startswith(one) for one in others)  # type: ignore[arg-type]


def test_all_but_one_thing_is_there() -> None:
    operations = (*without(GOOD, 3, 7, 9), Make(3, "file", ROOT, "other"))
    found = {digest(image) for image in outcomes(operations, len(operations), "F")}
    assert {digest(image) for image in outcomes(operations, len(operations), "D")} < found
    for image in outcomes(operations, len(operations), "F"):
        whole = image == {"data": NEW, "other": b""}
        assert whole or set(image) != {"data", "other"} or image["data"] != NEW


def random_operations(seed: int, count: int = 60) -> list[Operation]:
    """What somebody could do who knows no care."""
    stream, disk, made = Random(seed), Disk(), 0
    found: list[Operation] = []
    while len(found) < count:
        folders = [n for n in disk.nodes.values() if n.kind == "folder"]
        files = [n for n in disk.nodes.values() if n.kind == "file"]
        folder = stream.choice(folders)
        pick = stream.randrange(8)
        operation: Operation
        names = sorted(name for name, n in folder.entries.items() if n.kind == "file")
        if pick == 0 or not files:
            made += 1
            kind = stream.choice(("file", "file", "folder"))
            operation = Make(made, kind, folder.number, f"n{made}")  # type: ignore[arg-type]
        elif pick in (1, 2):
            data = stream.randbytes(stream.randrange(1, 9))
            operation = Write(stream.choice(files).number, stream.randrange(4), data)
        elif pick == 3:
            operation = Cut(stream.choice(files).number, stream.randrange(5))
        elif pick == 4:
            file = stream.choice(files)
            operation = Link(file.number, folder.number, f"l{len(found)}")
        elif pick == 5 and names:
            to = stream.choice(folders)
            operation = Move(folder.number, stream.choice(names), to.number, f"m{len(found)}")
        elif pick == 6 and names:
            operation = Remove(folder.number, stream.choice(names))
        else:
            node = stream.choice([*folders, *files])
            operation = Sync(node.number, disk.moment)
        disk.apply(operation)
        found.append(operation)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_once_everything_is_synced_every_disk_is_what_programs_saw(seed: int) -> None:
    disk = Disk()
    for operation in random_operations(seed):
        disk.apply(operation)
    before = after(disk, "D")
    disk.apply(Sync(None, disk.moment))
    for variant in VARIANTS:
        assert after(disk, variant, str(seed)) == before


@pytest.mark.parametrize("seed", range(5))
def test_a_content_that_was_synced_is_lost_only_to_a_later_write(seed: int) -> None:
    """A file that has a name holds its bytes, or what is left where it was written since."""
    disk = Disk()
    for operation in random_operations(100 + seed):
        disk.apply(operation)
        clean = {n.content for n in disk.nodes.values() if n.kind == "file" and not n.dirty}
        dirty = [n for n in disk.nodes.values() if n.kind == "file" and n.dirty]
        for variant in VARIANTS:
            for content in after(disk, variant, str(seed)).values():
                torn = any(
                    content == n.kept
                    or content == bytes(len(n.content))
                    or n.content.startswith(content or b"")  # type: ignore[arg-type]
                    for n in dirty
                )
                assert content is None or content in clean or torn


def test_the_same_seed_leaves_the_same() -> None:
    operations = tuple(random_operations(7))
    crashes = list(every(len(operations), draws=2))
    first = [digest(image) for _, image in left(operations, crashes, 1)]
    assert first == [digest(image) for _, image in left(operations, crashes, 1)]
    assert first != [digest(image) for _, image in left(operations, crashes, 2)]
    assert len(crashes) == (len(operations) + 1) * (len(VARIANTS) + 2)
    some = list(in_turn(len(operations)))
    assert {crash.moment for crash in some} == set(range(len(operations) + 1))
    assert {crash.variant for crash in some} == set(VARIANTS)


def test_digests_tell_disks_apart_and_halves() -> None:
    whole: Image = {"a": b"1", "w": None, "w/b": b"2"}
    assert digest(whole, "w") == digest(dict(reversed(whole.items())), "w")
    assert digest(whole, "w")[0] == digest({**whole, "a": b"9"}, "w")[0]
    assert digest(whole, "w")[1] != digest({**whole, "a": b"9"}, "w")[1]
    kinds: list[Image] = [{"a": b""}, {"a": None}, {"a": ""}, {}, {"b": b""}, {"a": b"\0"}]
    assert len({digest(one) for one in kinds}) == len(kinds)


def test_what_is_owed_grows_with_what_was_said() -> None:
    said = [
        Mark(0, {"begun": "first"}),
        Mark(3, {"committed": {"done": ["a"]}}),
        Mark(5, {"committed": {"failed": ["b"]}}),
        Mark(5, {"publishing": True}),
        Mark(7, {"published": True}),
        Mark(7, {"begun": "grown"}),
        Mark(9, {"publishing": True}),
        Mark(11, {"published": True}),
        Mark(11, {"begun": "retried"}),
    ]
    operations = tuple(Make(number, "file", ROOT, str(number)) for number in range(1, 13))
    promises = Promises(Recording(operations, tuple(said)), SCENARIOS["alone"](6))
    assert promises.at(2).points == {}
    assert promises.at(3).points == {"a": "done"}
    assert promises.at(6).points == {"a": "done", "b": "failed"}
    assert [promises.at(k).published for k in (4, 6, 7, 10, 11)] == [None, None, 0, 0, 1]
    assert [promises.at(k).publishing for k in (4, 6, 8, 9, 11)] == [0, 1, 0, 1, 0]
    assert [promises.at(k).phase for k in (0, 6, 7, 10, 11)] == [0, 0, 1, 1, 2]
    # A retry may lose what it computes again, and nothing else.
    assert promises.at(12).points == {"a": "done"}
    assert promises.turns == [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
