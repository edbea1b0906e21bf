"""Commands that look like Slurm's and run jobs on this machine, for tests where there is none."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

SBATCH = """\
#!/bin/bash
if [ -e "$FAKE_SLURM/refused" ]; then
  echo "sbatch: error: invalid partition specified: $(cat "$FAKE_SLURM/refused")" >&2
  exit 1
fi
if [ "$1" = --test-only ]; then cp "$2" "$FAKE_SLURM/tested"; exit 0; fi
echo "$1" > "$FAKE_SLURM/given"
id=100
until mkdir "$FAKE_SLURM/jobs/$id" 2>/dev/null; do id=$((id + 1)); done
job=$FAKE_SLURM/jobs/$id
cp "$1" "$job/script"
sed -n 's/^#SBATCH -J //p' "$1" > "$job/name"
if [ ! -e "$FAKE_SLURM/full" ]; then
  SLURM_JOB_ID=$id setsid bash "$job/script" > "$job/said" 2>&1 < /dev/null &
  echo $! > "$job/pid"
fi
echo "Submitted batch job $id"
"""
# A job without a process waits; one whose process has gone has ended.
SQUEUE = """\
#!/bin/bash
for option in "$@"; do case $option in
  --name=*) wanted=${option#--name=} ;;
  --format=%A) short=yes ;;
esac; done
cd "$FAKE_SLURM/jobs"
for id in *; do
  [ "$(cat "$id/name" 2>/dev/null)" = "$wanted" ] || continue
  [ ! -e "$id/cancelled" ] || continue
  state=PENDING reason=Resources
  if [ -e "$id/pid" ]; then
    grep -q '^State:.[^ZX]' "/proc/$(cat "$id/pid")/status" 2>/dev/null || continue
    state=RUNNING reason=None
  fi
  if [ "$short" ]; then echo "$id"; else echo "job $id is $state: $reason"; fi
done
"""
SCANCEL = """\
#!/bin/bash
for id in "$@"; do
  job=$FAKE_SLURM/jobs/$id
  touch "$job/cancelled"
  [ ! -e "$job/pid" ] || kill -TERM -- "-$(cat "$job/pid")" 2>/dev/null
done
exit 0
"""


@dataclass(frozen=True)
class FakeSlurm:
    """A folder with the commands and the jobs they have started."""

    folder: Path

    def install(self) -> None:
        """Write the commands."""
        (self.folder / "jobs").mkdir(parents=True)
        (self.folder / "bin").mkdir()
        for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)):
            path = self.folder / "bin" / name
            path.write_text(text)
            path.chmod(0o755)

    def environment(self) -> dict[str, str]:
        """What puts the commands on the path."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return {"PATH": path, "FAKE_SLURM": str(self.folder)}

    def refuse(self, reason: str) -> None:
        """Refuse every job."""
        (self.folder / "refused").write_text(reason)

    def fill(self) -> None:
        """Let every job wait."""
        (self.folder / "full").touch()

    def scripts(self) -> list[str]:
        """Scripts of all jobs so far."""
        return [path.read_text() for path in sorted(self.folder.glob("jobs/*/script"))]

    def running(self) -> list[int]:
        """Process groups of jobs that run."""
        found = []
        for path in sorted(self.folder.glob("jobs/*/pid")):
            try:
                process = psutil.Process(int(path.read_text()))
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
            except (psutil.NoSuchProcess, ValueError):
                continue
        return found

    def kill(self, group: int) -> None:
        """End a job as the end of its walltime does."""
        os.killpg(group, signal.SIGKILL)

    def end(self, seconds: float = 20.0) -> None:
        """End all jobs."""
        deadline = time.monotonic() + seconds
        while self.running() and time.monotonic() < deadline:
            for group in self.running():
                self.kill(group)
            time.sleep(0.1)
