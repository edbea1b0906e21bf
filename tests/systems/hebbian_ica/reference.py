"""The rule of Hebbian ICA and its reduction in plain NumPy: slow, written from the equations."""

from __future__ import annotations

import numpy as np

from tests.reference import ChainNumbers, box_muller


def step(w, x, eta, alpha, sigma, phi):
    """Rattray 2002, (13) with Sigma on the right; returns the new W, shape (n, K)."""
    y = w.T @ x
    return w + eta * np.outer(x, phi(y) * sigma) + alpha * w @ (np.eye(y.size) - w.T @ w)


def positive(lower):
    """The same factor with a diagonal >= 0."""
    return lower * np.where(np.diag(lower) < 0, -1.0, 1.0)


def reduced_step(r, lower, s, g, rho, eta, alpha, sigma, phi):
    """R and L after a step: the exact reduction, by NumPy's QR."""
    q = r @ r.T + lower @ lower.T
    m = np.eye(len(r)) + alpha * (np.eye(len(r)) - q)
    p = eta * sigma * phi(r @ s + lower @ g)
    t = np.vstack([lower.T @ m + np.outer(g, p), rho * p])
    return m @ r + np.outer(p, s), positive(np.linalg.qr(t, mode="r").T)


class ReducedNumbers(ChainNumbers):
    """The normal components and the chi-square number of a step, in the order of the kernel."""

    def components(self, k, dof):
        found, rest = [], 0.0
        if dof:
            e, rest = self.draw(dof + 2)
            found.append(e)
        while len(found) < k:
            found += box_muller(*(np.uint64(word) for word in self.rng.random_raw(2)))
        return np.array(found[:k]), np.sqrt(rest)
