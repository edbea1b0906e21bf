"""Write the report of a study from its published store."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from hdica.report import write
from hdica.run.console import logged
from hdica.show.typeset import unmarked

if TYPE_CHECKING:
    from snakemake.iocontainers import Snakemake

    snakemake: Snakemake


def main(store: str, page: str, card: str, shown: TextIO) -> None:
    """Write page, figures and aggregate beside each other, and show the answer.

    Parameters
    ----------
    store
        Path of the published store.
    page
        The page to write; its folder takes the rest.
    card
        What the gallery shows of it, the answer first.
    shown
        Where a line with the answer goes.
    """
    write(Path(store), Path(page).parent)
    content = json.loads(Path(card).read_text())
    answer = unmarked(content["headline"])
    shown.write(f"{content['study']}: {answer}\n")


if __name__ == "__main__":
    with logged(snakemake.log[0]) as shown:
        main(snakemake.params.store, snakemake.output.page, snakemake.output.card, shown)
