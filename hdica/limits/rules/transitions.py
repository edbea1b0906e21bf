"""Where the steady states of one estimate and one feature change as a parameter varies.

States are looked for along the parameter. Between two values at which their number or their
stability differs the interval is halved, and what happens there is solved for: at a fold two states
merge, where the drift and the determinant of its Jacobian vanish together; where a branch meets
another, as at R = 0, the Jacobian there is singular, be the state stable or not; where a pair of
its eigenvalues crosses the imaginary axis, oscillations grow. Mirror images count once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.limits.rules.averages import FIRST
from hdica.limits.rules.equations import SAFETY, Equations
from hdica.limits.rules.steady import Search, polished, refined, searched, slowest

VALUES, MOST_VALUES = 24, 192
"""Values of the parameter at first, and at most; twice as many must show no other change."""
STARTS = 6
"""Starts for each overlap, beside the states at the next value."""
NARROW = 1e-3
"""Width, relative to the value, of the interval in which a change is solved for."""
_ZERO, _NEAR, _TINY, _STAYS = 1e-7, 1e-6, 1e-2, 1e-2
_ROUNDING = 1e-9
"""Relative error of a critical value by differences in place of derivatives."""
_UNEVEN = 0.0137
"""How far values lie from round ones, where a change is likely."""
_OFF = 1.0 + 1e-6 * math.pi
"""Factor by which a value is moved at which a state is neither stable nor unstable."""
_CLOSER = 6
"""Steps towards a divergence, each nine tenths of the way."""
_DOUBLINGS = 3
"""How often an interval is made three times as wide in which nothing is solved for."""
_WIDER = 6
"""How often an interval is made twice as wide in which averages of more nodes have no change."""
_FARTHEST_MOVE = 0.3
"""How far a state may move, beside its size, in a narrow interval of the parameter."""
_FOLLOWED = 4
"""Slopes of Newton's method from a state to that at a value nearby."""
_BEYOND = 0.03
"""Relative distance from an interval at which a fold with averages of more nodes may lie."""
Family = Callable[[float], Equations]


@dataclass(frozen=True)
class Changes:
    """Critical values, decreasing, their errors and the overlaps there, shape (changes,).

    ``kind`` is ``"fold"`` (two states merge), ``"transcritical"`` (another state meets one that
    goes on, as a branch does at Q = 0, or one that no estimate has), ``"hopf"`` (a state turns
    unstable by oscillations that grow) or ``"divergence"`` (the norm of a state becomes infinite).
    """

    value: Array
    q: Array
    kind: NDArray[np.str_]
    error: Array


@dataclass(frozen=True)
class _States:
    """States at one value: free numbers, shape (states, size), the overlap first; stability."""

    value: float
    z: Array
    stable: NDArray[np.bool_]

    @property
    def zero(self) -> NDArray[np.bool_]:
        """Which of them have no overlap."""
        return np.abs(self.z[:, 0]) < _ZERO

    @property
    def signature(self) -> tuple[tuple[bool, bool], ...]:
        """How many there are of each kind and stability."""
        return tuple(sorted(zip(self.zero.tolist(), self.stable.tolist(), strict=True)))


def _at(family: Family, value: float, *hints: _States) -> _States:
    """States at a value; of mirror images those with Q > 0."""
    near = [z for one in hints for z in one.z]
    try:
        states = searched(family(value), 1.0, STARTS, near)
    except HdicaError:
        value *= _OFF
        states = searched(family(value), 1.0, STARTS, near)
    search = _search(family, value)
    every = np.array([search.numbers(one) for one in states]).reshape(-1, int(search.free.sum()))
    order = np.argsort(-every[:, 0], kind="stable")
    single: list[Array] = []
    for z in every[order]:
        if z[0] > -_ZERO or not any(np.abs(z * _mirror(z) - one).max() < _NEAR for one in single):
            single.append(z)
    stable = np.array([slowest(search, z) < 0 for z in single], dtype=bool)
    return _States(value, np.array(single).reshape(-1, every.shape[1]), stable)


def _search(family: Family, value: float, level: int = FIRST) -> Search:
    return Search(family(value), 1.0, level)


def _mirror(z: Array) -> Array:
    return np.array([-1.0, *np.ones(z.size - 1)])


def _intervals(family: Family, low: _States, high: _States) -> Iterator[tuple[_States, _States]]:
    """Narrow intervals in which the states change."""
    if low.signature == high.signature:
        return
    if high.value <= low.value * (1 + NARROW):
        # A search may have missed what the other end shows.
        low, high = _at(family, low.value, low, high), _at(family, high.value, low, high)
        if low.signature != high.signature:
            yield low, high
        return
    middle = _at(family, _between(low, high), low, high)
    yield from _intervals(family, low, middle)
    yield from _intervals(family, middle, high)


def _between(low: _States, high: _States) -> float:
    """A value near the middle."""
    return low.value * (high.value / low.value) ** (0.5 + _UNEVEN)


def _solve(function: Callable[[Array], Array], start: Array) -> Array | None:
    from scipy.optimize import root

    answer = root(function, start, method="hybr", tol=1e-13)
    x = np.asarray(answer.x)
    return x if np.isfinite(x).all() and np.abs(x - start).max() < _FARTHEST_MOVE else None


def _fold(family: Family, low: _States, high: _States, level: int) -> tuple[float, Array] | None:
    """Value and state at which two states merge."""
    more = low if len(low.z) > len(high.z) else high
    pairs = [
        (float(np.abs(more.z[i] - more.z[j]).max()), i, j)
        for i in range(len(more.z))
        for j in range(i)
        if more.zero[i] == more.zero[j]
    ]
    if not pairs:
        return None
    _, i, j = min(pairs)
    middle, along = (more.z[i] + more.z[j]) / 2, more.z[i] - more.z[j]
    size, scale = middle.size, math.sqrt(low.value * high.value)
    along /= np.sqrt(np.sum(along**2))

    def both(x: Array) -> Array:
        search = _search(family, scale * math.exp(x[-1]), level)
        z, v = x[:size], x[size:-1]
        rate = search.drift(z)
        bend = search.jacobian(z) @ v
        return np.concatenate([rate, bend, [np.sum(v * v) - 1]]) / np.array(
            [*np.full(2 * size, search.scale(z)), 1.0]
        )

    x = _solve(both, np.concatenate([middle, along, [0.0]]))
    if x is None:
        return None
    value = scale * math.exp(x[-1])
    inside = low.value * (1 - _BEYOND) < value < high.value * (1 + _BEYOND)
    return (value, x[:size]) if inside else None


def _followed(search: Search, z: Array) -> Array:
    """The state that a nearby one has become, by Newton's method with new slopes."""
    for _ in range(_FOLLOWED):
        z = polished(search, z)[0]
    return z


def _turned(family: Family, low: _States, high: _States) -> Array | None:
    """A state that turns stable or unstable between two values, as it is at the lower one."""
    turned = [
        (low.z[i], float(np.abs(low.z[i] - other).max()))
        for i in range(len(low.z))
        for other, stable in zip(high.z, high.stable, strict=True)
        if stable != low.stable[i]
    ]
    z, gap = min(turned, key=lambda pair: pair[1], default=(np.empty(0), math.inf))
    if gap <= _STAYS:
        return z
    # One that moves fast is the same if Newton's method leads from it to the other.
    search = _search(family, high.value)
    for i in range(len(low.z)):
        there = _followed(search, low.z[i])
        if np.abs(there - low.z[i]).max() > _FARTHEST_MOVE * max(1.0, np.abs(low.z[i]).max()):
            continue  # another one, after a fold at which this one has ended
        for other, stable in zip(high.z, high.stable, strict=True):
            if stable != low.stable[i] and np.abs(there - other).max() < _NEAR:
                return np.asarray(low.z[i])
    return None


Measure = Callable[[Search, Array], float]


def _volume(search: Search, z: Array) -> float:
    """The determinant of the Jacobian."""
    return float(np.linalg.det(search.jacobian(z)))


def _crossing(
    measure: Measure, z: Array, family: Family, low: _States, high: _States, level: int
) -> tuple[float, Array] | None:
    """Value at which a measure of a state changes sign, and the state, which is z at first."""
    from scipy.optimize import brentq

    def at(log: float) -> float:
        search = _search(family, math.exp(log), level)
        return measure(search, _followed(search, z))

    first, last = math.log(low.value), math.log(high.value)
    for _ in range(_WIDER):
        if at(first) * at(last) < 0:
            value = math.exp(float(brentq(at, first, last, xtol=1e-14, rtol=1e-14)))
            # Where others meet it no slope holds it: what is 0 stays so.
            there = _followed(_search(family, value, level), z)
            return value, np.where(np.abs(z) < _ZERO, 0.0, there)
        first, last = first - (last - first) / 2, last + (last - first) / 2
    return None


def _exchange(
    family: Family, low: _States, high: _States, level: int
) -> tuple[float, Array] | None:
    """Value and state at which a state that stays turns stable or unstable."""
    z = _turned(family, low, high)
    return None if z is None else _crossing(slowest, z, family, low, high, level)


def _meeting(family: Family, low: _States, high: _States, level: int) -> tuple[float, Array] | None:
    """Value and state at which others meet one that stays, and all of them are unstable."""
    if len(low.z) == len(high.z):
        return None
    searches = [_search(family, one.value, level) for one in (low, high)]
    for z in min(low, high, key=lambda one: len(one.z)).z:
        first, last = (_volume(search, _followed(search, z)) for search in searches)
        if -math.inf < first * last < 0:
            return _crossing(_volume, z, family, low, high, level)
    return None


def _oscillates(search: Search, z: Array) -> bool:
    """Whether the slowest perturbation of a state turns as it grows or decays."""
    rates = np.linalg.eigvals(search.jacobian(z))
    return bool(abs(rates[np.argmax(rates.real)].imag) > _NEAR * np.abs(rates).max())


def _divergence(
    family: Family, low: _States, high: _States, level: int
) -> tuple[float, Array] | None:
    """Value at which the inverse norm of a state vanishes."""
    few, more = sorted((low, high), key=lambda one: len(one.z))
    largest = more.z[np.argmax(more.z[:, -1])]
    if largest.size < 2 or any(np.abs(largest - z).max() < 0.1 * largest[-1] for z in few.z):
        return None
    state = largest

    def inverse(log: float) -> float:
        nonlocal state
        state = polished(_search(family, math.exp(log), level), state)[0]
        return float(1 / state[-1])

    # From one side alone: beyond it the norm would be negative.
    near = math.log(more.value)
    far = near - (math.log(few.value) - near)
    of_far, of_near = inverse(far), inverse(near)
    for _ in range(_CLOSER):
        end = near + of_near * (near - far) / (of_far - of_near)
        far, of_far, near = near, of_near, near + 0.9 * (end - near)
        of_near = inverse(near)
        if not 0 < of_near < of_far:
            return None
    return math.exp(end), largest


KINDS = (
    ("transcritical", _exchange),
    ("fold", _fold),
    ("transcritical", _meeting),
    ("divergence", _divergence),
)


def transitions(family: Family, low: float, high: float) -> Changes:
    """Folds, exchanges of stability and divergences between two values of a parameter.

    ``family`` has the equations at a value. Values are scanned evenly in the logarithm, twice as
    densely until that shows no other change.

    Raises
    ------
    HdicaError
        If states cannot be looked for, or changes are nearer to each other than is resolved.
    """
    scan: list[_States] = []
    shares = np.arange(VALUES) / (VALUES - 1.0)
    shares[1:-1] += _UNEVEN / VALUES
    for value in low * (high / low) ** shares:
        scan.append(_at(family, float(value), *scan[-1:]))
    for k in (*reversed(range(VALUES - 1)), *range(1, VALUES)):
        # What a search missed is at hand from the states of the values around.
        around = [scan[j] for j in (k - 1, k + 1) if 0 <= j < VALUES]
        if any(one.signature != scan[k].signature for one in around):
            scan[k] = _at(family, scan[k].value, scan[k], *around)
    every = _all_changes(family, scan)
    while len(scan) < MOST_VALUES:
        between = [_at(family, _between(one, other), one, other) for one, other in pairwise(scan)]
        scan = sorted([*scan, *between], key=lambda one: one.value)
        before, every = len(every), _all_changes(family, scan)
        if len(every) == before:
            break
    every = [row for row in every if not _belongs(row, every)]
    every.sort(key=lambda row: -row[0])
    return Changes(
        np.array([row[0] for row in every]),
        np.array([row[1] for row in every]),
        np.array([row[2] for row in every], dtype=np.str_),
        np.array([row[3] for row in every]),
    )


Change = tuple[float, float, str, float]
"""Value, overlap, kind and error."""


def _belongs(row: Change, every: Sequence[Change]) -> bool:
    """Whether a fold is that of two mirror images that meet at an exchange of stability."""
    return (
        row[2] == "fold"
        and row[1] < _TINY
        and any(
            other[2] == "transcritical" and abs(other[0] - row[0]) < 2 * NARROW * row[0]
            for other in every
        )
    )


def _all_changes(family: Family, scan: list[_States]) -> list[Change]:
    """What changes between the values of a scan."""
    narrow = (pair for ends in pairwise(scan) for pair in _intervals(family, *ends))
    every: list[Change] = []
    for row in (row for pair in narrow for row in _changes(family, *pair)):
        # A change is seen again in the next interval where a search missed a state beside it.
        if not any(_same(row, one) for one in every):
            every.append(row)
    return every


def _same(row: Change, other: Change) -> bool:
    """Whether two changes are one: of a kind, at one value within their errors, and one overlap."""
    near = abs(row[0] - other[0]) <= row[3] + other[3] and abs(row[1] - other[1]) < _TINY
    return row[2] == other[2] and near


def _changes(
    family: Family, low: _States, high: _States, doublings: int = _DOUBLINGS
) -> Iterator[Change]:
    """Value, overlap, kind and error of what changes in a narrow interval."""
    near = low.z if len(low.z) > len(high.z) else high.z
    _, _, last = refined(_search(family, low.value), near[0])
    for kind, solve in KINDS:
        fine = solve(family, low, high, last.level)
        if fine is None:
            continue
        value, z = fine
        if kind == "transcritical" and _oscillates(_search(family, value, last.level), z):
            kind = "hopf"
        coarse = solve(family, low, high, last.level - 1) if last.level > FIRST else fine
        gap = value * NARROW if coarse is None else SAFETY * abs(value - coarse[0])
        yield value, 0.0 if abs(z[0]) < _ZERO else float(z[0]), kind, gap + _ROUNDING * value
        return
    # Beside a singular state a search may have missed one that is all but it.
    width = high.value / low.value
    wide = _at(family, low.value / width, low), _at(family, high.value * width, high)
    if doublings and wide[0].signature != wide[1].signature:
        yield from _changes(family, *wide, doublings - 1)
        return
    raise HdicaError(
        f"the steady states change between {low.value:.6g} and {high.value:.6g} in a way that is "
        "no fold, no exchange of stability and no divergence"
    )
