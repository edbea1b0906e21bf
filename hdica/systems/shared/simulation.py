"""Methods at finite n: the vector of all entries, and the chain of the overlap alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.finite.projected.chain import ChainRule, run_together
from hdica.finite.projected.vector import VectorRule, run_shared
from hdica.finite.random.streams import LANES, Stream, digest, streams_of
from hdica.finite.record import Values
from hdica.ingredients.save import Save
from hdica.systems.kernel import KERNEL_VERSION
from hdica.systems.method import Method, Output, PointResult, Trial

Array = NDArray[np.float64]
Runner = Callable[[Any, Array, int, Stream, Save], Values]
Content = Callable[[Any], object]
Together = Callable[[Sequence[Trial], Array, int | None, Save], list[PointResult]]

TRAJECTORY = (
    Output("Q", ("time",), "overlap Q = xi.x/n"),
    Output("R", ("time",), "R, the mean of x phi(x)"),
)
LARGEST = Output("largest", ("time",), "share of |x|^2 on the largest entry of the estimate")
SHARED = {"noise": "shared"}
"""In place of a system where its parameters must not choose the random numbers."""
MOST_SHARED, MOST_NUMBERS = 64, 2**25
"""Points in one call of the kernel, and numbers in their estimates."""
KEEPS = frozenset({"densities", "support", "functionals"})


def content_of(system: Any, without: frozenset[str] = frozenset()) -> dict[str, object]:
    """A system as plain data: what its numbers, and so its random streams, depend on.

    Parameters
    ----------
    system
        A system.
    without
        Fields that must not choose the random numbers, because the result ignores them.
    """
    fields = system.model_dump(mode="json", exclude_defaults=True, exclude=set(without))
    return {"system": type(system).__name__, **fields}


def seeded(
    name: str, runner: Runner, without: frozenset[str] = frozenset()
) -> Callable[[Any, Array, int | None, int | None, Save], PointResult]:
    """One point of a stochastic method, on the streams that belong to it by content."""

    def run(system: Any, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
        assert n is not None
        assert seed is not None
        stream = streams_of(content_of(system, without), name, n)(seed)
        return PointResult(*runner(system, times, n, stream, _saved(save, system)))

    return run


def each(function: Callable[[Any], Any], trials: Sequence[Trial]) -> list[Any]:
    """A function of the system of every trial, computed once a system: points differ in seeds."""
    known = {id(system): system for system, _ in trials}
    found = {key: function(system) for key, system in known.items()}
    return [found[id(system)] for system, _ in trials]


def _saved(save: Save, system: Any) -> Save:
    return replace(save, constants=system.constants)


def _alike(system: Any, rule: VectorRule) -> Hashable:
    """What points must have in common to see one feature and one vector of noise."""
    f = rule.nonlinearity.expression if rule.nonlinearity is not None else None
    phi = rule.phi.expression if rule.phi_is_called else None
    return digest(system.prior), f, phi


def in_groups(
    keys: Sequence[Hashable], most: int, compute: Callable[[list[int]], list[Values]]
) -> list[PointResult]:
    """Results in order, computed for at most ``most`` points with equal keys at a time."""
    places: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    found: dict[int, PointResult] = {}
    for members in places.values():
        for first in range(0, len(members), most):
            group = members[first : first + most]
            results = [PointResult(*values) for values in compute(group)]
            found |= dict(zip(group, results, strict=True))
    return [found[place] for place in range(len(keys))]


def _shared_vector(rule_of: Callable[[Any], VectorRule]) -> Together:
    """Points that share noise: one seed's, with one feature, in one call of the kernel."""

    def together(
        trials: Sequence[Trial], times: Array, n: int | None, save: Save
    ) -> list[PointResult]:
        assert n is not None
        rules, streams = each(rule_of, trials), streams_of(SHARED, "vector", n)
        keys = [(seed, _alike(s, r)) for (s, seed), r in zip(trials, rules, strict=True)]

        def compute(group: list[int]) -> list[Values]:
            stream = streams(trials[group[0]][1] or 0)
            saves = [_saved(save, trials[k][0]) for k in group]
            return run_shared([rules[k] for k in group], times, n, stream, saves)

        return in_groups(keys, max(1, min(MOST_SHARED, MOST_NUMBERS // n)), compute)

    return together


def vector(rule_of: Callable[[Any], VectorRule], equations: str) -> Method:
    """Method ``vector``: every entry of the estimate.

    Parameters
    ----------
    rule_of
        The rule of a system as the kernels take it.
    equations
        What is computed.
    """

    def run(system: Any, times: Array, n: int, stream: Stream, save: Save) -> Values:
        return run_shared([rule_of(system)], times, n, stream, [save])[0]

    own = Method(
        name="vector",
        stochastic=True,
        accuracy="exact",
        outputs=(*TRAJECTORY, LARGEST),
        run=seeded("vector", run),
        coords=lambda times: {"time": times},
        refuses=lambda system: "",
        seconds=lambda system, n, last: 2e-4 + (6.5e-10 * (n or 1) * last + 5e-8) * (n or 1),
        equations=f"{equations}, all n coordinates",
        kernel=KERNEL_VERSION,
        keeps=KEEPS,
        held=lambda n: 2 * n,
    )
    return replace(own, shared=_with_shared_noise(own, _shared_vector(rule_of), 0.4))


def alone(
    together: Together,
) -> Callable[[Any, Array, int | None, int | None, Save], PointResult]:
    """One point of a method that computes points together."""

    def run(system: Any, times: Array, n: int | None, seed: int | None, save: Save) -> PointResult:
        return together([(system, seed)], times, n, save)[0]

    return run


def _with_shared_noise(own: Method, together: Together, cost: float) -> Method:
    """A method whose points share noise; ``cost`` is what a point costs relative to its own."""
    return replace(
        own,
        run=alone(together),
        together=together,
        noise="shared",
        kernel=f"{own.kernel}, shared noise",
        equations=f"{own.equations}; points of equal n and seed share their noise",
        seconds=lambda system, n, last: cost * own.seconds(system, n, last),
    )


def _chains(rule_of: Callable[[Any], ChainRule], content: Content) -> Together:
    """Chains, eight in one call of the kernel."""

    def together(
        trials: Sequence[Trial], times: Array, n: int | None, save: Save
    ) -> list[PointResult]:
        assert n is not None
        rules = each(rule_of, trials)
        of_seed = each(lambda system: streams_of(content(system), "chain", n), trials)

        def compute(group: list[int]) -> list[Values]:
            streams = [of_seed[k](trials[k][1] or 0) for k in group]
            return run_together([rules[k] for k in group], times, n, streams)

        return in_groups([rule.called for rule in rules], LANES, compute)

    return together


def chain(
    rule_of: Callable[[Any], ChainRule], refuses: Callable[[Any], str], equations: str
) -> Method:
    """Method ``chain``: the overlap alone, exact in law at a cost that does not depend on n.

    Parameters
    ----------
    rule_of
        The rule of a system as the kernel of chains takes it.
    refuses
        Empty where the reduction is exact, else the sentence that says why not.
    equations
        What is computed.
    """
    together = _chains(rule_of, content_of)
    own = Method(
        name="chain",
        stochastic=True,
        accuracy="exact in law",
        outputs=TRAJECTORY,
        run=alone(together),
        coords=lambda times: {"time": times},
        refuses=refuses,
        seconds=lambda system, n, last: 5e-5 + 7e-9 * last * (n or 1),
        equations=f"{equations}, reduced exactly in law to the overlap",
        kernel=KERNEL_VERSION,
        together=together,
    )
    shared = _chains(rule_of, lambda system: SHARED)
    return replace(own, shared=_with_shared_noise(own, shared, 1.0))
