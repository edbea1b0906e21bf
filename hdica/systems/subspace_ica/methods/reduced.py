"""The reduced model behind the limits, and what limits ask of a system."""

from __future__ import annotations

import math

import numpy as np

from hdica.errors import HdicaError
from hdica.systems.subspace_ica.fields import (
    contrast,
    first_overlap,
    kind_of_space,
    latent,
    samples_of,
    size_of_space,
    strengths,
    weights,
)
from hdica.systems.subspace_ica.limit.hermite import series, too_heavy
from hdica.systems.subspace_ica.limit.pca import Reduction
from hdica.systems.subspace_ica.system import SubspaceICA


def reduction(system: SubspaceICA) -> Reduction:
    """The reduced model with the principal components of the samples of a system."""
    count, size = samples_of(system), size_of_space(system)
    estimated = kind_of_space(system) == "principal" and count is not None
    c = system.dimension / count if estimated and count else 0.0
    used = size if kind_of_space(system) == "principal" else None
    return Reduction(strengths(system), weights(system), c, used)


def check_ties(system: SubspaceICA) -> None:
    """Refuse fewer components than spikes that do not say which spikes they are."""
    if kind_of_space(system) != "principal" or size_of_space(system) >= system.rank:
        return
    size, ordered = size_of_space(system), np.sort(strengths(system))[::-1]
    if ordered[size - 1] == ordered[size]:
        raise HdicaError(
            f"space.principal = {size} is not allowed for the limit (fewer than rank = "
            f"{system.rank}, and which spikes of equal beta are taken is up to the noise)",
            ["space.principal", "beta"],
        )


def check_seen(system: SubspaceICA, power: int = 1) -> None:
    """Refuse a contrast that does not see h, or a polynomial without the moments it needs.

    ``power`` is that of the slope of the contrast in what is averaged.
    """
    given, law = contrast(system), latent(system)
    terms = series(given, law).terms
    if all(term == 0.0 for term in terms[1:]):
        raise HdicaError(
            f"latent = {system.latent!r} is not allowed with contrast = {system.contrast!r} (the "
            "population loss does not depend on the overlap)",
            ["latent", "contrast"],
        )
    if given.formula.coefficients is not None:
        order = power * (len(terms) - 2)
        if not all(math.isfinite(law.moment(k)) for k in range(order + 1)):
            raise too_heavy(given, law)


def signal(system: SubspaceICA) -> float:
    """Gamma of the reduced model in which a system runs: gamma_c where components are estimated."""
    check_ties(system)
    found = reduction(system).gamma_c if kind_of_space(system) == "principal" else system.gamma
    if found <= 0:
        raise HdicaError(
            f"beta = {system.beta!r} is not allowed for the limit (no spike stands out of the "
            f"noise of {samples_of(system)} samples: beta > (D/n)^1/2 = "
            f"{math.sqrt(reduction(system).c):.4g} is needed)",
            ["beta", "samples_per_dimension", "samples"],
        )
    return found


def only(system: SubspaceICA, *algorithms: str) -> None:
    """Refuse other algorithms."""
    if system.algorithm not in algorithms:
        allowed = " or ".join(repr(one) for one in algorithms)
        raise HdicaError(
            f"algorithm = {system.algorithm!r} is not allowed for this limit (allowed: {allowed})",
            ["algorithm"],
        )


def overlap_at_start(system: SubspaceICA) -> float:
    """a0 where it is given."""
    given = first_overlap(system)
    if given is None:
        raise HdicaError(
            "start = 'uniform' is not allowed for this limit, which needs a start of known overlap "
            "(allowed: {overlap: a0})",
            ["start"],
        )
    return given
