"""Plain NumPy versions of rules with mini-batches: every sample a vector of its own."""

import numpy as np


def online_ica_batch(rng, xi, x, tau, f, phi, draw, m, steps):
    """Wang and Lu 2017, (1)-(2), with the mean over m samples y at the same x; the final x."""
    n = xi.size
    for _ in range(steps):
        z, c = rng.standard_normal((m, n)), draw(rng, m)
        y = c[:, None] * xi / np.sqrt(n) + z - (z @ xi)[:, None] * xi / n
        push = f(y @ x / np.sqrt(n)) @ y / m
        moved = x - tau / np.sqrt(n) * push - tau / n * phi(x)
        x = np.sqrt(n) * moved / np.linalg.norm(moved)
    return x


def sparse_pca_batch(rng, xi, x, tau, omega, eta, m, steps):
    """Wang and Lu 2016, (1) and (5), with the mean over m samples y at the same x; the final x."""
    n = xi.size
    for _ in range(steps):
        y = np.sqrt(omega / n) * rng.standard_normal((m, 1)) * xi + rng.standard_normal((m, n))
        moved = eta(x + tau / n * (y @ x) @ y / m)
        x = np.sqrt(n) * moved / np.linalg.norm(moved)
    return x


def reduced_step(xi, x, tau, f, phi, c, e, z):
    """The same step of online ICA from c, e and one normal vector z: exact in law."""
    n, m = xi.size, c.size
    q = xi @ x / n
    w = x - q * xi
    w = w / np.linalg.norm(w)
    u = q * c + np.sqrt(1 - q * q) * e
    rest = z - xi * (xi @ z) / n - w * (w @ z)
    push = f(u) @ c * xi / np.sqrt(n) + f(u) @ e * w + np.sqrt(np.sum(f(u) ** 2)) * rest
    moved = x - tau / np.sqrt(n) * push / m - tau / n * phi(x)
    return np.sqrt(n) * moved / np.linalg.norm(moved)
