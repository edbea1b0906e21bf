"""Another user of the machine, and a folder that all can write to."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

NOBODY = 65534
RAN = "ran-"
"""Begin of the names of files by which a planted module tells that it was run."""
# It tells, and stands for the true module from then on, so that nobody notices.
PLANT = """\
import os, sys
open({folder!r} + "/{ran}" + __name__ + "-" + str(os.getpid()), "w").close()
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
del sys.modules[__name__]
__import__(__name__)
"""


@dataclass(frozen=True)
class Stranger:
    """Another user, and the folder that all share.

    Parameters
    ----------
    common
        As ``/tmp``: all can write to it, and remove only what is theirs.
    """

    common: Path

    def does(self, script: str) -> None:
        """Run a shell script as that user."""
        command = ["sh", "-e", "-c", script]
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
        subprocess.run(command, cwd=self.common, umask=0, check=True, **who)  # type: ignore[call-overload]

    def writes(self, path: Path, content: bytes) -> None:
        """Leave a file that all can write to, as that user."""
        self.does(f"rm -f {path} && touch {path}")
        path.write_bytes(content)

    def plants(self, folder: Path, *names: str) -> None:
        """Leave modules in a folder that tell when they are run."""
        self.does(f"mkdir -p -m 777 {folder}")
        text = PLANT.format(folder=str(self.common), ran=RAN)
        for name in names:
            self.writes(folder / f"{name}.py", text.encode())

    @property
    def ran(self) -> list[str]:
        """What has been run of it."""
        return sorted(path.name for path in self.common.glob(f"{RAN}*"))


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder as ``/tmp`` is, which every user can reach."""
    made = Path(tempfile.mkdtemp(prefix="hostile-", dir="/tmp"))
    made.chmod(0o1777)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def stranger(common: Path) -> Stranger:
    """Another user of the machine."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to act as another user")
    return Stranger(common)
