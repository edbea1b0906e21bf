"""Online tensorial ICA in plain NumPy: slow, written from the equations."""

from __future__ import annotations

import numpy as np


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
