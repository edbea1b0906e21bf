"""Bands cover 68 and 95 % of 400 runs each, in six cases; those without the common noise do not."""

import math

import numpy as np
import pytest

import hdica
from hdica.limits.bands.solve import spreads
from hdica.limits.bands.sweep import means, overlap
from hdica.systems.online_ica.system import beyond, mean_field
from tests.limits.bands.test_bands import ICA, OIST, SIZE

SEEDS = 400
BOUNDS = {1.0: 0.6827, 1.96: 0.95}


def _outside(values: np.ndarray, center: np.ndarray, band: np.ndarray) -> float:
    """By how many standard errors the worst share of runs in a band is off."""
    away = np.abs(values - center) / band
    worst = 0.0
    for z, share in BOUNDS.items():
        # Besides chance, what n leaves of a share: an hundredth.
        off = np.abs((away <= z).mean(axis=0) - share) - 0.01
        worst = max(worst, float(off.max()) / math.sqrt(share * (1 - share) / SEEDS))
    return worst


@pytest.mark.deep
@pytest.mark.parametrize(
    ("tau", "source", "n"), [(0.05, "uniform", 1000), (0.02, "rademacher", 20_000)]
)
def test_bands_of_the_overlap_cover_about_mean_and_bias(tau: float, source: str, n: int) -> None:
    """Case 1: phi = 0, where the mean of runs is known to order 1/n, too."""
    ica = hdica.OnlineICA(tau=tau, source=source, start={"overlap": 0.8, "exact": True})
    times = [5.0, 20.0, 60.0]
    limit = hdica.limit(ica, times=times, bands=True, bias=True)
    runs = hdica.simulate(ica, n=n, times=times, seeds=SEEDS, method="chain")
    values, band = runs.Q.transpose("seed", "time").values, limit.Q_sd.values / math.sqrt(n)
    center = (limit.Q + limit.Q_bias / n).values
    assert _outside(values, center, band) < 3.5
    assert _outside(values, center, 1.25 * band) > 4
    assert _outside(values, center, 0.8 * band) > 4


@pytest.mark.deep
@pytest.mark.parametrize(("system", "n", "times"), [(ICA, 1000, [5.0]), (OIST, 2000, [1.0, 3.0])])
def test_bands_of_densities_cover(system: object, n: int, times: list[float]) -> None:
    """Cases 2, 3, 5 and 6: Q and E abs(x) of either rule, both rates, and bins of the density."""
    kept = {"thresholds": [1.0], "functionals": SIZE, "x": [0.2, 0.6, 1.0], "snapshots": times}
    limit = hdica.limit(system, times=times, bands=True, method="pde", **kept)
    runs = hdica.simulate(system, n=n, times=times, seeds=SEEDS, method="vector", **kept)
    for name in ("Q", "size", "tpr", "fpr", "density"):
        axis = "time" if name in ("Q", "size") else "snapshot"
        values = runs[name].transpose("seed", axis, ...).values
        center, band = values.mean(axis=0), limit[f"{name}_sd"].values / math.sqrt(n)
        assert _outside(values, center, band) < 3.5, name
        assert _outside(values, center, 0.75 * band) > 4, name


@pytest.mark.deep
def test_bands_of_a_matrix_of_overlaps_cover() -> None:
    """Case 4: two projections of two sources, all four overlaps."""
    system = hdica.HebbianICA(
        mu=0.05, sources=["uniform", "rademacher"], projections=2, nonlinearity="x**3",
        start={"overlap": [[0.6, 0.2], [-0.1, 0.7]]},
    )  # fmt: skip
    n, times = 4000, [5.0, 20.0]
    limit = hdica.limit(system, times=times, bands=True)
    runs = hdica.simulate(system, n=n, times=times, seeds=SEEDS, method="chain")
    values = runs.R.transpose("seed", "time", ...).values
    band = limit.R_sd.transpose("time", ...).values / math.sqrt(n)
    assert _outside(values, values.mean(axis=0), band) < 3.5
    assert _outside(values, values.mean(axis=0), 0.75 * band) > 4


@pytest.mark.deep
def test_without_the_common_noise_bands_are_wrong() -> None:
    ica = hdica.OnlineICA(tau=0.1, source="rademacher", start={"overlap": 0.7})
    n, seeds, target = 1000, 20_000, [means(5.0, [overlap])]
    (own,) = spreads(mean_field(ica), lambda q, tau: np.zeros((q.size, 3, 3)), target)
    (both,) = spreads(mean_field(ica), beyond(ica).noise, target)
    runs = hdica.simulate(ica, n=n, times=[5.0], seeds=seeds, method="chain").Q.values[:, 0]
    error = both.value[0] * math.sqrt(2 / seeds)
    assert abs(n * runs.var(ddof=1) - both.value[0]) < 4 * error + 10 / n * both.value[0]
    assert abs(n * runs.var(ddof=1) - own.value[0]) > 6 * error
