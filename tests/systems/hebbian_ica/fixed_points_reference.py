"""Fixed points of (17) by plain Newton from random starts, with averages of its own.

Shares nothing with hdica: averages from the raw moments of the sources and of the noise
z ~ N(0, I - R R'), derivatives by a complex step, images by trying every sign and exchange.
"""

import itertools
import math

import numpy as np

SYMMETRIC = {"uniform", "rademacher", "laplace"}


def moment(source, p):
    """E s^p of a standardised source: a name, or the degrees of freedom of a chi-square law."""
    if isinstance(source, int):
        # Of (g - a)/sqrt a, g a gamma variable of shape a = k/2.
        a = source / 2
        gamma = [math.prod(a + i for i in range(n)) for n in range(p + 1)]
        return sum(math.comb(p, n) * gamma[n] * (-a) ** (p - n) for n in range(p + 1)) / a ** (
            p / 2
        )
    if p % 2:
        return 0.0
    laws = {"uniform": 3 ** (p / 2) / (p + 1), "rademacher": 1.0}
    return laws[source] if source in laws else math.factorial(p) / 2 ** (p / 2)


def _joint(r, i, k, moments, size):
    """E y_i^p y_k^q for p, q < size at a batch of R, shape (size, size, B); i may be k."""
    rest = [1.0 - np.sum(r[:, a] * r[:, b], axis=1) for a, b in ((i, i), (k, k))]
    cross = (i == k) * 1.0 - np.sum(r[:, i] * r[:, k], axis=1)
    out = np.zeros((size, size, r.shape[0]), dtype=r.dtype)
    for p in range(size):
        for q in range(size):
            for c in range(min(p, q) + 1):
                if (p - c) % 2 == 0 and (q - c) % 2 == 0:
                    # Isserlis: c pairs across, the others at home.
                    ways = math.comb(p, c) * math.comb(q, c) * math.factorial(c)
                    ways *= _pairings(p - c) * _pairings(q - c)
                    home = rest[0] ** ((p - c) // 2) * rest[1] ** ((q - c) // 2)
                    out[p, q] += ways * cross**c * home
    for j in range(r.shape[2]):
        out = _plus_source(out, r[:, i, j], r[:, k, j], moments[j])
    return out


def _pairings(n):
    return math.prod(range(n - 1, 0, -2))


def _plus_source(old, a, b, moments):
    size = old.shape[0]
    powers = [[one**p for p in range(size)] for one in (a, b)]
    new = np.zeros_like(old)
    for u, v in itertools.product(range(size), repeat=2):
        if moments[u + v] != 0.0:
            term = moments[u + v] * powers[0][u] * powers[1][v]
            for p in range(u, size):
                for q in range(v, size):
                    new[p, q] += math.comb(p, u) * math.comb(q, v) * term * old[p - u, q - v]
    return new


def _with_source(r, i, j, moments, size):
    """E y_i^p s_j for p < size."""
    rest = 1.0 - np.sum(r[:, i] ** 2, axis=1)
    out = np.zeros((size, r.shape[0]), dtype=r.dtype)
    for p in range(0, size, 2):
        out[p] = _pairings(p) * rest ** (p // 2)
    for other in range(r.shape[2]):
        new = np.zeros_like(out)
        for u in range(size):
            m = moments[other][u + (other == j)]
            for p in range(u, size):
                new[p] += math.comb(p, u) * m * r[:, i, other] ** u * out[p - u]
        out = new
    return out


def rate(r, sigma, phi, sources, mu):
    """(17) over mu at a batch of R, shape (B, K, M), real or complex."""
    phi, (_, k, m) = np.asarray(phi, dtype=float), r.shape
    size = max(phi.size, 2)
    c = np.zeros(size)
    c[: phi.size] = phi
    moments = [[moment(s, p) for p in range(2 * size + 1)] for s in sources]
    phi_s, phi_y, phi_phi = (np.zeros((r.shape[0], k, n), dtype=r.dtype) for n in (m, k, k))
    for i in range(k):
        for j in range(m):
            phi_s[:, i, j] = np.tensordot(c, _with_source(r, i, j, moments, size), 1)
        for other in range(i, k):
            joint = _joint(r, i, other, moments, size)
            phi_y[:, i, other] = np.tensordot(c, joint[:, 1], 1)
            phi_y[:, other, i] = np.tensordot(c, joint[1], 1)
            both = np.tensordot(c, np.tensordot(c, joint, 1), 1)
            phi_phi[:, i, other] = phi_phi[:, other, i] = both
    s = np.diag(np.asarray(sigma, dtype=float))
    drag = s @ phi_y + phi_y.swapaxes(1, 2) @ s + mu * s @ phi_phi @ s
    return s @ phi_s - drag @ r / 2


def newton(system, starts, iterations=40):
    """Allowed zeros of ``system`` = (sigma, phi, sources, mu) that the starts lead to."""
    r, n = starts.copy(), starts[0].size
    ends, running = np.full(len(r), np.inf), np.arange(len(r))
    for _ in range(iterations):
        now = r[running]
        steps = np.broadcast_to(now, (n, *now.shape)) + 0j
        for a, index in enumerate(np.ndindex(now.shape[1:])):
            steps[(a, slice(None), *index)] += 1e-30j
        values = rate(steps.reshape(-1, *now.shape[1:]), *system).reshape(n, len(now), n)
        slope = np.moveaxis(values.imag, 0, 2) / 1e-30 + 1e-15 * np.eye(n)
        change = np.linalg.solve(slope, values[0].real[:, :, None]).reshape(now.shape)
        length = np.sqrt(np.sum(change**2, axis=(1, 2)))
        r[running] -= change * np.minimum(1.0, 0.7 / np.maximum(length, 1e-300))[:, None, None]
        ends[running] = length
        running = running[(length > 1e-13) & (np.abs(r[running]).max(axis=(1, 2)) < 3.0)]
        if not running.size:
            break
    allowed = np.linalg.norm(r, 2, axis=(1, 2)) <= 1 + 1e-9
    return r[(ends < 1e-10) & allowed]


def random_starts(shape, count, seed):
    """Uniform in the cube, half of them scaled at random, and no longer than is allowed."""
    rng = np.random.default_rng(seed)
    r = rng.uniform(-1, 1, size=(count, *shape))
    r[::2] *= rng.random((len(r[::2]), 1, 1))
    return r / np.maximum(1.0, np.linalg.norm(r, 2, axis=(1, 2)))[:, None, None]


def images(system, states):
    """Every image of the states under the signs and exchanges that leave the system as it is."""
    sigma, phi, sources, _ = system
    odd = not np.any(np.asarray(phi)[::2])
    row_signs = list(itertools.product(*[(1, -1) if odd else (1,)] * len(sigma)))
    ways = [(1, -1) if s in SYMMETRIC else (1,) for s in sources]
    column_signs = list(itertools.product(*ways))
    rows, columns = (
        [o for o in itertools.permutations(range(len(of))) if [of[i] for i in o] == list(of)]
        for of in (sigma, sources)
    )
    found = []
    for row, sign, column, other in itertools.product(rows, row_signs, columns, column_signs):
        turned = states[:, list(row)][:, :, list(column)]
        found.append(turned * np.array(sign)[:, None] * np.array(other))
    every = np.concatenate(found)
    _, first = np.unique(np.round(every / 1e-5) + 0.0, axis=0, return_index=True)
    return every[np.sort(first)]
