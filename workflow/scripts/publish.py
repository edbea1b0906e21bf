"""Publish a study: its working store as labelled arrays, and the manifest that closes it."""

from typing import TYPE_CHECKING

from hdica.sweep.outcome.publish import publish
from hdica.sweep.spec.study import load_study
from joblog import logged

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def main(study_file: str, store: str) -> None:
    """Write the published store and its manifest, each replaced whole."""
    # The path is the study's own, and outputs follow their inputs: a new grid replaces the old.
    publish(load_study(study_file), store, replace=True)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        main(snakemake.params.study, snakemake.params.store)
