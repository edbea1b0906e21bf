"""Compute the pending points of one shard of a study."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from hdica.errors import HdicaError
from hdica.run.compute import mending
from hdica.run.console import logged
from hdica.run.runner import run
from hdica.store.paths import acting
from hdica.store.sealed import write_sealed
from hdica.study.study import load_study

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def main(
    study_file: str,
    store: str,
    manifest: str,
    shard: tuple[int, int],
    threads: int,
    cluster: dict[str, Any] | str,
    terminal: TextIO | None = None,
) -> None:
    """Fill the working store and then say so in a manifest.

    Parameters
    ----------
    study_file
        The study.
    store
        Path of the published store, beside which the working store lies.
    manifest
        JSON to write when nothing of the shard is pending.
    shard
        Index of the shard, and how many there are.
    threads
        Cores, hence processes of a local cluster.
    cluster
        Where Dask runs; may say another number of ``workers``.
    terminal
        Where somebody waits, and gets lines with bars beside those in the log.

    Raises
    ------
    HdicaError
        If points could not be computed; what was computed stays.
    """
    study = load_study(study_file)
    # The path is the study's own, and outputs follow their inputs: a new grid replaces the old.
    attempt = partial(
        run, study, store, workers=threads, shard=shard, cluster=cluster, replace=True,
        progress=terminal,
    )  # fmt: skip
    done = mending(store, attempt, partial(print, file=sys.stderr))
    if not done.complete:
        lost = "; ".join(done.lost)
        raise HdicaError(f"{done.pending} points of {study.study} are still pending: {lost}")
    content = {
        "study": study.study,
        "study_hash": study.content_hash(),
        "shard": list(shard),
        "computed": done.computed,
        "counts": dict(done.counts),
        "cpu_seconds": done.cpu_seconds,
    }
    write_sealed(Path(manifest), content)


if __name__ == "__main__":
    with logged(snakemake.log[0]) as shown, acting(f"Snakemake's rule {snakemake.rule}"):
        main(
            snakemake.params.study,
            snakemake.params.store,
            snakemake.output[0],
            (int(snakemake.wildcards.shard), snakemake.params.shards),
            snakemake.threads,
            snakemake.config["cluster"],
            shown if shown.isatty() else None,
        )
