"""Online ICA with several features in plain NumPy: the full rule, written from the model."""

from __future__ import annotations

import numpy as np


def final_overlaps(sample, f, tau, start, n, steps, runs, rng, cross=1.0):
    """Q after ``steps`` steps from exact overlaps, shape (runs, M).

    ``sample(rng, runs)`` gives the sources of one step, shape (runs, M). The features are the first
    M rows of a random rotation, another one for each run. ``cross`` = 1 is the model; another value
    leaves that share of the noise along the features: a wrong covariance of a.
    """
    m = len(start)
    basis = np.linalg.qr(rng.standard_normal((runs, n, n)))[0].transpose(0, 2, 1)
    xi = basis[:, :m]
    rest = np.sqrt(1 - np.sum(np.square(start)))
    x = np.einsum("m,rmn->rn", np.asarray(start), xi) + rest * basis[:, m]
    for _ in range(steps):
        c, a = sample(rng, runs), rng.standard_normal((runs, n))
        a -= cross * np.einsum("rm,rmn->rn", np.einsum("rmn,rn->rm", xi, a), xi)
        y = np.einsum("rm,rmn->rn", c, xi) + a
        u = np.sum(x * y, axis=1)
        x -= (tau / n * f(u))[:, None] * y
        x /= np.linalg.norm(x, axis=1)[:, None]
    return np.einsum("rmn,rn->rm", xi, x)


def reduced_overlaps(sample, f, tau, start, n, steps, runs, rng, dof):
    """The same by the reduction, with ``dof`` degrees of freedom of what is left of a sample."""
    q = np.tile(np.asarray(start, dtype=float), (runs, 1))
    s = np.sqrt(1 - np.sum(q * q, axis=1))
    for _ in range(steps):
        c, e, x = sample(rng, runs), rng.standard_normal(runs), rng.chisquare(dof, runs)
        g = -tau / n * f(np.sum(q * c, axis=1) + s * e)
        q, s = q + g[:, None] * c, np.sqrt((s + g * e) ** 2 + g * g * x)
        norm = np.sqrt(np.sum(q * q, axis=1) + s * s)
        q, s = q / norm[:, None], s / norm
    return q
