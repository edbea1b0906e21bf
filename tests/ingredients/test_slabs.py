import math

import numpy as np
import pytest
from scipy import integrate, stats

from hdica.errors import HdicaError
from hdica.ingredients.priors import make_prior
from hdica.ingredients.starts import make_start

MIXTURE = {"mixture": {"weights": [1, 1], "means": [-1, 3], "sds": [0, 0.5]}}
SLABS = [
    {"slab": "laplace", "rho": 0.1},
    {"slab": {"scipy": "expon"}, "rho": 0.2},
    {"scipy": "laplace"},
    {"scipy": "gamma", "a": 0.3},
    {"slab": MIXTURE, "rho": 0.5},
    {"slab": {"scipy": "poisson", "mu": 3}, "rho": 0.5},
    {"slab": {"student": 9}, "rho": 0.3},
]
DRAWN = [
    {"sparse": 0.1, "iid": True},
    {"sparse_sign": 0.3, "iid": True},
    {"bernoulli_gaussian": 0.2, "iid": True},
    {"atoms": [-1, 2, 0.5], "weights": [1, 1, 2], "iid": True},
    *({**slab, "iid": True} for slab in SLABS[:2]),
]
MEAN_ONE = {"normal": {"mean": 0.9, "var": 0.19}}


@pytest.mark.parametrize("spec", SLABS + DRAWN, ids=str)
@pytest.mark.parametrize("n", [7, 100, 1001])
def test_features_have_length_sqrt_n_and_their_law_unit_second_moment(spec, n):
    prior = make_prior(spec)
    xi = prior.feature(np.random.default_rng(0), n)
    assert xi.shape == (n,)
    assert math.isclose(xi @ xi, n, rel_tol=1e-13)
    assert math.isclose(float(prior.nodes.mean(prior.nodes.points**2)), 1, rel_tol=1e-12)
    assert math.isclose(float(prior.nodes.weights.sum()), 1, rel_tol=1e-12)


RAW = [  # a slab, and its law in SciPy's words, the first for either side of zero
    ("laplace", stats.laplace),
    ({"scipy": "expon"}, stats.expon),
    ({"scipy": "norm", "loc": 1}, stats.norm(loc=1)),
    ({"scipy": "gamma", "a": 0.3}, stats.gamma(0.3)),
]
KINKED = [
    np.abs,
    lambda x: x * np.tanh(x),
    lambda x: np.exp(-np.abs(x)) * x,
    lambda x: np.log1p(x * x),
]


@pytest.mark.parametrize(("slab", "law"), RAW, ids=lambda one: str(one)[:20])
@pytest.mark.parametrize("rho", [1.0, 0.2])
def test_averages_with_a_kink_at_zero_are_those_of_scipy(slab, law, rho):
    prior = make_prior({"slab": slab, "rho": rho})
    scale = math.sqrt(law.moment(2) * rho)
    for h in KINKED:
        total = (1 - rho) * float(h(np.zeros(1))[0])
        for low, high in ((-50, -4), (-4, 0), (0, 1e-3), (1e-3, 1), (1, 4), (4, 60)):
            found, _ = integrate.quad(
                lambda x, h=h: float(h(np.array(x / scale))) * law.pdf(x),
                max(low, law.support()[0]),
                max(high, law.support()[0]),
                epsabs=1e-13,
                limit=400,
            )
            total += rho * found
        found = float(prior.nodes.mean(h(prior.nodes.points)))
        assert found == pytest.approx(total, abs=1e-7)
    # Negative control: nodes that know no kink, one Gauss rule over both sides, are worse.
    plain, weights = np.polynomial.hermite_e.hermegauss(48)
    rough = np.sum(weights / weights.sum() * np.abs(plain))
    assert abs(rough - math.sqrt(2 / math.pi)) > 1e-3


def test_a_normal_slab_is_the_law_of_bernoulli_gaussian():
    ours, known = (
        make_prior(spec) for spec in ({"slab": "gaussian", "rho": 0.3}, {"bernoulli_gaussian": 0.3})
    )
    for h in KINKED:
        assert float(ours.nodes.mean(h(ours.nodes.points))) == pytest.approx(
            float(known.nodes.mean(h(known.nodes.points))), abs=1e-9
        )
    assert ours.group_values == pytest.approx(known.group_values)
    assert np.array_equal(ours.nodes.points, -ours.nodes.points[::-1])  # limits save half by this


def test_entries_follow_the_law_as_it_is_written():
    xi = make_prior({"slab": {"scipy": "expon"}, "rho": 0.25}).feature(
        np.random.default_rng(1), 40_000
    )
    inside = xi[xi != 0]
    assert inside.size == 10_000
    assert stats.kstest(inside * inside.std(), stats.expon.cdf).pvalue < 1e-6  # negative control
    assert stats.kstest(inside / inside.mean(), stats.expon.cdf).pvalue > 1e-3


def test_drawn_entries_are_as_many_as_a_binomial_law_says():
    prior, n = make_prior({"sparse": 0.1, "iid": True}), 500
    rng = np.random.default_rng(2)
    counts = np.array([np.count_nonzero(prior.feature(rng, n)) for _ in range(3000)])
    assert abs(counts.mean() - 50) < 4.5 * math.sqrt(45 / 3000)
    assert counts.var() == pytest.approx(45, rel=0.12)
    exact = make_prior({"sparse": 0.1})
    assert {np.count_nonzero(exact.feature(rng, n)) for _ in range(20)} == {50}


@pytest.mark.parametrize("spec", SLABS[:5] + DRAWN, ids=str)
def test_the_overlap_of_a_start_that_knows_the_mean_spreads_as_stated(spec):
    prior, begin, n, trials = make_prior(spec), make_start(MEAN_ONE), 1000, 3000
    rng = np.random.default_rng(7)
    q = np.empty(trials)
    for i in range(trials):
        xi = prior.feature(rng, n)
        q[i] = xi @ begin.estimate(rng, xi) / n
    expected, spread = begin.overlap(prior), begin.spread(prior)
    assert abs(q.mean() - expected) < 4.5 * q.std() / math.sqrt(trials) + 10 / n
    # A variance of 3000 near-normal numbers is known to 2.6 %; the rest is the finite-n term.
    assert n * q.var() == pytest.approx(spread, rel=0.14)


@pytest.mark.parametrize("name", ["sparse", "bernoulli_gaussian"])
def test_to_draw_entries_one_by_one_widens_the_start(name):
    # What the test above would not tell: without the extra variance it fails.
    exact, drawn = (
        make_start(MEAN_ONE).spread(make_prior({name: 0.3, **more})) for more in ({}, {"iid": True})
    )
    assert (drawn > 1.2 * exact) == (name == "sparse")


def test_groups_are_the_signs_that_there_are():
    both = make_prior({"slab": "laplace", "rho": 0.5})
    assert both.group_weights == pytest.approx([0.25, 0.5, 0.25])
    assert both.classify(np.array([-2.0, 0.0, 1.0])).tolist() == [0, 1, 2]
    one = make_prior({"scipy": "gamma", "a": 0.3})
    assert one.group_weights == pytest.approx([1.0])
    xi = one.feature(np.random.default_rng(0), 2000)
    assert np.all(xi >= 0)
    assert set(one.classify(xi).tolist()) == {0}


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ({"slab": "foo", "rho": 0.1}, "prior: slab 'foo' is not known"),
        ({"slab": "laplace", "rho": 0}, "0 < rho <= 1"),
        ({"slab": "laplace"}, "is not known (allowed"),
        ({"sparse": 0.1, "iid": 1}, "true or false"),
        ({"slab": {"student": 3}, "rho": 0.1}, "its tails are too heavy"),
        ({"scipy": "cauchy"}, "finite mean"),
        ({"iid": True}, "is not known"),
    ],
)
def test_what_is_no_slab_is_refused_with_one_sentence(spec, part):
    with pytest.raises(HdicaError) as refused:
        make_prior(spec)
    assert part in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_feature_without_any_entry_is_refused():
    prior = make_prior({"sparse": 1e-9, "iid": True})
    with pytest.raises(HdicaError, match="no non-zero entry at n = 3"):
        prior.feature(np.random.default_rng(0), 3)
