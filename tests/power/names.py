"""Calls that change the names of files and folders."""

from __future__ import annotations

from tests.power.operations import Link, Move, Remove, Swap
from tests.power.recorder import Handler, Recorder
from tests.power.trace import Call, Unsupported, text_of


def _moved(recorder: Recorder, call: Call, old: str | None, new: str | None) -> None:
    if old is None and new is None:
        return
    if old is None or new is None:
        raise Unsupported(f"{call.name} into the folder or out of it ({old}, {new})")
    recorder.there(old)
    recorder.do(Move(*recorder.parent(old), *recorder.parent(new)))


def rename(recorder: Recorder, call: Call, before: int) -> None:
    old, new = call.arguments
    _moved(recorder, call, recorder.at(call, old), recorder.at(call, new))


def renameat(recorder: Recorder, call: Call, before: int) -> None:
    folder, old, other, new, *flags = call.arguments
    if flags and flags[0] == "RENAME_EXCHANGE":
        _swapped(recorder, call, recorder.at(call, old, folder), recorder.at(call, new, other))
        return
    if flags and flags[0] not in ("0", "RENAME_NOREPLACE"):
        raise Unsupported(f"{call.name} with {flags[0]}")
    _moved(recorder, call, recorder.at(call, old, folder), recorder.at(call, new, other))


def _swapped(recorder: Recorder, call: Call, one: str | None, other: str | None) -> None:
    if one is None and other is None:
        return
    if one is None or other is None:
        raise Unsupported(f"{call.name} of something outside of the folder ({one}, {other})")
    recorder.there(one)
    recorder.there(other)
    (parent, name), (to, to_name) = recorder.parent(one), recorder.parent(other)
    if parent != to:
        raise Unsupported(f"RENAME_EXCHANGE between two folders ({one}, {other})")
    recorder.do(Swap(parent, name, to_name))


def _linked(recorder: Recorder, call: Call, old: str | None, new: str | None) -> None:
    if new is None:
        return
    if old is None:
        raise Unsupported(f"a link to a file outside of the folder ({new})")
    recorder.do(Link(recorder.there(old).number, *recorder.parent(new)))


def link(recorder: Recorder, call: Call, before: int) -> None:
    old, new = call.arguments
    _linked(recorder, call, recorder.at(call, old), recorder.at(call, new))


def linkat(recorder: Recorder, call: Call, before: int) -> None:
    folder, old, other, new, *_ = call.arguments
    _linked(recorder, call, recorder.at(call, old, folder), recorder.at(call, new, other))


def symlink(recorder: Recorder, call: Call, before: int) -> None:
    target, *folder, new = call.arguments
    path = recorder.at(call, new, *folder)
    if path is not None:
        recorder.made(path, "link", text_of(target).decode())


def mkdir(recorder: Recorder, call: Call, before: int) -> None:
    *folder, name, _ = call.arguments
    path = recorder.at(call, name, *folder)
    if path is not None:
        recorder.made(path, "folder")


def remove(recorder: Recorder, call: Call, before: int) -> None:
    folder, name = call.arguments[:2] if call.name == "unlinkat" else ("", call.arguments[0])
    path = recorder.at(call, name, folder)
    if path is not None:
        recorder.there(path)
        recorder.do(Remove(*recorder.parent(path)))


HANDLERS: dict[str, Handler] = {
    "rename": rename,
    "renameat": renameat,
    "renameat2": renameat,
    "link": link,
    "linkat": linkat,
    "symlink": symlink,
    "symlinkat": symlink,
    "mkdir": mkdir,
    "mkdirat": mkdir,
    "unlink": remove,
    "unlinkat": remove,
    "rmdir": remove,
}
