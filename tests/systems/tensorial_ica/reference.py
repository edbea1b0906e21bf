"""Online tensorial ICA in plain NumPy: slow, written from the equations."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import FastICA


def step(v, z, eta, sign):
    """Li and Jordan 2021: v + eta sgn y^3 Z, of length one."""
    moved = v + eta * sign * (v @ z) ** 3 * z
    return moved / np.linalg.norm(moved)


def path(v, samples, eta, sign):
    """Vectors after every step, the start included, and the sign used last; eta(k) of a step."""
    found, total = [v], 0.0
    for k, z in enumerate(samples):
        if sign is None:
            total += (found[-1] @ z) ** 4 - 3
        found.append(step(found[-1], z, eta(k), np.sign(total) if sign is None else sign))
    return np.array(found), np.sign(total) if sign is None else sign


def tan2(v):
    """Squared tangent to the nearest axis, and the index of that axis."""
    m = int(np.argmax(np.abs(v)))
    return np.sum(np.delete(v, m) ** 2) / v[m] ** 2, m


def representative(d, k, signs=1.0):
    """A critical point of the objective -sum_i v_i^4 on the first k axes, shape (d,)."""
    v = np.zeros(d)
    v[:k] = k**-0.5 * np.ones(k) * signs
    return v


def tangent_gradient(v):
    """Gradient of the objective on the sphere."""
    return -4 * (v**3 - v * np.sum(v**4))


def tangent_hessian(v):
    """Hessian of the objective on the sphere, shape (d, d), zero along v."""
    off = np.eye(v.size) - np.outer(v, v)
    return off @ np.diag(-12 * v**2 + 4 * np.sum(v**4)) @ off


def all_components(samples, starts, algorithm):
    """Unit vectors u of all components by scikit-learn, one a row, of samples (count, d)."""
    values, vectors = np.linalg.eigh(np.cov(samples.T, ddof=0))
    root = (vectors / np.sqrt(values)) @ vectors.T
    ica = FastICA(
        algorithm=algorithm, whiten=False, fun="cube", max_iter=200, tol=1e-14, w_init=starts
    ).fit((samples - samples.mean(axis=0)) @ root)
    found = ica.components_ @ root
    return found / np.linalg.norm(found, axis=1, keepdims=True)
