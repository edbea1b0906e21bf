"""FastICA in plain NumPy, one start at a time, and the samples of the golden numbers."""

import json
import math
from pathlib import Path

import numpy as np

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/subspace_ica.json").read_text())


def white(n, d, seed=0, sources=1):
    """Whitened mixed samples, ``sources`` of d of which are signs and the others normal."""
    rng = np.random.default_rng(seed)
    s = rng.standard_normal((n, d))
    s[:, :sources] = np.sign(s[:, :sources])
    s -= s.mean(axis=0)
    values, vectors = np.linalg.eigh(s.T @ s / n)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return np.ascontiguousarray(s @ (vectors / np.sqrt(values)) @ turn)


def step(y, w, contrast):
    """mean(y g(w.y)) - mean(g'(w.y)) w."""
    s = y @ w
    return y.T @ contrast.slope(s) / len(y) - np.mean(contrast.curvature(s)) * w


def plain_fastica(y, start, contrast, tolerance, most):
    w, way = start / np.linalg.norm(start), []
    for _ in range(most):
        new = step(y, w, contrast)
        new /= np.linalg.norm(new)
        moved, w = abs(abs(new @ w) - 1), new
        way.append(w)
        if moved < tolerance:
            return np.array(way), True
    return np.array(way), False


def golden_samples():
    """The samples and whitened samples that the golden numbers say how to make."""
    wanted, state = GOLDEN["fastica_deterministic"], 12345
    rows = []

    def uniform():
        nonlocal state
        state = (1664525 * state + 1013904223) % 2**32
        return (state + 0.5) / 2**32

    def normal():
        u, v = uniform(), uniform()
        return math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)

    for _ in range(wanted["params"]["rows"]):
        sign = 1.0 if uniform() > 0.5 else -1.0
        rows.append([sign, normal(), normal()])
    sources = np.array(rows)
    x = sources @ np.array(wanted["params"]["A"]).T
    centred = x - x.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(x))
    return sources, x, centred @ (vectors / np.sqrt(values)) @ vectors.T
