"""Systems, streams and trials that the tests of Hebbian ICA at finite n share."""

import numpy as np

from hdica.finite.random import LANES
from hdica.finite.random.streams import point_stream
from hdica.systems.hebbian_ica.rule import run_chains, run_vector
from hdica.systems.hebbian_ica.system import HebbianICA, rule


def hebbian(**given):
    return HebbianICA(**{"sigma": [-1], "start": {"overlap": 0.6}} | given)


def stream_of(seed, n=10, label="test"):
    return lambda part: point_stream({"test": label}, "hebbian", n, seed, part)


def vectors(system, t, n, count, label="vector"):
    """R and Q at a time, of runs that did not diverge: shapes (runs, K, M) and (runs, K, K)."""
    problem, times = rule(system), np.array([t])
    return _finite([run_vector(problem, times, n, stream_of(s, n, label)) for s in range(count)])


def chains(system, t, n, count, label="chain"):
    problem, times = rule(system), np.array([t])
    found = []
    for first in range(0, count, LANES):
        streams = [stream_of(s, n, label) for s in range(first, min(first + LANES, count))]
        found += run_chains([problem] * len(streams), times, n, streams)
    return _finite(found)


def _finite(results):
    kept = [values for values, diverged in results if not diverged]
    assert len(kept) >= 0.99 * len(results)
    return tuple(np.stack([values[name][0] for values in kept]) for name in ("R", "Q"))
