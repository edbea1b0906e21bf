"""FastICA of scikit-learn: all components by its class, and one by the lines of its loop.

scikit-learn extracts as many components as there are dimensions and has no function for one; the
loop here is that of ``sklearn.decomposition._fastica._ica_def`` for the first component, with its
contrasts.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FUN = {"exp": "exp", "logcosh": "logcosh", "kurtosis": "cube"}


def first_components(y: Array, starts: Array, contrast: str, iterations: int) -> Array:
    """One component from every start, one start after another, shape (k, d)."""
    from sklearn.decomposition import _fastica as theirs

    g = {"exp": theirs._exp, "logcosh": theirs._logcosh, "kurtosis": theirs._cube}[contrast]
    x, found = y.T, np.empty_like(starts)
    for j, start in enumerate(starts):
        w = start / np.sqrt((start**2).sum())
        for _ in range(iterations):
            gwtx, g_wtx = g(np.dot(w.T, x), {})
            w1 = (x * gwtx).mean(axis=1) - g_wtx.mean() * w
            w1 /= np.sqrt((w1**2).sum())
            lim = np.abs(np.abs((w1 * w).sum()) - 1)
            w = w1
            if lim < 0:
                break
        found[j] = w
    return found


def all_components(y: Array, starts: Array, contrast: str, how: str, iterations: int) -> Array:
    """All components, shape (d, d), after so many iterations (of each one, by deflation).

    The tolerance is 0, which nothing is below: the last direction that deflation leaves is itself
    again after one iteration, in some roundings to the last bit, and its sign that of the count.
    """
    from sklearn.decomposition import FastICA

    algorithm = "parallel" if how == "symmetric" else "deflation"
    ica = FastICA(
        algorithm=algorithm, whiten=False, fun=FUN[contrast], w_init=starts, tol=0.0,
        max_iter=iterations,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        return np.asarray(ica.fit(y).components_)
