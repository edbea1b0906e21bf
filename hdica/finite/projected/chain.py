"""Rules reduced exactly in law to the overlap: state, start and recording around the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.observe import OVERLAP, PENALTY, Observation
from hdica.finite.projected.batch import samples, width_of
from hdica.finite.random.streams import Stream
from hdica.finite.random.width import LANES
from hdica.finite.record import Track, Values, begin, not_finite, record
from hdica.ingredients.contrasts import Push
from hdica.ingredients.formula import Formula
from hdica.ingredients.priors import Prior
from hdica.ingredients.quadrature import dot
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.starts import Start

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ChainRule:
    """What the compiled kernel needs of a problem, under the names that it has there.

    Parameters
    ----------
    sources
        ``sources(rng)``: a function that continues the stream of components along xi.
    prior, start, schedule
        Laws of feature and first estimate, and step sizes.
    nonlinearity
        f, a function of u or of u and c, or None for f(u) = u.
    parameters
        A function of n for rate, base and slope.
    r
        R, which does not change.
    batch
        Samples over which the push is averaged in one step, all at the same x.
    why
        ``why(n)``: what happened, after a step that did not succeed.
    amplitude
        What multiplies the component of a step along xi, if that changes with time.
    """

    sources: Callable[[np.random.Generator], Callable[[int], Array]]
    prior: Prior
    start: Start
    schedule: Schedule
    nonlinearity: Formula | Push | None
    parameters: Callable[[int], tuple[float, float, float]]
    r: float
    why: Callable[[int], str] = lambda n: not_finite()
    batch: int = 1
    amplitude: Schedule | None = None

    @property
    def terms(self) -> Array | None:
        """Coefficients of a polynomial f, the highest power first; None for another f."""
        if self.nonlinearity is None:
            return np.array([1.0, 0.0])
        found = self.nonlinearity.coefficients
        return None if found is None else found[::-1]

    @property
    def called(self) -> object:
        """What chains in one call must have in common: the batch, and f if it is no polynomial."""
        f = self.nonlinearity
        return self.batch, None if f is None or self.terms is not None else f.expression


def overlap_at_start(rule: ChainRule, n: int, stream: Stream) -> float:
    """Q at t = 0."""
    if rule.start.draw_overlap is not None:
        return rule.start.draw_overlap(stream("start"), n)
    xi, x = begin(rule.prior, rule.start, n, stream)
    return dot(xi, x) / n


def _coefficients(rules: Sequence[ChainRule]) -> Array:
    """Polynomials of the lanes, shape (terms, LANES), short ones filled up with zeros."""
    terms = [rule.terms for rule in rules]
    known = [t for t in terms if t is not None]
    if len(known) < len(terms):
        return np.empty((0, LANES))
    found = np.zeros((max(t.size for t in known), LANES))
    for lane, t in enumerate(known):
        found[found.shape[0] - t.size :, lane] = t
    return found


def _lanes(columns: Array, idle: tuple[float, ...]) -> Array:
    """Numbers of the points, shape (numbers, points), with those of an idle lane in the others."""
    found = np.tile(np.array(idle)[:, None], LANES)
    found[:, : columns.shape[1]] = columns
    return found


def run_together(
    rules: Sequence[ChainRule], times: Array, n: int, streams: Sequence[Stream]
) -> list[Values]:
    """At most eight chains, one a lane of the kernel.

    Parameters
    ----------
    rules
        Problems with the same batch; nonlinearities that are no polynomial must be the same.
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
    from hdica.finite.projected.batch_chain_kernels import batch_chain_steps
    from hdica.finite.projected.chain_kernels import chain_steps
    from hdica.finite.random.gaussian import side_by_side

    overlaps = np.array(
        [overlap_at_start(rule, n, s) for rule, s in zip(rules, streams, strict=True)]
    )
    lanes = side_by_side([stream("noise") for stream in streams])
    angles = np.array([overlaps, np.sqrt(np.maximum(0.0, 1.0 - overlaps**2))])
    # An idle lane stays where it is, whatever is drawn for it.
    state = _lanes(angles, (1.0, 0.0))
    parameters = _lanes(np.array([rule.parameters(n) for rule in rules]).T, (0.0, 1.0, 0.0))
    coefficients, made = _coefficients(rules), np.zeros(LANES, dtype=np.int64)
    called = rules[0].nonlinearity
    f = 0 if called is None or coefficients.size else called.compiled_pair.address

    batch = rules[0].batch
    steps = chain_steps if batch == 1 else batch_chain_steps

    def advance(source: Array, tau: Array) -> NDArray[np.int64]:
        steps(lanes, state, n, source, tau, parameters, coefficients, f, made)
        return made

    def track(lane: int, rule: ChainRule, stream: Stream) -> Track:
        seen = Observation(lambda: {OVERLAP: float(state[0, lane]), PENALTY: rule.r})
        draw = samples(rule.sources, rule.batch, stream, rule.amplitude, n)
        return Track(seen, draw, rule.schedule, lambda: rule.why(n))

    tracks = [track(k, *both) for k, both in enumerate(zip(rules, streams, strict=True))]
    return record(advance, tracks, times, n, LANES, width_of(batch))
