"""``hdica cluster``, and what the options of ``hdica run`` say of where Dask runs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hdica.errors import HdicaError

if TYPE_CHECKING:
    from hdica.sweep.workers.settings import ClusterSettings

cluster_app = typer.Typer(
    name="cluster", help="Make what a Dask cluster beyond this machine needs."
)


@cluster_app.callback()
def _cluster() -> None:
    """Make what a Dask cluster beyond this machine needs."""


@cluster_app.command(epilog="Example: hdica cluster certs certs --days 90")
def certs(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder to write them to.")],
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="HOST", help="A machine it names; default: this one."),
    ] = None,
    days: Annotated[int, typer.Option("--days", help="How long they are valid.")] = 365,
    replace: Annotated[bool, typer.Option("--replace", help="Replace what is there.")] = False,
) -> None:
    """Write certificates with which scheduler, workers and hdica know each other.

    Whoever has them can run commands on the cluster; nobody else can.
    """
    from hdica.sweep.workers.tls import CA, CERTIFICATE, KEY, make_certificates

    ends = make_certificates(folder, name or (), days, replace)
    written = ", ".join(str(folder / file) for file in (CA, CERTIFICATE, KEY))
    typer.echo(f"# {written}: valid until {ends:%Y-%m-%d}, for their owner alone")
    for line in start_lines(folder):
        typer.echo(line)


def start_lines(folder: Path) -> list[str]:
    """How to start a scheduler and workers with the certificates in a folder, and to use them."""
    from hdica.sweep.workers.slurm import NODE, exports
    from hdica.sweep.workers.tls import CA, CERTIFICATE, KEY

    base = folder.expanduser().absolute()
    files = {"ca-file": CA, "cert": CERTIFICATE, "key": KEY}
    tls = " ".join(f"--tls-{option} {shlex.quote(str(base / f))}" for option, f in files.items())
    common = f"--protocol tls {tls} --scheduler-file scheduler.json"
    dask = f"python -P -m {NODE}"
    return [
        "# Start it, in a folder that all machines see, as dask scheduler and dask worker but with "
        "files that nobody else can reach, and without web pages unless the scheduler is started "
        "with --dashboard; a worker has one thread:",
        *exports({}),
        f"{dask} scheduler {common}",
        f"{dask} worker {common} --nworkers 4 --nthreads 1 --memory-limit 0",
        "# Use it, in config/config.yaml or in the file of hdica run --config:",
        "cluster:",
        "  scheduler_file: scheduler.json",
        f"  tls: {json.dumps(str(folder))}",
    ]


def settings_of(config: Path | None, given: dict[str, Any]) -> ClusterSettings:
    """Where Dask runs, by the section ``cluster`` of a file, if any, and by options, which win.

    Options that are empty are not given.
    """
    from hdica.sweep.study.study import read_yaml
    from hdica.sweep.workers.cluster import cluster_settings, in_full

    # What is empty is not given, but 0 is: it is refused where it is not allowed.
    given = {k: v for k, v in given.items() if v or type(v) in (int, float)}
    content = {} if config is None else read_yaml(config)
    if not isinstance(content, dict):
        raise HdicaError(f"{config} is not a configuration (a mapping with the section cluster)")
    section = in_full(content.get("cluster") or {})
    if not isinstance(section, dict):
        raise HdicaError(f"{config}: cluster must be a mapping or a word")
    if "address" in given or "scheduler_file" in given:
        # Another place than the file's.
        away = ("mode", "address", "scheduler_file")
        section = {key: value for key, value in section.items() if key not in away}
    return cluster_settings({**section, **given})
