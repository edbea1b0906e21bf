"""Where blocks are computed: here, on this machine, by a Dask scheduler, or in Slurm jobs."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args

from pydantic import ValidationError

from hdica.errors import HdicaError, from_validation, suggestion
from hdica.process.loopback import HOST
from hdica.process.private import scratch
from hdica.sweep.study.size import in_bytes
from hdica.sweep.workers.local import local_client
from hdica.sweep.workers.settings import ClusterSettings, Mode

ENVIRONMENT = {
    "address": "HDICA_SCHEDULER",
    "scheduler_file": "HDICA_SCHEDULER_FILE",
    "tls": "HDICA_TLS",
    "tls_key": "HDICA_TLS_KEY",
}
"""Variables that say what settings leave out."""


def cluster_settings(given: Any = None, workers: int | None = None) -> ClusterSettings:
    """Settings, and from the environment what they leave out.

    They may be given as a mapping, None for the defaults, or one word, see :func:`in_full`.
    ``workers`` are processes, where ``given`` does not say it.
    """
    if isinstance(given, ClusterSettings):
        return given
    content = in_full({} if given is None else given)
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


def in_full(given: Any) -> Any:
    """The mapping that one word stands for; anything else as it is.

    The word is a mode, the address of a scheduler (``tls://host:8786``) or the file that one wrote
    (``scheduler.json``).
    """
    if not isinstance(given, str):
        return given
    if given in get_args(Mode):
        return {"mode": given}
    if "://" in given:
        return {"mode": "scheduler", "address": given}
    if given.endswith(".json"):
        return {"mode": "scheduler", "scheduler_file": given}
    near = suggestion(given, get_args(Mode))
    raise HdicaError(
        f"cluster = {given!r} is not allowed ({near}, tls://host:port, a scheduler's file.json or "
        "a mapping)"
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


def ready(settings: ClusterSettings) -> ClusterSettings:
    """Check what can be checked before any work, and fill in the workers that a plan counts on.

    A local cluster has as many as the settings say, Slurm as many as all its jobs, a running
    scheduler as many as it says.
    """
    workers = settings.workers
    if settings.kind == "scheduler":
        from hdica.sweep.workers.scheduler import reach

        found = reach(settings)
        _warn(settings, found.address.exposed)
        workers = max(1, found.workers)
    elif settings.kind == "slurm":
        from hdica.sweep.workers.jobs import check_slurm

        check_slurm(settings)
        _warn(settings, settings.slurm.interface != "lo")
        workers = settings.slurm.workers
    elif settings.kind == "local":
        if settings.tls:
            from hdica.sweep.workers.tls import security

            security(settings.tls, settings.tls_key)
        scratch()
    return settings.model_copy(update={"workers": workers})


def _warn(settings: ClusterSettings, exposed: bool) -> None:
    if exposed and settings.insecure:
        text = "insecure: true lets anyone on the network read this run and run commands as you"
        warnings.warn(text, stacklevel=3)


@contextmanager
def connect(settings: ClusterSettings, blocks: int | None = None) -> Iterator[Any]:
    """A Dask client of a local cluster, of a running scheduler or of jobs.

    No more workers are started than there are blocks to compute.
    """
    if settings.kind == "scheduler":
        from hdica.sweep.workers.scheduler import scheduler_client

        with scheduler_client(settings) as client:
            yield client
    elif settings.kind == "slurm":
        from hdica.sweep.workers.jobs import slurm_client

        with slurm_client(settings, blocks) as client:
            yield client
    else:
        from hdica.sweep.workers.tls import certificates

        workers = settings.workers if blocks is None else max(1, min(settings.workers, blocks))
        memory = in_bytes(settings.memory) if settings.memory else 0
        # Any user of this machine can reach its ports, and who is let in may run code.
        with (
            certificates(settings, scratch(), (HOST,)) as known,
            local_client(workers, memory, known) as client,
        ):
            yield client
