"""What the fields of subspace ICA mean: the spikes, the samples, where and how ICA is run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from hdica.errors import HdicaError, speaking_of, suggestion
from hdica.ingredients.contrasts import Contrast, make_contrast
from hdica.ingredients.grammar import constants_used
from hdica.ingredients.plain import is_number, plain
from hdica.ingredients.quadrature import dot, numbers
from hdica.ingredients.sources import Source, make_source

Array = NDArray[np.float64]
LARGEST = 1e12
"""Largest strength of a spike, and largest ratio of the entries of a direction."""
MOST_SAMPLES = 2**40
SPACES = "'principal', {principal: d}, 'ambient' or 'known'"
_SPACES = ("principal", "ambient", "known")
BATCHES = "'all', 'fresh' or a whole number >= 1"
STARTS = "'uniform' or {overlap: a0} with 0 <= a0 <= 1"
BETAS = f"a number > 0 and <= {LARGEST:g}, or a list of them, one a spike"
ALPHAS = "'equal', or a list of finite numbers, one a spike and not all 0"


def whole_number(value: Any, name: str, least: int, most: int) -> int:
    """A whole number in a range; 100.0 is the number 100."""
    if not is_number(value) or not least <= value <= most or int(value) != value:
        raise HdicaError(
            f"{name} = {value!r} is not allowed (a whole number from {least} to {most})"
        )
    return int(value)


def _beta(value: Any) -> Any:
    given = plain(value)
    for one in given if isinstance(given, list) and given else [given]:
        if not is_number(one) or not 0 < one <= LARGEST:
            raise HdicaError(f"beta = {value!r} is not allowed ({BETAS})")
    return [float(one) for one in given] if isinstance(given, list) else float(given)


def _alpha(value: Any) -> Any:
    given = plain(value)
    if given == "equal":
        return given
    entries = numbers(given) if isinstance(given, list) and given else None
    if entries is None or not np.all(np.isfinite(entries)) or not np.any(entries):
        raise HdicaError(
            f"alpha = {value!r} is not allowed ({suggestion(value, ('equal',), ALPHAS)})"
        )
    return entries.tolist()


def _latent(value: Any) -> Any:
    try:
        make_source(value)
    except HdicaError as exc:
        raise HdicaError(str(exc).replace("source:", "latent:", 1)) from None
    return value


def _per_dimension(value: Any) -> Any:
    if value is None:
        return None
    if not is_number(value) or not 0 < value < math.inf:
        raise HdicaError(
            f"samples_per_dimension = {value!r} is not allowed (a finite number > 0; none is for "
            "infinitely many)"
        )
    return float(value)


def _samples(value: Any) -> Any:
    return None if value is None else whole_number(value, "samples", 2, MOST_SAMPLES)


def _space(value: Any) -> Any:
    if value in _SPACES:
        return value
    given = plain(value)
    if isinstance(given, Mapping) and set(given) == {"principal"}:
        return {"principal": whole_number(given["principal"], "space.principal", 1, 2**31)}
    raise HdicaError(f"space = {value!r} is not allowed ({suggestion(value, _SPACES, SPACES)})")


def _batch(value: Any) -> Any:
    if value in ("all", "fresh"):
        return value
    if not is_number(value) or not 1 <= value <= MOST_SAMPLES or int(value) != value:
        raise HdicaError(
            f"batch = {value!r} is not allowed ({suggestion(value, ('all', 'fresh'), BATCHES)})"
        )
    return int(value)


def _eta(value: Any) -> Any:
    if value is None:
        return None
    if not is_number(value) or not 0 < value < math.inf:
        raise HdicaError(f"eta = {value!r} is not allowed (a finite number > 0)")
    return float(value)


def _start(value: Any) -> Any:
    if isinstance(value, str) and value == "uniform":
        return value
    given = plain(value)
    if isinstance(given, Mapping) and set(given) == {"overlap"}:
        overlap = given["overlap"]
        if is_number(overlap) and 0 <= overlap <= 1:
            return {"overlap": float(overlap)}
    raise HdicaError(
        f"start = {value!r} is not allowed ({suggestion(value, ('uniform', 'overlap'), STARTS)})"
    )


Beta = Annotated[float | list[float], BeforeValidator(_beta)]
Alpha = Annotated[str | list[float], BeforeValidator(_alpha)]
Latent = Annotated[str | dict[str, Any], BeforeValidator(_latent)]
PerDimension = Annotated[float | None, BeforeValidator(_per_dimension)]
Samples = Annotated[int | None, BeforeValidator(_samples)]
Space = Annotated[str | dict[str, int], BeforeValidator(_space)]
Batch = Annotated[str | int, BeforeValidator(_batch)]
StepSize = Annotated[float | None, BeforeValidator(_eta)]
Beginning = Annotated[str | dict[str, float], BeforeValidator(_start)]
Whitening = Literal["sample", "population"]
Algorithm = Literal["fastica", "sgd", "flow"]
Direction = Literal["auto", "ascent", "descent"]


def strengths(system: Any) -> Array:
    """Beta of every spike, shape (r,)."""
    given = system.beta
    return np.array(given if isinstance(given, list) else [given] * system.rank, dtype=float)


def weights(system: Any) -> Array:
    """alpha, the coefficients of v in the basis of the spikes, shape (r,), of length one."""
    if system.alpha == "equal":
        return np.full(system.rank, 1 / math.sqrt(system.rank))
    alpha = np.array(system.alpha, dtype=float)
    # Scaled first, so that no square overflows.
    alpha /= np.abs(alpha).max()
    return np.asarray(alpha / math.sqrt(dot(alpha, alpha)))


def check_lengths(system: Any) -> None:
    """Refuse lists that have not one number a spike, and more spikes than dimensions."""
    if system.rank > system.dimension:
        raise HdicaError(
            f"rank = {system.rank} is not allowed (at most dimension = {system.dimension})",
            ["rank", "dimension"],
        )
    for name in ("beta", "alpha"):
        given = getattr(system, name)
        if isinstance(given, list) and len(given) != system.rank:
            raise HdicaError(
                f"{name} with {len(given)} numbers is not allowed (one a spike: rank = "
                f"{system.rank})",
                [name, "rank"],
            )


def latent(system: Any) -> Source:
    """Law of the non-Gaussian latent variable h."""
    return make_source(system.latent)


def contrast(system: Any) -> Contrast:
    """The contrast G."""
    used = constants_used(system.contrast, "s")
    with speaking_of("contrast", *(f"constants.{name}" for name in sorted(used))):
        return make_contrast(system.contrast, system.constants)


def samples_of(system: Any) -> int | None:
    """n, the number of samples; None for infinitely many."""
    if system.samples is not None:
        return int(system.samples)
    if system.samples_per_dimension is None:
        return None
    return round(min(system.samples_per_dimension * system.dimension, 2.0 * MOST_SAMPLES))


def needed_samples(system: Any) -> int:
    """n, for what needs finitely many samples."""
    count = samples_of(system)
    if count is None:
        raise HdicaError(
            "samples_per_dimension or samples is needed (without them there are infinitely many, "
            "which is for limits and for sgd on fresh samples)",
            ["samples_per_dimension", "samples"],
        )
    return count


def kind_of_space(system: Any) -> str:
    """``"principal"``, ``"ambient"`` or ``"known"``."""
    return system.space if isinstance(system.space, str) else "principal"


def size_of_space(system: Any) -> int:
    """Dimension d of the space in which ICA is run."""
    if isinstance(system.space, Mapping):
        return int(system.space["principal"])
    return int(system.dimension if system.space == "ambient" else system.rank)


def first_overlap(system: Any) -> float | None:
    """Overlap at the start; None for a start that is uniform on the sphere."""
    return None if system.start == "uniform" else float(system.start["overlap"])
