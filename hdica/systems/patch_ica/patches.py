"""Training patches, whitened, what FastICA finds in them, and what other patches show of it.

Every held-out loss is a mean of G less the same mean along random directions, averaged over these:
below 0 where the projection has, for G = log cosh or -exp(-s^2/2), heavier tails and a sharper peak
than along a random direction. The paper ("Reduce and Conquer", Appendix A.1) says neither whether
projections of held-out patches have their variance made 1 again, nor in which space the random
directions lie; there are four ways, each with a name of its own.

A Gabor function fitted to a filter shows how much of it is a wave under a Gaussian envelope:
g(x, y) = exp(-a^2/(2 sigma_a^2) - b^2/(2 sigma_b^2)) (p cos(2 pi f a) + q sin(2 pi f a)), where a
and b are the distances from the middle along the wave and across it (Daugman 1985, J. Opt. Soc. Am.
A 2, 1160; Jones and Palmer 1987, J. Neurophysiol. 58, 1233).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.fastica.iteration import best, components, fastica, unit_rows
from hdica.finite.fastica.whitening import Blocks, Whitened, sample_moments, whitened
from hdica.finite.random.streams import Stream
from hdica.ingredients.contrasts import Contrast
from hdica.ingredients.plain import Array
from hdica.inputs.images import Picture, kept_blocks, patch_blocks
from hdica.process.machine import one_thread
from hdica.systems.method import arrays
from hdica.systems.patch_ica.system import PatchICA, contrast, count, rank

IN_MEMORY = 2 * 10**8  # numbers of training patches, n D, of which more are streamed from disk


@dataclass(frozen=True, eq=False)
class Patches:
    """Where patches come from."""

    images: Sequence[Picture]  # grey or in colour
    width: int  # pixels of a side
    stream: Stream  # random numbers by part: ``"train"`` and ``"test"`` choose patches

    def blocks(self, part: str, count: int) -> Iterator[Array]:
        """The first ``count`` patches of a part, in blocks of shape (block, D)."""
        return patch_blocks(self.images, self.width, count, self.stream(part))

    @contextmanager
    def passes(self, part: str, count: int) -> Iterator[Blocks]:
        """Passes over the same patches, in memory or, if there are too many, on disk."""
        entries = self.width**2 * int(np.prod(self.images[0].pixels.shape[2:]))
        if count * entries > IN_MEMORY:
            with kept_blocks(self.blocks(part, count), count, entries) as stored:
                yield lambda: (np.array(block) for block in stored)
        else:
            blocks = list(self.blocks(part, count))
            yield lambda: blocks


@dataclass(frozen=True, eq=False)
class Training:
    """Training patches after whitening."""

    white: Whitened  # their mean and leading principal components
    scores: Array  # the whitened patches y, shape (n, d)
    passes: Blocks  # over the patches themselves

    def filters(self, w: Array) -> Array:
        """Filters on centred patches whose projections are w.y, shape (k, D), of w (k, d)."""
        with one_thread():
            return np.ascontiguousarray((self.white.unmixing @ w.T).T)

    def features(self, w: Array) -> Array:
        """What a unit of w.y adds to a patch, U Lambda^(1/2) w, shape (k, D), of w (k, d)."""
        with one_thread():
            mixing = self.white.directions * np.sqrt(self.white.variances)
            return np.ascontiguousarray((mixing @ w.T).T)

    def whitening_filters(self, v: Array) -> Array | None:
        """Filters of directions v, shape (k, D), in all D whitened coordinates.

        C = L L', and L^-1 (x - mean) is white: its coordinates are turned against those of the
        eigenvectors, which no uniform direction knows. None where C has no inverse.
        """
        import scipy.linalg

        with one_thread():
            try:
                root = np.linalg.cholesky(sample_moments(self.passes).covariance)
            except np.linalg.LinAlgError:
                return None
            filters = scipy.linalg.solve_triangular(root, v.T, lower=True, trans="T")
        return np.ascontiguousarray(filters.T) if np.all(np.isfinite(filters)) else None


@contextmanager
def trained(patches: Patches, system: PatchICA) -> Iterator[Training]:
    """Training patches, whitened; refused if they vary in fewer directions than are looked for."""
    with patches.passes("train", count(system)) as passes:
        white = whitened(passes, rank(system))
        yield Training(white, white.all_scores(passes), passes)


def directions(rng: np.random.Generator, many: int, size: int) -> Array:
    """Uniform directions, shape (many, size)."""
    return unit_rows(rng.standard_normal((many, size)), size)


def standardised(s: Array) -> Array:
    """Projections, shape (count, k), with mean 0 and variance 1 each over the count."""
    centred = s - np.mean(s, axis=0)
    spread = np.sqrt(np.mean(centred * centred, axis=0))
    return centred / spread


def judged(patches: Patches, data: Training, system: PatchICA) -> dict[str, Array]:
    """FastICA on the training patches, with every iterate of its best start judged.

    Losses have shape (iterations + 1,), from the start on: means of G over held-out patches, or
    the training patches, less those of random directions of the space in which FastICA runs, or
    of all D whitened dimensions (``ambient``), NaN where the covariance of the training patches
    has no inverse. Projections have mean 0 and variance 1 over the patches, or are as they are
    (``raw``). ``filter`` is the last one, shape (D,).
    """
    d, size = data.scores.shape[1], data.white.mean.size
    law, many, stream = contrast(system), system.directions, patches.stream
    starts = directions(stream("start"), system.restarts, d)
    with one_thread():
        fit = fastica(
            data.scores, starts, law, tolerance=system.tolerance, most=system.iterations, path=True
        )
    j = best(fit)
    assert fit.path is not None
    path = fit.path[j][: int(fit.iterations[j]) + 1]
    around = directions(stream("directions"), many, d)
    ambient = directions(stream("ambient"), many, size) if d < size else None
    wide = None if ambient is None else data.whitening_filters(ambient)
    filters = [data.filters(path), data.filters(around), *([] if wide is None else [wide])]
    rows = np.concatenate(filters)
    with one_thread():
        blocks = patches.blocks("test", system.test)
        s = np.concatenate([(block - data.white.mean) @ rows.T for block in blocks])
        scores = data.scores @ np.concatenate([path, around]).T
    each = standardised(s), s, standardised(scores)
    test, raw, train = (_means(law, values, len(path), many) for values in each)
    # In the whole space its directions and those of the subspace are the same.
    blind = d < size and wide is None
    nothing = np.full(len(path), np.nan)
    return arrays(
        test_loss=test[0] - test[1],
        raw_loss=raw[0] - raw[1],
        test_loss_ambient=nothing if blind else test[0] - test[-1],
        raw_loss_ambient=nothing if blind else raw[0] - raw[-1],
        train_loss=train[0] - train[1],
        excess_kurtosis=np.mean(standardised(s[:, : len(path)]) ** 4, axis=0) - 3,
        filter=data.filters(path[-1:])[0],
        iterations=fit.iterations[j],
        converged=fit.converged[j],
    )


def _means(contrast: Contrast, s: Array, iterates: int, many: int) -> list[Array]:
    """Mean of G of each iterate, and over each set of ``many`` random directions."""
    mean = np.mean(contrast.value(s), axis=0)
    ends = range(iterates, mean.size, many)
    return [mean[:iterates], *(np.mean(mean[first : first + many]) for first in ends)]


def bank(patches: Patches, data: Training, system: PatchICA) -> dict[str, Array]:
    """All d components by FastICA with symmetric decorrelation, of which the first are kept.

    They come in the order of abs(score), the mean of G over the training patches less E_N G, the
    largest first. ``filters`` and ``features``, columns of the mixing matrix, have shape (k, D);
    ``random_filters`` and ``random_features`` are of as many random directions of the same space.
    """
    d, stream = data.scores.shape[1], patches.stream
    starts, law = directions(stream("starts"), d, d), contrast(system)
    with one_thread():
        fit = components(
            data.scores, starts, law, symmetric=True, tolerance=system.tolerance,
            most=system.iterations,
        )  # fmt: skip
    order = np.argsort(-np.abs(fit.score), kind="stable")[: system.kept]
    w, chance = fit.w[order], directions(stream("chance"), len(order), d)
    return arrays(
        score=fit.score[order],
        filters=data.filters(w),
        features=data.features(w),
        random_filters=data.filters(chance),
        random_features=data.features(chance),
        iterations=fit.iterations.max(),
        converged=fit.converged.all(),
    )


WIDTHS = (0.12, 0.3)  # of envelopes at which fits begin, over the width of the picture
PEAKS = 2  # of the spectrum, at which fits begin
ROUGH, TOLERANCE, EVALUATIONS = 1e-2, 1e-6, 60  # of fits from all starts; of the one from the best
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Gabor:
    """A Gabor function fitted to a picture."""

    residual: float  # |picture - g|/|picture| in Euclidean norm: 0 for a Gabor function
    frequency: float  # f, in cycles a pixel, from 0 to 1/2
    orientation: float  # angle of the wave's direction to the rows' direction, in [0, pi)
    pixels: Array  # g, of the shape of the picture


def fitted_gabor(picture: Array) -> Gabor:
    """The Gabor function nearest to a picture, among what several starts lead to.

    The amplitudes p and q enter linearly and are eliminated (Golub and Pereyra 1973, SIAM J. Numer.
    Anal. 10, 413), for each channel of its own; middle, direction, frequency and both widths are
    fitted by Levenberg and Marquardt's method with bounds. The picture has shape (rows, columns) or
    (rows, columns, channels).

    Refused if it is constant 0, not finite, or no picture.
    """
    pixels = np.asarray(picture, dtype=float)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    size = np.sqrt(np.sum(pixels * pixels)) if pixels.ndim == 3 else math.nan
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
    residual = np.sqrt(np.sum(rest * rest))
    made = (size * (flat - rest)).reshape(np.shape(picture))
    return Gabor(residual, best[5], best[2] % math.pi, made)


def _fitted(
    start: Array, where: Array, flat: Array, shape: tuple[int, ...], tolerance: float
) -> tuple[float, Array]:
    """Half of the squared remainder, and where it is least."""
    from scipy.optimize import least_squares

    # Bounds of middle (row, column), direction, logarithms of both widths, and frequency.
    width, most = shape[0], math.log(4.0 * max(shape[:2]))
    low = np.array([-0.5, -0.5, -2 * math.pi, math.log(0.3), math.log(0.3), 0.0])
    high = np.array([width - 0.5, shape[1] - 0.5, 3 * math.pi, most, most, 0.5])
    scale = np.array([0.1 * width, 0.1 * width, 0.3, 0.3, 0.3, 0.3 / width])
    fit = least_squares(
        _remainder, np.clip(start, low + 1e-6, high - 1e-6), bounds=(low, high),
        args=(where, flat), xtol=tolerance, ftol=tolerance, gtol=tolerance,
        max_nfev=EVALUATIONS, x_scale=scale,
    )  # fmt: skip
    return fit.cost, fit.x


def residuals(pictures: Array) -> tuple[Array, Array, Array]:
    """Relative residual, frequency and orientation of every picture, each of shape (pictures,)."""
    fits = [fitted_gabor(picture) for picture in pictures]
    rows = [(fit.residual, fit.frequency, fit.orientation) for fit in fits]
    residual, frequency, orientation = np.array(rows, dtype=float).reshape(-1, 3).T
    return residual, frequency, orientation


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
    """Where fits begin: at peaks of the spectrum and where the energy is, with some widths.

    That is the place where the energy, smoothed over an eighth of the width, is largest.
    """
    from scipy.ndimage import gaussian_filter

    width, energy = min(pixels.shape[:2]), np.sum(pixels * pixels, axis=2)
    smooth = gaussian_filter(energy, min(energy.shape) / 8, mode="constant")
    middle = np.array(np.unravel_index(np.argmax(smooth), smooth.shape), dtype=float)
    sizes = [math.log(max(share * width, 0.6)) for share in WIDTHS]
    peaks = _peaks(pixels)
    return [np.array([*middle, turn, size, size, f]) for f, turn in peaks for size in sizes]


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
