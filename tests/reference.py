"""Plain NumPy versions of the kernels: slow, and written straight from the equations."""

from __future__ import annotations

import numpy as np


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
