"""Escape of Hebbian ICA from R = 0 exactly at n: one projection and one source."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.limits.passage.exact import Passage, exact_passage
from hdica.limits.passage.two_variables import LongChain
from hdica.systems.fields import formula
from hdica.systems.hebbian_ica.fields import in_unit, signs, sources
from hdica.systems.hebbian_ica.methods.escape import (
    ESCAPE,
    ESCAPES,
    HOME,
    PAPER,
    beginning,
    escapes_at_all,
)
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.method import AVERAGES, COMMON, PASSAGES, About, Cost, Scope, Size, refusal
from hdica.systems.outputs import UNIT, Array, Output, PointResult, at_ages

_LEAST = 3
_ANY = 10**6

_BOTH = ("mean", "mean_last", "pair_mean", "pair_sd", "survival", "survival_last", "error")
OUTPUTS = (
    *(output for output in ESCAPES if output.name in _BOTH),
    Output("sd", (), "standard deviation of the time of the first escape", UNIT),
)
"""One entry is the first that escapes, and the last."""


def check(system: HebbianICA, n: int) -> None:
    """Refuse what has no escape that one equation gives."""
    escapes_at_all(system, n)
    shape = system.projections, len(system.sources)
    if shape != (1, 1):
        raise HdicaError(
            f"projections and sources: {shape[0]} and {shape[1]} are not allowed for exact escape "
            "times (one of each: the equation has the overlap and its length alone)"
        )
    if not system.alpha < 1:
        raise HdicaError(
            f"alpha = {system.alpha} is not allowed for exact escape times (alpha < 1: W'W = 1 is "
            "approached evenly there)"
        )


def exact_law(system: HebbianICA, n: int) -> Passage:
    """The law of the number of steps of the chain at n."""
    check(system, n)
    if n < _LEAST:
        raise HdicaError(f"n: {n} is not allowed (at least {_LEAST})")
    phi, law, sigma = formula(system, "nonlinearity"), sources(system)[0], float(signs(system)[0])
    eta = in_unit("eta", system, n).constant
    assert eta is not None
    chain = LongChain(
        lambda y: sigma * phi.value(y),
        law,
        eta,
        system.alpha,
        n,
        system.threshold,
        even=phi.is_odd or law.symmetric,
        odd=phi.is_odd and law.symmetric,
    )
    return exact_passage(chain, beginning(system, n))


def _exact(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    assert n is not None
    found, unit = exact_law(system, n), float(n) ** 3
    mean, sd = np.asarray(found.mean / unit), np.asarray(found.sd / unit)
    survival = at_ages(found.survival, found.mean)
    values = {"mean": mean, "mean_last": mean, "pair_mean": mean[None, None], "sd": sd}
    values |= {"pair_sd": sd[None, None], "survival": survival, "survival_last": survival}
    return PointResult(values | {"error": np.asarray(found.error)})


ESCAPE_EXACT = replace(
    ESCAPE,
    name="escape_exact",
    rank=None,
    about=About(
        text="law of the escape from R = 0 at n, from the exact chain (K = M = 1)",
        accuracy="exact",
        equations=(
            f"{PAPER}, eq. (13): h - E h = 1 for the chain that is exact in law, by collocation"
        ),
        engines=(*COMMON, AVERAGES, PASSAGES, HOME),
    ),
    outputs=replace(ESCAPE.outputs, always=OUTPUTS, extras=()),
    cost=Cost(seconds=lambda system, n, last: max(2.5, (n or 1) / 40)),
    scope=Scope(refuses=refusal(lambda system: check(system, _ANY)), n=Size.DIMENSION),
    run=_exact,
)

METHODS = (ESCAPE_EXACT,)
