"""Methods at finite n: the vector of all entries, and the chain of the overlap alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.finite.streams import Stream, point_stream
from hdica.ingredients.save import Save
from hdica.systems.kernel import KERNEL_VERSION
from hdica.systems.method import Method, Output, PointResult

Array = NDArray[np.float64]
Values = tuple[dict[str, Array], str]
Runner = Callable[[Any, Array, int, Stream, Save], Values]
Content = Callable[[Any], dict[str, object]]

TRAJECTORY = (
    Output("Q", ("time",), "overlap Q = xi.x/n"),
    Output("R", ("time",), "R, the mean of x phi(x)"),
)
LARGEST = Output("largest", ("time",), "share of |x|^2 on the largest entry of the estimate")
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
        key = content_of(system, without)

        def stream(part: str) -> np.random.Generator:
            return point_stream(key, name, n, seed, part)

        named = replace(save, constants=system.constants)
        return PointResult(*runner(system, times, n, stream, named))

    return run


def vector(runner: Runner, equations: str, per_entry: float) -> Method:
    """Method ``vector``: every entry of the estimate.

    Parameters
    ----------
    runner
        ``runner(system, times, n, stream, save) -> (values, diverged)``.
    equations
        What is computed.
    per_entry
        Seconds an entry and step.
    """
    return Method(
        name="vector",
        stochastic=True,
        accuracy="exact",
        outputs=(*TRAJECTORY, LARGEST),
        run=seeded("vector", runner),
        coords=lambda times: {"time": times},
        refuses=lambda system: "",
        seconds=lambda system, n, last: 2e-4 + (per_entry * (n or 1) * last + 5e-8) * (n or 1),
        equations=f"{equations}, all n coordinates",
        kernel=KERNEL_VERSION,
        keeps=KEEPS,
    )


def chain(runner: Runner, refuses: Callable[[Any], str], equations: str) -> Method:
    """Method ``chain``: the overlap alone, exact in law at a cost that does not depend on n.

    Parameters
    ----------
    runner
        As in :func:`vector`; it keeps nothing more.
    refuses
        Empty where the reduction is exact, else the sentence that says why not.
    equations
        What is computed.
    """
    return Method(
        name="chain",
        stochastic=True,
        accuracy="exact in law",
        outputs=TRAJECTORY,
        run=seeded("chain", runner),
        coords=lambda times: {"time": times},
        refuses=refuses,
        seconds=lambda system, n, last: 2e-4 + (4e-8 * last + 5e-8) * (n or 1),
        equations=f"{equations}, reduced exactly in law to the overlap",
        kernel=KERNEL_VERSION,
    )
