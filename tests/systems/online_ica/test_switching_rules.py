"""Rules that switch: chains against plain NumPy, and the density of MCP against all coordinates."""

import numpy as np
from scipy import stats

import hdica

N, SEEDS, END = 40, 600, 3.0
CUT = "where(x > 0.3, x**2, -1 if x < -0.7 else x)"


def _cut(u):
    return np.where(u > 0.3, u * u, np.where(u < -0.7, -1.0, u))


def _plain(f, tau, q0, seed):
    """The rule (2) of Wang and Lu 2017, step by step on all coordinates, with phi = 0."""
    rng = np.random.default_rng(seed)
    xi, side = np.ones(N), rng.normal(size=(SEEDS, N))
    side -= side.mean(axis=1, keepdims=True)
    side *= np.sqrt(N) / np.linalg.norm(side, axis=1, keepdims=True)
    x = q0 * xi + np.sqrt(1 - q0**2) * side
    for _ in range(int(END * N)):
        c = rng.uniform(-np.sqrt(3), np.sqrt(3), size=(SEEDS, 1))
        a = rng.normal(size=(SEEDS, N))
        a -= a.mean(axis=1, keepdims=True)
        y = xi * c / np.sqrt(N) + a
        u = np.sum(x * y, axis=1, keepdims=True) / np.sqrt(N)
        x = x - tau / np.sqrt(N) * f(u) * y
        x *= np.sqrt(N) / np.linalg.norm(x, axis=1, keepdims=True)
    return x.mean(axis=1)


def test_a_chain_that_switches_has_the_law_of_plain_numpy():
    system = hdica.OnlineICA(tau=0.3, nonlinearity=CUT, start={"overlap": 0.6, "exact": True})
    found = hdica.simulate(system, n=N, times=[0.0, END], seeds=SEEDS, method="chain").Q[:, -1]
    plain = _plain(_cut, 0.3, 0.6, 1)
    assert stats.ks_2samp(found, plain).pvalue > 1e-3
    error = np.hypot(float(found.std()), plain.std()) / np.sqrt(SEEDS)
    assert abs(float(found.mean()) - plain.mean()) < 4 * error
    # Without its switches it is another rule, and the test sees that.
    assert stats.ks_2samp(found, _plain(lambda u: u, 0.3, 0.6, 1)).pvalue < 1e-6


def test_the_density_of_an_mcp_regularizer_is_that_of_all_coordinates():
    kept = {
        "tau": 0.05,
        "prior": {"sparse": 0.25},
        "start": {"overlap": 0.7, "exact": True},
        "constants": {"l": 2.0, "g": 0.6},
    }
    times, n, seeds = [0.0, 2.0, 5.0], 1500, 12
    mcp = "where(abs(x) < g*l, l*sign(x) - x/g, 0)"
    system = hdica.OnlineICA(regularizer=mcp, **kept)
    limit = hdica.limit(system, times=times)
    found = hdica.simulate(system, times=times, n=n, seeds=seeds, method="vector")
    lasso = hdica.limit(hdica.OnlineICA(regularizer="l*sign(x)", **kept), times=times)
    assert float(limit.Q_error.max()) < 1e-4
    for name in ("Q", "R"):
        mean, error = found[name].mean("seed"), found[name].std("seed", ddof=1) / np.sqrt(seeds)
        # Next to the standard error a difference of order 1/n.
        allowed = 4 * error + 3.0 / n
        assert np.all(np.abs(mean - limit[name])[1:] < allowed[1:]), name
    # Soft thresholding, MCP without its switch, is another limit.
    assert np.all(np.abs(mean - lasso["R"])[1:] > 20 * allowed[1:])
