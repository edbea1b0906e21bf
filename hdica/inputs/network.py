"""A small convolutional network, trained to tell images apart: first-layer filters over training.

It needs PyTorch, which hdica does not install: ``pip install 'hdica[networks]'``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, suggestion, unknown_key
from hdica.inputs.series import Series

Array = NDArray[np.float64]
NEEDED = (
    "training the small network needs PyTorch, which is not installed "
    "(pip install 'hdica[networks]', or give filters that are trained already)"
)
HIDDEN = (64, 128)
"""Filters of the second convolution, and units of the layer after it."""
LABELS = ("image", "random")


@dataclass(frozen=True)
class Training:
    """A training: crops of images, each to be told which image it was taken from.

    Parameters
    ----------
    seed
        Of the weights at the start, the crops and their order.
    steps
        Steps of stochastic gradient descent; the step size falls to 0 as a cosine.
    snapshots
        How many snapshots of the first layer at most, spaced evenly in the logarithm of the step
        from the first to the last; one before training comes on top.
    filters, width, stride
        Of the first convolution: how many, of how many pixels a side, and how far apart.
    crop
        Pixels a side of a crop, standardised each (mean 0, variance 1).
    batch, rate, momentum, decay
        Of the descent: crops a step, first step size, momentum and weight decay.
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
    labels: Literal["image", "random"] = "image"


_WHOLE = {
    "seed": (0, 2**53), "steps": (1, 10**7), "snapshots": (2, 1000), "filters": (1, 4096),
    "width": (1, 64), "stride": (1, 64), "crop": (8, 512), "batch": (2, 4096),
}  # fmt: skip
_NUMBERS = {"rate": (0.0, math.inf), "momentum": (-1e-300, 1.0), "decay": (-1e-300, 1.0)}
"""Numbers lie strictly between these; 0 is a momentum."""


def check_training(given: Mapping[str, Any]) -> Training:
    """A training of its fields by name, each checked.

    Raises
    ------
    HdicaError
        If one is not allowed; the sentence names it and what is allowed.
    """
    known = [field.name for field in fields(Training)]
    if unknown := next((name for name in given if name not in known), ""):
        raise HdicaError(f"trained: {unknown_key(unknown, known)}")
    found: dict[str, Any] = dict(given)
    for name, (least, most) in _WHOLE.items():
        value = found[name]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not least <= value <= most or not float(value).is_integer():
            raise HdicaError(
                f"trained.{name} = {value!r} is not allowed (a whole number from {least} to {most})"
            )
        found[name] = int(value)
    for name, (low, high) in _NUMBERS.items():
        value = found[name]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not low < value < high:
            allowed = "a finite number > 0" if name == "rate" else "a number from 0 to below 1"
            raise HdicaError(f"trained.{name} = {value!r} is not allowed ({allowed})")
        found[name] = float(value)
    if found["labels"] not in LABELS:
        near = suggestion(found["labels"], LABELS)
        raise HdicaError(f"trained.labels = {found['labels']!r} is not allowed ({near})")
    made = Training(**found)
    if (made.crop + 2 * (made.width // 2) - made.width) // made.stride + 1 < 4:
        raise HdicaError(
            f"trained.stride = {made.stride} is not allowed with crops of {made.crop} pixels "
            "(the first layer must have at least 4 x 4 places)"
        )
    return made


def snapshot_steps(training: Training) -> NDArray[np.int64]:
    """Steps after which the first layer is kept: 0 and, log-spaced, 1 to the last."""
    spaced = np.geomspace(1.0, training.steps, training.snapshots)
    return np.unique(np.concatenate([[0], np.rint(spaced)])).astype(np.int64)


def train(images: Sequence[Array], training: Training) -> Series:
    """Train the network and keep its first layer.

    Convolution (``width`` x ``width``, no bias), batch norm, ReLU, 2 x 2 maximum; convolution
    (3 x 3, 64), batch norm, ReLU, 2 x 2 maximum; 128 units with ReLU; one output an image.

    Parameters
    ----------
    images
        Each of shape (H, W) or (H, W, channels), in [0, 1].
    training
        How it is trained.

    Returns
    -------
    Series
        Filters at the snapshots, shape (T, filters, channels, width, width).

    Raises
    ------
    HdicaError
        If PyTorch is not installed, or an image is smaller than a crop.
    """
    torch = _torch()
    for image in images:
        if min(image.shape[:2]) < training.crop:
            raise HdicaError(
                f"trained.crop = {training.crop} is not allowed (an image has "
                f"{image.shape[0]} x {image.shape[1]} pixels)"
            )
    draws = np.random.default_rng([training.seed, 1])
    with _alone(torch, training.seed):
        net, first = _network(torch, training, _channels(images[0]), len(images))
        kept = dict(_descent(torch, net, first, images, training, draws))
    return Series(np.array(list(kept)), np.stack(list(kept.values())))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise HdicaError(NEEDED) from None
    return torch


@contextmanager
def _alone(torch: Any, seed: int) -> Iterator[None]:
    """One thread, algorithms that repeat their bits, and random numbers that nobody else sees."""
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.use_deterministic_algorithms(strict)
        torch.set_num_threads(threads)


def _channels(image: Array) -> int:
    return 1 if image.ndim == 2 else int(image.shape[2])


def _network(torch: Any, training: Training, channels: int, classes: int) -> tuple[Any, Any]:
    """The network and its first layer."""
    nn, (second, units) = torch.nn, HIDDEN
    first = nn.Conv2d(
        channels,
        training.filters,
        training.width,
        stride=training.stride,
        padding=training.width // 2,
        bias=False,
    )
    net = nn.Sequential(
        first, nn.BatchNorm2d(training.filters), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(training.filters, second, 3, padding=1, bias=False),
        nn.BatchNorm2d(second), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    )  # fmt: skip
    with torch.no_grad():
        net.eval()
        features = net(torch.zeros(1, channels, training.crop, training.crop)).shape[1]
    net.extend([nn.Linear(features, units), nn.ReLU(), nn.Linear(units, classes)])
    return net, first


def _descent(
    torch: Any,
    net: Any,
    first: Any,
    images: Sequence[Array],
    training: Training,
    draws: np.random.Generator,
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Steps and first layers at the snapshots."""
    descent = torch.optim.SGD(
        net.parameters(),
        lr=training.rate,
        momentum=training.momentum,
        weight_decay=training.decay,
        nesterov=False,
    )
    wanted = set(snapshot_steps(training).tolist())
    net.train()
    for step in range(training.steps + 1):
        if step in wanted:
            yield step, first.weight.detach().numpy().copy()
        if step == training.steps:
            return
        crops, labels = crops_of(images, training, draws)
        for group in descent.param_groups:
            group["lr"] = training.rate * (1 + math.cos(math.pi * step / training.steps)) / 2
        descent.zero_grad()
        scores = net(torch.from_numpy(crops))
        torch.nn.functional.cross_entropy(scores, torch.from_numpy(labels)).backward()
        descent.step()


def crops_of(
    images: Sequence[Array], training: Training, draws: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """One batch: standardised crops (batch, channels, crop, crop) and what they are to be told."""
    side, count = training.crop, training.batch
    which = draws.integers(len(images), size=count)
    found = np.empty((count, _channels(images[0]), side, side), dtype=np.float32)
    for place, number in enumerate(which.tolist()):
        image = images[number]
        top = int(draws.integers(image.shape[0] - side + 1))
        left = int(draws.integers(image.shape[1] - side + 1))
        crop = image[top : top + side, left : left + side]
        # A crop of a plain sky varies by nothing: it stays 0.
        scaled = (crop - crop.mean()) / max(float(crop.std()), 1e-3)
        found[place] = np.moveaxis(np.atleast_3d(scaled), -1, 0)
    labels = draws.integers(len(images), size=count) if training.labels == "random" else which
    return found, labels.astype(np.int64)
