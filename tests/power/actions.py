"""A process that does to the files of a folder all that a recorder has to understand."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from tests.power import marks
from tests.power.place import held
from tests.power.recorder import HOLDS
from tests.power.variants import summary

NAME = 'odd "name", <of> é\n'


def contents(folder: Path) -> None:
    """Every way to write."""
    file = os.open(folder / "a", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(file, b"0123456789")
    os.lseek(file, 4, os.SEEK_SET)
    os.write(file, b"four")
    os.pwrite(file, b"far", 15)
    os.writev(file, [b"x\n", b"", b'y",}'])
    os.pwritev(file, [b"z"], 1)
    os.ftruncate(file, 20)
    os.posix_fallocate(file, 0, 24)
    other = os.dup(file)
    os.write(other, b"after")
    os.fsync(other)
    os.close(file)
    os.close(other)
    with (folder / "a").open("ab") as stream:
        stream.write(b"at the end")
    with (folder / "a").open("r+b") as stream:
        stream.seek(2)
        stream.write(b"R")
        stream.truncate(30)
    os.truncate(folder / "a", 28)
    shutil.copyfile(folder / "a", folder / "copy")
    source, target = os.open(folder / "a", os.O_RDONLY), os.open(folder / "copy", os.O_WRONLY)
    os.copy_file_range(source, target, 7)
    os.fdatasync(target)
    os.close(source)
    os.close(target)
    (folder / "gone").write_bytes(b"gone")
    (folder / "gone").write_bytes(b"over")
    (folder / "gone").unlink()


def exchange(one: Path, other: Path) -> None:
    """Let two names be exchanged."""
    swap = 2
    done = ctypes.CDLL(None).renameat2(-100, os.fsencode(one), -100, os.fsencode(other), swap)
    assert done == 0


def names(folder: Path) -> None:
    """Every way to name."""
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / NAME).write_text("odd")
    (folder / "deep" / "er" / NAME).rename(folder / "even")
    os.link(folder / "even", folder / "deep" / "twin")
    (folder / "deep" / "twin").replace(folder / "even")  # nothing: they are one file
    os.symlink("nowhere", folder / "link")
    (folder / "deep" / "er" / "left").write_text("left")
    (folder / "deep" / "er").rename(folder / "er")
    shutil.rmtree(folder / "deep")
    (folder / "empty").mkdir()
    (folder / "empty").rmdir()
    exchange(folder / "er", folder / "even")
    exchange(folder / "even", folder / "er")
    exchange(folder / "copy", folder / "a")
    here = os.open(folder, os.O_RDONLY)
    os.mkdir("by number", dir_fd=here)
    os.rename("even", "by number/even", src_dir_fd=here, dst_dir_fd=here)
    os.fsync(here)
    os.close(here)


def processes(folder: Path) -> None:
    """Files that processes and threads share, and names relative to where they are."""
    with (folder / "shared").open("wb", buffering=0) as stream:
        stream.write(b"parent ")
        child = os.fork()
        if not child:
            stream.write(b"child ")
            os.chdir(folder)
            Path("relative").write_text("here")
            os.chdir("er")
            Path("../relative").rename("../moved")
            os._exit(0)
        os.waitpid(child, 0)
        stream.write(b"parent again")
    thread = threading.Thread(target=(folder / "thread").write_text, args=["of a thread"])
    thread.start()
    thread.join()
    command = ["sh", "-c", "echo one > said; echo two >> said; mv said told; cat told"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    descriptor = os.open(folder / "moved", os.O_WRONLY)
    (folder / "moved").rename(folder / "renamed")
    os.write(descriptor, b"H")
    ctypes.CDLL(None).syncfs(descriptor)
    os.close(descriptor)
    os.sync()


def main(folder: Path) -> None:
    for action in (contents, names, processes):
        action(folder)
        marks.say(ended=action.__name__, **{HOLDS: summary(held(folder))})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
