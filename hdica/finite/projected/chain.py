"""Rules reduced exactly in law to the overlap: state, start and recording around the kernel.

A step may take a batch of samples, all at the same estimate. A sample matters by its component c
along the feature, by its component e along the part of the estimate across the feature, and by the
rest, of which a step needs one normal vector for all of its samples together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream, normal_numbers, side_by_side
from hdica.finite.record import (
    OVERLAP,
    PENALTY,
    Observation,
    Track,
    Values,
    begin,
    not_finite,
    record,
)
from hdica.ingredients.contrasts import Push
from hdica.ingredients.formula import Formula
from hdica.ingredients.priors import Prior
from hdica.ingredients.quadrature import dot
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.starts import Start

Array = NDArray[np.float64]
Sources = Callable[[np.random.Generator], Callable[[int], Array]]


def width_of(batch: int) -> int:
    """Numbers that a step takes from its source: c, or c and e of every sample of a batch."""
    return 1 if batch == 1 else 2 * batch


def samples(
    sources: Sources, batch: int, stream: Stream, amplitude: Schedule | None = None, n: int = 1
) -> Callable[[int], Array]:
    """A function that continues the stream of samples.

    Of some steps it gives c, shape (steps,); or with a batch, shape (steps, 2 batch), the c of all
    samples of a step and then their e, which have a stream of their own. An ``amplitude``
    multiplies the c of step k by its value at k/n.
    """
    draw = sources(stream("source"))
    if amplitude is not None:
        draw = _multiplied(draw, amplitude, batch, n)
    if batch == 1:
        return draw
    normal = normal_numbers(stream("across"))

    def drawn(steps: int) -> Array:
        c, e = (one(steps * batch).reshape(steps, batch) for one in (draw, normal))
        return np.concatenate([c, e], axis=1)

    return drawn


def _multiplied(
    draw: Callable[[int], Array], amplitude: Schedule, batch: int, n: int
) -> Callable[[int], Array]:
    """Sources of steps in their order, ``batch`` a step, times what changes from step to step."""
    done = 0

    def drawn(size: int) -> Array:
        nonlocal done
        steps = done + np.arange(size // batch)
        done += size // batch
        return np.asarray(draw(size) * np.repeat(amplitude.value(steps / n), batch))

    return drawn


@dataclass(frozen=True)
class ChainRule:
    """What the compiled kernel needs of a problem, under the names that it has there."""

    sources: Callable[[np.random.Generator], Callable[[int], Array]]
    """``sources(rng)``: a function that continues the stream of components along xi."""
    prior: Prior
    start: Start
    schedule: Schedule
    """Laws of feature and first estimate, and step sizes."""
    nonlinearity: Formula | Push | None
    """f, a function of u or of u and c, or None for f(u) = u."""
    parameters: Callable[[int], tuple[float, float, float]]
    """A function of n for rate, base and slope."""
    r: float
    """R, which does not change."""
    why: Callable[[int], str] = lambda n: not_finite()
    """``why(n)``: what happened, after a step that did not succeed."""
    batch: int = 1
    """Samples over which the push is averaged in one step, all at the same x."""
    amplitude: Schedule | None = None
    """What multiplies the component of a step along xi, if that changes with time."""

    @property
    def terms(self) -> Array:
        """Coefficients of a polynomial f, the highest power first; empty for another f."""
        return np.array([1.0, 0.0]) if self.nonlinearity is None else powers(self.nonlinearity)

    @property
    def address(self) -> int:
        """Where the kernel finds f as a function of u and c; 0 for a polynomial."""
        f = self.nonlinearity
        return 0 if f is None or self.terms.size else int(f.compiled_pair.address)

    @property
    def called(self) -> object:
        """What chains in one call must have in common: see :func:`run_together`."""
        f, follows = self.nonlinearity, self.schedule.observed is not None
        return self.batch, follows, None if f is None or self.terms.size else f.expression


def powers(f: Formula | Push) -> Array:
    """Coefficients of a polynomial, the highest power first; empty for another function."""
    return np.empty(0) if f.coefficients is None else f.coefficients[::-1].copy()


def address(f: Formula) -> int:
    """Where kernels find a function of one number; 0 for a polynomial, which they do not call."""
    return int(f.compiled.address) if f.coefficients is None else 0


def lane_polynomials(terms: Sequence[Array]) -> Array:
    """Polynomials of the lanes, shape (terms, LANES), short ones filled up with zeros."""
    columns = np.zeros((max(t.size for t in terms), LANES))
    for lane, t in enumerate(terms):
        columns[columns.shape[0] - t.size :, lane] = t
    return columns


def overlap_at_start(rule: ChainRule, n: int, stream: Stream) -> float:
    """Q at t = 0."""
    if rule.start.draw_overlap is not None:
        return rule.start.draw_overlap(stream("start"), n)
    xi, x = begin(rule.prior, rule.start, n, stream)
    return dot(xi, x) / n


def _lanes(columns: Array, idle: tuple[float, ...]) -> Array:
    """Numbers of the points, shape (numbers, points), with those of an idle lane in the others."""
    numbers = np.tile(np.array(idle)[:, None], LANES)
    numbers[:, : columns.shape[1]] = columns
    return numbers


def run_together(
    rules: Sequence[ChainRule], times: Array, n: int, streams: Sequence[Stream]
) -> list[Values]:
    """At most eight chains, one a lane of the kernel.

    Parameters
    ----------
    rules
        Problems with the same batch, all or none of them with observed step sizes; nonlinearities
        that are no polynomial must be the same.
    times
        Shape (T,), in samples per dimension.
    n
        Dimension.
    streams
        ``stream(part)`` of every point: the generator of one part of it.

    Returns
    -------
    list
        For every point ``values``: overlap and penalty, each of shape (T,); and ``diverged``:
        empty, or why the point stopped.
    """
    if n < 3:
        raise HdicaError(f"n = {n} is not allowed for method 'chain' (n >= 3)")
    # Imported here, because loading compiled code takes about a second.
    from hdica.finite.projected.chain_kernels import chain_steps
    from hdica.finite.projected.observed import rows_of

    overlaps = np.array(
        [overlap_at_start(rule, n, s) for rule, s in zip(rules, streams, strict=True)]
    )
    lanes = side_by_side([stream("noise") for stream in streams])
    angles = np.array([overlaps, np.sqrt(np.maximum(0.0, 1.0 - overlaps**2))])
    # An idle lane stays where it is, whatever is drawn for it.
    state = _lanes(angles, (0.0, 1.0))
    parameters = _lanes(np.array([rule.parameters(n) for rule in rules]).T, (0.0, 1.0, 0.0))
    coefficients, made = lane_polynomials([r.terms for r in rules]), np.zeros(LANES, dtype=np.int64)
    f = rules[0].address

    batch, rows = rules[0].batch, rows_of([rule.schedule for rule in rules], n)
    # Lanes without a chain have the row of another.
    seen = None if rows is None else rows[np.arange(LANES) % len(rows)]
    law = parameters, coefficients, f, None, None, seen

    def advance(source: Array, tau: Array) -> NDArray[np.int64]:
        chain_steps(lanes, state, n, source, tau, *law, made)
        return made

    def track(lane: int, rule: ChainRule, stream: Stream) -> Track:
        seen = Observation(lambda: {OVERLAP: float(state[0, lane]), PENALTY: rule.r})
        draw = samples(rule.sources, rule.batch, stream, rule.amplitude, n)
        return Track(seen, draw, rule.schedule, lambda: rule.why(n))

    tracks = [track(k, *both) for k, both in enumerate(zip(rules, streams, strict=True))]
    return record(advance, tracks, times, n, LANES, width_of(batch))
