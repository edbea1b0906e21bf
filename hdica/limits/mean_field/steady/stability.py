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
where diffusion does too, growing oscillations are not excluded, and would be found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.steady.closure import Closure, rates_of_change
from hdica.limits.mean_field.steady.confinement import confinement
from hdica.limits.mean_field.steady.modes import Modes, relaxation_modes
from hdica.process.machine import one_thread

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
_KEPT = 240


@dataclass(frozen=True, eq=False)
class Linearisation:
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
        on_drive = np.sum(filtered * (self.readout * self.drive), axis=-1)
        on_square = np.sum(filtered * (self.readout * self.square), axis=-1)
        held = np.sum(filtered * (self.energy * self.drive), axis=-1)
        against = np.sum(filtered * (self.energy * self.square), axis=-1)
        if self.condensate > 0:
            with np.errstate(divide="ignore", invalid="ignore"):
                weak = z / (z * against + 4 * self.condensate)
        else:
            weak = 1 / against
        return np.asarray(1 - on_drive + on_square * held * weak)

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
            omega = np.concatenate([[0.0], np.geomspace(low, high, size)])
            phase = np.angle(self.secular(1j * omega))
            steps = np.angle(np.exp(1j * np.diff(phase)))
            if np.abs(steps).max() < 1.0 or size > 10_000:
                return round(-float(np.sum(steps)) / np.pi)
            size *= 3

    def matrix(self, kept: NDArray[np.int64]) -> Array:
        """The linearised dynamics on some of the modes, shape (kept, kept)."""
        mu, u, e = self.rate[kept], self.readout[kept], self.energy[kept]
        drive, square = self.drive[kept], self.square[kept]
        bare = mu[:, None] * (drive[:, None] * u) - np.diag(mu)
        stiff = float(np.sum(e * mu * square)) + 4 * self.condensate
        multiplier = np.sum(e[:, None] * bare, axis=0) / stiff
        full = bare - (mu * square)[:, None] * multiplier
        if self.condensate == 0:
            # E x^2 is conserved: its eigenvalue 0 is no perturbation that the rule allows.
            full -= 2 * mu.max() * e[:, None] * e / float(np.sum(e * e))
        return np.asarray(full)

    def rightmost(self) -> complex:
        """The eigenvalue with the largest real part."""
        kept = np.sort(np.argsort(self.rate, kind="stable")[:_KEPT])
        with one_thread():
            values = np.linalg.eigvals(self.matrix(kept))
        first = complex(values[np.argmax(values.real)])
        return self._polished(complex(first.real, abs(first.imag)))

    def _polished(self, z: complex) -> complex:
        """Newton's method on F with all modes, kept only if it stays where it began."""
        start = z
        for _ in range(20):
            step = 1e-6 * (abs(z) + 1e-3 * float(self.rate.min()))
            low, here, high = self.secular(np.array([z - step, z, z + step]))
            slope = (high - low) / (2 * step)
            if slope == 0 or not np.isfinite(slope):
                return start
            move = complex(here / slope)
            z -= move
            if abs(move) < 1e-13 * abs(z):
                break
        near = abs(z - start) < 0.05 * (abs(start) + float(self.rate.min()))
        return z if near else start


def linearise(field: MeanField, state: Closure, i: int) -> Linearisation:
    """Linearisation of the limit about steady state ``i`` of ``state``."""
    xi, weights = field.prior.nodes.points, field.prior.nodes.weights
    q, g, a, k = (float(v[i]) for v in (state.q, state.g, state.a, state.k))
    pulls, widens = rates_of_change(field)
    g_rate = float(widens(q)) / g
    ratio = float(state.ratio[i])
    ratio_rate, k_rate = float(pulls(q)) / g - ratio * g_rate, -k * g_rate
    shape = confinement(field.phi)
    known: dict[float, Modes] = {}
    for tilt in ratio * xi:
        if float(tilt) not in known:
            known[float(tilt)] = relaxation_modes(shape, a, k, float(tilt))
    atoms = [known[float(t)] for t in ratio * xi]
    missing = max(0.0, 1.0 - float(state.bulk[i]))
    return Linearisation(
        rate=np.concatenate([g * m.rate for m in atoms]),
        readout=np.concatenate([w * v * m.x for m, v, w in zip(atoms, xi, weights, strict=True)]),
        energy=np.concatenate([w * m.square for m, w in zip(atoms, weights, strict=True)]),
        drive=np.concatenate(
            [ratio_rate * v * m.x - k_rate * m.energy for m, v in zip(atoms, xi, strict=True)]
        ),
        square=np.concatenate([m.square for m in atoms]),
        condensate=g * missing,
    )


def stability(field: MeanField, state: Closure, i: int) -> tuple[bool, float]:
    """Whether no eigenvalue of state ``i`` has a positive real part, and the largest, in 1/t.

    NaN for a stable condensed state, whose condensate coarsens algebraically and not at any rate.
    """
    about = linearise(field, state, i)
    stable = about.growing() == 0
    if stable and bool(state.condensed[i]):
        return True, float("nan")
    return stable, float(about.rightmost().real)
