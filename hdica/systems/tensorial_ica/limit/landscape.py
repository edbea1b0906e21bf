"""Landscape of -sum_i v_i^4 on the sphere: critical points by the size of their support.

E (u.X)^4 = 3 + (mu4 - 3) sum_i v_i^4 with v = A' u, so that the rule descends -sign(mu4 - 3)
E y^4 = -3 sign - beta sum_i v_i^4, whatever the source. Critical points have |v_i| = 1/sqrt k on k
axes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.systems.tensorial_ica.limit.moments import Moments

Array = NDArray[np.float64]
Kind = Literal["minimiser", "saddle", "maximiser"]
EXACT = 2000
"""Largest dimension of which all numbers of critical points are counted exactly."""


def objective(v: Array) -> Array:
    """-sum_i v_i^4 along the last axis: from -1 at a component to -1/d at a maximiser."""
    return np.asarray(-np.sum(np.asarray(v, dtype=float) ** 4, axis=-1))


def fourth_moment(moments: Moments, v: Array) -> Array:
    """E (u.X)^4 of unit vectors along the last axis."""
    return np.asarray(3.0 - (moments.mu4 - 3.0) * objective(v))


def tangent_gradient(v: Array) -> Array:
    """Gradient of the objective on the sphere: -4 times the drift."""
    v = np.asarray(v, dtype=float)
    return np.asarray(-4 * (v**3 + v * objective(v)[..., None]))


def tangent_hessian(v: Array) -> Array:
    """Hessian of the objective on the sphere at one unit vector, shape (d, d), zero along v."""
    v = np.asarray(v, dtype=float)
    off = np.eye(v.size) - np.outer(v, v)
    return np.asarray(off @ np.diag(-12 * v**2 - 4 * objective(v)) @ off)


def count(d: int, k: int) -> int:
    """Number of critical points of support size k: 2^k C(d, k)."""
    _checked(d, k)
    return (1 << k) * math.comb(d, k)


def total(d: int) -> int:
    """Number of critical points, 3^d - 1; 3^d - 2^d - 2 d - 1 of them are saddles if d > 1."""
    _checked(d, 1)
    return int(3**d - 1)


def _checked(d: int, k: int) -> None:
    if d < 1:
        raise HdicaError(f"dimension = {d} is not allowed (at least 1)")
    if not 1 <= k <= d:
        raise HdicaError(f"support = {k} is not allowed (from 1 to the dimension {d})")


def kind(d: int, k: int) -> Kind:
    """What a critical point of support size k is."""
    _checked(d, k)
    if k == 1:
        return "minimiser"
    return "maximiser" if k == d else "saddle"


def representative(d: int, k: int, signs: Array | None = None) -> Array:
    """A critical point on the first k axes, shape (d,): of these signs, all plus if None."""
    _checked(d, k)
    v = np.zeros(d)
    v[:k] = k**-0.5 * (np.ones(k) if signs is None else np.sign(np.asarray(signs, dtype=float)))
    return v


@dataclass(frozen=True, eq=False)
class Landscape:
    """Critical points by support size k = 1 ... d; all arrays of shape (d,).

    Attributes
    ----------
    support
        k.
    count
        2^k C(d, k): Python integers up to dimension 2000, else floating-point numbers, inf where
        they overflow.
    log10_count
        Decimal logarithm of the same.
    value
        Objective -1/k.
    inside, outside
        Eigenvalues of the tangent Hessian: -8/k in the k - 1 directions of the support, +4/k in
        the d - k others. The rates of the drift are -1/4 of them, +2/k and -1/k.
    inside_number, outside_number
        How many; ``inside_number`` is the number of unstable directions of the rule.
    kinds
        Minimiser (stable), saddle or maximiser.
    """

    support: NDArray[np.int64]
    count: NDArray[Any]
    log10_count: Array
    value: Array
    inside: Array
    outside: Array
    inside_number: NDArray[np.int64]
    outside_number: NDArray[np.int64]
    kinds: tuple[Kind, ...]


def landscape(d: int) -> Landscape:
    """All critical points of dimension d."""
    from scipy.special import gammaln

    _checked(d, 1)
    k = np.arange(1, d + 1)
    logs = (gammaln(d + 1) - gammaln(k + 1) - gammaln(d - k + 1)) / math.log(10)
    logs = logs + k * math.log10(2)
    if d <= EXACT:
        counts: NDArray[Any] = np.array(_counts(d), dtype=object)
        logs = np.array([math.log10(one) for one in counts])
    else:
        with np.errstate(over="ignore"):
            counts = 10.0**logs
    kinds = tuple(kind(d, int(one)) for one in k)
    return Landscape(k, counts, logs, -1.0 / k, -8.0 / k, 4.0 / k, k - 1, d - k, kinds)


def _counts(d: int) -> list[int]:
    """2^k C(d, k) for k = 1 ... d, each from the one before."""
    out, now = [], 1
    for k in range(1, d + 1):
        now = now * 2 * (d - k + 1) // k
        out.append(now)
    return out
