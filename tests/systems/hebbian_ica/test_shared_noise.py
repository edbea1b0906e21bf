"""Noise that points of Hebbian ICA share: each keeps its law, differences lose their noise."""

import numpy as np
import pytest
from scipy import stats

import hdica
from hdica.ingredients.save import NOTHING
from hdica.systems.system import methods_of
from tests.systems.hebbian_ica.cases import hebbian

TIMES = np.array([0.0, 20.0])
N, SEEDS, LEVEL = 30, 400, 1e-3
NEAR, FAR = (hebbian(mu=mu, start={"overlap": 0.7}) for mu in (0.04, 0.044))
PAIR = hebbian(
    sources=["uniform", "laplace"], projections=2, sigma=[-1, 1], mu=0.02, start="random"
)


def runs(name, noise, system, seeds=SEEDS):
    method = methods_of("HebbianICA", noise)[name]
    found = method.run_all([(system, seed) for seed in range(seeds)], TIMES, N, NOTHING)
    assert not any(one.diverged for one in found)
    return np.array([one.values["R"][-1, 0, 0] for one in found])


@pytest.mark.deep
@pytest.mark.parametrize("name", ["vector", "chain"])
def test_each_point_keeps_its_law_and_differences_are_far_less_noisy(name):
    own, shared = (
        {one.mu: runs(name, noise, one) for one in (NEAR, FAR)} for noise in ("own", "shared")
    )
    for mu in (NEAR.mu, FAR.mu):
        assert stats.ks_2samp(own[mu], shared[mu]).pvalue > LEVEL
        assert not np.any(own[mu] == shared[mu])
    # Negative control: the test does see a law that is another one.
    assert stats.ks_2samp(shared[NEAR.mu], runs(name, "shared", hebbian(mu=0.04))).pvalue < LEVEL
    spread = [np.var(r[NEAR.mu] - r[FAR.mu], ddof=1) for r in (own, shared)]
    # The logarithm of a ratio of two variances of 400 runs is known to 0.1 or better.
    assert spread[1] < spread[0] / 20
    error = [np.sqrt(one / SEEDS) for one in spread]
    difference = [float(np.mean(r[NEAR.mu] - r[FAR.mu])) for r in (own, shared)]
    assert abs(difference[0] - difference[1]) < 4 * np.hypot(*error)


@pytest.mark.parametrize("name", ["vector", "chain"])
def test_the_start_is_shared_and_no_bit_depends_on_which_points_run_together(name):
    method = methods_of("HebbianICA", "shared")[name]
    systems = [
        PAIR,
        PAIR.model_copy(update={"mu": 0.05}),
        NEAR,
        PAIR.model_copy(update={"alpha": 0.9}),
    ]
    trials = [(system, seed) for seed in (3, 0, 8) for system in systems]
    together = method.run_all(trials, TIMES, N, NOTHING)
    for trial, found in zip(trials, together, strict=True):
        alone = method.run(trial[0], TIMES, N, trial[1], NOTHING)
        assert found.diverged == alone.diverged == ""
        for key, values in alone.values.items():
            assert values.tobytes() == found.values[key].tobytes()
    for first in range(0, len(trials), len(systems)):
        begin = [together[first + k].values["R"][0] for k in (0, 1, 3)]
        end = [together[first + k].values["R"][1] for k in (0, 1, 3)]
        assert np.array_equal(begin[0], begin[1])
        assert np.array_equal(begin[0], begin[2])
        assert not np.array_equal(end[0], end[1])
    seeds = {together[k].values["R"][0].tobytes() for k in (0, 4, 8)}
    assert len(seeds) == 3


def test_a_vector_sees_one_stream_of_data_at_every_rate():
    """To first order in a small step what one rate adds is in proportion to it."""
    one, two = (
        hdica.simulate(
            hebbian(eta=eta, start={"overlap": 0.3}),
            n=N,
            times=[0, 1 / N],
            seeds=50,
            method="vector",
            noise="shared",
        )["R"]
        .values[..., -1, 0, 0]
        .ravel()
        - 0.3
        for eta in (1e-6, 2e-6)
    )
    assert two == pytest.approx(2 * one, rel=1e-3, abs=1e-9)
    assert np.std(one) > 1e-7
