import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hdica.errors import HdicaError
from hdica.ingredients.sources import make_source

SOURCES = [
    "rademacher",
    "uniform",
    "laplace",
    "gaussian",
    {"bernoulli_gaussian": 0.2},
    {"student": 9},
    {"student": 2.5},
    {"chi2": 1},
    {"chi2": 2},
    {"scipy": "arcsine"},
    {"scipy": "gamma", "a": 2.5},
    {"scipy": "logistic"},
    {"discrete": {"values": [0, 1, 3], "weights": [1, 2, 1]}},
]
EXACT = {  # fourth and sixth moment
    "rademacher": (1, 1),
    "uniform": (9 / 5, 27 / 7),
    "laplace": (6, 90),
    "gaussian": (3, 15),
}


@pytest.mark.parametrize("spec", SOURCES, ids=str)
def test_nodes_are_standardised_and_give_the_moments(spec):
    source = make_source(spec)
    c = source.nodes
    assert math.isclose(c.weights.sum(), 1, rel_tol=1e-13)
    assert abs(c.mean(c.points)) < 1e-12
    assert abs(c.mean(c.points**2) - 1) < 2e-12
    for k in (3, 4, 5, 6):
        if math.isfinite(source.moment(k)):
            assert float(c.mean(c.points**k)) == pytest.approx(
                source.moment(k), rel=1e-11, abs=1e-12
            )


@pytest.mark.parametrize("name", EXACT)
def test_moments_are_exact(name):
    source = make_source(name)
    assert (source.moment(4), source.moment(6)) == pytest.approx(EXACT[name], rel=1e-15)


def test_centred_exponential_moments():
    source = make_source({"chi2": 2})
    assert [source.moment(k) for k in (3, 4, 5, 6)] == pytest.approx([2, 9, 44, 265], rel=1e-14)
    assert not source.symmetric


def test_student_moments_exist_only_below_nu():
    source = make_source({"student": 5})
    assert source.moment(4) == pytest.approx(9)
    assert source.moment(6) == math.inf


@pytest.mark.parametrize("spec", SOURCES, ids=str)
def test_samples_follow_the_law_that_the_nodes_describe(spec):
    source = make_source(spec)
    draws = source.sample(np.random.default_rng(1), 200_000)
    for a in (0.5, 1.7):
        expected = float(source.nodes.mean(np.cos(a * source.nodes.points + 0.3)))
        values = np.cos(a * draws + 0.3)
        z = (values.mean() - expected) / (values.std() / math.sqrt(draws.size))
        assert abs(z) < 4.5


def test_a_source_that_is_not_the_claimed_one_is_noticed():
    # Negative control of the test above: uniform draws against the nodes of laplace.
    draws = make_source("uniform").sample(np.random.default_rng(1), 200_000)
    nodes = make_source("laplace").nodes
    values = np.cos(1.7 * draws + 0.3)
    z = (values.mean() - float(nodes.mean(np.cos(1.7 * nodes.points + 0.3)))) / (
        values.std() / math.sqrt(draws.size)
    )
    assert abs(z) > 20


def test_scipy_law_is_sampled_as_scipy_does():
    law = stats.gamma(2.5)
    draws = make_source({"scipy": "gamma", "a": 2.5}).sample(np.random.default_rng(3), 20_000)
    assert stats.kstest(draws * law.std() + law.mean(), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ("unif", "'unif' is not known"),
        ({"student": 2}, "nu > 2"),
        ({"bernoulli_gaussian": 0}, "0 < p <= 1"),
        ({"chi2": -1}, "k > 0"),
        ({"scipy": "os"}, "continuous law"),
        ({"scipy": "cauchy"}, "finite mean"),
        ({"scipy": "gamma"}, "scipy 'gamma'"),
        ({"discrete": {"values": [1, 1]}}, "must differ"),
        ({"discrete": {"values": [0, 1], "weights": [1, -1]}}, "all above zero"),
        ({"chi2": 2, "student": 3}, "is not known"),
        ({"discrete": {"values": [0, 1], "hidden": 1}}, "is not known"),
    ],
)
def test_bad_sources_are_refused_with_one_sentence(spec, part):
    with pytest.raises(HdicaError) as refused:
        make_source(spec)
    assert part in str(refused.value)
    assert "\n" not in str(refused.value)


@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=6, unique=True),
    st.lists(st.floats(0.1, 3), min_size=6, max_size=6),
)
@settings(max_examples=50, deadline=None)
def test_any_discrete_law_is_standardised(values, weights):
    if np.ptp(values) < 1e-3:
        return
    source = make_source({"discrete": {"values": values, "weights": weights[: len(values)]}})
    assert abs(source.moment(1)) < 1e-9
    assert abs(source.moment(2) - 1) < 1e-9


@pytest.mark.parametrize(
    "spec",
    [
        "laplace",
        {"student": 9},
        {"chi2": 3},
        {"bernoulli_gaussian": 0.2},
        {"discrete": {"values": [-1, 0, 2], "weights": [1, 2, 1]}},
        {"mixture": {"weights": [1, 1], "means": [-1, 1], "sds": [0.3, 0.4]}},
        {"scipy": "gamma", "a": 2},
        {"scipy": "poisson", "mu": 3},
    ],
    ids=str,
)
def test_the_same_source_is_the_same_object_by_which_averages_are_remembered(spec) -> None:
    assert make_source(spec) is make_source(spec)
