"""Gabor functions fitted to filters: how much of a filter is a wave under a Gaussian envelope.

g(x, y) = exp(-a^2/(2 sigma_a^2) - b^2/(2 sigma_b^2)) (p cos(2 pi f a) + q sin(2 pi f a)), where a
and b are the distances from the middle along the wave and across it (Daugman 1985, J. Opt. Soc. Am.
A 2, 1160; Jones and Palmer 1987, J. Neurophysiol. 58, 1233).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError

Array = NDArray[np.float64]
WIDTHS = (0.12, 0.3)
"""Of the envelopes at which a fit begins, over the width of the picture."""
PEAKS = 2
"""Peaks of the spectrum at which a fit begins."""
ROUGH, TOLERANCE = 1e-2, 1e-6
"""Of the fits from all starts, and of the last one from the best of them."""
EVALUATIONS = 60
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Gabor:
    """A Gabor function fitted to a picture.

    Parameters
    ----------
    residual
        |picture - g|/|picture| in Euclidean norm: 0 for a Gabor function.
    frequency
        f, in cycles a pixel, from 0 to 1/2.
    orientation
        Angle of the wave's direction to the rows' direction, in [0, pi).
    pixels
        g, of the shape of the picture.
    """

    residual: float
    frequency: float
    orientation: float
    pixels: Array


def fitted_gabor(picture: Array) -> Gabor:
    """The Gabor function nearest to a picture, among what several starts lead to.

    The amplitudes p and q enter linearly and are eliminated (Golub and Pereyra 1973, SIAM J. Numer.
    Anal. 10, 413), for each channel of its own; middle, direction, frequency and both widths are
    fitted by Levenberg and Marquardt's method with bounds.

    Parameters
    ----------
    picture
        Shape (rows, columns) or (rows, columns, channels).

    Raises
    ------
    HdicaError
        If it is constant 0, not finite, or no picture.
    """
    pixels = np.asarray(picture, dtype=float)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    size = float(np.sqrt(np.sum(pixels * pixels))) if pixels.ndim == 3 else math.nan
    if not 0 < size < math.inf:
        raise HdicaError(
            f"a picture of shape {np.shape(picture)} and size {size:g} is not allowed (rows by "
            "columns, finite and not zero)"
        )
    flat = np.ascontiguousarray(pixels.reshape(-1, pixels.shape[2])) / size
    where = np.indices(pixels.shape[:2]).reshape(2, -1).astype(float)
    # From everywhere roughly, and on from where that leads to most.
    rough = [_fitted(start, where, flat, pixels.shape, ROUGH) for start in _starts(pixels / size)]
    best = _fitted(min(rough, key=lambda one: one[0])[1], where, flat, pixels.shape, TOLERANCE)[1]
    rest = _remainder(best, where, flat).reshape(flat.shape)
    residual = float(np.sqrt(np.sum(rest * rest)))
    made = (size * (flat - rest)).reshape(np.shape(picture))
    return Gabor(residual, float(best[5]), float(best[2] % math.pi), made)


def _fitted(
    start: Array, where: Array, flat: Array, shape: tuple[int, ...], tolerance: float
) -> tuple[float, Array]:
    """Half of the squared remainder, and where it is least."""
    from scipy.optimize import least_squares

    low, high = _bounds(shape[0], shape[1])
    fit = least_squares(
        _remainder, np.clip(start, low + 1e-6, high - 1e-6), bounds=(low, high),
        args=(where, flat), xtol=tolerance, ftol=tolerance, gtol=tolerance,
        max_nfev=EVALUATIONS, x_scale=_scale(shape[0]),
    )  # fmt: skip
    return float(fit.cost), np.asarray(fit.x)


def residuals(pictures: Array) -> tuple[Array, Array, Array]:
    """Relative residual, frequency and orientation of every picture, each of shape (pictures,)."""
    fits = [fitted_gabor(picture) for picture in pictures]
    rows = [(fit.residual, fit.frequency, fit.orientation) for fit in fits]
    residual, frequency, orientation = np.array(rows, dtype=float).reshape(-1, 3).T
    return residual, frequency, orientation


def _bounds(high: int, wide: int) -> tuple[Array, Array]:
    """Of middle (row, column), direction, logarithms of both widths, and frequency."""
    most = math.log(4.0 * max(high, wide))
    low = [-0.5, -0.5, -2 * math.pi, math.log(0.3), math.log(0.3), 0.0]
    top = [high - 0.5, wide - 0.5, 3 * math.pi, most, most, 0.5]
    return np.array(low), np.array(top)


def _scale(width: int) -> Array:
    return np.array([0.1 * width, 0.1 * width, 0.3, 0.3, 0.3, 0.3 / width])


def _remainder(at: Array, where: Array, flat: Array) -> Array:
    """What the best amplitudes leave of the pixels, shape (pixels * channels,)."""
    row, column = where[0] - at[0], where[1] - at[1]
    cosine, sine = math.cos(at[2]), math.sin(at[2])
    along, across = cosine * row + sine * column, cosine * column - sine * row
    envelope = np.exp(-0.5 * ((along * math.exp(-at[3])) ** 2 + (across * math.exp(-at[4])) ** 2))
    phase = 2 * math.pi * at[5] * along
    waves = np.stack([envelope * np.cos(phase), envelope * np.sin(phase)])
    gram = np.einsum("ip,jp->ij", waves, waves)
    # Without frequency there is no sine, and nothing for it to explain.
    gram[[0, 1], [0, 1]] += _TINY * (gram[0, 0] + gram[1, 1]) + 1e-300
    right = np.einsum("ip,pc->ic", waves, flat)
    determinant = gram[0, 0] * gram[1, 1] - gram[0, 1] ** 2
    p = (gram[1, 1] * right[0] - gram[0, 1] * right[1]) / determinant
    q = (gram[0, 0] * right[1] - gram[0, 1] * right[0]) / determinant
    return (flat - waves[0][:, None] * p - waves[1][:, None] * q).ravel()


def _starts(pixels: Array) -> list[Array]:
    """Where fits begin: at peaks of the spectrum and where the energy is, with some widths."""
    width = float(min(pixels.shape[:2]))
    middle = _middle(pixels)
    starts = []
    for frequency, direction in _peaks(pixels):
        for share in WIDTHS:
            size = math.log(max(share * width, 0.6))
            starts.append(np.array([*middle, direction, size, size, frequency]))
    return starts


def _middle(pixels: Array) -> Array:
    """Where the energy, smoothed over an eighth of the width, is largest."""
    from scipy.ndimage import gaussian_filter

    energy = np.sum(pixels * pixels, axis=2)
    smooth = gaussian_filter(energy, min(energy.shape) / 8, mode="constant")
    return np.array(np.unravel_index(int(np.argmax(smooth)), smooth.shape), dtype=float)


def _peaks(pixels: Array) -> list[tuple[float, float]]:
    """Frequency and direction of the largest local maxima of the spectrum."""
    from scipy.ndimage import maximum_filter

    shape = tuple(2 * n for n in pixels.shape[:2])
    power = np.sum(np.abs(np.fft.fft2(pixels, s=shape, axes=(0, 1))) ** 2, axis=2)
    local = np.where(power == maximum_filter(power, 3, mode="wrap"), power, -1.0)
    rows, columns = (np.fft.fftfreq(n) for n in shape)
    at_row, at_column = np.meshgrid(rows, columns, indexing="ij")
    half = (at_row > 0) | ((at_row == 0) & (at_column >= 0))  # the other half mirrors it
    order = np.argsort(-np.where(half, local, -1.0), axis=None, kind="stable")[:PEAKS]
    peaks = []
    for row, column in zip(at_row.ravel()[order], at_column.ravel()[order], strict=True):
        peaks.append((min(math.hypot(row, column), 0.5), math.atan2(column, row)))
    return peaks
