"""Train a small network to tell photographs apart, and write its first layer at snapshots.

    python data/filters/train.py data/filters/small_network --seeds 0 1 2
    hdica data write filters/small_network

It needs PyTorch and the photographs of scikit-image: ``pip install 'hdica[images,networks]'``.

Convolution (``width`` x ``width``, no bias), batch norm, ReLU, 2 x 2 maximum; convolution (3 x 3,
64), batch norm, ReLU, 2 x 2 maximum; 128 units with ReLU; one output an image. Stochastic gradient
descent on the cross-entropy of crops, each standardised; the step size falls to 0 as a cosine.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hdica.inputs.images import load_images

Images = Sequence[NDArray[np.float64]]


@dataclass(frozen=True)
class Training:
    """Crops of images, each to be told which image it was taken from.

    Parameters
    ----------
    seed
        Of the weights at the start, the crops and their order.
    steps
        Steps of stochastic gradient descent.
    snapshots
        How many snapshots of the first layer at most, spaced evenly in the logarithm of the step
        from the first to the last; one before training comes on top.
    filters, width, stride
        Of the first convolution: how many, of how many pixels a side, and how far apart.
    crop
        Pixels a side of a crop.
    batch, rate, momentum, decay
        Crops a step, first step size, momentum and weight decay.
    labels
        ``"image"``: the number of the image; ``"random"``: any, so that there is nothing to learn.
    """

    seed: int = 0
    steps: int = 1500
    snapshots: int = 25
    filters: int = 32
    width: int = 11
    stride: int = 2
    crop: int = 32
    batch: int = 128
    rate: float = 0.05
    momentum: float = 0.9
    decay: float = 1e-4
    labels: str = "image"


def snapshot_steps(training: Training) -> list[int]:
    """Steps after which the first layer is written: 0 and, log-spaced, 1 to the last."""
    spaced = np.geomspace(1.0, training.steps, training.snapshots)
    return np.unique(np.concatenate([[0], np.rint(spaced)])).astype(int).tolist()


def train(images: Images, training: Training) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Steps and first layers (filters, channels, width, width) at the snapshots.

    One thread, and algorithms that repeat their bits on the same machine.
    """
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(training.seed)
    draws = np.random.default_rng([training.seed, 1])
    channels = 1 if images[0].ndim == 2 else images[0].shape[2]
    net, first = network(training, channels, len(images))
    descent = torch.optim.SGD(
        net.parameters(),
        lr=training.rate,
        momentum=training.momentum,
        weight_decay=training.decay,
        nesterov=False,
    )
    net.train()
    for step in range(training.steps + 1):
        if step in snapshot_steps(training):
            yield step, first.weight.detach().numpy().copy()
        if step == training.steps:
            return
        crops, labels = crops_of(images, training, draws)
        for group in descent.param_groups:
            group["lr"] = training.rate * (1 + math.cos(math.pi * step / training.steps)) / 2
        descent.zero_grad()
        scores = net(torch.from_numpy(crops))
        nn.functional.cross_entropy(scores, torch.from_numpy(labels)).backward()
        descent.step()


def network(training: Training, channels: int, classes: int) -> tuple[nn.Sequential, nn.Conv2d]:
    """The network and its first layer."""
    width, count = training.width, training.filters
    first = nn.Conv2d(
        channels, count, width, stride=training.stride, padding=width // 2, bias=False
    )
    net = nn.Sequential(
        first, nn.BatchNorm2d(count), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(count, 64, 3, padding=1, bias=False),
        nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    )  # fmt: skip
    with torch.no_grad():
        net.eval()
        features = net(torch.zeros(1, channels, training.crop, training.crop)).shape[1]
    net.extend([nn.Linear(features, 128), nn.ReLU(), nn.Linear(128, classes)])
    return net, first


def crops_of(
    images: Images, training: Training, draws: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """One batch: standardised crops (batch, channels, crop, crop) and their labels."""
    side, count = training.crop, training.batch
    which = draws.integers(len(images), size=count)
    channels = 1 if images[0].ndim == 2 else images[0].shape[2]
    crops = np.empty((count, channels, side, side), dtype=np.float32)
    for place, number in enumerate(which.tolist()):
        image = images[number]
        top = int(draws.integers(image.shape[0] - side + 1))
        left = int(draws.integers(image.shape[1] - side + 1))
        crop = image[top : top + side, left : left + side]
        # A crop of a plain sky varies by nothing: it stays 0.
        scaled = (crop - crop.mean()) / max(float(crop.std()), 1e-3)
        crops[place] = np.moveaxis(np.atleast_3d(scaled), -1, 0)
    labels = draws.integers(len(images), size=count) if training.labels == "random" else which
    return crops, labels.astype(np.int64)


def main(arguments: list[str] | None = None) -> None:
    """Train once for every seed, and write a folder ``seed_0`` for each."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--colour", choices=("grey", "rgb"), default="grey")
    numbers = {field.name: field for field in fields(Training) if field.name != "seed"}
    for name, field in numbers.items():
        parser.add_argument(f"--{name}", type=type(field.default), default=field.default)
    given = vars(parser.parse_args(arguments))
    images = [picture.pixels for picture in load_images("bundled", given["colour"])]
    for seed in given["seeds"]:
        folder = given["folder"] / f"seed_{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        training = Training(seed=seed, **{name: given[name] for name in numbers})
        for step, filters in train(images, training):
            path = folder / f"step_{step:06d}.npz"
            np.savez(path, filters=filters.astype(np.float32), step=np.int64(step))


if __name__ == "__main__":
    main()
