"""Hebbian ICA near the optimal fixed point R* = I: eigensystem (36) and annealing (18)-(21).

Rattray 2002, section 4.1 and appendix B. With m = min(K, M) and xi_i = sigma_i <s phi - phi'> for
i <= m, the Jacobian (34) couples only R_ij and R_ji. Rows i > M of more projections than sources
decay at xi_j / 2, a case missing in (36).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source
from hdica.limits.averages.double_average import features
from hdica.limits.averages.expectations import average, averages, gain_at, power_at

Array = NDArray[np.float64]
_BELOW = 1e-7


@dataclass(frozen=True)
class Rates:
    """What the asymptotic dynamics needs of phi and the sources; m = min(K, M)."""

    # sigma_i <s_i phi(s_i) - phi'(s_i)>, shape (m,); all positive where R* is stable, (14).
    xi: Array
    power: Array  # <phi(s_i)^2>, shape (m,)
    # D(R*) of dR/dt = mu L + mu^2 D, shape (K, M): -<phi^2>/2 on the diagonal. Off it the product
    # of two <phi>, which is zero, and not in the paper, if phi is odd and the sources symmetric.
    loss: Array
    error: Array  # the larger of the relative errors of xi and of <phi^2>, shape (m,)

    @property
    def shape(self) -> tuple[int, int]:
        """Projections K and sources M."""
        return self.loss.shape[0], self.loss.shape[1]


def source_rate(phi: Formula, source: Source) -> tuple[float, float, float]:
    """<s phi(s) - phi'(s)>, <phi(s)^2>, and the larger of their relative errors."""
    if phi.coefficients is None:
        # Jumps belong to phi': just below one the projection smooths them, and a corner of the
        # law of s at a jump is smoothed by as much as sqrt(1 - R^2).
        steep = features(phi).steep
        at = 1.0 - _BELOW if steep else 1.0
        (gain, off), (power, other) = gain_at(phi, source, at), power_at(phi, source, at)
        error = max(off / max(abs(gain), 1e-300), _relative(other, power))
        return gain, power, error + (math.sqrt(2 * _BELOW) if steep else 0.0)
    series = averages(phi, source)
    gain, power = float(series.gain(1.0)), float(series.power(1.0))
    error = max(series.gain_error / max(abs(gain), 1e-300), _relative(series.power_error, power))
    return gain, power, error


def _relative(error: float, power: float) -> float:
    """Relative error of <phi^2>, and its own where phi vanishes on the source: x^3 - x at +-1."""
    return error / power if power > error else error


def rates(sigma: Sequence[float], phi: Formula, sources: Sequence[Source]) -> Rates:
    """The rates of the optimal fixed point y_i = s_i, R* = I: projection i finds source i."""
    signs = np.asarray(sigma, dtype=float)
    found = min(signs.size, len(sources))
    known = np.array([source_rate(phi, source) for source in sources[:found]])
    level = [average(lambda c, u: phi.value(u), phi, one, 1.0)[0] for one in sources[:found]]
    # A projection beyond the sources is normal, whatever the source it is asked for.
    free = average(lambda c, u: phi.value(u), phi, sources[0], 0.0)[0]
    turned = signs * np.array([*level, *[free] * (signs.size - found)])
    loss = np.zeros((signs.size, len(sources)))
    loss[:, :found] = -0.5 * turned[:, None] * turned[:found]
    loss[range(found), range(found)] = -0.5 * known[:, 1]
    return Rates(signs[:found] * known[:, 0], known[:, 1], loss, known[:, 2])


@dataclass(frozen=True)
class Eigensystem:
    """Eigenvalues and eigenmatrices of (34)."""

    values: Array  # lambda_kl, shape (K, M)
    matrices: Array  # of lambda_kl at [:, :, k, l], shape (K, M, K, M): V_ijkl of (35)


def eigensystem(known: Rates) -> Eigensystem:
    """(36) with the rows i > M of K > M corrected.

    Where xi_i + xi_j = 0 for two found sources, which is no stable state, the two eigenmatrices
    of that pair coincide: (34) has no complete set there.
    """
    xi, found = known.xi, known.xi.size
    values = np.array([_eigenvalues(known, i) for i in range(known.shape[0])])
    matrices = np.zeros((*known.shape, *known.shape))
    for i, j in np.ndindex(*known.shape):
        matrices[i, j, i, j] = 1.0
        if i < j < found:
            matrices[j, i, i, j] = -1.0
        elif j < i < found:
            matrices[i, j, i, j], matrices[j, i, i, j] = xi[i], xi[j]
    return Eigensystem(values, matrices)


def _eigenvalues(known: Rates, i: int) -> Array:
    """Those of projection i, one a source."""
    xi, found = known.xi, known.xi.size
    own = xi[i] if i < found else 0.0
    values = np.zeros(known.shape[1])
    for j in range(known.shape[1]):
        if i == j:
            values[j] = -2 * own
        elif j >= found or i >= found:
            # One of the two is zero.
            values[j] = -(own + (xi[j] if j < found else 0.0) / 2)
        else:
            values[j] = -(own + xi[j]) / (2 if i < j else 1)
    return values


def critical_mu0(known: Rates) -> float:
    """Smallest mu0 of mu = mu0/t with which R - R* decays as 1/t: -1/lambda_max."""
    if not np.all(known.xi > 0):
        raise HdicaError(
            f"xi = {known.xi.tolist()} is not allowed (all above zero: the optimal fixed point "
            "is unstable else, choose the other sign in sigma)"
        )
    return -1.0 / float(max(np.max(_eigenvalues(known, i)) for i in range(known.shape[0])))


def annealed_limit(known: Rates, mu0: float) -> Array:
    """(21): the limit of t (R - R*) for mu = mu0/t above the critical mu0, shape (K, M).

    On the diagonal -mu0^2 <phi^2> / (4 mu0 xi_i - 2); off it zero if phi is odd and the sources
    are symmetric.
    """
    system = eigensystem(known)
    modes = mu0**2 * _in_modes(system, known.loss) / (-mu0 * system.values.ravel() - 1)
    return _from_modes(system, modes[None])[0]


def _in_modes(system: Eigensystem, r: Array) -> Array:
    """Coefficients of a matrix (K, M) in the eigenmatrices, shape (KM,)."""
    basis = system.matrices.reshape(r.size, r.size)
    return np.asarray(np.linalg.solve(basis, r.ravel()))


def _from_modes(system: Eigensystem, modes: Array) -> Array:
    """Matrices, shape (T, K, M), of coefficients of shape (T, KM)."""
    size = system.values.size
    basis = system.matrices.reshape(size, size)
    return np.sum(modes[:, None] * basis, axis=2).reshape(-1, *system.values.shape)


def annealed_decay(known: Rates, mu0: float, start: float, u0: Array, times: Array) -> Array:
    """(19)-(20): R - R*, (T, K, M), for mu = mu0/t from ``start`` on, to first order in R - R*.

    ``u0`` is R - R* at the time ``start`` > 0; ``mu0`` may be below the critical one.
    """
    from scipy.special import exprel

    u, at = np.asarray(u0, dtype=float), np.asarray(times, dtype=float)[:, None]
    system = eigensystem(known)
    power = -mu0 * system.values.ravel()
    log = np.log(at / start)
    # X of (20) is mu0^2 log(t/tau_0)/t where mu0 lambda = -1, the limit of its quotient.
    x = mu0**2 / at * log * exprel(-(power - 1) * log)
    modes = np.exp(-power * log) * _in_modes(system, u) + x * _in_modes(system, known.loss)
    return _from_modes(system, modes)
