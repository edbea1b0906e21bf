"""A rule of the family on samples of one's own: methods, and what of them is not as assumed.

What of samples is not as a rule assumes comes in sentences with numbers: mean 0, entries of
variance 1, a covariance that is the identity (but for the spike of sparse PCA), and a variance in
every direction. Of many samples only some are looked at, evenly spaced: as many as fit 128 MiB and
give a covariance matrix within seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.projected.vector import GivenRule, Rows, run_given
from hdica.finite.random.streams import Stream
from hdica.finite.record import Values, begin, steps_of
from hdica.ingredients.plain import ARRAY
from hdica.ingredients.save import Save
from hdica.ingredients.schedules import is_observed
from hdica.inputs.samples import SHUFFLED, Samples, samples_of, shape_of
from hdica.process.machine import one_thread, slowness
from hdica.systems import method
from hdica.systems.fields import (
    F,
    Projected,
    at_dimension,
    batch,
    n_refusal,
    noise_refusal,
    optional,
    prior,
    resting_refusal,
    start,
)
from hdica.systems.method import Array, Output
from hdica.systems.projected.family import named
from hdica.systems.projected.simulation import LARGEST, OWN, TRAJECTORY
from hdica.systems.trials import seeded

_NUMBERS, _PRODUCTS, _SIDE = 2**24, 2e10, 1500
"""Most numbers that are read, most products of a covariance matrix, its most rows."""
_NOTHING = 1e-9
"""A share of variance this small is that of rounding, also of single precision."""
_MEAN, _SCALE, _SHAPE = 0.1, 0.1, 0.3
"""Deviations that matter to no rule: of the mean in standard deviations along its direction, of a
variance from 1, and of the variances along principal directions from their mean."""


@dataclass(frozen=True, eq=False)
class Traits:
    """What is seen of samples."""

    count: int  # samples
    rows: int  # how many of them are looked at
    constant: dict[int, float]  # columns that do not vary, and their values
    means: Array  # of the other columns over their standard deviations, shape (k,)
    scale: float  # square root of their mean variance
    referenced: bool  # whether the entries of every row have the same sum
    spectrum: Array  # eigenvalues of their covariance over the mean variance, ascending
    missing: int  # directions without variance, beyond constant columns

    @property
    def ratio(self) -> float:
        """Columns over rows."""
        return self.means.size / self.rows


def rows_of(count: int, n: int) -> int:
    """How many of ``count`` samples of ``n`` entries are looked at."""
    most = _SIDE if n > _SIDE else int(_PRODUCTS / n**2)
    return min(count, most, max(2, _NUMBERS // n))


@lru_cache(maxsize=16)
def traits(samples: Samples) -> Traits:
    """Mean, variance and covariance of samples, of some of them if there are many."""
    count, n = samples.shape
    rows = rows_of(count, n)
    x = samples.taken(np.linspace(0, count - 1, rows).astype(np.int64))
    fixed = np.ptp(x, axis=0) == 0
    constant = {int(k): float(x[0, k]) for k in np.flatnonzero(fixed)} if rows > 1 else {}
    if rows < 2 or np.all(fixed):
        nothing = np.empty(0)
        return Traits(count, rows, constant, nothing, 0.0, False, nothing, 0)
    # By columns of size 1, whose squares neither overflow nor vanish.
    size = np.abs(x).max(axis=0)[~fixed]
    x = x[:, ~fixed] / size
    mean = x.mean(axis=0)
    x -= mean
    sd = np.sqrt(np.mean(x * x, axis=0))
    x /= sd
    correlation = _spectrum(x)
    largest = float((sd * size).max())
    share = sd * size / largest
    level = float(np.mean(share**2))
    x *= share / math.sqrt(level)
    referenced = float(np.var(x.sum(axis=1))) < _NOTHING * sd.size
    missing = int(np.sum(correlation < _NOTHING)) if rows >= 2 * sd.size else int(referenced)
    scale = largest * math.sqrt(level)
    return Traits(count, rows, constant, mean / sd, scale, referenced, _spectrum(x), missing)


def _spectrum(x: Array) -> Array:
    """Eigenvalues of x'x/rows, ascending: as many as the smaller side of x has."""
    with one_thread():
        product = x.T @ x if x.shape[1] <= x.shape[0] else x @ x.T
        return np.maximum(np.linalg.eigvalsh(product / len(x)), 0.0)


def data_notes(spikes: int, remedy: str) -> Callable[[F], tuple[str, ...]]:
    """What a system says of its data: a sentence for all that is not as its rule assumes.

    In ``spikes`` directions the variance may be larger; ``remedy`` is what to do, the last sentence
    if there is any.
    """

    def notes(system: F) -> tuple[str, ...]:
        if optional(system, "data") is None:
            return ()
        seen = traits(samples_of(optional(system, "data")))
        sentences = [_mean(seen), *_covariance(seen, spikes), _rank(seen)]
        wrong = [sentence for sentence in sentences if sentence]
        if wrong and seen.rows < seen.count:
            wrong.append(f"{seen.rows} of {seen.count} rows of data, evenly spaced, were looked at")
        return (*wrong, remedy) if wrong else ()

    return notes


def _mean(seen: Traits) -> str:
    # By chance its square is about the number of columns over that of rows.
    length = float(np.sum(seen.means**2))
    if length <= max(_MEAN**2, 10 * seen.ratio):
        return ""
    worst = float(np.abs(seen.means).max())
    return f"the mean of data is not 0: columns have means of up to {worst:.3g} standard deviations"


def _covariance(seen: Traits, spikes: int) -> list[str]:
    """Of the size of the entries, and of the covariance once they have variance 1."""
    k, ratio, sentences = seen.means.size, seen.ratio, []
    if k <= spikes:
        return []
    # All that the spectrum leaves out is 0, so that its sum is k.
    bulk = seen.spectrum[: seen.spectrum.size - spikes]
    level = float(bulk.sum()) / (k - spikes)
    bulk, chance = bulk / level, 6 * math.sqrt(2 / seen.rows)
    deviation = seen.scale * math.sqrt(level)
    if not abs(deviation * deviation - 1) <= _SCALE + chance / math.sqrt(k):
        sentences.append(
            f"the entries of data have standard deviation {deviation:.3g}, where 1 is assumed"
        )
    # Edges of the eigenvalues of samples whose covariance is the identity (Marchenko and Pastur).
    high = (1 + _SHAPE) * (1 + math.sqrt(ratio)) ** 2 + chance
    low = (1 - _SHAPE) * (1 - math.sqrt(ratio)) ** 2 - chance if ratio <= 0.5 else 0.0
    least, most = float(bulk[min(seen.missing, bulk.size - 1)]), float(bulk[-1])
    if most > high or least < low:
        but = " beyond that of the feature" if spikes else ""
        sentences.append(
            f"the covariance of data{but} is not a multiple of the identity: along its principal "
            f"directions the variance is {least:.3g} to {most:.3g} times its mean"
        )
    # Drawn samples never have a covariance that is the identity to so many digits.
    if spikes and most - least < 0.1 * math.sqrt(ratio) and seen.rows == seen.count:
        sentences.append(
            "the covariance of data is a multiple of the identity: they have no principal component"
        )
    return sentences


def _rank(seen: Traits) -> str:
    """Of constant columns and of directions without variance."""
    n, lost = seen.means.size + len(seen.constant), seen.missing + len(seen.constant)
    if not lost:
        return ""
    why, columns = [], list(seen.constant)
    if len(columns) == 1:
        why.append(f"column {columns[0]} is constant, {seen.constant[columns[0]]:.6g}")
    elif columns:
        why.append(f"{len(columns)} columns are constant, the first is column {columns[0]}")
    if seen.referenced:
        why.append("all rows have the same mean, as with an average reference")
    reason = f" ({', and '.join(why)})" if why else ""
    return f"data vary in {n - lost} of {n} directions{reason}"


INPUTS = "hdica.inputs"
_OF_SAMPLES = (
    TRAJECTORY[1],
    LARGEST,
    Output("second", ("time",), "mean of u^2 over the last n samples, u = x.y/sqrt(n)"),
    Output("fourth", ("time",), "mean of u^4 over the last n samples, u = x.y/sqrt(n)"),
    Output("samples", ("time",), "samples seen"),
)
SAMPLES_TO_TRY = {
    "prior": {"vector": [1.0, -1.0, 0.5]},
    "data": {
        "array": [[1.1, -0.9, 0.4], [-0.3, 1.2, 0.8], [-1.0, 0.7, -1.3], [0.6, -1.4, 1.0]],
        "passes": 2,
    },
}
"""Fields of an example of a system with samples of its own."""
LOADING = Output("loading", ("time", "column"), "entry of the estimate x, with |x|^2 = n")


def check_data(system: Projected) -> None:
    """Refuse data that do not fit the feature or the first estimate."""
    if optional(system, "data") is None:
        return
    columns = shape_of(optional(system, "data"))[1]
    for name, law in (("prior", prior(system)), ("start", start(system))):
        if law.length not in (None, columns):
            raise HdicaError(
                f"data of {columns} columns are not allowed with {name} = a vector of "
                f"{law.length} entries (as many)",
                ["data"],
            )


def columns_of(system: Projected) -> dict[str, tuple[float, ...]]:
    """The dimension of the columns of the data, none without data."""
    if optional(system, "data") is None:
        return {}
    return {"column": tuple(range(shape_of(optional(system, "data"))[1]))}


def _no_data(system: Projected) -> str:
    if optional(system, "data") is None:
        return "no samples are given (data = an array of shape (samples, n), or {array: y.npy})"
    if getattr(system, "sign", "given") != "given":
        return (
            "sign = 'auto' is not allowed for given data (it is chosen by the law of a source, and "
            "theirs is not known: give the sign in the nonlinearity)"
        )
    return _observed_refusal(system) or resting_refusal(system, "given data")


def _unknown(system: Projected) -> str:
    if prior(system).length is None:
        return (
            "the overlap needs the feature, which data do not say (give prior = {vector: xi}, or "
            "use method 'blind')"
        )
    return ""


def _aimed(system: Projected) -> str:
    """A start that is told by its overlap, with a feature that nobody knows."""
    toward = system.start.get("overlap", 0) or system.start.get("exact", False)
    if prior(system).length is None and toward:
        return (
            f"start = {system.start!r} is not allowed for data whose feature is not known (an "
            "overlap with it says nothing: {overlap: 0}, {normal: {mean, var}} or a vector)"
        )
    return ""


def _observed_refusal(system: Projected, name: str = "") -> str:
    """Empty if method ``name`` can follow the step size of a system, else that it cannot."""
    if not is_observed(optional(system, "tau")) or name in ("chain", "vector", "ode"):
        return ""
    return (
        f"tau = {optional(system, 'tau')!r} is not allowed (a step size that follows what is "
        "observed: methods 'chain', 'vector' and 'ode')"
    )


def of_model(methods: tuple[method.Method, ...]) -> tuple[method.Method, ...]:
    """Methods of the model: those that draw samples refuse data, and noise that they do not draw.

    Limits and steady states ignore data, and the law of the noise but for escapes and for what n
    leaves of a limit, to which the fourth cumulant of the noise adds as much as theory has.
    """

    def without(own: method.Method) -> method.Method:
        def in_limits(system: Projected) -> str:
            why = _observed_refusal(system, own.name) or n_refusal(system)
            return why or own.scope.refuses(system)

        if not isinstance(own, method.Simulation):
            biased = bool(own.outputs.bias) or "bias" in own.outputs.keeps
            ignored = {"data"} | (
                set() if own.role == method.Role.ESCAPE or biased else {"noise_law"}
            )
            ignores = own.scope.ignores | ignored
            applies = own.scope.refuses if own.takes_n else in_limits
            return replace(own, scope=replace(own.scope, ignores=ignores, refuses=applies))

        def refuses(system: Projected) -> str:
            why = "" if own.name == "vector" else noise_refusal(system, f"method {own.name!r}")
            why = why or _observed_refusal(system, own.name)
            if why:
                return why
            if optional(system, "data") is not None:
                return _aimed(system) or (
                    f"method {own.name!r} draws samples of the model and sees no data (use "
                    "method 'stream' or 'blind', or leave out data)"
                )
            return own.scope.refuses(system)

        twin, scope = own.shared, replace(own.scope, refuses=refuses)
        shared = twin and replace(twin, scope=replace(twin.scope, refuses=refuses))
        return replace(own, scope=scope, shared=shared)

    return tuple(map(without, methods))


def _rows(system: Projected) -> Rows:
    data = optional(system, "data")
    samples = samples_of(data)
    count, n = samples.shape
    shuffled, passes = data.get("order") == SHUFFLED, data.get("passes", 1)
    return Rows(samples.read, samples.taken, count, n, samples.block, shuffled, passes)


def beyond(system: Projected, last: float) -> str:
    """Empty if the samples are enough until a time, else the sentence that refuses it."""
    count, n = shape_of(optional(system, "data"))
    passes = optional(system, "data").get("passes", 1)
    enough = count * passes // batch(system)
    if steps_of(np.array([last]), n)[0] <= enough:
        return ""
    return (
        f"times until {last:g} are not allowed ({count} samples of {n} entries, seen {passes} "
        f"{'time' if passes == 1 else 'times'} in batches of {batch(system)}, last until "
        f"t = {enough / n:.6g}; data = {{{ARRAY}, passes}} sees them more often)"
    )


class OnData(Protocol):
    """A rule of the family that acts on samples."""

    @property
    def on_data(self) -> GivenRule:
        """As the engine of samples takes it."""


def streams(
    rule_of: Callable[[F], OnData],
    equations: str,
    ignores: frozenset[str],
    uses: tuple[str, ...] = (),
) -> tuple[method.Method, method.Method]:
    """Methods ``stream``, with the overlap with a given feature, and ``blind``, without.

    ``rule_of`` is the rule of a system as it acts on samples, ``equations`` what is computed, and
    ``ignores`` are fields that say what samples are drawn from.
    """

    def runner(with_feature: bool) -> Callable[[F, Array, int, Stream, Save], Values]:
        def run(system: F, times: Array, n: int, stream: Stream, save: Save) -> Values:
            why = beyond(system, float(times[-1]))
            if why:
                raise HdicaError(why, ["times"])
            rows, full = _rows(system), LOADING.name in save.extra
            sized = at_dimension(system, rows.n)
            xi, x = begin(prior(system), start(system), rows.n, stream)
            seen = xi if with_feature else None
            return named(run_given(rule_of(sized).on_data, rows, times, x, seen, stream, full))

        return run

    def seconds(system: F, n: int | None, last: float) -> float:
        columns = shape_of(optional(system, "data"))[1]
        step = 2e-5 + batch(system) * (6e-6 + 4e-9 * columns)
        return 1e-3 + slowness() * step * last * columns

    blind = method.Simulation[F](
        name="blind",
        role=method.Role.SIMULATION,
        rank=1,
        about=method.About(
            text="the rule on samples of your own, whose feature nobody knows",
            accuracy="exact",
            equations=f"{equations}, on given samples y",
            bits=method.Bits.EVERY_KIND,
            engines=(*method.PROJECTED, INPUTS, OWN, method.home_of(rule_of), *uses),
        ),
        outputs=method.Outputs(_OF_SAMPLES, extras=(LOADING,)),
        cost=method.Cost(
            seconds=seconds,
            memory=lambda system, n, last: 4 * shape_of(optional(system, "data"))[1] + 2**21,
        ),
        scope=method.Scope(
            refuses=lambda system: _no_data(system) or _aimed(system),
            ignores=ignores,
            beyond=beyond,
            n=method.Size.NONE,
        ),
        run=seeded("stream", runner(False), ignores),
    )
    stream = replace(
        blind,
        name="stream",
        about=replace(
            blind.about,
            text="the rule on samples of your own, and its overlap with a feature that you give",
        ),
        outputs=replace(blind.outputs, always=(TRAJECTORY[0], *_OF_SAMPLES)),
        scope=replace(blind.scope, refuses=lambda system: _no_data(system) or _unknown(system)),
        run=seeded("stream", runner(True), ignores),
    )
    return stream, blind
