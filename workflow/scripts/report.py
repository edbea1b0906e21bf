"""Write the report of a study from its published store."""

from pathlib import Path
from typing import TYPE_CHECKING

from hdica.report import write
from joblog import logged

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def main(store: str, page: str) -> None:
    """Write page, figures and aggregate beside each other.

    Parameters
    ----------
    store
        Path of the published store.
    page
        The page to write; its folder takes the rest.
    """
    write(Path(store), Path(page).parent)


if __name__ == "__main__":
    with logged(snakemake.log[0]):
        main(snakemake.params.store, snakemake.output.page)
