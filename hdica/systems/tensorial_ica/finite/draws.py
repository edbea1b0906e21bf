"""Samples Z of online tensorial ICA: d independent numbers a step, the same for whoever asks.

Signs take one bit each of the raw words of the generator, from the highest to the lowest, and a
step begins with a new word; uniform and Laplace numbers take one word each. Every other source
samples for itself, in blocks of steps that are aligned to t = 0, so that neither output times nor
the size of a request change a number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import LANES
from hdica.ingredients.sources import Source, make_source

Array = NDArray[np.float64]
Draw = Callable[[int], Array]

_STEPS = 1024
"""Most steps of a block."""
_NUMBERS = 2**14
"""Numbers of a block, if it has more than one step."""
_WORDS_AT_ONCE = 2**16


def block_of(dimension: int) -> int:
    """Steps of a block of a source that samples for itself."""
    return max(1, min(_STEPS, _NUMBERS // dimension))


def kind_of(source: Source) -> int:
    """How the kernels draw from a source: see :mod:`..finite.kernels`."""
    from hdica.systems.tensorial_ica.finite import kernels

    compiled = {
        "rademacher": kernels.RADEMACHER,
        "uniform": kernels.UNIFORM,
        "laplace": kernels.LAPLACE,
    }
    # A source of the same label that is another object may have another sampler.
    if source.label in compiled and make_source(source.label) is source:
        return compiled[source.label]
    return kernels.GIVEN


def draws(source: Source, dimension: int, generator: np.random.Generator) -> Draw:
    """The samples that the kernels draw from a generator, which is used up by it.

    Parameters
    ----------
    source
        Law of the d components of a sample.
    dimension
        d.
    generator
        The stream ``"source"`` of a point; it must have drawn nothing yet.

    Returns
    -------
    Callable
        ``next(count)``: the next ``count`` samples, shape (count, d), bit for bit those of
        the kernels.
    """
    from hdica.systems.tensorial_ica.finite import kernels

    kind = kind_of(source)
    if kind == kernels.RADEMACHER:
        return lambda count: _signs(generator, count, dimension)
    if kind != kernels.GIVEN:
        return lambda count: _numbers(kind, generator, count, dimension)
    return _Blocks(source, dimension, generator).take


def _signs(generator: np.random.Generator, count: int, dimension: int) -> Array:
    """Signs from the bits of words; those left over of a step's last word are thrown away."""
    words = -(-dimension // 64)
    raw = generator.bit_generator.random_raw(count * words)
    octets = np.asarray(raw, dtype=">u8").view(np.uint8).reshape(count, 8 * words)
    bits = np.unpackbits(octets, axis=1)[:, :dimension]
    return np.asarray(1.0 - 2.0 * bits, dtype=float)


def _numbers(kind: int, generator: np.random.Generator, count: int, dimension: int) -> Array:
    """Numbers of one word each."""
    from hdica.systems.tensorial_ica.finite.kernels import numbers_of

    found = np.empty(count * dimension)
    for low in range(0, found.size, _WORDS_AT_ONCE):
        size = min(_WORDS_AT_ONCE, found.size - low)
        words = np.zeros(size + -size % LANES, dtype=np.uint64)
        words[:size] = generator.bit_generator.random_raw(size)
        numbers = np.empty(words.size)
        numbers_of(kind, words, numbers)
        found[low : low + size] = numbers[:size]
    return found.reshape(count, dimension)


class _Blocks:
    """Samples of a source in blocks of steps, handed out in any portions."""

    def __init__(self, source: Source, dimension: int, generator: np.random.Generator) -> None:
        self.source, self.dimension, self.generator = source, dimension, generator
        self.left = np.zeros((0, dimension))

    def block(self) -> Array:
        """The next block, shape (steps, d)."""
        steps = block_of(self.dimension)
        numbers = self.source.sample(self.generator, steps * self.dimension)
        return np.asarray(numbers, dtype=float).reshape(steps, self.dimension)

    def take(self, count: int) -> Array:
        """The next ``count`` samples, shape (count, d)."""
        parts, missing = [self.left[:count]], count - len(self.left)
        self.left = self.left[count:]
        while missing > 0:
            block = self.block()
            parts.append(block[:missing])
            self.left = block[missing:]
            missing -= len(block)
        return np.concatenate(parts)
