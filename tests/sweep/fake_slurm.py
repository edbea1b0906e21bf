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
if [ -e "$FAKE_SLURM/refused" ] && grep -q -- "$(cat "$FAKE_SLURM/line")" "${@: -1}"; then
  echo "sbatch: error: invalid partition specified: $(cat "$FAKE_SLURM/refused")" >&2
  exit 1
fi
if [ "$1" = --test-only ]; then cp "$2" "$FAKE_SLURM/tested"; exit 0; fi
echo "$1" > "$FAKE_SLURM/given"
id=100
until mkdir "$FAKE_SLURM/jobs/$id" 2>/dev/null; do id=$((id + 1)); done
submit() {
  job=$FAKE_SLURM/jobs/$1
  mkdir -p "$job"
  cp "$2" "$job/script"
  sed -n 's/^#SBATCH -J //p' "$2" > "$job/name"
  [ ! -e "$FAKE_SLURM/full" ] || return
  export SLURM_JOB_ID=$1 SLURM_ARRAY_JOB_ID=$id SLURM_ARRAY_TASK_ID=${1#*_}
  setsid bash -c 'bash "$0/script"; echo $? > "$0/status"' "$job" > "$job/said" 2>&1 < /dev/null &
  echo $! > "$job/pid"
}
last=$(sed -n 's/^#SBATCH --array=0-//p' "$1")
last=${last%%%*}
if [ "$last" ]; then
  for task in $(seq 0 "$last"); do submit "${id}_$task" "$1"; done
else
  submit "$id" "$1"
fi
echo "Submitted batch job $id"
"""
# A job without a process waits; one whose process has gone has ended, and nobody knows why if it
# has left no status: its walltime was over.
SQUEUE = """\
#!/bin/bash
for option in "$@"; do case $option in
  --name=*) wanted=${option#--name=} ;;
  "--format=%i %T") short=yes ;;
esac; done
cd "$FAKE_SLURM/jobs"
for id in *; do
  [ "$(cat "$id/name" 2>/dev/null)" = "$wanted" ] || continue
  [ ! -e "$id/cancelled" ] || continue
  state=PENDING reason=Resources
  if [ -e "$id/pid" ]; then
    state=RUNNING reason=None
    if ! grep -q '^State:.[^ZX]' "/proc/$(cat "$id/pid")/status" 2>/dev/null; then
      [ "$short" ] || continue
      case $(cat "$id/status" 2>/dev/null) in
        0) state=COMPLETED ;; "") state=TIMEOUT ;; *) state=FAILED ;;
      esac
    fi
  fi
  if [ "$short" ]; then echo "$id $state"; else echo "job $id is $state: $reason"; fi
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

    def refuse(self, reason: str, line: str = "") -> None:
        """Refuse every job whose script has a line."""
        (self.folder / "line").write_text(line)
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
