"""Filters to be kept: training the small network once, for whoever studies its filters later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hdica.inputs.filters import save_series
from hdica.inputs.images import load_images
from hdica.inputs.network import Training, check_training, train
from hdica.systems.arguments import check_seeds


def train_filters(
    folder: str | Path,
    *,
    seeds: int | Iterable[int] = 3,
    images: Any = "bundled",
    colour: Any = "grey",
    **training: Any,
) -> list[Path]:
    """Train the small network on images and write its first layer at snapshots.

    Parameters
    ----------
    folder
        Where to write: a folder a seed, ``seed_0/step_000051.npz`` with ``filters``, shape (K,
        channels, rows, columns), and ``step``. Below ``data/filters`` studies find it.
    seeds
        How many trainings, or their seeds.
    images, colour
        What is told apart: as of :class:`hdica.FilterSeries`.
    **training
        Fields of :class:`hdica.inputs.network.Training` but the seed.

    Returns
    -------
    list of pathlib.Path
        The folders that were written.

    Raises
    ------
    HdicaError
        If PyTorch is not installed, or a field is not allowed.

    Notes
    -----
    One training takes one to three minutes on one core. It has the same bits again on the same
    machine with the same PyTorch; on another they may differ.
    """
    numbers = check_seeds(seeds)
    pictures = [one.pixels for one in load_images(images, colour)]
    usual, written = asdict(Training()), []
    for seed in numbers:
        found = train(pictures, check_training({**usual, **training, "seed": seed}))
        written.append(Path(folder) / f"seed_{seed}")
        save_series(found, written[-1])
    return written
