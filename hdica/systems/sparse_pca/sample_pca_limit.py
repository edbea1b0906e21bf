"""The limit of sample PCA: the leading eigenvector of the covariance of t n samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdica.errors import HdicaError


def sample_pca_overlap(omega: float, t: ArrayLike) -> NDArray[np.float64]:
    """Overlap |Q| of the feature with the leading eigenvector of the sample covariance.

    For samples of covariance I + omega xi xi'/n, |xi|^2 = n, and k = t n of them, as n goes to
    infinity at fixed t,

        Q^2 = (1 - 1/(t omega^2)) / (1 + 1/(t omega))   if t omega^2 > 1, else 0.

    Transition: Baik, Ben Arous and Péché 2005, Ann. Probab. 33; eigenvector: Paul 2007, Stat.
    Sinica 17, and Benaych-Georges and Nadakuditi 2011, Adv. Math. 227.
    """
    times = np.asarray(t, dtype=float)
    if not 0 <= omega < np.inf:
        raise HdicaError(f"omega = {omega!r} is not allowed (a finite number >= 0)")
    if not np.all((times >= 0) & np.isfinite(times)):
        raise HdicaError(f"t = {times.tolist()} is not allowed (finite numbers >= 0)")
    above = np.maximum(times * omega**2 - 1, 0.0)
    # Below the transition the numerator is 0; the maximum avoids 0/0 at t omega (omega, t) = 0.
    return np.asarray(np.sqrt(above / np.maximum(times * omega**2 + omega, 1e-300)))
