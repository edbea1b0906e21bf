"""Plain NumPy versions of the kernels: slow, and written straight from the equations."""

from __future__ import annotations

import numpy as np

LANES, CHUNK = 8, 16


class GivenWords:
    """A seed sequence of given words, to seed NumPy's generators lane by lane."""

    def __init__(self, words):
        self.words = words

    def generate_state(self, count, dtype=np.uint32):
        assert dtype == np.uint64
        return self.words[:count]


np.random.bit_generator.ISeedSequence.register(GivenWords)


def lane_generators(rng):
    """NumPy's SFC64 of every lane, from a generator that has drawn nothing."""
    words = rng.bit_generator.seed_seq.generate_state(3 * LANES, np.uint64)
    return [np.random.SFC64(GivenWords(words[3 * k : 3 * k + 3])) for k in range(LANES)]


def uniform(word):
    """(k + 1/2)/2^52 of the upper 52 bits."""
    return ((word >> np.uint64(12)).astype(float) + 0.5) / 2.0**52


def box_muller(first, second):
    """The two normal numbers of two words, with the lowest bit of the second as a sign."""
    radius, angle = np.sqrt(-2 * np.log(uniform(first))), np.pi * (uniform(second) - 0.5)
    sign = np.where(second & np.uint64(1), -1.0, 1.0)
    return radius * np.sin(angle), sign * radius * np.cos(angle)


class LaneNormals:
    """Normal numbers in the order of the kernels, from NumPy's generators and functions."""

    def __init__(self, rng):
        self.lanes = lane_generators(rng)

    def standard_normal(self, size):
        chunks = -(-size // CHUNK)
        words = np.array([lane.random_raw(2 * chunks) for lane in self.lanes])
        pairs = box_muller(words[:, 0::2], words[:, 1::2])
        return np.stack([p.T for p in pairs], axis=1).ravel()[:size]


class ChainNumbers:
    """Normal and chi-square numbers of one chain, from NumPy's own generator of the point."""

    def __init__(self, rng):
        self.rng = rng.bit_generator

    def proposal(self):
        first, second, third = self.rng.random_raw(3)
        return *box_muller(np.uint64(first), np.uint64(second)), uniform(np.uint64(third))

    def draw(self, n):
        """e, and X of chi-square law with n - 2 degrees of freedom (Marsaglia and Tsang 2000)."""
        e, x, u = self.proposal()
        d = (n - 2) / 2 - 1 / 3
        while n > 3:
            v = (1 + x / np.sqrt(9 * d)) ** 3
            if v > 0 and np.log(u) < x * x / 2 + d * (1 - v + np.log(v)):
                return e, 2 * d * v
            _, x, u = self.proposal()
        return e, x * x


def online_ica_vector(rng, xi, x, tau, f, phi, draw_source, steps):
    """Wang and Lu 2017, (1)-(2), word by word; returns the final x."""
    n = xi.size
    for _ in range(steps):
        c = draw_source(rng)
        z = rng.standard_normal(n)
        a = z - xi * (xi @ z) / n
        y = xi * c / np.sqrt(n) + a
        moved = x - tau / np.sqrt(n) * f(y @ x / np.sqrt(n)) * y - tau / n * phi(x)
        x = np.sqrt(n) * moved / np.linalg.norm(moved)
    return x


def overlap_start(rng, xi, q0):
    """x = Q0 xi + sqrt(1 - Q0^2) z, on the sphere."""
    x = q0 * xi + np.sqrt(1 - q0**2) * rng.standard_normal(xi.size)
    return x * np.sqrt(xi.size) / np.linalg.norm(x)


def online_sparse_pca_vector(rng, xi, x, tau, omega, eta, sources):
    """Wang and Lu 2016, (1) and (5), word by word; one step a source and tau; the final x."""
    p = xi.size
    for c, size in zip(sources, tau, strict=True):
        y = np.sqrt(omega / p) * c * xi + rng.standard_normal(p)
        moved = eta(x + size / p * y * (y @ x))
        x = np.sqrt(p) * moved / np.linalg.norm(moved)
    return x


def soft_threshold(x, cut):
    """The minimiser over u of (u - x)^2/2 + cut |u|."""
    return np.sign(x) * np.maximum(np.abs(x) - cut, 0)
