"""What one sample does to the mean of a function of the entries, by moments of three averages.

Over a step x~ = x + n^-1/2 F y, y = xi c/sqrt(n) + a, back to |x|^2 = n, the mean <h> moves by
zeta/n with

    zeta = F (A + c <h' xi>) - (u F + F^2/2) <h' x> + (F^2/2) <h''>,

A normal, of variance <h'^2> - <h' xi>^2 for a orthogonal to xi, and with the covariance
w = (<h' x> - Q <h' xi>)/sqrt(1 - Q^2) with the entry e of a along x. So n Var<h> gains

    Var zeta = <F^2> <h'^2> + (alpha, beta, gamma) N (alpha, beta, gamma)'

per unit of time, with alpha = <h' xi>, beta = <h' x>, gamma = <h''>: noise of each entry's own, and
noise that all entries share. The second is as large as the first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdica.limits.averages.products import Products

Array = NDArray[np.float64]
_LEAST = 1e-12


def _covariance(p: Products, size: Array) -> Array:
    """Covariance of F c, F u and F^2 with F = size G, shape (..., 3, 3)."""
    powers = (1, 1, 2)
    means = (p.c, p.u, p.gg)
    products = ((p.ggcc, p.ggcu, p.gggc), (p.ggcu, p.gguu, p.gggu), (p.gggc, p.gggu, p.gggg))
    found = np.empty((*np.shape(size), 3, 3))
    for i in range(3):
        for j in range(3):
            scale = size ** (powers[i] + powers[j])
            found[..., i, j] = scale * (products[i][j] - means[i] * means[j])
    return found


def common_noise(p: Products, q: Array, tau: Array, batch: int = 1) -> Array:
    """N of the noise that all entries share, shape (T, 3, 3), for step sizes tau of shape (T,).

    A step with the mean over a batch moves as m steps of size tau/m with one sample.
    """
    q, size = np.asarray(q, dtype=float), np.asarray(tau, dtype=float) / batch
    rest = np.maximum((1 - q) * (1 + q), _LEAST)
    # How F c, F u and F^2 enter, by alpha, beta and gamma: shape (T, 3, 3).
    enters = np.zeros((*q.shape, 3, 3))
    enters[..., 0, 0], enters[..., 0, 1] = 1 + q * q / rest, -q / rest
    enters[..., 1, 0], enters[..., 1, 1] = -q / rest, 1 / rest - 1
    enters[..., 2, 1], enters[..., 2, 2] = -0.5, 0.5
    shared = np.einsum("...ki,...kl,...lj->...ij", enters, _covariance(p, size), enters)
    # What is along xi and x is no noise of each entry's own.
    along = np.zeros_like(enters)
    along[..., 0, 0], along[..., 1, 1] = 1 + q * q / rest, 1 / rest
    along[..., 0, 1] = along[..., 1, 0] = -q / rest
    power = size**2 * p.gg
    return np.asarray(batch * (shared - power[..., None, None] * along))
