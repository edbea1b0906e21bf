"""Make the gallery of all reports from the cards that lie beside them."""

from pathlib import Path
from typing import TYPE_CHECKING

from hdica.report.gallery import update
from hdica.run.console import logged

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        update(Path(snakemake.output[0]).parent)
