"""Methods ``stream`` and ``blind``: a rule of the family on samples that its user gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.projected.vector import GivenRule, Rows, run_given
from hdica.finite.random.streams import Stream
from hdica.finite.record import Values, begin, steps_of
from hdica.ingredients.plain import ARRAY
from hdica.ingredients.save import Save
from hdica.inputs.samples import SHUFFLED, samples_of, shape_of
from hdica.process.machine import slowness
from hdica.systems.fields import F, Projected, batch, optional, prior, resting_refusal, start
from hdica.systems.method import (
    PROJECTED,
    About,
    Bits,
    Cost,
    Method,
    Outputs,
    Role,
    Scope,
    Simulation,
    Size,
    home_of,
)
from hdica.systems.outputs import Array, Output
from hdica.systems.projected.controls import named
from hdica.systems.projected.simulation import LARGEST, OWN, TRAJECTORY
from hdica.systems.trials import seeded

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
    return resting_refusal(system, "given data")


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


def given_data(methods: tuple[Method, ...]) -> tuple[Method, ...]:
    """Methods that see no given samples: those that draw samples refuse a system with data.

    Limits and steady states are those of the model, and ignore them.
    """

    def without(method: Method) -> Method:
        if not isinstance(method, Simulation):
            scope = replace(method.scope, ignores=method.scope.ignores | {"data"})
            return replace(method, scope=scope)

        def refuses(system: Projected) -> str:
            if optional(system, "data") is not None:
                return _aimed(system) or (
                    f"method {method.name!r} draws samples of the model and sees no data (use "
                    "method 'stream' or 'blind', or leave out data)"
                )
            return method.scope.refuses(system)

        twin, scope = method.shared, replace(method.scope, refuses=refuses)
        shared = twin and replace(twin, scope=replace(twin.scope, refuses=refuses))
        return replace(method, scope=scope, shared=shared)

    return tuple(without(method) for method in methods)


def _rows(system: Projected) -> Rows:
    found, data = samples_of(optional(system, "data")), optional(system, "data")
    count, n = found.shape
    return Rows(
        found.read,
        found.taken,
        count,
        n,
        found.block,
        shuffled=data.get("order") == SHUFFLED,
        passes=data.get("passes", 1),
    )


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


def streams(
    rule_of: Callable[[F], GivenRule],
    equations: str,
    ignores: frozenset[str],
    uses: tuple[str, ...] = (),
) -> tuple[Method, Method]:
    """Methods ``stream``, with the overlap with a known feature, and ``blind``, without.

    Parameters
    ----------
    rule_of
        The rule of a system as it acts on samples.
    equations
        What is computed.
    ignores
        Fields that say what samples are drawn from.
    """

    def runner(known: bool) -> Callable[[F, Array, int, Stream, Save], Values]:
        def run(system: F, times: Array, n: int, stream: Stream, save: Save) -> Values:
            why = beyond(system, float(times[-1]))
            if why:
                raise HdicaError(why, ["times"])
            rows, full = _rows(system), LOADING.name in save.extra
            xi, x = begin(prior(system), start(system), rows.n, stream)
            found = run_given(rule_of(system), rows, times, x, xi if known else None, stream, full)
            return named(found)

        return run

    def seconds(system: F, n: int | None, last: float) -> float:
        columns = shape_of(optional(system, "data"))[1]
        step = 2e-5 + batch(system) * (6e-6 + 4e-9 * columns)
        return 1e-3 + slowness() * step * last * columns

    blind = Simulation[F](
        name="blind",
        role=Role.SIMULATION,
        rank=1,
        about=About(
            text="the rule on samples of your own, whose feature nobody knows",
            accuracy="exact",
            equations=f"{equations}, on given samples y",
            bits=Bits.EVERY_KIND,
            engines=(*PROJECTED, INPUTS, OWN, home_of(rule_of), *uses),
        ),
        outputs=Outputs(_OF_SAMPLES, extras=(LOADING,)),
        cost=Cost(
            seconds=seconds,
            memory=lambda system, n: 4 * shape_of(optional(system, "data"))[1] + 2**21,
        ),
        scope=Scope(
            refuses=lambda system: _no_data(system) or _aimed(system),
            ignores=ignores,
            beyond=beyond,
            n=Size.NONE,
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
