"""A private Slurm on this machine: a controller and two nodes of one processor.

Nothing is installed, and a Slurm that is there already is left alone.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock

from tests.cluster.commands import BOUND, PATH, answers, node_states, stop_jobs, wait_for

CONFIGURATION = Path("/etc/slurm/slurm.conf")
"""Where it must stand: SLURM_CONF in the environment is not passed on to job steps."""
MARK = "# The private Slurm of hdica's tests."
LOCK = Path(tempfile.gettempdir()) / "hdica-slurm.lock"
LOCK_SECONDS = 240
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "setpriv")
NODES = ("hd1", "hd2")

# Jobs start soon: no pause after sbatch, a look at the queue every second. Those that have ended
# stay in squeue for five minutes, which is how Snakemake hears of it where nobody keeps accounts.
TEMPLATE = """\
{mark}
ClusterName=hdica
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=17000
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
EnforcePartLimits=ALL
MinJobAge=300
ReturnToService=2
KillWait=1
OverTimeLimit=0
InactiveLimit=0
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n.spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
NodeName=hd1 NodeHostname={host} NodeAddr=127.0.0.1 Port=17001 CPUs=1 RealMemory=4000 State=UNKNOWN
NodeName=hd2 NodeHostname={host} NodeAddr=127.0.0.1 Port=17002 CPUs=1 RealMemory=4000 State=UNKNOWN
PartitionName=hd Nodes=hd1,hd2 Default=YES MaxTime=600 State=UP
PartitionName=12 Nodes=hd1,hd2 MaxTime=600 State=UP
"""


def refusal() -> str:
    """Why no private Slurm can be started here; empty if one can."""
    if os.geteuid() != 0:
        return "needs root, to start a Slurm of its own"
    absent = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if absent:
        return f"needs {', '.join(absent)}: install the Debian packages slurm-wlm and munge"
    if CONFIGURATION.exists() and not CONFIGURATION.read_text().startswith(MARK):
        return f"{CONFIGURATION} exists: the Slurm of this machine is left alone"
    return ""


@contextmanager
def _daemon(command: list[str], log: Path, user: str = "root") -> Iterator[None]:
    """A daemon in the foreground, stopped by its process id; it never outlives this process."""
    who = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"]
    with log.open("ab") as sink:
        process = subprocess.Popen(
            [*([] if user == "root" else who), *BOUND, *command],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env={"PATH": PATH},
            start_new_session=True,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


@contextmanager
def _munge(folder: Path) -> Iterator[None]:
    """The daemon that signs Slurm's messages, with a key and a socket of its own, as its user."""
    home = folder / "munge"
    home.mkdir(mode=0o755)
    key = home / "key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(64))
    for path in (key, home):
        shutil.chown(path, "munge", "munge")
    names = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed"}
    options = [f"--{option}={home / name}" for option, name in names.items()]
    log = folder / "munged.log"
    with _daemon(["munged", "--foreground", *options], log, "munge"):
        wait_for((home / "socket").is_socket, "the socket of munged", 30)
        yield


def _forget_killed() -> None:
    """Remove what a test run has left that was killed: the lock says that it is over."""
    left = CONFIGURATION.read_text() if CONFIGURATION.exists() else ""
    if left.startswith(MARK):
        CONFIGURATION.unlink()
        (state,) = re.findall(r"^StateSaveLocation=(.*)$", left, re.MULTILINE)
        shutil.rmtree(Path(state).parent, ignore_errors=True)


@contextmanager
def _configuration(folder: Path) -> Iterator[None]:
    """Slurm's configuration where all its parts look for it; a file that is not ours stays."""
    host = socket.gethostname().split(".")[0]
    made = not CONFIGURATION.parent.exists()
    CONFIGURATION.parent.mkdir(parents=True, exist_ok=True)
    _forget_killed()
    with CONFIGURATION.open("x") as file:
        file.write(TEMPLATE.format(mark=MARK, host=host, folder=folder))
    try:
        yield
    finally:
        CONFIGURATION.unlink(missing_ok=True)
        if made:
            CONFIGURATION.parent.rmdir()


def _all_idle() -> bool:
    return answers() and node_states() == dict.fromkeys(NODES, "idle")


def _logs(folder: Path) -> str:
    return "\n".join(
        f"{path.name}:\n" + "\n".join(path.read_text(errors="replace").splitlines()[-15:])
        for path in sorted(folder.glob("*.log"))
    )


@contextmanager
def private_slurm() -> Iterator[Path]:
    """Both nodes idle; the folder of state and logs. One at a time on a machine.

    Raises
    ------
    filelock.Timeout
        If another test run keeps its own for longer than :data:`LOCK_SECONDS`.
    AssertionError
        If it does not come up; with the last lines of every log.
    """
    with ExitStack() as stack:
        stack.enter_context(FileLock(LOCK, timeout=LOCK_SECONDS))
        # Not pytest's folder, which munged's user may not enter.
        folder = Path(tempfile.mkdtemp(prefix="hdica-slurm-"))
        folder.chmod(0o755)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        (folder / "state").mkdir()
        stack.enter_context(_munge(folder))
        stack.enter_context(_configuration(folder))
        controller = ["slurmctld", "-D", "-i"]
        stack.enter_context(_daemon(controller, folder / "slurmctld.out.log"))
        for node in NODES:
            stack.enter_context(_daemon(["slurmd", "-D", "-N", node], folder / f"{node}.out.log"))
        try:
            wait_for(_all_idle, "two idle nodes", 60)
        except AssertionError as exc:
            raise AssertionError(f"{exc}\n{_logs(folder)}") from exc
        stack.callback(stop_jobs)
        yield folder
