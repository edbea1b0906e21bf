"""Runs of a toy study in processes of their own, to be disturbed, and what has become of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any
from unittest import mock

import psutil

from hdica.run.runner import run
from hdica.store.paths import work_path
from hdica.store.publish import publish
from hdica.store.results import status
from hdica.store.verify import verify
from hdica.study.study import study_from
from tests.faults import trouble
from tests.faults.nursery import NURSERY, ROOT, Forked
from tests.sweep import toy
from tests.sweep.conftest import values

LOCAL = {"mode": "local", "workers": 2}
SERIAL = {"mode": "serial"}
LONGEST = 90.0
"""Seconds that anything in these tests may take."""
LOOK = 0.03
"""Seconds between looks at something that is waited for."""
AWAKE = SimpleNamespace(sleep=lambda seconds: None)
"""Time for points that shall not sleep."""


def content(sleep: float = 0.02, **changes: Any) -> dict[str, Any]:
    """A study of 91 points, 84 of which sleep; it keeps more than order parameters."""
    return toy.study(
        **{
            "parameters": {"constants": {"sleep": sleep}},
            "methods": {"walk": {"n": [10], "seeds": 14}, "line": {}, "steady": {}},
            "save": {"snapshots": [0.5], "x": [-1, 0, 1], "functionals": {"mse": "(x - xi)**2"}},
            **changes,
        }
    )


def wait_for(condition: Callable[[], bool], what: str, seconds: float = LONGEST) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(LOOK)


def alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def session(leader: int) -> list[psutil.Process]:
    """Living processes of the session that a process has begun, itself included."""
    found = []
    for pid in psutil.pids():
        with suppress(psutil.Error, ProcessLookupError, PermissionError):
            if os.getsid(pid) == leader and alive(process := psutil.Process(pid)):
                found.append(process)
    return found


def begin(
    command: list[str], said: Path, environment: dict[str, str], folder: Path = ROOT
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own; what it says goes to a file."""
    with said.open("wb") as stream:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )


@dataclass
class Run:
    """One run that was started.

    Parameters
    ----------
    process
        The driver, leader of its session.
    said
        File with everything it and its children print.
    began
        When it was started, by the monotonic clock.
    """

    process: subprocess.Popen[bytes] | Forked
    said: Path
    began: float = field(default_factory=time.monotonic)

    @property
    def text(self) -> str:
        return self.said.read_text()

    @property
    def sentence(self) -> str:
        """The last line that it said, which has to be a sentence of the command line."""
        lines = self.text.strip().splitlines()
        assert lines, "nothing was said"
        assert lines[-1].startswith("hdica: "), self.text
        assert "Traceback" not in self.text, self.text
        return lines[-1]

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something that is to happen while it runs."""
        wait_for(lambda: condition() or self.process.poll() is not None, what)
        assert condition(), f"{what} did not happen: {self.text}"

    def ended(self, seconds: float = LONGEST) -> int:
        """Wait for the driver; its exit status."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {seconds} s: {self.text}") from None

    def session(self) -> list[psutil.Process]:
        return session(self.process.pid)

    def workers(self) -> list[psutil.Process]:
        """Workers of its local cluster: children of the process that they are forked from."""
        with suppress(psutil.Error):
            children = psutil.Process(self.process.pid).children(recursive=True)
            return [one for one in children if alive(one) and one.ppid() != self.process.pid]
        return []

    def gone(self, seconds: float = 15) -> None:
        """Wait until no process of the session is left."""
        deadline = time.monotonic() + seconds
        while left := self.session():
            assert time.monotonic() < deadline, left
            time.sleep(LOOK)

    def end(self) -> None:
        """Kill whatever is left of the session."""
        for one in self.session():
            with suppress(psutil.Error):
                one.kill()
        self.process.wait(LONGEST)


@dataclass
class Bench:
    """A folder with a study, its results and what its runs have said.

    Parameters
    ----------
    folder
        Where everything lies.
    study
        The study, as plain data.
    """

    folder: Path
    study: dict[str, Any] = field(default_factory=content)
    runs: list[Run] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        return self.folder / "results" / "toy.zarr"

    @property
    def trouble(self) -> Path:
        """File that says which trouble there is."""
        return self.folder / "trouble.txt"

    def met(self) -> bool:
        """Whether a point has met the trouble that there is."""
        return self.trouble.with_suffix(trouble.MET).exists()

    @property
    def calls(self) -> list[str]:
        """A line for every point computed in the runs."""
        file = self.folder / "calls.txt"
        return file.read_text().splitlines() if file.exists() else []

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        for one in self.runs:
            one.end()

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DASK_DISTRIBUTED__WORKER__PRELOAD": '["tests.faults.preload"]',
            "DASK_TEMPORARY_DIRECTORY": str(self.folder / "scratch"),
            "TOY_CALLS": str(self.folder / "calls.txt"),
            trouble.VARIABLE: str(self.trouble),
            **self.variables,
        }

    def arguments(self, cluster: dict[str, Any]) -> list[str]:
        """What a user would type after ``hdica run``, and would type again."""
        study, config = self.folder / "toy.yaml", self.folder / f"config-{len(self.runs)}.yaml"
        text = json.dumps(self.study)
        if not study.exists() or study.read_text() != text:  # runs that have begun may be reading
            study.write_text(text)
        config.write_text(json.dumps({"cluster": cluster}))
        return [str(study), "--out", str(self.out), "--config", str(config)]

    def start(self, cluster: dict[str, Any] | None = None, *options: str) -> Run:
        """Start a run of the study."""
        arguments = [*self.arguments(LOCAL if cluster is None else cluster), *options]
        said = self.folder / f"said-{len(self.runs)}.txt"
        said.touch()
        self.runs.append(Run(NURSERY.run(arguments, said, self.environment()), said))
        return self.runs[-1]

    def rerun(self, cluster: dict[str, Any] | None = None, times: int = 3) -> int:
        """Run until it is complete; how often that took."""
        for count in range(times):
            again = self.start(cluster)
            if again.ended() == 0:
                return count + 1
        raise AssertionError(f"{times} reruns were not enough: {again.text}")

    def finish(self) -> None:
        """The next run, here and now, and what it publishes: all that must hold then."""
        for one in self.runs:
            one.gone()
        self.undamaged()
        compute(self.study, self.out)
        self.whole()

    def done(self) -> int:
        """Points that are done; 0 before there is a store."""
        with suppress(ValueError, OSError):
            return status(self.out).total("done")
        return 0

    def undamaged(self) -> None:
        """Whatever happened, nothing may be marked done that is not."""
        if work_path(self.out).is_dir():
            verdict = verify(self.out)
            assert verdict.code in (0, 1), verdict.damaged

    def whole(self) -> None:
        """The published store is complete, bit for bit the undisturbed one, and nothing else."""
        verdict = verify(self.out)
        assert verdict.code == 0, (verdict.damaged, verdict.incomplete)
        assert values(self.out) == undisturbed(self.study)
        left = [*self.out.parent.rglob("*.partial")]
        assert not left, left


def compute(study: dict[str, Any], out: Path) -> None:
    """Compute what is pending in this process, and publish it; points do not sleep."""
    loaded = study_from(study)
    with mock.patch.object(toy, "time", AWAKE):
        assert run(loaded, out, progress=False, cluster=SERIAL).complete
        publish(loaded, out)


UNDISTURBED: dict[str, dict[str, bytes]] = {}


def undisturbed(study: dict[str, Any]) -> dict[str, bytes]:
    """What one undisturbed process publishes; computed once a study."""
    name = json.dumps(study, sort_keys=True)
    if name not in UNDISTURBED:
        with tempfile.TemporaryDirectory() as folder:
            compute(study, Path(folder) / "toy.zarr")
            UNDISTURBED[name] = values(Path(folder) / "toy.zarr")
    return UNDISTURBED[name]


def kill(
    process: psutil.Process | subprocess.Popen[bytes] | Forked, number: int = signal.SIGKILL
) -> bool:
    """Send a signal; whether there was anybody to receive it."""
    with suppress(psutil.Error, ProcessLookupError):
        os.kill(process.pid, number)
        return True
    return False
