"""Single paths: in the coordinates u of the data, and the error of Lemma 5 of Li and Jordan."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.random.streams import Stream
from hdica.finite.record import Values, steps_of
from hdica.ingredients.quadrature import dot
from hdica.process.progress import check_deadline
from hdica.systems.tensorial_ica.finite.draws import block_of, draws
from hdica.systems.tensorial_ica.finite.path import TensorialRule, first, sentence, sizes

Array = NDArray[np.float64]
Advance = Callable[[Array, Array], int]


def _law(rule: TensorialRule) -> Array:
    """What the kernels know of the sign."""
    return np.array([0.0, rule.sign or 0.0, float(rule.sign is None)])


def _walk(
    rule: TensorialRule, times: Array, stream: Stream, advance: Advance, see: Callable[[int], None]
) -> int:
    """Blocks of steps up to every output time; the step at which ``advance`` stopped, or -1."""
    draw, done = draws(rule.source, rule.dimension, stream("source")), 0
    most = block_of(rule.dimension)
    for index, target in enumerate(steps_of(times, 1).tolist()):
        while done < target:
            check_deadline()
            stop = min(target, done + most)
            eta = sizes(rule.schedule, np.arange(done, stop, dtype=float))
            made = advance(draw(stop - done), eta)
            if made < stop - done:
                return done + made
            done = stop
        see(index)
    return -1


def run_observed(
    rule: TensorialRule,
    mixing: Array | None,
    times: Array,
    stream: Stream,
    keep: frozenset[str] = frozenset(),
) -> Values:
    """One trajectory in the coordinates of the data, u = A v, with X = A Z.

    Parameters
    ----------
    rule
        The rule, whose start is v(0); u(0) = A v(0).
    mixing
        Orthonormal A, shape (d, d); None for the identity.
    times, stream, keep
        As :func:`run_together`; ``keep`` may also have ``"u"``, shape (T, d).

    Returns
    -------
    tuple
        As an entry of :func:`run_together`, of v = A'u: the same numbers up to rounding.
    """
    from hdica.systems.tensorial_ica.finite.kernels import nearest
    from hdica.systems.tensorial_ica.finite.single_kernels import observed_steps

    d = rule.dimension
    transposed = np.zeros((0, 0)) if mixing is None else _transposed(mixing, d)
    u, law = _mixed(transposed, first(rule, stream)), _law(rule)
    shapes = {"tan2": (), "nearest": (), "update_sign": ()} | {
        n: (d,) for n in ("v", "u") if n in keep
    }
    found = {name: np.full((times.size, *shape), np.nan) for name, shape in shapes.items()}

    def see(index: int) -> None:
        v = u if mixing is None else np.array([dot(row, u) for row in transposed])
        tangent, component = np.empty(1), np.empty(1)
        nearest(v[:, None].copy(), tangent, component)
        seen = {"tan2": tangent[0], "nearest": component[0], "update_sign": law[1], "v": v, "u": u}
        for name, values in found.items():
            values[index] = seen[name]

    stopped = _walk(
        rule, times, stream, lambda z, eta: observed_steps(u, transposed, z, eta, law), see
    )
    return found, "" if stopped < 0 else sentence(stopped)


def _transposed(mixing: Array, d: int) -> Array:
    """A' as the kernel takes it."""
    if mixing.shape != (d, d):
        raise HdicaError(f"mixing: shape {mixing.shape} is not allowed (shape ({d}, {d}))")
    return np.ascontiguousarray(mixing.T, dtype=float)


def _mixed(transposed: Array, v: Array) -> Array:
    """A v, writable."""
    if transposed.size == 0:
        return v.copy()
    return np.sum(transposed * v[:, None], axis=0)


def run_vessel(
    rules: Sequence[TensorialRule], times: Array, streams: Sequence[Stream]
) -> list[Values]:
    """How far paths stray from the product of their mean factors: Li and Jordan 2021, Lemma 5.

    The lemma bounds sup_t abs(U_k(t) - U_k(0) prod_s (1 - eta beta (v_m^2 - v_k^2))), U_k =
    v_k/v_m, along a path with abs(tan) <= 1/sqrt 2 to the axis m, which is the one nearest to
    v(0). The sup stops growing where the path leaves that vessel.

    Parameters
    ----------
    rules, times, streams
        As :func:`run_together`; the number of points is not limited.

    Returns
    -------
    list
        Of each point a dictionary of arrays of shape (T,): ``sup``, the mean over k != m of the
        running sup, ``sup_max``, the largest of them, and ``inside``, 1 until the path has left,
        then 0; and why it diverged, or "".
    """
    return [_vessel(*point, times) for point in zip(rules, streams, strict=True)]


def _vessel(rule: TensorialRule, stream: Stream, times: Array) -> Values:
    from hdica.systems.tensorial_ica.finite.single_kernels import vessel_steps

    v, law = first(rule, stream).copy(), _law(rule)
    m, beta = int(np.argmax(np.abs(v))), abs(rule.source.moment(4) - 3.0)
    expected, most = v / v[m], np.zeros(v.size)
    others = np.arange(v.size) != m
    found = {name: np.full(times.size, np.nan) for name in ("sup", "sup_max", "inside")}

    def seen(inside: bool) -> dict[str, float]:
        sup = most[others]
        mean, largest = (float(np.mean(sup)), float(np.max(sup))) if sup.size else (0.0, 0.0)
        return {"sup": mean, "sup_max": largest, "inside": float(inside)}

    def see(index: int) -> None:
        for name, value in seen(True).items():
            found[name][index] = value

    if dot(v[others], v[others]) > 0.5 * v[m] ** 2:
        stopped = 0
    else:
        stopped = _walk(
            rule,
            times,
            stream,
            lambda z, eta: vessel_steps(v, m, expected, most, z, eta, beta, law),
            see,
        )
    if stopped < 0:
        return found, ""
    if not np.all(np.isfinite(v)):
        return found, sentence(stopped)
    for name, value in seen(False).items():
        found[name][np.isnan(found[name])] = value
    return found, ""
