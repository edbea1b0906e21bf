"""Rules and streams for tests of the steps of online tensorial ICA."""

from __future__ import annotations

import numpy as np

from hdica.finite.random.streams import point_stream
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.systems.tensorial_ica.rule import TensorialRule

SOURCES = ("rademacher", "uniform", "laplace", {"student": 9}, {"bernoulli_gaussian": 0.3})


def stream_of(seed, label="tensorial"):
    return lambda part: point_stream({"test": label}, "vector", 1, seed, part)


def somewhere(d):
    """A random direction."""

    def start(rng):
        v = rng.standard_normal(d)
        return v / np.linalg.norm(v)

    return start


def near_axis(d, tangent):
    """On the cone abs(tan) = tangent around the first axis, otherwise at random."""
    angle = np.arctan(tangent)

    def start(rng):
        return np.append(np.cos(angle), np.sin(angle) * somewhere(d - 1)(rng))

    return start


def rule_of(source="uniform", d=20, eta=1e-3, sign="known", start=None):
    law = make_source(source)
    if sign == "known":
        sign = float(np.sign(law.moment(4) - 3))
    start = somewhere(d) if start is None else start
    return TensorialRule(d, law, sign, make_schedule(eta, name="eta"), start)
