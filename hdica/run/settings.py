"""Settings of where blocks are computed: sections of files, words, options, the environment."""

from __future__ import annotations

import ipaddress
import math
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from hdica.errors import HdicaError, from_validation, suggestion
from hdica.inputs.plain_yaml import read_yaml
from hdica.process.machine import check_size, in_bytes
from hdica.study.schema import Section

Kind = Literal["serial", "local", "scheduler", "slurm"]
Mode = Literal["auto", "serial", "local", "scheduler", "slurm"]

ENVIRONMENT = {
    "address": "HDICA_SCHEDULER",
    "scheduler_file": "HDICA_SCHEDULER_FILE",
    "tls": "HDICA_TLS",
    "tls_key": "HDICA_TLS_KEY",
}
"""Variables that say what settings leave out."""
FORMS = "tcp://host:port or tls://host:port"
WORD = r"^([\w.,:@%+/=][\w.,:@%+/=-]*)?$"  # what stands in a line of a job script unquoted
WALLTIME = re.compile(r"(?:(\d{1,6})-)?(\d{1,2}):([0-5]\d):([0-5]\d)")
OURS = {
    **dict.fromkeys(("-J", "--job-name", "-n", "--ntasks", "-N", "--nodes", "-o", "--output"), ""),
    **dict.fromkeys(("-a", "--array"), "array"),
    **dict.fromkeys(("-p", "--partition"), "queue"),
    **dict.fromkeys(("-A", "--account"), "account"),
    **dict.fromkeys(("-c", "--cpus-per-task"), "cores"),
    **dict.fromkeys(("--mem", "--mem-per-cpu", "--mem-per-gpu"), "memory"),
    **dict.fromkeys(("-t", "--time"), "walltime"),
    **dict.fromkeys(("-x", "--exclude"), "exclude"),
    **dict.fromkeys(("--requeue", "--no-requeue"), "requeue"),
}
"""Directives that a run sets for itself, and by which setting a user does."""

BUDGET = 300.0  # seconds of processor time that any point may take
Word = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
    WithJsonSchema({"type": ["string", "integer"], "pattern": WORD}),
]
"""A name, which YAML reads as a number where it is made of digits."""
_NODE = r"\w[\w.-]*(\[\d[\d,-]*\][\w.-]*)*"
NODES = rf"^({_NODE}(,{_NODE})*)?$"
Memory = Annotated[str, AfterValidator(lambda text: check_size(text, "memory") if text else text)]


class Address(NamedTuple):
    """Where a scheduler listens."""

    protocol: str  # tcp or tls
    host: str
    port: int

    def __str__(self) -> str:
        """As Dask takes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}://{host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it; a name is looked up nowhere."""
        with suppress(ValueError):
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        return False

    @property
    def encrypted(self) -> bool:
        """Whether both sides show certificates."""
        return self.protocol == "tls"

    @property
    def exposed(self) -> bool:
        """Whether others on the network could read it and send commands."""
        return not self.encrypted and not self.loopback


def parse_address(text: str, field: str = "address") -> Address:
    """Read an address as a user writes it; without a protocol it means tcp."""
    refused = HdicaError(f"{field} = {text!r} is not allowed ({FORMS})")
    try:
        parts = urlsplit(text if "://" in text else f"tcp://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise refused from None
    rest = parts.path or parts.query or parts.fragment or parts.username or parts.password
    if parts.scheme not in ("tcp", "tls") or not host or not port or rest:
        raise refused
    return Address(parts.scheme, host, port)


class Retry(Section):
    """How much more jobs ask for once some have ended for want of it."""

    memory: float = Field(
        default=2.0, ge=1, le=8, allow_inf_nan=False, description="times the memory of before"
    )
    walltime: float = Field(
        default=2.0, ge=1, le=8, allow_inf_nan=False, description="times the walltime of before"
    )
    most: int = Field(default=2, ge=1, le=4, description="times that jobs ask for more")

    @model_validator(mode="after")
    def _more(self) -> Retry:
        if max(self.memory, self.walltime) == 1:
            raise HdicaError("memory = walltime = 1 is not allowed (one of them above 1)")
        return self


class SlurmSettings(Section):
    """Jobs of Dask workers that hdica submits to Slurm."""

    queue: Word = Field(default="", pattern=WORD, description="partition; Slurm's default if empty")
    account: Word = Field(
        default="", pattern=WORD, description="who pays; Slurm's default if empty"
    )
    cores: int = Field(default=1, ge=1, le=4096, description="of a job")
    processes: int | None = Field(
        default=None, ge=1, le=4096, description="workers of a job, each with one thread"
    )
    memory: Memory = Field(default="4GiB", description="of a job, shared by its workers")
    walltime: str = Field(default="01:00:00", description="HH:MM:SS or D-HH:MM:SS")
    minimum: int = Field(default=1, ge=1, le=10_000, description="jobs to keep while a run goes on")
    maximum: int = Field(default=1, ge=1, le=10_000, description="jobs at a time")
    array: bool = Field(default=False, description="whether jobs are tasks of one array")
    at_once: int | None = Field(default=None, ge=1, le=10_000, description="tasks of it that run")
    retry: Retry | None = Field(default=None, description="more memory and time for a second try")
    exclude: str = Field(default="", pattern=NODES, description="nodes to avoid: node[1-3],node7")
    requeue: bool | None = Field(
        default=None, description="whether Slurm puts jobs back that it ends; the site's if none"
    )
    interface: str = Field(default="", pattern=WORD, description="network of scheduler and workers")
    directives: tuple[str, ...] = Field(default=(), description="more lines after #SBATCH")
    prologue: tuple[str, ...] = Field(default=(), description="shell lines before the workers")
    shared_folder: str = Field(
        default="logs/slurm", min_length=1, description="of logs and certificates, for all nodes"
    )
    startup: float = Field(
        default=3600.0, gt=0, allow_inf_nan=False, description="seconds to wait for a worker"
    )

    @field_validator("walltime", mode="before")
    @classmethod
    def _walltime(cls, text: object) -> object:
        # YAML 1.1, which Snakemake reads, makes a number of 1:00:00 without quotes.
        if not isinstance(text, str) or _seconds(text) < 60:
            raise HdicaError(
                f"walltime = {text!r} is not allowed (in quotes 'HH:MM:SS' or 'D-HH:MM:SS', "
                "a minute at least)"
            )
        return text

    @field_validator("directives")
    @classmethod
    def _directives(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for line in given:
            if not re.fullmatch(r"-[^\n\r]+", line):
                raise HdicaError(
                    f"directives: {line!r} is not allowed (one option a line, as --qos=long)"
                )
            option = re.split(r"[=\s]", line)[0] if line.startswith("--") else line[:2]
            if (by := OURS.get(option)) is not None:
                by = f": {by} is its setting" if by else ""
                raise HdicaError(f"directives: {line!r} is not allowed (hdica sets it itself{by})")
        return given

    @model_validator(mode="after")
    def _fits(self) -> SlurmSettings:
        for name, most in (("processes", "cores"), ("minimum", "maximum")):
            value, bound = getattr(self, name), getattr(self, most)
            if value is not None and value > bound:
                raise HdicaError(f"{name} = {value} is not allowed (at most {most} = {bound})")
        if self.at_once is not None and not self.array:
            raise HdicaError(f"at_once = {self.at_once} needs array: true")
        check_size(self.memory, "memory", self.workers_each)
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
    def where(self) -> str:
        """The queue, in words."""
        return f"queue {self.queue!r}" if self.queue else "default queue"

    @property
    def size(self) -> str:
        """What a job asks for, in words."""
        return f"{self.memory} for {self.walltime}"

    @property
    def seconds(self) -> int:
        """The walltime."""
        return _seconds(self.walltime)

    def larger(self, memory: bool, walltime: bool) -> SlurmSettings | None:
        """Jobs for the try after one that lacked memory or time; None if there is none."""
        if self.retry is None or not self.retry.most:
            return None
        room = self.retry.memory if memory else 1.0
        time = self.retry.walltime if walltime else 1.0
        if max(room, time) == 1:
            return None
        minutes, seconds = divmod(round(self.seconds * time), 60)
        left = self.retry.model_copy(update={"most": self.retry.most - 1})
        changes = {
            "memory": f"{math.ceil(in_bytes(self.memory) * room / 2**20)}MiB",
            "walltime": f"{minutes // 1440}-{minutes // 60 % 24:02}:{minutes % 60:02}:{seconds:02}",
            "retry": left,
        }
        return self.model_copy(update=changes)

    def running(self, tasks: int) -> int | None:
        """How many tasks of an array of so many may run at once; None for all."""
        return self.at_once if self.at_once and self.at_once < tasks else None

    def jobs_for(self, blocks: int) -> int:
        """How many jobs so many blocks are worth."""
        return max(self.minimum, min(self.maximum, -(-blocks // self.workers_each)))


def _seconds(walltime: str) -> int:
    """Seconds of a walltime, 0 if it is none."""
    match = WALLTIME.fullmatch(walltime)
    days, hours, minutes, seconds = map(int, match.groups("0") if match else "0000")
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


class ClusterSettings(Section):
    """Where Dask runs. It never changes a number."""

    mode: Mode = Field(
        default="auto",
        description="auto: scheduler if an address is given, else local where it is worth it",
    )
    workers: int = Field(default=1, ge=1, le=4096, description="processes of a local cluster")
    memory: Memory = Field(default="", description="beyond which a local worker is restarted: 2GiB")
    patience: float = Field(
        default=1800.0,
        gt=0,
        allow_inf_nan=False,
        description="seconds without any block that ends, after which a run gives up",
    )
    budget: float = Field(
        default=BUDGET,
        ge=0.1,
        allow_inf_nan=False,
        description="seconds of a processor that any point may take, or else it fails",
    )
    address: str = Field(default="", description="of a running scheduler: tls://host:port")
    scheduler_file: str = Field(default="", description="file that a running scheduler wrote")
    tls: str = Field(default="", description="folder with ca.pem, cert.pem and key.pem")
    tls_key: str = Field(default="", description="private key, where it is not in that folder")
    insecure: bool = Field(default=False, description="without certificates, everywhere")
    slurm: SlurmSettings = Field(default_factory=SlurmSettings, description="jobs of workers")

    @model_validator(mode="after")
    def _reachable(self) -> ClusterSettings:
        if self.mode == "scheduler" and not (self.address or self.scheduler_file):
            raise HdicaError("mode = 'scheduler' needs an address or a scheduler_file")
        if self.kind == "scheduler" and self.address:
            self.allowed(self.address)
        return self

    @property
    def kind(self) -> Kind:
        """What ``mode`` comes to."""
        if self.mode != "auto":
            return self.mode
        if self.address or self.scheduler_file:
            return "scheduler"
        return "local" if self.workers > 1 else "serial"

    @property
    def memory_each(self) -> int:
        """Bytes that a process may take that computes; 0 for no limit."""
        if self.kind == "slurm":
            return in_bytes(self.slurm.memory) // self.slurm.workers_each
        return in_bytes(self.memory)

    def larger(self, memory: bool, walltime: bool) -> ClusterSettings | None:
        """Settings for the try after jobs that lacked memory or time; None if there is none."""
        slurm = self.slurm.larger(memory, walltime) if self.kind == "slurm" else None
        return None if slurm is None else self.model_copy(update={"slurm": slurm})

    def allowed(self, text: str, field: str = "address") -> Address:
        """Read an address; these settings say whether it may be used.

        A Dask scheduler runs whatever it is sent: beyond this machine both sides show certificates
        unless the user wants none.
        """
        address = parse_address(text, field)
        if address.exposed and not self.insecure:
            raise HdicaError(
                f"{field} = {text!r} is not allowed (over plain tcp anyone on the network can run "
                "commands as you: use tls://, with certificates, or set insecure: true)"
            )
        if address.encrypted and not self.tls:
            raise HdicaError(
                f"{field} = {text!r} needs tls (the folder with ca.pem, cert.pem and key.pem; "
                "docs/where-it-runs.md says how to make them; or HDICA_TLS in the environment)"
            )
        return address


def submission(settings: ClusterSettings) -> str:
    """What a run would submit, in one sentence; Slurm is not asked."""
    slurm, retry = settings.slurm, settings.slurm.retry
    if settings.kind != "slurm":
        return f"a run would submit no job (mode = {settings.mode!r}, here {settings.kind})"
    jobs = "1 job" if slurm.maximum == 1 else f"up to {slurm.maximum} jobs"
    workers = "1 worker" if slurm.workers_each == 1 else f"{slurm.workers_each} workers"
    array = ", as tasks of one array" * slurm.array
    if running := slurm.running(slurm.maximum):
        array += f" of which {running} run at once"
    more = ""
    if retry is not None:
        often = "once" if retry.most == 1 else f"{retry.most} times"
        asked = {"memory": retry.memory, "walltime": retry.walltime}
        times = [f"{times:g} times the {name}" for name, times in asked.items() if times > 1]
        more = (
            f"; after one that lacked memory or time the next ask for {' or '.join(times)}, at "
            f"most {often}"
        )
    return (
        f"a run would submit {jobs} of {workers} each, {slurm.size}, to Slurm's {slurm.where}"
        f"{array}, and replace those that end while there is work{more}"
    )


def cluster_settings(content: object = None, workers: int | None = None) -> ClusterSettings:
    """Settings, and from the environment what they leave out.

    They are a mapping, None for the defaults, or one word, see :func:`in_full`; ``workers`` holds
    where ``content`` has none.
    """
    if isinstance(content, ClusterSettings):
        return content
    content = in_full({} if content is None else content)
    used: list[str] = []
    if isinstance(content, dict):
        if workers is not None:
            content = {"workers": workers, **content}
        content, used = _with_environment(content)
    try:
        return ClusterSettings.model_validate(content)
    except ValidationError as exc:
        what = f"cluster (with {', '.join(used)} of the environment)" if used else "cluster"
        raise from_validation(exc, what) from exc


def in_full(content: object) -> object:
    """The mapping that one word stands for; anything else as it is.

    The word is a mode, the address of a scheduler (``tls://host:8786``) or the file that one wrote
    (``scheduler.json``).
    """
    if not isinstance(content, str):
        return content
    if content in get_args(Mode):
        return {"mode": content}
    if "://" in content:
        return {"mode": "scheduler", "address": content}
    if content.endswith(".json"):
        return {"mode": "scheduler", "scheduler_file": content}
    near = suggestion(content, get_args(Mode))
    raise HdicaError(
        f"cluster = {content!r} is not allowed ({near}, tls://host:port, a scheduler's file.json "
        "or a mapping)"
    )


def _with_environment(content: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Settings with what the environment adds, and which variables did."""
    mode = content.get("mode", "auto")
    named = any(content.get(key) for key in ("address", "scheduler_file"))
    added = {}
    for key, variable in ENVIRONMENT.items():
        place = key in ("address", "scheduler_file")
        if content.get(key) or (place and (named or mode not in ("auto", "scheduler"))):
            continue
        if value := os.environ.get(variable):
            added[key] = value
            named = named or place
    return {**content, **added}, [ENVIRONMENT[key] for key in added]


def settings_of(config: Path | None, options: dict[str, Any]) -> ClusterSettings:
    """Where Dask runs: the section ``cluster`` of a file, if any, and options, which win."""
    # 0 is not empty: it is refused where it is not allowed.
    options = {k: v for k, v in options.items() if v or type(v) in (int, float)}
    content = {} if config is None else read_yaml(config)
    if not isinstance(content, dict):
        raise HdicaError(f"{config} is not a configuration (a mapping with the section cluster)")
    section = in_full(content.get("cluster") or {})
    if not isinstance(section, dict):
        raise HdicaError(f"{config}: cluster must be a mapping or a word")
    if "address" in options or "scheduler_file" in options:
        # Another place than the file's.
        away = ("mode", "address", "scheduler_file")
        section = {key: value for key, value in section.items() if key not in away}
    return cluster_settings({**section, **options})
