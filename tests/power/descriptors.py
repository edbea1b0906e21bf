"""Calls after which a descriptor means another file, or another place of it."""

from __future__ import annotations

import os

from tests.power.operations import Cut
from tests.power.processes import Cwd, Description, descriptor
from tests.power.recorder import Handler, Recorder
from tests.power.trace import Call, Unsupported, text_of

PASSED_BY = ("O_SYNC", "O_DSYNC", "O_TMPFILE", "O_DIRECT")
"""Ways to open a file that are not modelled where it is written."""


def _open(recorder: Recorder, call: Call, path: str, flags: str, folder: str = "") -> None:
    process = recorder.processes.of(call.process)
    number = descriptor(call.result).number
    where = recorder.at(call, path, folder)
    if where is None:
        process.open.pop(number, None)
        return
    writes = "O_WRONLY" in flags or "O_RDWR" in flags
    if writes and any(flag in flags for flag in PASSED_BY):
        raise Unsupported(f"{where} was opened with {flags}")
    node = recorder.node(where)
    if node is None:
        if "O_CREAT" not in flags:
            raise Unsupported(f"{where} was opened and never made")
        node = recorder.made(where, "file")
    elif "O_TRUNC" in flags and node.content:
        recorder.do(Cut(node.number, 0))
    process.open[number] = Description(node.number, "O_APPEND" in flags)


def open_(recorder: Recorder, call: Call, before: int) -> None:
    path, flags, *_ = call.arguments
    _open(recorder, call, path, flags)


def openat(recorder: Recorder, call: Call, before: int) -> None:
    folder, path, flags, *_ = call.arguments
    _open(recorder, call, path, flags, folder)


def creat(recorder: Recorder, call: Call, before: int) -> None:
    _open(recorder, call, call.arguments[0], "O_WRONLY|O_CREAT|O_TRUNC")


def lseek(recorder: Recorder, call: Call, before: int) -> None:
    file = recorder.opened(call, call.arguments[0])
    if file is not None:
        file.offset = call.returned


def duplicate(recorder: Recorder, call: Call, before: int) -> None:
    if call.name == "fcntl" and "F_DUPFD" not in call.arguments[1]:
        return
    table = recorder.processes.of(call.process).open
    number, old = descriptor(call.result).number, descriptor(call.arguments[0]).number
    if old in table:
        table[number] = table[old]
    else:
        table.pop(number, None)


def chdir(recorder: Recorder, call: Call, before: int) -> None:
    process, argument = recorder.processes.of(call.process), call.arguments[0]
    if call.name == "fchdir":
        process.cwd.path = descriptor(argument).path
        return
    path = os.path.join(process.cwd.path, text_of(argument).decode())
    process.cwd.path = os.path.normpath(path)


def unshare(recorder: Recorder, call: Call, before: int) -> None:
    process, flags = recorder.processes.of(call.process), call.inner
    if "CLONE_FILES" in flags:
        process.open = dict(process.open)
    if "CLONE_FS" in flags:
        process.cwd = Cwd(process.cwd.path)


def refused(recorder: Recorder, call: Call, before: int) -> None:
    raise Unsupported(f"{call.name} could change files unseen")


HANDLERS: dict[str, Handler] = {
    "open": open_,
    "openat": openat,
    "creat": creat,
    "lseek": lseek,
    "dup": duplicate,
    "dup2": duplicate,
    "dup3": duplicate,
    "fcntl": duplicate,
    "chdir": chdir,
    "fchdir": chdir,
    "unshare": unshare,
    "io_uring_setup": refused,
    "io_submit": refused,
    "open_by_handle_at": refused,
    "chroot": refused,
    "mount": refused,
    "umount2": refused,
}
