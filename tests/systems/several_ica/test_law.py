"""Chain and vector against the full rule in plain NumPy, at small n where mistakes are seen."""

import functools

import numpy as np
import pytest
from scipy import stats

import hdica
from hdica.ingredients.sources import make_source
from hdica.systems.system import methods_of
from tests.systems.several_ica.reference import final_overlaps, reduced_overlaps

LEVEL = 1e-4
SOURCES, START, TAU, N, STEPS, RUNS = ["rademacher", {"chi2": 2}], [0.6, -0.4], 0.5, 5, 12, 3000
BEGIN = {"Q1": 0.5, "Q2": 0.3, "Q3": 0.0}
LAWS = [make_source(spec) for spec in SOURCES]


def cubic(u):
    return u**3 / 3


def bounded(u):
    return np.tanh(2 * u)


FUNCTIONS = {"x**3/3": cubic, "tanh(2*x)": bounded}


def sample(rng, runs):
    return np.stack([law.sample(rng, runs) for law in LAWS], axis=1)


def by(method, text, runs=RUNS):
    system = hdica.SeveralICA(tau=TAU, sources=SOURCES, nonlinearity=text, start={"overlap": START})
    found = hdica.simulate(system, n=N, times=[0, STEPS / N], seeds=runs, method=method)
    return found["Q"].isel(time=-1).transpose("seed", "source").values


@functools.cache
def reference(text, cross=1.0):
    rng = np.random.default_rng(20261)
    return final_overlaps(sample, FUNCTIONS[text], TAU, START, N, STEPS, RUNS, rng, cross)


def p_values(one, other):
    """Of Q_1, Q_2, their product and the length of their vector."""
    both = [[*v.T, v[:, 0] * v[:, 1], np.hypot(*v.T)] for v in (one, other)]
    return [stats.ks_2samp(a, b).pvalue for a, b in zip(*both, strict=True)]


@pytest.mark.deep
@pytest.mark.parametrize("text", FUNCTIONS)
@pytest.mark.parametrize("method", ["chain", "vector"])
def test_it_has_the_law_of_the_full_rule(method, text):
    found, expected = by(method, text), reference(text)
    assert min(p_values(found, expected)) > LEVEL
    for power in (1, 2):
        difference = np.mean(found**power, axis=0) - np.mean(expected**power, axis=0)
        spread = np.var(found**power, axis=0) + np.var(expected**power, axis=0)
        assert np.all(np.abs(difference) < 4 * np.sqrt(spread / RUNS))


@pytest.mark.deep
def test_the_chain_has_the_law_of_the_vector():
    assert min(p_values(by("chain", "x**3/3"), by("vector", "x**3/3"))) > LEVEL


@pytest.mark.parametrize("text", FUNCTIONS)
def test_one_degree_of_freedom_more_is_another_law(text):
    rng, expected = np.random.default_rng(1), reference(text)
    wrong, right = (
        reduced_overlaps(sample, FUNCTIONS[text], TAU, START, N, STEPS, RUNS, rng, dof)
        for dof in (N - 2, N - 3)
    )
    assert min(p_values(wrong, expected)) < LEVEL / 1000
    assert min(p_values(right, expected)) > LEVEL


def test_noise_along_the_features_is_another_law():
    wrong = reference("x**3/3", cross=0.0)
    assert min(p_values(by("chain", "x**3/3"), wrong)) < LEVEL / 1000


@pytest.mark.deep
@pytest.mark.parametrize("method", ["chain", "vector"])
def test_one_feature_is_online_ica(method):
    one = hdica.SeveralICA(tau=0.5, sources=["laplace"], start={"overlap": [0.6]})
    other = hdica.OnlineICA(tau=0.5, source="laplace", start={"overlap": 0.6, "exact": True})
    ends = [
        hdica.simulate(system, n=5, times=[0, 3], seeds=RUNS, method=way)["Q"].isel(time=-1)
        for system, way in ((one, method), (other, "chain"))
    ]
    assert stats.ks_2samp(*(end.values.ravel() for end in ends)).pvalue > LEVEL


def test_numbers_do_not_depend_on_times_or_neighbours():
    system = hdica.SeveralICA(
        tau=0.1, sources=["uniform", "laplace", "rademacher"], Q1=0.5, Q2=0.3, Q3=0
    )
    for method in ("chain", "vector"):
        often = hdica.simulate(system, n=60, times=np.arange(0, 21), seeds=3, method=method)["Q"]
        once = hdica.simulate(system, n=60, times=[0, 20], seeds=[1], method=method)["Q"]
        end = often.sel(seed=1, time=20).values
        assert end.tobytes() == once.sel(seed=1, time=20).values.tobytes()


def test_a_chain_that_is_no_longer_finite_says_so_and_spoils_no_other():
    calm = hdica.SeveralICA(tau=0.1, nonlinearity="sinh(a*x)", constants={"a": 1.0})
    wild = calm.model_copy(update={"constants": {"a": 200.0}})
    chain = methods_of("SeveralICA", "own")["chain"]
    times = np.array([0.0, 1.0])
    alone = chain.run_all([(calm, 0)], times, 50)[0]
    both = chain.run_all([(wild, 0), (calm, 0)], times, 50)
    assert "the update was not finite at step" in both[0].diverged
    assert both[1].values["Q"].tobytes() == alone.values["Q"].tobytes()
