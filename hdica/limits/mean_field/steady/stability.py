"""Stability of a steady state against every small change of the density, not of Q alone.

A perturbation changes Q, hence drift and diffusion, and the multiplier that keeps E x^2 = 1.
Changing the parameters of a generator L by a small amount acts on its steady density P as -L
acts on the change of P, so with f = p/P the linearised Fokker-Planck equation in the modes m of
the atoms (rates mu, weights w) is

    df_m/dt = mu_m (-f_m + W_m dQ - s_m da),    dQ = sum w xi x_m f_m,
    W = xi x d(b/g)/dQ - Psi d(B/g)/dQ,    s = x^2,

where da, a change of h/g, follows from d/dt E x^2 = 0. Its eigenvalues are the zeros of

    F(z) = 1 - R_QW + R_Qs R_sW / (R_ss + 4 c/z),    R_uv = sum w u_m v_m mu_m/(z + mu_m)

(with xi x for the row Q), c = g (1 - E x^2 of the bulk). The term 4 c/z is a condensate: its
x^2 grows as exp(-4 dh t) and takes up what the bulk loses. F has no pole for Re z >= 0 and
F -> 1 far away, so the number of growing modes is the winding of F along the imaginary axis.
F(0) = -dS/dQ: where drift depends on Q alone all eigenvalues are real and its sign decides;
where diffusion does too, growing oscillations are not excluded, and would be counted.

The modes are those of one entry in its steady effective potential. The generator of
dx = -g V'(x) dt + sqrt(2 g) dB, for which exp(-V) is steady, is self-adjoint in L2(exp(-V)); its
ground state is the constant. In psi = exp(-V/2) f it reads

    -g exp(V) d/dx exp(-V) df/dx  ->  g A* A,    A = d/dx + V'/2,

which spectral elements with a boundary at every kink resolve to rounding.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy
from numpy.polynomial import Legendre
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array, Indices
from hdica.ingredients.quadrature import dot
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.steady.closure import Closure, edges, potential, rates_of_change
from hdica.limits.mean_field.steady.confinement import Confinement, confinement
from hdica.process.machine import one_thread

_Row = tuple[Array, Array, Array]
_NODES = 12
_FLAT = 0.1
"""Height above the bottom below which a well is one element, unless phi has a kink there."""
_SAME = 1e-9
_RISE = 6.0
"""Change of V across one element."""


@lru_cache(maxsize=1)
def _gauss() -> tuple[Array, Array, Array]:
    """Points and weights on [-1, 1], and integrals of their Lagrange polynomials from -1."""
    points, weights = scipy.special.roots_legendre(_NODES)
    inverse = np.linalg.inv(np.polynomial.legendre.legvander(points, _NODES - 1))
    basis = [Legendre.basis(j).integ(lbnd=-1)(points) for j in range(_NODES)]
    return points, weights, np.stack(basis, axis=1) @ inverse


def _graded_elements(shape: Confinement, row: _Row, panels: int) -> Array:
    """Ends of elements: at kinks, and at every scale on which the density varies."""
    ends = np.unique(edges(shape, *row, panels)[0][0])
    v = potential(shape, *row, ends[None])[0]
    kinks = np.isin(ends, shape.breaks(float(ends[0]), float(ends[-1])))
    is_end = kinks | (v - v.min() > _FLAT)
    is_end[[0, -1, v.argmin()]] = True
    ends = ends[is_end]
    size = np.maximum(np.abs(ends[1:]), np.abs(ends[:-1]))
    apart = np.diff(ends) > _SAME * np.minimum(size, np.ptp(ends))
    ends = ends[np.append(True, apart)]
    rise = np.abs(np.diff(potential(shape, *row, ends[None])[0]))
    parts = [
        np.linspace(low, high, max(1, int(np.ceil(one / _RISE))), endpoint=False)
        for low, high, one in zip(ends[:-1], ends[1:], rise, strict=True)
    ]
    return np.concatenate([*parts, ends[-1:]])


def _inverse_root(x: Array, mass: Array, half: Array) -> Array:
    """The matrix whose singular values squared are reciprocal rates; points in rows."""
    _, weights, rising = _gauss()
    count, nodes = mass.shape
    whole = mass.sum(axis=1)
    before = np.append(0.0, np.cumsum(whole)[:-1])
    behind = np.append(np.cumsum(whole[::-1])[::-1][1:], 0.0)
    span, inside = half * weights, half[..., None] * rising
    below = np.einsum("ei,eij->ej", mass, inside) + behind[:, None] * span
    above = np.einsum("ei,eij->ej", mass, span[:, None, :] - inside) + before[:, None] * span
    element = np.arange(count)
    later = element[:, None] > element
    blocks = np.where(later[:, None, :, None], above, -below)
    kernel = np.broadcast_to(blocks, (count, nodes, count, nodes)).copy()
    kernel[element, :, element, :] = inside - below[:, None, :]
    root = np.sqrt(mass).ravel()
    flat = kernel.reshape(count * nodes, count * nodes)
    return flat * root[:, None] / root


def graded_modes(
    shape: Confinement, a: float, k: float, tilt: float, panels: int
) -> tuple[Array, Array]:
    """Modes of a density whose rates differ by more than a double holds.

    Rates, increasing, and coefficients of x, x^2 and Psi, shape (3, modes). The generator loses its
    slowest rates in the rounding of the fastest. Its inverse does not: with f' = u and the
    distribution function F of the density p,

        f(x) = integral u(y) {F(y) - [y > x]} dy,

    and rates are the reciprocals of E f^2/E u^2. The kernel has one sign on either side of x, and F
    and 1 - F are summed from their own ends, so that every entry of the matrix is as good as p, and
    the slowest rate, which belongs to its largest singular value, has all digits. Rates R times as
    fast have an error of about 1e-16 sqrt(R).
    """
    row = (np.array([a]), np.array([k]), np.array([tilt]))
    ends = _graded_elements(shape, row, panels)
    points, weights, _ = _gauss()
    half = np.diff(ends)[:, None] / 2
    x = ends[:-1, None] + half * (points + 1)
    v = potential(shape, *row, x.reshape(1, -1))[0].reshape(x.shape)
    mass = half * weights * np.exp(v.min() - v)
    mass /= mass.sum()
    with one_thread():
        vectors, values, _ = np.linalg.svd(_inverse_root(x, mass, half))
    return 1 / values**2, _coefficients(shape, x.ravel(), mass.ravel(), vectors)


def _coefficients(shape: Confinement, x: Array, p: Array, vectors: Array) -> Array:
    """Coefficients <f, mode> of f = x, x^2 and Psi, of masses p at points x: (3, modes)."""
    columns = [x, x**2, shape.potential(x)]
    centred = np.stack([f - np.sum(p * f) for f in columns]) * np.sqrt(p)
    return np.einsum("fi,im->fm", centred, vectors)


DEGREE = 12
PANELS = 14
_GROUND, _RANGE = 1e-6, 1e-11
"""Share of the slowest rate that the ground state, whose rate is 0, may have, and the smallest
share of the fastest one that the slowest may be, before rounding is seen in it."""


class Modes(NamedTuple):
    """Modes of one density; arrays of shape (modes,), by increasing rate, without the constant.

    Relaxation rates in units of the diffusion g, and coefficients <f, mode> of f = x, x^2 and
    Psi(x) under the density.
    """

    rate: Array
    x: Array
    square: Array
    energy: Array


@lru_cache(maxsize=4)
def _lobatto(degree: int) -> tuple[Array, Array, Array]:
    """Gauss-Lobatto-Legendre points, weights and differentiation matrix on [-1, 1]."""
    last = Legendre.basis(degree)
    inner = np.sort(last.deriv().roots().real)
    x = np.concatenate([[-1.0], inner, [1.0]])
    height = last(x)
    weights = 2 / (degree * (degree + 1) * height**2)
    gaps = x[:, None] - x + np.eye(x.size)
    matrix = height[:, None] / height / gaps
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return x, weights, matrix


def _elements(shape: Confinement, row: _Row) -> tuple[Array, Array, Array]:
    """Points (elements, nodes), half widths (elements, 1) and V' there."""
    ends = edges(shape, *row, PANELS)[0][0]
    ends = ends[np.append(True, np.diff(ends) > 1e-9 * np.ptp(ends))]
    t, _, _ = _lobatto(DEGREE)
    half = np.diff(ends)[:, None] / 2
    x = ends[:-1, None] + half * (t + 1)
    # One-sided slopes: an end of an element may be a kink.
    inside = x + half * np.where(t == -1, 1e-9, np.where(t == 1, -1e-9, 0.0))
    a, k, tilt = row
    return x, half, 2 * a * x + k * shape.psi(inside) - tilt


def _is_lost(rate: Array) -> bool:
    """Whether rounding is seen in the slowest of all rates, the ground state's 0 among them."""
    return bool(abs(rate[0]) > _GROUND * rate[1] or rate[1] < _RANGE * rate[-1])


def relaxation_modes(shape: Confinement, a: float, k: float, tilt: float) -> Modes:
    """All modes of the density exp{-a x^2 - k Psi(x) + tilt x}/Z on its spectral elements."""
    row = (np.array([a]), np.array([k]), np.array([tilt]))
    x, half, slope = _elements(shape, row)
    _, weights, matrix = _lobatto(DEGREE)
    count, nodes = x.shape
    raising = matrix / half[..., None] + slope[..., None] / 2 * np.eye(nodes)
    local = np.einsum("eji,ej,ejk->eik", raising, weights * half, raising)
    index = np.arange(count)[:, None] * DEGREE + np.arange(nodes)
    size = count * DEGREE + 1
    stiffness, mass = np.zeros((size, size)), np.zeros(size)
    np.add.at(stiffness, (index[:, :, None], index[:, None, :]), local)
    np.add.at(mass, index, weights * half)
    root = np.sqrt(mass)
    with one_thread():
        rate, vectors = np.linalg.eigh(stiffness / root / root[:, None])
    if _is_lost(rate):
        rate, coefficients = graded_modes(shape, a, k, tilt, PANELS)
        return Modes(rate, *coefficients)
    points = np.empty(size)
    points[index] = x
    v = potential(shape, *row, points[None])[0]
    density = mass * np.exp(v.min() - v)
    density /= density.sum()
    return Modes(rate[1:], *_coefficients(shape, points, density, vectors)[:, 1:])


Complex = NDArray[np.complex128]
_SLOWEST = 240


class Linearisation(NamedTuple):
    """The linearised dynamics, all modes of all atoms in a row; arrays of shape (modes,).

    ``rate`` is mu; ``readout`` w xi x_m, how a mode enters dQ; ``energy`` w s_m, how it enters d E
    x^2; ``drive`` W_m; ``square`` s_m; ``condensate`` c = g (1 - bulk).
    """

    rate: Array
    readout: Array
    energy: Array
    drive: Array
    square: Array
    condensate: float

    def secular(self, z: Complex) -> Complex:
        """F at complex numbers ``z``, shape (...)."""
        filtered = self.rate / (z[..., None] + self.rate)
        on_drive, on_square, on_energy, against = (
            np.sum(filtered * (one * other), axis=-1)
            for one in (self.readout, self.energy)
            for other in (self.drive, self.square)
        )
        if self.condensate > 0:
            with np.errstate(divide="ignore", invalid="ignore"):
                weak = z / (z * against + 4 * self.condensate)
        else:
            weak = 1 / against
        return 1 - on_drive + on_square * on_energy * weak

    def growing(self) -> int:
        """Number of eigenvalues with positive real part, from the winding of F."""
        low, high = 1e-6 * self.rate.min(), 1e4 * self.rate.max()
        if not (np.isfinite(self.rate).all() and low > 0):
            raise HdicaError(
                "the stability of a steady state could not be decided: rates at which its entries "
                "relax are lost in rounding (take a weaker regularizer)"
            )
        size = 400
        while True:
            omega = np.append(0.0, np.geomspace(low, high, size))
            phase = np.angle(self.secular(1j * omega))
            steps = np.angle(np.exp(1j * np.diff(phase)))
            if np.abs(steps).max() < 1.0 or size > 10_000:
                return round(-float(np.sum(steps)) / np.pi)
            size *= 3

    def matrix(self, slowest: Indices) -> Array:
        """The linearised dynamics on some of the modes, shape (kept, kept)."""
        mu, u, e = self.rate[slowest], self.readout[slowest], self.energy[slowest]
        drive, square = self.drive[slowest], self.square[slowest]
        bare = mu[:, None] * (drive[:, None] * u) - np.diag(mu)
        stiff = dot(e * mu, square) + 4 * self.condensate
        multiplier = np.sum(e[:, None] * bare, axis=0) / stiff
        full = bare - (mu * square)[:, None] * multiplier
        if self.condensate == 0:
            # E x^2 is conserved: its eigenvalue 0 is no perturbation that the rule allows.
            full -= 2 * mu.max() * e[:, None] * e / dot(e, e)
        return full

    def rightmost(self) -> complex:
        """The eigenvalue with the largest real part."""
        slowest = np.sort(np.argsort(self.rate, kind="stable")[:_SLOWEST])
        with one_thread():
            values = np.linalg.eigvals(self.matrix(slowest))
        first = complex(values[np.argmax(values.real)])
        return self._polished(complex(first.real, abs(first.imag)))

    def _polished(self, z: complex) -> complex:
        """Newton's method on F with all modes, kept only if it stays where it began."""
        start = z
        for _ in range(20):
            step = 1e-6 * (abs(z) + 1e-3 * float(self.rate.min()))
            low, middle, high = self.secular(np.array([z - step, z, z + step]))
            slope = (high - low) / (2 * step)
            if slope == 0 or not np.isfinite(slope):
                return start
            move = complex(middle / slope)
            z -= move
            if abs(move) < 1e-13 * abs(z):
                break
        near = abs(z - start) < 0.05 * (abs(start) + float(self.rate.min()))
        return z if near else start


def linearise(field: MeanField, state: Closure, i: int) -> Linearisation:
    """Linearisation of the limit about steady state ``i`` of ``state``."""
    xi, weights = field.prior.nodes
    q, g, a, k = (float(v[i]) for v in (state.q, state.g, state.a, state.k))
    pulls, widens = rates_of_change(field)
    g_rate, ratio = float(widens(q)) / g, float(state.ratio[i])
    ratio_rate, k_rate = float(pulls(q)) / g - ratio * g_rate, -k * g_rate
    shape = confinement(field.phi)
    modes = {t: relaxation_modes(shape, a, k, t) for t in dict.fromkeys((ratio * xi).tolist())}
    atoms = [modes[float(t)] for t in ratio * xi]
    rows = []
    for m, v, w in zip(atoms, xi, weights, strict=True):
        drive = ratio_rate * v * m.x - k_rate * m.energy
        rows.append((g * m.rate, w * v * m.x, w * m.square, drive, m.square))
    missing = max(0.0, 1.0 - float(state.bulk[i]))
    columns = (np.concatenate(column) for column in zip(*rows, strict=True))
    rate, readout, energy, drive, square = columns
    return Linearisation(rate, readout, energy, drive, square, g * missing)


def stability(field: MeanField, state: Closure, i: int) -> tuple[bool, float]:
    """Whether no eigenvalue of state ``i`` has a positive real part, and the largest, in 1/t.

    NaN for a stable condensed state, whose condensate coarsens algebraically and not at any rate.
    """
    about = linearise(field, state, i)
    stable = about.growing() == 0
    if stable and bool(state.condensed[i]):
        return True, float("nan")
    return stable, float(about.rightmost().real)
