"""What Hebbian ICA near R = 0 means in the terms of the limits: escape times, potential, paths.

The clock there is s = t/n^2: n^3 steps are one unit (Rattray 2002, section 4.2).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.random.streams import digest
from hdica.ingredients.sources import Source
from hdica.systems.fields import formula
from hdica.systems.hebbian_ica.escape.coefficients import Trap, near_zero
from hdica.systems.hebbian_ica.escape.law import Begin
from hdica.systems.hebbian_ica.escape.times import Escape, escape
from hdica.systems.hebbian_ica.fields import given_rate, nu_of, signs, sources, start_overlap, unit

Array = NDArray[np.float64]

AGES = 2.0 ** (np.arange(-64, 25) / 8)
"""Times at which survival is given, in multiples of the mean time of the first escape."""


def trap_refusal(system: Any, n: bool) -> str:
    """Empty if the diffusion near R = 0 applies to this system, else why not.

    With a dimension ``n`` any unit of the step size will do.
    """
    if system.sigma == "adaptive":
        return "the diffusion near R = 0 needs fixed signs (sigma = 'adaptive' has none)"
    if not n and unit(system) != "nu":
        return (
            f"the diffusion near R = 0 needs nu as n -> infinity, and {unit(system)} is given "
            "(nu = n^2 eta stays finite there)"
        )
    if given_rate(system).constant is None:
        return (
            f"{unit(system)} = {getattr(system, unit(system))!r} is not allowed for the diffusion "
            "near R = 0 (a constant step size)"
        )
    return ""


def constant_nu(system: Any, n: int | None) -> float:
    """Nu = n^2 eta of a constant step size."""
    refusal = trap_refusal(system, n is not None)
    if refusal:
        raise HdicaError(refusal)
    fixed = nu_of(system, n).constant
    assert fixed is not None
    return fixed


def beginning(system: Any, n: int | None) -> Begin:
    """The start in the terms of escape times: ``"zero"``, ``"random"`` or R of K = M = 1."""
    r0 = start_overlap(system)
    if r0 is None:
        return "random"
    if not np.any(r0):
        return "zero"
    if n is None:
        raise HdicaError(
            f"start = {system.start} is not allowed for escape times as n -> infinity "
            "(R is of order n^-1/2 there: 'zero' or 'random')"
        )
    if r0.size > 1:
        raise HdicaError(
            f"start = {system.start} is not allowed for escape times of several entries of R "
            "('zero' or 'random')"
        )
    return float(r0[0, 0])


def traps(system: Any) -> list[Trap]:
    """P, kappa_4 and <phi'''(z)> of every source."""
    phi = formula(system, "nonlinearity")
    return [near_zero(phi, source) for source in sources(system)]


def escape_of(system: Any, n: int | None) -> Escape:
    """Escape times of the system from its start."""
    return escape(
        _shared(system),
        formula(system, "nonlinearity"),
        [int(sign) for sign in signs(system)],
        constant_nu(system, n),
        n=n,
        start=beginning(system, n),
        threshold=system.threshold,
    )


def _shared(system: Any) -> list[Source]:
    """Laws of the sources, equal ones as one object: their escape times are computed once."""
    known: dict[bytes, Source] = {}
    pairs = zip(system.sources, sources(system), strict=True)
    return [known.setdefault(digest(spec), law) for spec, law in pairs]
