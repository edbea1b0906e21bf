"""All n coordinates of the rule, with features in general position."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import Stream
from hdica.finite.record import Values, contiguous, record
from hdica.ingredients.quadrature import dot
from hdica.systems.several_ica.rule import Array, Rule, check_dimension, track


def _orthonormal(rng: np.random.Generator, count: int, n: int) -> Array:
    """Random orthonormal rows, shape (count, n), by Gram and Schmidt twice: no threads of BLAS."""
    rows = rng.standard_normal((count, n))
    for i, row in enumerate(rows):
        for other in (*rows[:i], *rows[:i]):
            row -= dot(other, row) * other
        row /= np.sqrt(dot(row, row))
    return rows


def run_vector(rule: Rule, times: Array, n: int, stream: Stream) -> Values:
    """Overlaps of one point by all n coordinates.

    Parameters
    ----------
    rule
        The problem.
    times
        Shape (T,), in samples per dimension.
    n
        Dimension, at least M + 2.
    stream
        ``stream(part)``: the generator of one part of the point.

    Returns
    -------
    tuple
        ``Q`` of shape (T, M), NaN after a step that was not finite; and empty, or why it stopped.
    """
    check_dimension(rule, n)
    # Imported here, because loading compiled code takes about a second.
    from hdica.finite.random.gaussian import lanes_of
    from hdica.finite.random.lanes import CHUNK
    from hdica.systems.several_ica.vector_kernels import several_vector_steps

    m = rule.features
    rows = _orthonormal(stream("start"), m + 1, n)
    weights = np.array([*rule.start, rule.rest])
    x = contiguous(np.sum(weights[:, None] * rows, axis=0))
    features, y, lanes = contiguous(rows[:m]), np.zeros(n + -n % CHUNK), lanes_of(stream("noise"))
    terms, f = rule.terms, rule.address

    def advance(source: Array, tau: Array) -> NDArray[np.int64]:
        numbers = source.reshape(-1, m)
        made = several_vector_steps(lanes, features, x, y, n, numbers, tau, terms, f)
        return np.full(1, made)

    def overlaps() -> Array:
        return np.array([dot(feature, x) for feature in features])

    return record(advance, [track(rule, stream, overlaps)], times, n, 1, m, n * m)[0]
