"""The rule of Hebbian ICA with batches and moving sources in plain NumPy, and its reduction."""

from __future__ import annotations

import numpy as np

from tests.systems.hebbian_ica.reference import positive


def batch_step(w, x, eta, alpha, sigma, phi):
    """(13) with the mean over the rows of ``x``, shape (m, n), all y at the same W, (n, K)."""
    y = x @ w
    return w + eta * x.T @ (phi(y) * sigma) / len(x) + alpha * w @ (np.eye(w.shape[1]) - w.T @ w)


def turned(w, b, share):
    """W, shape (n, K), in the frame in which source j has turned to ``b[j]``, shape (M, n)."""
    n, m = len(w), len(b)
    side = np.sqrt(1 - share**2)
    turn = np.eye(n)
    turn[:m, :m] *= share
    turn[:m] += side * b
    turn[:, :m] -= side * b.T
    turn -= (1 - share) * b.T @ b
    assert np.max(np.abs(turn @ turn.T - np.eye(n))) < 1e-12
    return turn @ w


def frame(z):
    """Orthonormal rows from the rows of ``z``, by Gram and Schmidt's method."""
    q, upper = np.linalg.qr(z.T)
    return (q * np.sign(np.diag(upper))).T


def bartlett(chi, normal):
    """A, lower triangular, with the roots of chi-square numbers on its diagonal."""
    a = np.diag(np.sqrt(chi))
    for value, (i, j) in zip(normal, zip(*np.tril_indices(len(chi), -1), strict=True), strict=True):
        a[i, j] = value if a[j, j] > 0 else 0.0
    return a


def reduced_batch(r, lower, s, g, a, eta, alpha, sigma, phi):
    """R and L after a step with sources (m, M), components (m, K) and A of the rest."""
    k, m = len(r), len(s)
    p = eta * phi(s @ r.T + g @ lower.T) * sigma / m
    keep = np.eye(k) + alpha * (np.eye(k) - r @ r.T - lower @ lower.T)
    b = positive(np.linalg.qr(p, mode="r").T).T if m > k else p
    t = np.vstack([lower.T @ keep + g.T @ p, a.T @ b])
    return keep @ r + p.T @ s, positive(np.linalg.qr(t, mode="r").T)


def reduced_turn(r, lower, z, rest, share):
    """R and L after a turn: K rows of normal numbers, and the Wishart factor of the others."""
    side = np.sqrt(1 - share**2)
    stacked = np.vstack([z, rest.T])
    a = np.linalg.cholesky(stacked.T @ stacked)
    b = np.linalg.solve(a, stacked.T).T
    along = lower @ b[: len(r)]
    change = (1 - share) * along.T + side * r.T
    t = np.vstack([lower.T, np.zeros(rest.T.shape[:1] + r.shape[:1])]) - b @ change
    return share * r + side * along, positive(np.linalg.qr(t, mode="r").T)
