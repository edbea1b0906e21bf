"""Loaded by every Python of a watched run: tells where modules could come from at each import.

A line for each folder a process has looked in: what the process is, and why others could put
something there, if they could.
"""

import os
import stat
import sys

FILE, BEGAN = os.environ.get("WATCH_FILE"), os.getpid()
SEEN = set()


def role():
    words = " ".join(sys.orig_argv)
    if "multiprocessing.forkserver" in words:
        return "forkserver" if os.getpid() == BEGAN else "worker"
    if "multiprocessing.spawn" in words:
        return "worker"
    if "multiprocessing.resource_tracker" in words:
        return "tracker"
    return "node" if "run.node" in words else "driver"


def against(entry):
    """Why others could put something at a path."""
    path, inner = os.path.abspath(entry), True
    while True:
        for seen in {path, os.path.realpath(path)}:
            try:
                about = os.lstat(seen)
            except OSError:
                continue  # what is above decides
            if about.st_uid not in (0, os.getuid()):
                return f"{seen} belongs to {about.st_uid}"
            if stat.S_ISLNK(about.st_mode) or not about.st_mode & 0o022:
                continue
            if inner or not about.st_mode & stat.S_ISVTX:
                return f"{seen} can be written to"
        inner = inner and not os.path.lexists(path)
        if path == os.path.dirname(path):
            return ""
        path = os.path.dirname(path)


def heard(event, arguments):
    if event != "import":
        return
    for entry in list(sys.path):
        if (os.getpid(), entry) not in SEEN:
            SEEN.add((os.getpid(), entry))
            with open(FILE, "a") as file:
                file.write(f"{role()}\t{entry}\t{against(entry)}\n")


if FILE:
    sys.addaudithook(heard)
