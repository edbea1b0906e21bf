"""What a Slurm job of workers is: its settings, and the script it runs."""

from __future__ import annotations

import re
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from hdica.errors import HdicaError
from hdica.process.trust import make_folders
from hdica.sweep.study.size import check_size
from hdica.sweep.workers.local import (
    APART,
    CALM,
    SAFE_PATH,
    THREAD_VARIABLES,
    UNPAUSED,
)
from hdica.systems.axes import check_keys

WORD = r"^[\w.,:@%+/=-]*$"
"""What may stand in a line of a job script unquoted; no blank and no end of line."""
WALLTIME = re.compile(r"(?:(\d{1,3})-)?(\d{1,2}):([0-5]\d):([0-5]\d)")
OURS = ("-J", "--job-name", "-a", "--array", "-n", "--ntasks", "-N", "--nodes")
"""Directives that a run needs for itself."""
RESERVED = 0.1
"""Part of the walltime that is kept for ending what runs: half a minute to a quarter of an hour."""
NODE = "hdica.sweep.workers.node"
"""Module that runs Dask's scheduler or workers in a folder that nobody else can write to."""
OURS_ALONE = {"jobqueue.slurm.local-directory": None}
"""Without the folder of a site's configuration, which others may be able to write to."""
WORKER = "hdica.sweep.workers.draining.DrainingWorker"


Word = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
    WithJsonSchema({"type": ["string", "integer"], "pattern": WORD}),
]
"""A name, which YAML reads as a number where it is made of digits."""


class SlurmSettings(BaseModel):
    """Jobs of Dask workers that hdica submits to Slurm."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    queue: Word = Field(default="", pattern=WORD, description="partition; Slurm's default if empty")
    account: Word = Field(
        default="", pattern=WORD, description="who pays; Slurm's default if empty"
    )
    cores: int = Field(default=1, ge=1, le=4096, description="of a job")
    processes: int | None = Field(
        default=None, ge=1, le=4096, description="workers of a job, each with one thread"
    )
    memory: str = Field(default="4GiB", description="of a job, shared by its workers")
    walltime: str = Field(default="01:00:00", description="HH:MM:SS or D-HH:MM:SS")
    minimum: int = Field(default=1, ge=1, le=10_000, description="jobs to keep while a run goes on")
    maximum: int = Field(default=1, ge=1, le=10_000, description="jobs at a time")
    interface: str = Field(default="", pattern=WORD, description="network of scheduler and workers")
    directives: tuple[str, ...] = Field(default=(), description="more lines after #SBATCH")
    prologue: tuple[str, ...] = Field(default=(), description="shell lines before the workers")
    shared_folder: str = Field(
        default="logs/slurm", min_length=1, description="of logs and certificates, for all nodes"
    )
    startup: float = Field(
        default=3600.0, gt=0, allow_inf_nan=False, description="seconds to wait for a worker"
    )

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, given: Any) -> Any:
        return given if isinstance(given, cls) else check_keys(given, list(cls.model_fields))

    @field_validator("walltime", mode="before")
    @classmethod
    def _walltime(cls, given: Any) -> Any:
        # YAML 1.1, which Snakemake reads, makes a number of 1:00:00 without quotes.
        if not isinstance(given, str) or not WALLTIME.fullmatch(given) or _seconds(given) < 60:
            raise HdicaError(
                f"walltime = {given!r} is not allowed (in quotes 'HH:MM:SS' or 'D-HH:MM:SS', "
                "a minute at least)"
            )
        return given

    @field_validator("memory")
    @classmethod
    def _memory(cls, given: str) -> str:
        return check_size(given, "memory")

    @field_validator("directives")
    @classmethod
    def _directives(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for line in given:
            if not re.fullmatch(r"-[^\n\r]+", line):
                raise HdicaError(
                    f"directives: {line!r} is not allowed (one option a line, as --qos=long)"
                )
            if re.split(r"[=\s]", line)[0] in OURS:
                raise HdicaError(f"directives: {line!r} is not allowed (hdica sets it itself)")
        return given

    @model_validator(mode="after")
    def _fits(self) -> SlurmSettings:
        if self.processes is not None and self.processes > self.cores:
            raise HdicaError(
                f"processes = {self.processes} is not allowed (at most cores = {self.cores})"
            )
        check_size(self.memory, "memory", self.workers_each)
        if self.minimum > self.maximum:
            raise HdicaError(
                f"minimum = {self.minimum} is not allowed (at most maximum = {self.maximum})"
            )
        return self

    @property
    def workers_each(self) -> int:
        """Workers of a job."""
        return self.processes or self.cores

    @property
    def workers(self) -> int:
        """Workers of as many jobs as there may be."""
        return self.maximum * self.workers_each

    @property
    def seconds(self) -> int:
        """The walltime."""
        return _seconds(self.walltime)

    def jobs_for(self, blocks: int | None) -> int:
        """How many jobs so many blocks are worth."""
        if blocks is None:
            return self.maximum
        return max(self.minimum, min(self.maximum, -(-blocks // self.workers_each)))


def _seconds(walltime: str) -> int:
    found = WALLTIME.fullmatch(walltime)
    if found is None:
        return 0
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def lifetime(walltime: int) -> tuple[float, float]:
    """After how many seconds workers begin to end, and by how much that may differ among them.

    The last of them begins when a tenth of the walltime is left, which is what a block may still
    take.
    """
    reserved = min(max(RESERVED * walltime, 30.0), 900.0, walltime / 4)
    stagger = reserved / 4
    return walltime - reserved - stagger, stagger


def check_path(path: str, field: str) -> str:
    """``path`` if it may stand in a job script as it is."""
    if not re.fullmatch(WORD, path):
        raise HdicaError(
            f"{field} = {path!r} is not allowed (letters, digits and . _ - + = , : @ % / only, "
            "because it stands in job scripts)"
        )
    return path


def shared_folder(settings: SlurmSettings) -> Path:
    """The folder of logs and certificates, made if it is missing."""
    folder = Path(settings.shared_folder).expanduser().resolve()
    check_path(str(folder), "slurm.shared_folder")
    try:
        make_folders(folder, 0o775)
        about = folder.stat()
    except OSError as exc:
        text = f"slurm.shared_folder = {str(folder)!r} cannot be made ({exc.strerror})"
        raise HdicaError(text) from exc
    if about.st_mode & stat.S_IWOTH and not about.st_mode & stat.S_ISVTX:
        raise HdicaError(
            f"slurm.shared_folder = {str(folder)!r} is not allowed (all users can write to it, and "
            f"exchange the certificates in it: chmod o-w {folder})"
        )
    return folder


def exports(settings: Mapping[str, Any]) -> list[str]:
    """Shell lines that pin threads, load nothing from the current folder, pass settings to Dask."""
    pinned = " ".join(f"{name}=1" for name in THREAD_VARIABLES)
    safe = " ".join(f"{name}={value}" for name, value in SAFE_PATH.items())
    lines = [f"export {pinned}", f"export {safe}"]
    for name, value in settings.items():
        variable = name.upper().replace(".", "__").replace("-", "_")
        lines.append(f"export DASK_{variable}={shlex.quote(str(value))}")
    return lines


def with_script_in(folder: Path, job: Any) -> Any:
    """dask-jobqueue's class of a job, with its script in a folder that only this user can enter.

    It would lie among all temporary files, under a name that somebody else may take before Slurm
    reads it.
    """

    class Job(job):
        @contextmanager
        def job_file(self) -> Iterator[str]:
            file = folder / f"{self.name}.sh"
            file.write_text(self.job_script(), encoding="utf-8")
            yield str(file)

    return Job


def job_options(settings: SlurmSettings, folder: Path, name: str) -> dict[str, Any]:
    """What dask-jobqueue takes to write the script of a job, whose messages go to a folder."""
    begin, stagger = lifetime(settings.seconds)
    return {
        "queue": settings.queue or None,
        "account": settings.account or None,
        # One thread a process, whatever the job has besides.
        "cores": settings.workers_each,
        "processes": settings.workers_each,
        "job_cpu": settings.cores,
        "memory": settings.memory,
        "walltime": settings.walltime,
        "job_name": name,
        "job_extra_directives": list(settings.directives),
        # Ours come last: a module that is loaded may set threads to the cores of the job.
        "job_script_prologue": [*settings.prologue, *exports({**CALM, **UNPAUSED, **APART})],
        "log_directory": str(folder),
        "python": shlex.quote(sys.executable),
        "worker_command": f"{NODE} worker",
        "worker_extra_args": [
            *("--nworkers", str(settings.workers_each)),
            *("--lifetime", f"{begin:g}s", "--lifetime-stagger", f"{stagger:g}s"),
            *("--worker-class", WORKER),
        ],
    }
