"""Noise that is not normal: the printed rule, its universal limit, and what is refused."""

import math

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.finite.random.streams import streams_of
from hdica.ingredients.save import NOTHING
from hdica.ingredients.sources import make_source
from hdica.systems import fields
from hdica.systems.online_ica import system as ica
from hdica.systems.sparse_pca import system as pca
from hdica.systems.system import methods_of
from hdica.systems.trials import content_of
from tests.reference import online_ica_vector, online_sparse_pca_vector

LAWS = ("rademacher", "laplace", {"student": 5}, {"chi2": 3})


class Entries:
    """Noise of a law, as the plain rules draw it: one vector a step."""

    def __init__(self, law, rng):
        self.law, self.rng = law, rng

    def standard_normal(self, size):
        return self.law.sample(self.rng, size)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("phi", ["0", "0.3*sign(x)", "x**3 - x"])
def test_online_ica_follows_the_printed_rule_step_by_step(law, phi):
    # Entries of xi that are 0 come last, where the padding of the kernels begins.
    n, steps, xi = 21, 60, [1.0, 2.0, -1.0] * 6 + [0.0] * 3
    system = hdica.OnlineICA(
        tau=0.1, noise_law=law, regularizer=phi, prior={"vector": xi}, nonlinearity="tanh(x) + x**2"
    )
    got = hdica.simulate(system, n=n, times=[0.4, steps / n], seeds=[3], method="vector")
    stream, rule = streams_of(content_of(system), "vector", n)(3), ica.rule(system)
    rng = stream("start")
    feature = rule.prior.feature(rng, n)
    x, f, g = rule.start.estimate(rng, feature), rule.push.value, rule.regularizer.value
    draw, noise = rule.sources(stream("source")), Entries(make_source(law), stream("noise law"))
    sources = iter(draw(steps))
    x = online_ica_vector(noise, feature, x, 0.1, f, g, lambda rng: next(sources), steps)
    assert got["Q"].values[0, -1] == pytest.approx(feature @ x / n, rel=1e-11)


def test_sparse_pca_follows_the_printed_rule_step_by_step():
    n, steps, law = 30, 45, make_source("laplace")
    system = hdica.SparsePCA(
        tau=0.3, omega=1.5, noise_law="laplace", regularizer="0.5*sign(x)", prior={"sparse": 0.4}
    )
    got = hdica.simulate(system, n=n, times=[steps / n], seeds=[5], method="vector")
    stream, rule = streams_of(content_of(system), "vector", n)(5), pca.rule(system)
    rng = stream("start")
    xi = rule.prior.feature(rng, n)
    x = rule.start.estimate(rng, xi)
    sources = rule.vector.sources(stream("source"))(steps)
    x = online_sparse_pca_vector(
        Entries(law, stream("noise law")), xi, x, np.full(steps, 0.3), 1.5,
        lambda moved: moved - 0.5 * np.sign(moved) / n, sources,
    )  # fmt: skip
    assert got["Q"].values[0, 0] == pytest.approx(xi @ x / n, rel=1e-11)


def test_points_that_share_noise_of_a_law_are_those_alone():
    system = hdica.OnlineICA(tau=0.05, noise_law="laplace")
    both = {"tau": [0.05, 0.1], "noise_law": ["laplace", "rademacher"]}
    shared = hdica.simulate(
        system, n=40, times=[0, 2, 5], seeds=2, method="vector", over=both, noise="shared"
    )
    vector = methods_of("OnlineICA", "shared")["vector"]
    alone = vector.run_all([(system, 1)], shared["time"].values, 40, NOTHING)
    np.testing.assert_array_equal(
        shared["Q"].sel(tau=0.05, noise_law="laplace", seed=1), alone[0].values["Q"]
    )
    assert len(np.unique(shared["Q"].isel(time=-1))) == 8


@pytest.mark.deep
@pytest.mark.parametrize("law", LAWS[:2], ids=str)
def test_from_an_informative_start_limit_and_scatter_are_those_of_normal_noise(law):
    n, seeds, start = 60, 300, {"overlap": 0.6, "exact": True}
    system = hdica.OnlineICA(tau=0.05, source="rademacher", noise_law=law, start=start)
    runs = hdica.simulate(system, n=n, times=[20], seeds=seeds, method="vector")["Q"][:, 0]
    mean, sd = float(runs.mean()), float(runs.std(ddof=1))

    def scores(tau):
        """Mean and scatter beside the limit of a step size to order 1/n, over their errors."""
        one = system.model_copy(update={"tau": tau, "noise_law": "gaussian"})
        limit = hdica.limit(one, times=[20], bands=True, bias=True).isel(time=0)
        expected = float(limit["Q"] + limit["Q_bias"] / n)
        wider = math.log(sd / float(limit["Q_sd"]) * math.sqrt(n))
        return abs(mean - expected) / sd * math.sqrt(seeds), abs(wider) * math.sqrt(2 * seeds)

    assert max(scores(0.05)) < 3.5
    # Control: a step size that is three tenths too large.
    assert min(scores(0.065)) > 5


@pytest.mark.deep
def test_from_a_random_start_another_component_is_found():
    """Entries of the noise are independent components, too: the feature is one of n + 1 then."""
    shares, n = {}, 12
    for law in ("gaussian", "rademacher"):
        system = hdica.OnlineICA(
            nu=1.0, source="rademacher", noise_law=law, start={"overlap": 0.0}, prior="gaussian"
        )
        runs = hdica.simulate(system, n=n, times=[6 * n**2], seeds=24, method="vector")
        found = np.abs(runs["Q"].isel(time=-1)) > 0.7
        shares[law] = float(found.mean()), float((runs["largest"].isel(time=-1) > 0.7).mean())
    assert shares["gaussian"][0] > 0.8 > 0.4 > shares["rademacher"][0]
    assert shares["rademacher"][1] > 0.6 > 0.2 > shares["gaussian"][1]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: hdica.OnlineICA(tau=0.1, noise_law="laplce"), "noise_law: 'laplce' is not known"),
        (
            lambda: hdica.SparsePCA(tau=0.1, noise_law="laplace", batch=4),
            r"noise_law = 'laplace' is not allowed for batch = 4 \('gaussian'; ",
        ),
        (
            lambda: hdica.simulate(
                hdica.OnlineICA(tau=0.1, noise_law="laplace"), n=20, times=[1], method="chain"
            ),
            r"noise_law = 'laplace' is not allowed for method 'chain' \('gaussian'; ",
        ),
        (
            lambda: hdica.escape_time(
                hdica.OnlineICA(nu=1, noise_law="laplace", start={"overlap": 0.0}), n=20
            ),
            r"noise_law = 'laplace' is not allowed for first passages",
        ),
        (
            lambda: hdica.limit(
                hdica.SparsePCA(tau=0.1, noise_law="laplace"), times=[1], method="bayes"
            ),
            r"noise_law = 'laplace' is not allowed for the posterior of the feature",
        ),
    ],
)
def test_what_is_of_normal_noise_alone_is_refused(call, sentence):
    with pytest.raises(HdicaError, match=sentence):
        call()


@pytest.mark.parametrize("method", ["ode", "pde"])
def test_a_bias_is_that_of_normal_noise_alone(method):
    system = hdica.OnlineICA(tau=0.05, noise_law="laplace", start={"overlap": 0.7})
    with pytest.raises(HdicaError, match="noise_law = 'laplace' is not allowed for a bias"):
        hdica.limit(system, times=[1], bias=True, method=method)
    assert hdica.limit(system, times=[1], bands=True).Q_sd.values[0] > 0


def test_limits_have_one_key_for_all_laws_and_normal_runs_the_bits_that_they_had():
    normal, other = (hdica.OnlineICA(tau=0.1, noise_law=law) for law in ("gaussian", "laplace"))
    assert content_of(normal) == content_of(hdica.OnlineICA(tau=0.1))
    assert fields.noise_law(normal) is None
    for name, one in methods_of("OnlineICA").items():
        ignored = "noise_law" in one.scope.ignores
        ode = name in ("ode", "pde")  # which refuse a bias alone
        assert name == "vector" or ignored or ode or "noise_law" in one.scope.refuses(other), name
