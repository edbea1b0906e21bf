"""Slurm's commands, each with a bound on how long it may take."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SECONDS = 150.0
"""For what takes some ten seconds, on a machine that may be busy."""
BOUND = ("setpriv", "--pdeathsig", "KILL", "--")
"""Before a command that must not outlive this process, however this one ends."""
UNFINISHED = {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED"}


def wait_for(condition: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    """Wait until something is so, at most ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come within {seconds} s"
        time.sleep(0.1)


def ask(*command: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """What a command prints."""
    done = subprocess.run(
        command, cwd=cwd, env=env or {"PATH": PATH}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout.strip()


def answers() -> bool:
    """Whether the controller is up."""
    done = subprocess.run(
        ["scontrol", "ping"], env={"PATH": PATH}, capture_output=True, text=True, timeout=60
    )
    return done.returncode == 0 and "UP" in done.stdout


def node_states() -> dict[str, str]:
    """State of every node."""
    lines = ask("sinfo", "--noheader", "--Node", "--format=%N %t").splitlines()
    return dict(line.split() for line in lines)


def submit(folder: Path, env: Mapping[str, str], *arguments: str) -> int:
    """Submit a batch job from a folder; its number."""
    return int(ask("sbatch", "--parsable", *arguments, cwd=folder, env=env).split(";")[0])


def field(job: int | str, which: str) -> dict[str, str]:
    """A field of ``squeue`` for a job, or for every task of an array, also after its end."""
    command = ("squeue", "--noheader", "--array", "--states=all", f"--jobs={job}")
    lines = ask(*command, f"--format=%i|{which}").splitlines()
    return dict(line.strip().split("|", 1) for line in lines)


def states(job: int | str) -> list[str]:
    """State of a job, or of every task of an array in the order of their numbers."""
    found = field(job, "%T")
    return [found[name] for name in sorted(found, key=lambda name: int(name.split("_")[-1]))]


def ended(job: int | str) -> list[str]:
    """Wait until a job has ended; its states."""
    wait_for(lambda: not UNFINISHED & set(states(job)), f"the end of job {job}")
    return states(job)


def set_node(name: str, state: str) -> None:
    """Drain a node, or set it down."""
    ask("scontrol", "update", f"NodeName={name}", f"State={state}", "Reason=test")


def _in_service() -> bool:
    """Whether all nodes are, having resumed those that are not; a lost one may return by itself."""
    away = [name for name, state in node_states().items() if state.startswith(("dr", "down"))]
    for name in away:
        resume = ("scontrol", "update", f"NodeName={name}", "State=resume")
        subprocess.run(resume, env={"PATH": PATH}, capture_output=True, timeout=60)
    return not away


def resume_nodes() -> None:
    """Bring back what was drained or set down."""
    wait_for(_in_service, "the return of all nodes")


def stop_jobs() -> None:
    """Cancel every job, and wait until nothing of them runs."""
    ask("scancel", f"--user={os.geteuid()}")
    wait_for(lambda: not ask("squeue", "--noheader"), "the end of all jobs")
