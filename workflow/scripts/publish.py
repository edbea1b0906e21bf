"""Publish a study: its working store as labelled arrays, and the manifest that closes it."""

from typing import TYPE_CHECKING

from hdica.sweep.outcome.publish import publish
from hdica.sweep.run.holder import acting
from hdica.sweep.spec.study import load_study
from joblog import logged

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def main(study_file: str, store: str) -> None:
    """Write the published store and its manifest, each replaced whole."""
    publish(load_study(study_file), store)


if __name__ == "__main__":
    with logged(snakemake.log[0]), acting(f"Snakemake's rule {snakemake.rule}"):
        main(snakemake.params.study, snakemake.params.store)
