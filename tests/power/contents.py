"""Calls that change what files hold, or let it last."""

from __future__ import annotations

import json

from tests.power.operations import Cut, Sync, Write
from tests.power.processes import descriptor
from tests.power.recorder import Handler, Recorder
from tests.power.trace import Call, Unsupported, text_of

HARMLESS = ("TCGETS", "FIOCLEX", "FIONCLEX", "FIONREAD", "TIOCGWINSZ")
"""Questions that ``ioctl`` asks of files too."""


def write(recorder: Recorder, call: Call, before: int) -> None:
    file, text, *_ = call.arguments
    if descriptor(file).path == recorder.marks:
        for line in text_of(text).decode().splitlines():
            recorder.mark(json.loads(line))
    elif recorder.opened(call, file) is not None:
        _put(recorder, call, text_of(text))


def _put(recorder: Recorder, call: Call, data: bytes, offset: int | None = None) -> None:
    """Bytes go to a place of a file, or to where its descriptor is."""
    file = recorder.opened(call, call.arguments[0])
    if file is None:
        return
    data = data[: call.returned]
    size = len(recorder.disk.nodes[file.node].content)
    if offset is None:
        # Reads are not traced. Should they have moved it, the folder will tell at the next mark.
        offset = size if file.append else file.offset
        file.offset = offset + len(data)
    elif file.append:
        offset = size  # as Linux does, whatever POSIX says
    if data:
        recorder.do(Write(file.node, offset, data))


def pwrite(recorder: Recorder, call: Call, before: int) -> None:
    file, text, _, offset = call.arguments
    if recorder.opened(call, file) is not None:
        _put(recorder, call, text_of(text), int(offset))


def writev(recorder: Recorder, call: Call, before: int) -> None:
    file, vector, *rest = call.arguments
    if recorder.opened(call, file) is None:
        return
    offset = int(rest[1]) if call.name != "writev" else None
    if len(rest) > 2 and rest[2] != "0":
        raise Unsupported(f"{call.name} with {rest[2]}")
    pieces = [part.partition(",")[0].strip(" }]") for part in vector.split("iov_base=")[1:]]
    _put(recorder, call, b"".join(map(text_of, pieces)), offset)


def _copied(recorder: Recorder, call: Call, source: str, target: str, at: str, to: str) -> None:
    """Bytes of one file go to another."""
    if recorder.opened(call, target) is None:
        return
    file = recorder.opened(call, source)
    if file is None or at != "NULL" or to != "NULL":
        raise Unsupported(f"{call.name}: what it copies is not in the trace")
    content = recorder.disk.nodes[file.node].content
    data = content[file.offset : file.offset + call.returned]
    if len(data) != call.returned:
        raise Unsupported(f"{call.name}: nobody knows from where it copies")
    file.offset += len(data)
    into = recorder.opened(call, target)
    assert into is not None
    if data:
        recorder.do(Write(into.node, into.offset, data))
    into.offset += len(data)


def copy_file_range(recorder: Recorder, call: Call, before: int) -> None:
    source, at, target, to, *_ = call.arguments
    _copied(recorder, call, source, target, at, to)


def sendfile(recorder: Recorder, call: Call, before: int) -> None:
    target, source, at, *_ = call.arguments
    # With its own offset, which Python gives, the place of the source does not move.
    if recorder.opened(call, target) is None:
        return
    file = recorder.opened(call, source)
    if file is not None and at.startswith("["):
        file.offset, at = int(at.strip("[]").partition("=>")[0].strip(" ]")), "NULL"
    _copied(recorder, call, source, target, at, "NULL")


def ftruncate(recorder: Recorder, call: Call, before: int) -> None:
    file = recorder.opened(call, call.arguments[0])
    if file is not None:
        recorder.do(Cut(file.node, int(call.arguments[1])))


def truncate(recorder: Recorder, call: Call, before: int) -> None:
    path = recorder.at(call, call.arguments[0])
    if path is not None:
        recorder.do(Cut(recorder.there(path).number, int(call.arguments[1])))


def fallocate(recorder: Recorder, call: Call, before: int) -> None:
    number, mode, offset, length = call.arguments
    file = recorder.opened(call, number)
    if file is None:
        return
    if mode not in ("0", "FALLOC_FL_KEEP_SIZE"):
        raise Unsupported(f"fallocate with {mode}")
    size = len(recorder.disk.nodes[file.node].content)
    if mode == "0" and int(offset) + int(length) > size:
        recorder.do(Cut(file.node, int(offset) + int(length)))


def fsync(recorder: Recorder, call: Call, before: int) -> None:
    file = recorder.opened(call, call.arguments[0])
    if file is not None:
        recorder.do(Sync(file.node, before))


def sync(recorder: Recorder, call: Call, before: int) -> None:
    if call.name == "sync" or recorder.opened(call, call.arguments[0]) is not None:
        recorder.do(Sync(None, before))


def sync_file_range(recorder: Recorder, call: Call, before: int) -> None:
    """It promises nothing: neither the size nor the place of the data is written."""
    recorder.opened(call, call.arguments[0])


def mmap(recorder: Recorder, call: Call, before: int) -> None:
    _, _, protection, flags, file, _ = call.arguments
    shared = "MAP_SHARED" in flags and "PROT_WRITE" in protection
    if shared and "<" in file and recorder.inside(descriptor(file).path) is not None:
        raise Unsupported(f"a file is written through memory ({descriptor(file).path})")


def ioctl(recorder: Recorder, call: Call, before: int) -> None:
    file, request, *_ = call.arguments
    if not request.startswith(HARMLESS) and recorder.opened(call, file) is not None:
        raise Unsupported(f"ioctl {request} of {descriptor(file).path}")


HANDLERS: dict[str, Handler] = {
    "write": write,
    "pwrite64": pwrite,
    "writev": writev,
    "pwritev": writev,
    "pwritev2": writev,
    "copy_file_range": copy_file_range,
    "sendfile": sendfile,
    "truncate": truncate,
    "ftruncate": ftruncate,
    "fallocate": fallocate,
    "fsync": fsync,
    "fdatasync": fsync,
    "sync_file_range": sync_file_range,
    "sync": sync,
    "syncfs": sync,
    "mmap": mmap,
    "ioctl": ioctl,
}
