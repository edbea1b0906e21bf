"""Bins of a run's histogram are correlated by the noise that all entries share, as theory says."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import hdica
from hdica.ingredients.save import Save
from hdica.limits.bands.solve import spreads
from hdica.limits.bands.sweep import Cells, Target, histogram, means, overlap, penalty, support
from hdica.systems.projected import density
from hdica.systems.projected.density_values import saved_values
from hdica.systems.sparse_pca.system import mean_field, noise
from tests.limits.bands.test_bands import OIST

N, RUNS, TIME = 2000, 400, 3.0
SYSTEM = OIST.model_copy(update={"prior": {"sparse": 0.2}})
X = [-1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
GROUPS = 2
Array = NDArray[np.float64]


def covariance(edges: Array) -> Array:
    """N times the covariance of the shares of each group in bins, (groups, bins, bins).

    By polarisation: what lies in one of two bins is an indicator, too.
    """
    prior = mean_field(SYSTEM).prior
    none = np.empty(0)
    bins = histogram(TIME, prior, edges[:-1], edges[1:], none)
    width, count = np.diff(edges), edges.size - 1
    first, second = np.triu_indices(count)
    either = np.zeros((count, first.size))
    either[first, np.arange(first.size)] = either[second, np.arange(first.size)] = 1.0
    shares = prior.group_weights

    def values(cells: Cells) -> Array:
        own = bins.values(cells).reshape(-1, GROUPS, count) * width
        return np.ascontiguousarray((own @ either).reshape(-1, GROUPS * first.size))

    def squares(cells: Cells, mass: Array) -> Array:
        scale = np.repeat(1 / shares, first.size)
        return np.asarray((cells.weights * mass) @ values(cells) * scale)

    (found,) = spreads(
        mean_field(SYSTEM), noise(SYSTEM), [Target(TIME, GROUPS * first.size, values, squares)]
    )
    sums = np.empty((GROUPS, count, count))
    sums[:, first, second] = sums[:, second, first] = found.value.reshape(GROUPS, -1)
    alone = np.diagonal(sums, axis1=1, axis2=2)
    both = (sums - alone[:, :, None] - alone[:, None, :]) / 2
    return np.where(np.eye(count, dtype=bool), sums, both)


@pytest.fixture(scope="module")
def shares() -> tuple[Array, Array, Array]:
    """Edges, shares of every run in bins given the group, and those of the limit."""
    asked = {"times": [TIME], "x": X}
    runs = hdica.simulate(SYSTEM, n=N, seeds=RUNS, method="vector", **asked)
    limit = hdica.limit(SYSTEM, method="pde", snapshots=[TIME], **asked)
    edges = np.asarray(Save(x=tuple(X)).edges)
    law = np.diff(limit.cdf.isel(snapshot=0).values, axis=-1)
    return edges, runs.density.isel(snapshot=0).values * np.diff(edges), law


@pytest.mark.deep
@pytest.mark.parametrize("group", range(GROUPS))
def test_a_chi_square_of_a_histogram_takes_the_bins_as_they_are(
    shares: tuple[Array, Array, Array], group: int
) -> None:
    edges, seen, law = shares
    apart = math.sqrt(N) * (seen[:, group] - law[group])
    theirs = covariance(edges)[group]
    found = np.einsum("si,ij,sj->s", apart, np.linalg.inv(theirs), apart)
    size = law.shape[1]
    error = math.sqrt(2 * size / RUNS)
    assert abs(found.mean() - size) < 4 * error
    assert stats.kstest(found, stats.chi2(size).cdf).pvalue > 1e-3
    share = mean_field(SYSTEM).prior.group_weights[group]
    independent = (np.diag(law[group]) - np.outer(law[group], law[group])) / share
    wrong = np.einsum("si,ij,sj->s", apart, np.linalg.inv(independent), apart)
    assert wrong.mean() - size > 5 * error


@pytest.mark.deep
def test_twice_the_nodes_of_a_prior_change_bands_and_densities_by_little():
    """As little as the manual says, of variances and of densities."""
    system = hdica.SparsePCA(
        omega=1.0, prior="gaussian", tau=0.5, regularizer="0.2*sign(x)", start={"overlap": 0.6}
    )
    usual, edges, end = mean_field(system), np.linspace(-2, 2, 9), 0.1
    save = Save(snapshots=(end,), x=tuple(edges))
    spread, laws = [], []
    for field in (usual, replace(usual, prior=usual.prior.with_nodes(48))):
        law = histogram(end, field.prior, edges[:-1], edges[1:], edges)
        several = [means(end, [overlap, penalty(field.phi)]), support(end, field.prior, [0.5]), law]
        spread.append([one.value for one in spreads(field, noise(system), several)])
        path = density.path_of(field, system, np.array([0.0, end]), save, density.COARSE)
        laws.append(saved_values(field, path, save)["density"])
    for one, other, most in zip(*spread, (1e-6, 1e-6, 1e-5), strict=True):
        assert 0 < np.nanmax(np.abs(one - other)) < most * np.nanmax(np.abs(other))
    assert 0 < np.abs(laws[0] - laws[1]).max() < 1e-6


def test_a_group_of_a_normal_prior_has_the_entries_that_its_nodes_say():
    """Nodes without a weight have no atom: counted with the others they shifted the groups."""
    field = mean_field(
        hdica.SparsePCA(omega=1.0, prior="gaussian", tau=0.5, start={"overlap": 0.6})
    )
    edges = np.array([-20.0, 0.0, 20.0])
    (found,) = spreads(
        field,
        lambda q, tau: np.zeros((q.size, 3, 3)),
        [histogram(0.0, field.prior, edges[:-1], edges[1:], edges)],
    )
    # Of n entries binomially many are positive, with share 1/2.
    assert found.value[-1] == pytest.approx(1.0, rel=1e-9)
