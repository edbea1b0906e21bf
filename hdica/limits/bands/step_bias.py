"""What one step does to the mean of a function of the entries at order 1/n^2.

With F = tau G the push, y = xi c/sqrt(n) + a, psi = - B phi and s_1 = -(F u + F^2/2 + <x psi>), a
step x' = N (x + F y/sqrt(n) + psi/n) back to |x|^2 = n moves x by

    F y/n^(1/2) + (psi + s_1 x)/n + s_1 F y/n^(3/2) + (s_2 x + s_1 psi)/n^2 + odd terms of mean 0,
    s_2 = - [F^2 (c^2 + e^2 - 2) + 2 F B_psi + <psi^2>]/2 + 3 s_1^2/2,    B_psi = y . psi/sqrt(n).

An entry of y is b/sqrt(n) with b = xi c + w e, w = (x - Q xi)/sqrt(1 - Q^2), and a normal one of
variance 1 - (xi^2 + w^2)/n. So the mean of <h> gains 1/n^2 times

    D1[h] = < h' (E[s_1 F b] + x E s_2 + psi E s_1)
            + h''/2 (E[F^2 b^2] - (xi^2 + w^2) E F^2 + 2 psi E[F b] + 2 x E[s_1 F b]
                     + E (psi + s_1 x)^2 + 2 E[s_1 F^2])
            + h'''/2 (E[F^3 b] + psi E F^2 + x E[s_1 F^2]) + h'''' E F^4/8 >.

It is 0 for h = x^2, and for h = xi x that of :mod:`hdica.limits.overlap.drift`. Where phi
acts on what the sample has moved already, psi stands at x + F y/sqrt(n), which adds

    < (psi' h') E[F b] + (psi'' h' + 2 psi' h'') E F^2/2 >

and puts (x psi)' for psi in B_psi, and <(x psi)''> E F^2 beside it. Derivatives beyond h'' are by
parts (:class:`Pieces`).

A step with the mean over m samples has the sums over them of F y, F u, F^2, ... in these averages,
F of the size tau/m, and in s_2 also F_a F_b (c_a c_b + e_a e_b) of every two of them.

Across a kink of a regularizer the density, and the second derivative of what a sweep carries, have
slopes or values that jump. A product with a derivative of either is by parts, where a jump counts
with the mean of the other factor's two sides: the noise of a step is even, and sees both alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hdica.ingredients.plain import Array
from hdica.limits.averages.expectations import Products
from hdica.limits.bands.sweep import Cells

Edge = tuple[int, int]


class Pieces(NamedTuple):
    """Runs of cells of one atom without a kink inside, and the pairs of runs that meet at one."""

    x: Array
    runs: tuple[slice, ...]
    joints: tuple[tuple[Edge, Edge, float], ...]
    weights: Array
    """Of each joint, the weight of its atom."""

    def slope(self, values: Array) -> Array:
        """The derivative in x along the first axis, within each run."""
        slope = np.empty_like(values)
        for run in self.runs:
            slope[run] = np.gradient(values[run], self.x[run], axis=0, edge_order=2)
        return slope

    def slopes(self, values: Array) -> tuple[Array, Array]:
        """The first and the second derivative."""
        first = self.slope(values)
        return first, self.slope(first)

    def sides(self, values: Array) -> tuple[Array, Array]:
        """Values at every joint by continuation from its left and its right."""
        left = [self._continued(values, *end, at) for end, _, at in self.joints]
        right = [self._continued(values, *end, at) for _, end, at in self.joints]
        return np.array(left), np.array(right)

    def _continued(self, values: Array, run: int, edge: int, at: float) -> Array:
        """A parabola through the three cells next to an end of a run, at the kink there."""
        cells = np.arange(self.runs[run].start, self.runs[run].stop)
        near = cells[:3] if edge == 0 else cells[-3:]
        x = self.x[near]
        total = np.zeros(values.shape[1:])
        for j, k in enumerate(near):
            others = np.delete(x, j)
            total = total + values[k] * np.prod((at - others) / (x[j] - others))
        return total


def pieces_of(cells: Cells, kinks: tuple[float, ...]) -> Pieces:
    """The runs of cells between kinks, each of three cells at least."""
    runs: list[slice] = []
    joints: list[tuple[Edge, Edge, float]] = []
    weights: list[float] = []
    ends = np.flatnonzero(np.diff(cells.atom)) + 1
    starts = [0, *ends.tolist(), cells.atom.size]
    for first, last in pairwise(starts):
        at = [first]
        for kink in kinks:
            k = first + int(np.searchsorted(cells.low[first:last], kink - 1e-12))
            if at[-1] + 3 <= k <= last - 3:
                at.append(k)
                run = len(runs) + len(at) - 2
                joints.append(((run, -1), (run + 1, 0), kink))
                weights.append(float(cells.weights[first]))
        runs += [slice(i, j) for i, j in zip(at, [*at[1:], last], strict=True)]
    return Pieces(cells.x, tuple(runs), tuple(joints), np.array(weights))


_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Place:
    """A density on cells, and the averages of a step there.

    ``psi`` is - B phi at the centres, ``moved`` says that it acts on what the sample has moved.
    """

    cells: Cells
    pieces: Pieces
    mass: Array
    q: float
    tau: float
    products: Products
    psi: Array
    moved: bool
    batch: int = 1

    @cached_property
    def across(self) -> tuple[float, Array]:
        """sqrt(1 - Q^2), and w."""
        s = np.sqrt(max((1 - self.q) * (1 + self.q), _LEAST))
        return s, (self.cells.x - self.q * self.cells.xi) / s

    def mean(self, values: Array) -> Array:
        """The mean over entries, of columns."""
        weighed = self.cells.weights * self.mass
        return np.tensordot(weighed, values, (0, 0))


class _Moments(NamedTuple):
    """Averages over a step of F and s_1 with what the entry of y is made of."""

    b: Array
    bend: Array
    b_rise: float
    square: float
    first: float
    along: Array
    size: float
    first_square: float
    third: Array
    power: float
    fourth: float
    cross: tuple[float, float]


def _of_one(at: Place, t: float, r: float) -> _Moments:
    """Those of one sample of the size ``t``; w and e through u = Q c + e sqrt(1 - Q^2)."""
    c, u, e, gg, ggcc, ggcu, gguu, ggee, gggc, gggu, gggg = map(float, at.products)
    q, xi, (s, w) = at.q, at.cells.xi, at.across
    ggce, ggeu, ggge = (ggcu - q * ggcc) / s, (gguu - q * ggcu) / s, (gggu - q * gggc) / s
    s1_c = -(t**2 * ggcu + t**3 * gggc / 2 + r * t * c)
    s1_e = -(t**2 * ggeu + t**3 * ggge / 2 + r * t * e)
    square, fu = t**2 * gg, t * u
    return _Moments(
        b=t * (xi * c + w * e),
        bend=t**2 * (xi**2 * ggcc + 2 * xi * w * ggce + w**2 * ggee) - (xi**2 + w**2) * square,
        b_rise=t * e / s,
        square=square,
        first=-(fu + square / 2 + r),
        along=xi * s1_c + w * s1_e,
        size=t**2 * (ggcc + ggee - 2 * gg),
        first_square=t**2 * gguu + t**3 * gggu + t**4 * gggg / 4 + 2 * r * (fu + square / 2) + r**2,
        third=t**3 * (xi * gggc + w * ggge),
        power=-(t**3 * gggu + t**4 * gggg / 2 + r * square),
        fourth=t**4 * gggg,
        cross=(t * c, t * e),
    )


def _moments(at: Place) -> _Moments:
    """Those of all samples of a step, two by two where a product has two of them."""
    m, r = at.batch, float(at.mean(at.cells.x * at.psi))
    single = _of_one(at, at.tau / m, r)
    if m == 1:
        return single
    pairs, longer = m * (m - 1), -(single.first + r)
    met = single.cross[0] ** 2 + single.cross[1] ** 2
    return _Moments(
        b=m * single.b,
        bend=m * single.bend + pairs * single.b**2,
        b_rise=m * single.b_rise,
        square=m * single.square,
        first=-(m * longer + r),
        along=m * single.along - pairs * longer * single.b,
        size=m * single.size + pairs * met,
        first_square=m * (single.first_square - r**2) + pairs * longer**2 + r**2,
        third=m * single.third + pairs * single.square * single.b,
        power=m * single.power - pairs * longer * single.square,
        fourth=m * single.fourth + pairs * single.square**2,
        cross=(m * single.cross[0], m * single.cross[1]),
    )


class _Density(NamedTuple):
    """The density of a place, its two derivatives within pieces, and the jump of its slope."""

    at: Place
    value: Array
    rise: Array
    bend: Array

    def total(self, values: Array) -> Array:
        """Sum over atoms of the integral of columns."""
        width = self.at.cells.high - self.at.cells.low
        return np.tensordot(self.at.cells.weights * width, values, (0, 0))

    def jumps(self, factor: Array, values: Array) -> Array:
        """What jumps of ``factor`` give, times the mean of the columns' two sides."""
        pieces = self.at.pieces
        if not pieces.joints:
            return np.zeros(values.shape[1:])
        (low, high), (left, right) = pieces.sides(factor), pieces.sides(values)
        return np.tensordot(pieces.weights * (high - low), (left + right) / 2, (0, 0))

    def twice(self, values: Array) -> Array:
        """Integral of p'' times columns, as a distribution."""
        return self.total(self.bend[:, None] * values) + self.jumps(self.rise, values)

    def by_parts(self, factor: Array, values: Array) -> Array:
        """Integral of - (factor p)' times columns, as a distribution."""
        product = factor * self.value
        slope = self.at.pieces.slope(product)
        return -self.total(slope[:, None] * values) - self.jumps(product, values)


def _longer(at: Place, p: _Density, m: _Moments) -> float:
    """E s_2."""
    psi, sides = at.psi, (at.cells.xi, at.across[1])
    if at.moved:
        radial = at.cells.x * psi
        met = [float(p.by_parts(f, radial[:, None])[0]) for f in sides]
        more = m.square * float(p.twice(radial[:, None])[0])
    else:
        met, more = [float(at.mean(f * psi)) for f in sides], 0.0
    crossed = 2 * (m.cross[0] * met[0] + m.cross[1] * met[1])
    return -(m.size + crossed + more + float(at.mean(psi**2))) / 2 + 1.5 * m.first_square


def step_bias(at: Place, values: Array) -> Array:
    """D1 of columns of functions on the cells, shape (functions,)."""
    value = at.mass / (at.cells.high - at.cells.low)
    p = _Density(at, value, *at.pieces.slopes(value))
    m, x, psi = _moments(at), at.cells.x, at.psi
    first, second = at.pieces.slopes(values)
    pulled = m.along + x * _longer(at, p, m) + psi * m.first
    bent = m.bend + 2 * x * m.along + psi**2 + 2 * psi * x * m.first
    bent = bent + x**2 * m.first_square + 2 * m.power
    skew = m.third + x * m.power
    if not at.moved:
        bent, skew = bent + 2 * psi * m.b, skew + psi * m.square
    total = at.mean(pulled[:, None] * first) + at.mean(bent[:, None] * second) / 2
    total = total + p.by_parts(skew, second) / 2 + m.fourth / 8 * p.twice(second)
    if at.moved:
        total = total + m.square / 2 * p.twice(psi[:, None] * first)
        pushed = p.rise * m.b + p.value * m.b_rise
        total = total - p.total((pushed * psi)[:, None] * first)
    return total
