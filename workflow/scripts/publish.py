"""Publish a study: its working store as labelled arrays, and the manifest that closes it."""

import sys
from functools import partial
from typing import TYPE_CHECKING

from hdica.run.compute import mending
from hdica.run.console import logged
from hdica.run.runner import run
from hdica.store.paths import acting
from hdica.store.publish import publish
from hdica.study.study import load_study

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def main(study_file: str, store: str) -> None:
    """Write the published store and its manifest, each replaced whole."""
    study = load_study(study_file)
    # The shards' records say that nothing is pending: what is found torn is computed here. The path
    # is the study's own, and outputs follow their inputs: a new grid replaces the old.
    again = partial(run, study, store, replace=True)
    attempt = partial(publish, study, store, replace=True)
    mending(store, attempt, partial(print, file=sys.stderr), again)


if __name__ == "__main__":
    with logged(snakemake.log[0]), acting(f"Snakemake's rule {snakemake.rule}"):
        main(snakemake.params.study, snakemake.params.store)
