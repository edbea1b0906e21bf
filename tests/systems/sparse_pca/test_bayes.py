"""The posterior of the feature: golden numbers, closed forms, plain quadrature, message passing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate

import hdica
from hdica import SparsePCA
from hdica.errors import HdicaError
from hdica.systems import fields
from hdica.systems.sparse_pca import bayes
from hdica.systems.sparse_pca.baselines import run_sample_pca, sample_pca_overlap
from hdica.systems.sparse_pca.bayes import Components, known, run_message_passing
from tests.systems.sparse_pca.test_rule import make_pca, streams

SPARSE = {"sparse": 0.05}


def components(prior: object) -> Components:
    return Components.of(fields.prior(SparsePCA(tau=0.1, prior=prior)))


@pytest.mark.parametrize(("t", "cosine"), [(1.0, 0.772275124021), (3.0, 0.990392418324)])
def test_golden_overlaps(t: float, cosine: float) -> None:
    found = hdica.limit(SparsePCA(tau=0.1, prior=SPARSE), times=[t], method="bayes")
    assert float(found.Q[0]) == pytest.approx(cosine, abs=1e-6)
    assert float(found.Q_error[0]) < 1e-9
    assert float(found.Q_reached[0]) == float(found.Q[0])


def test_with_a_normal_prior_it_is_batch_pca() -> None:
    times = [0.5, 1.0, 1.1, 3.0, 20.0]
    pca = SparsePCA(tau=0.1, prior="gaussian")
    found = hdica.limit(pca, times=times, method="bayes")
    assert found.Q.values == pytest.approx(sample_pca_overlap(1.0, times), abs=1e-9)
    # m samples an update are m t n samples.
    batch = pca.model_copy(update={"batch": 4})
    faster = hdica.limit(batch, times=np.array(times) / 4, method="bayes")
    assert np.array_equal(faster.Q, found.Q)


@pytest.mark.parametrize("prior", [SPARSE, {"sparse_sign": 0.2}, {"bernoulli_gaussian": 0.3}])
def test_the_channel_is_that_of_plain_quadrature(prior: object) -> None:
    parts, g = components(prior), 2.3

    def density(y: float) -> np.ndarray:
        width = 1 + g * parts.variance
        at = (y - math.sqrt(g) * parts.mean) ** 2 / width
        return parts.weight * np.exp(-at / 2) / np.sqrt(2 * math.pi * width)

    def mean(y: float) -> float:
        gain = math.sqrt(g) * parts.variance / (1 + g * parts.variance)
        each = parts.mean + gain * (y - math.sqrt(g) * parts.mean)
        return float(np.sum(density(y) * each) / np.sum(density(y)))

    def of(value) -> float:
        return integrate.quad(value, -30, 30, epsabs=1e-12, limit=400, points=[-3, 0, 3, 6])[0]

    square = of(lambda y: density(y).sum() * mean(y) ** 2)
    against = of(
        lambda y: (
            density(y).sum() * (math.log(density(y).sum()) + y * y / 2 + math.log(2 * math.pi) / 2)
        )
    )
    assert parts.scalar(g) == pytest.approx((square, against), abs=1e-10)
    # The slope of psi is half of the overlap.
    h = 1e-4
    slope = (parts.scalar(g + h)[1] - parts.scalar(g - h)[1]) / (2 * h)
    assert slope == pytest.approx(square / 2, abs=1e-7)


@pytest.mark.parametrize("g", [1e-6, 30.0, 399.0, 401.0, 1e5])
@pytest.mark.parametrize(
    "prior",
    [SPARSE, {"atoms": [-1, 0, 0.3], "weights": [1, 2, 1]}, {"bernoulli_gaussian": 0.01}],
    ids=str,
)
def test_half_the_step_changes_nothing(prior: object, g: float) -> None:
    parts = components(prior)
    assert parts.scalar(g) == pytest.approx(parts.scalar(g, bayes._STEP / 2), rel=1e-11, abs=1e-12)


def test_the_posterior_may_know_what_message_passing_does_not_reach() -> None:
    """Bernoulli-Gaussian, rho = 0.1: below t = 1 nothing is reached from the mean of the prior."""
    parts = components({"bernoulli_gaussian": 0.1})
    found = known(parts, 1.0, 0.9)
    assert found.reached == 0
    assert found.best == pytest.approx(0.635482, abs=1e-6)
    assert known(parts, 1.0, 0.6).best == 0
    after = known(parts, 1.0, 1.2)
    assert after.best == after.reached > 0.7


def test_twice_as_many_places_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [components(p) for p in (SPARSE, {"bernoulli_gaussian": 0.1})]
    times = (0.3, 0.9, 1.05, 4.0)
    before = [known(one, 1.0, t) for one in parts for t in times]
    monkeypatch.setattr(bayes, "_PLACES", 2 * bayes._PLACES)
    after = [known(one, 1.0, t) for one in parts for t in times]
    assert np.array(after)[:, :2] == pytest.approx(np.array(before)[:, :2], abs=1e-9)


def test_message_passing_with_a_normal_prior_is_the_leading_eigenvector() -> None:
    rule, n = make_pca(prior="gaussian", omega=2.0), 300
    times = np.array([0.0, 2.0, 4.0])
    found = run_message_passing(rule, times, n, streams(n))[0]["Q"]
    other = run_sample_pca(rule, times, n, streams(n))[0]["Q"]
    assert math.isnan(found[0])
    assert found[1:] == pytest.approx(other[1:], abs=1e-5)


def test_message_passing_knows_what_is_known() -> None:
    pca = SparsePCA(tau=0.1, prior=SPARSE)
    runs = hdica.simulate(pca, n=1000, times=[1, 3], seeds=6, method="message_passing").Q
    limit = hdica.limit(pca, times=[1, 3], method="bayes").Q
    error = runs.std("seed", ddof=1) / 6**0.5
    assert np.all(np.abs(runs.mean("seed") - limit) < 4 * error + 0.01)
    # The leading eigenvector of the same number of samples knows far less.
    assert np.all(runs.mean("seed") > sample_pca_overlap(1.0, [1, 3]) + 0.2)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"prior": {"slab": "uniform", "rho": 0.3}}, "the posterior of the feature is not known"),
        ({"prior": "dense"}, "leaves nothing to learn"),
        ({"prior": SPARSE, "omega": "1 + t"}, "omega"),
        ({"prior": "gaussian", "motion": {"exchange": 0.1}}, "motion"),
    ],
)
@pytest.mark.parametrize("method", ["bayes", "message_passing"])
def test_what_has_no_posterior_is_refused(method: str, fields: dict, sentence: str) -> None:
    pca = SparsePCA(tau=0.1, **fields)
    call = hdica.limit if method == "bayes" else hdica.simulate
    more = {} if method == "bayes" else {"n": 50}
    with pytest.raises(HdicaError, match=sentence):
        call(pca, times=[1], method=method, **more)
