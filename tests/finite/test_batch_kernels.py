"""Mini-batches: the compiled kernels against plain NumPy, pathwise and in law."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from hdica.finite.projected.chain import samples
from hdica.finite.projected.vector import run_shared
from hdica.finite.random.streams import normal_numbers, point_stream, run_length
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.priors import make_prior
from hdica.ingredients.save import Save
from hdica.ingredients.schedules import make_schedule, make_signal
from hdica.ingredients.sources import make_source
from hdica.ingredients.starts import make_start
from hdica.systems.projected.family import ProjectedRule
from hdica.systems.sparse_pca.rule import PCARule
from tests.finite.batch_reference import online_ica_batch, reduced_step, sparse_pca_batch
from tests.finite.runs import run_chain, run_vector
from tests.reference import LaneNormals, soft_threshold

KS_LEVEL = 1e-4
MEANS = {"fourth": "x**4", "skew": "xi*x**3", "sign": "xi*sign(x)"}


def ica(m, f="x**3", source="uniform", phi="0", prior="dense", tau=0.4):
    laws = make_source(source), make_prior(prior), make_start({"overlap": 0.6, "exact": True})
    return ProjectedRule(*laws, make_schedule(tau), parse_formula(f), parse_formula(phi), m)


def pca(m, phi="0", variant="linearised", tau=1.5, omega=2.0):
    laws = make_prior({"sparse": 0.5}), make_start({"overlap": 0.6, "exact": True})
    return PCARule(make_signal(omega), *laws, make_schedule(tau), parse_formula(phi), variant, m)


def streams(n, seed, label="batch"):
    return lambda part: point_stream({"law": label}, "batch", n, seed, part)


def trials(run, rule, t, n, count, *save):
    found = []
    for seed in range(count):
        values, diverged = run(rule, np.array([t]), n, streams(n, seed, run.__name__), *save)
        assert diverged == ""
        found.append([values[name][0] for name in sorted(values)])
    return np.array(found)


@pytest.mark.parametrize("phi", ["0", "0.4*x", "0.3*sign(x)", "x**3 - x"])
@pytest.mark.parametrize("f", ["x**3 - x/3", "tanh(x) + x**2/5"])
def test_vector_follows_the_reduced_step(phi, f):
    n, m, steps = 12, 3, 30
    rule, stream = ica(m, f, phi=phi, prior={"sparse": 0.5}, tau=0.2), streams(n, 1)
    got, _ = run_vector(rule, np.array([steps / n]), n, stream)
    rng = stream("start")
    xi = rule.prior.feature(rng, n)
    x = rule.start.estimate(rng, xi)
    numbers = samples(rule.sources, m, stream)(max(1, run_length(0) // (2 * m)))
    noise, g = LaneNormals(stream("noise")), rule.regularizer.value
    for row in numbers[:steps]:
        z = noise.standard_normal(n)
        x = reduced_step(xi, x, 0.2, rule.push.value, g, row[:m], row[m:], z)
    assert got["Q"][0] == pytest.approx(xi @ x / n, rel=1e-10)
    assert got["R"][0] == pytest.approx(np.mean(x * g(x)), rel=1e-10, abs=1e-12)


def test_components_of_samples_are_drawn_from_their_laws():
    rule = ica(5)
    numbers = samples(rule.sources, 5, streams(9, 0))(4000)
    c, e = numbers[:, :5].ravel(), numbers[:, 5:].ravel()
    assert stats.kstest(c, stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)).cdf).pvalue > KS_LEVEL
    assert stats.kstest(e, stats.norm.cdf).pvalue > KS_LEVEL
    assert abs(np.corrcoef(c, e)[0, 1]) < 4 / np.sqrt(c.size)
    assert samples(rule.sources, 1, streams(9, 0))(7).shape == (7,)
    assert normal_numbers(streams(9, 0)("across"))(20000).tolist() == e.tolist()


N, M, STEPS, COUNT = 12, 3, 24, 1200
SAVE = Save(functionals=MEANS)


def of_reference(final, rule, seed):
    """Order parameters and means of the reference, in the order of the kernel's names."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(COUNT):
        xi = rule.prior.feature(rng, N)
        x = final(rng, xi, rule.start.estimate(rng, xi))
        values = {
            "Q": xi @ x / N,
            "R": np.mean(x * rule.regularizer.value(x)),
            "largest": np.max(x * x) / N,
            "fourth": np.mean(x**4),
            "skew": np.mean(xi * x**3),
            "sign": np.mean(xi * np.sign(x)),
        }
        found.append([values[name] for name in sorted(values)])
    return np.array(found)


def of_ica(rule, seed, m=M):
    f, phi = rule.push.value, rule.regularizer.value

    def final(rng, xi, x):
        return online_ica_batch(rng, xi, x, 0.4, f, phi, rule.source.sample, m, STEPS)

    return of_reference(final, rule, seed)


def of_pca(rule, seed, m=M):
    phi = rule.regularizer.value

    def eta(x):
        return soft_threshold(x, 0.3 / N) if rule.variant == "proximal" else x - phi(x) / N

    def final(rng, xi, x):
        return sparse_pca_batch(rng, xi, x, 1.5, 2.0, eta, m, STEPS)

    return of_reference(final, rule, seed)


def differences(one, other):
    """Smallest p of Kolmogorov and Smirnov, and largest z of means and variances."""
    p = [stats.ks_2samp(a, b, method="asymp").pvalue for a, b in zip(one.T, other.T, strict=True)]
    z = []
    for power in (1, 2):
        a, b = one**power, other**power
        error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / COUNT)
        z.append(np.abs(a.mean(axis=0) - b.mean(axis=0))[error > 0] / error[error > 0])
    return min(p), max(map(np.max, z))


CASES = [
    (ica(M, "x**3/4"), of_ica),
    (ica(M, "tanh(x) - x**2/3", "laplace", "0.5*sign(x)", {"sparse": 0.5}), of_ica),
    (pca(M), of_pca),
    (pca(M, "0.3*sign(x)"), of_pca),
    (pca(M, "0.3*sign(x)", "proximal"), of_pca),
    (pca(M, "tanh(x)"), of_pca),
]


@pytest.mark.deep
@pytest.mark.parametrize(("rule", "reference"), CASES, ids=range(len(CASES)))
def test_vector_is_equal_in_law_to_plain_numpy(rule, reference):
    kernel = trials(run_vector, rule, STEPS / N, N, COUNT, SAVE)
    p, z = differences(kernel, reference(rule, 5))
    assert p > KS_LEVEL
    assert z < 4.5


@pytest.mark.parametrize(("rule", "reference"), [CASES[0], CASES[3]], ids=["ica", "pca"])
def test_a_batch_that_is_ignored_is_noticed(rule, reference):
    # Negative control of the test above: the reference takes one sample a step.
    kernel = trials(run_vector, rule, STEPS / N, N, COUNT, SAVE)
    p, z = differences(kernel, reference(rule, 5, m=1))
    assert p < 1e-8
    assert z > 6


@pytest.mark.deep
@pytest.mark.parametrize("m", [2, 5])
@pytest.mark.parametrize(
    "make", [lambda m: ica(m, "x**3/4"), lambda m: ica(m, "tanh(x)", "laplace", "2*x"), pca]
)
def test_chain_and_vector_are_equal_in_law(make, m):
    for n in (3, 20):
        vector = trials(run_vector, make(m), 4.0, n, 800)[:, 0]
        chain = trials(run_chain, make(m), 4.0, n, 800)[:, 0]
        assert stats.ks_2samp(vector, chain).pvalue > KS_LEVEL
    other = trials(run_chain, make(1), 4.0, n, 800)[:, 0]
    assert stats.ks_2samp(vector, other).pvalue < KS_LEVEL


@pytest.mark.parametrize("run", [run_vector, run_chain])
def test_a_trajectory_does_not_depend_on_when_it_is_recorded(run):
    n, stream = 30, streams(30, 4)
    for rule in (ica(7, tau="0.1/(1 + t/5)"), ica(3000, tau=0.1)):
        few, _ = run(rule, np.array([0.0, 20.0]), n, stream)
        many, _ = run(rule, np.linspace(0, 20, 61), n, stream)
        assert np.array_equal(few["Q"], many["Q"][[0, -1]])


def test_points_that_share_their_noise_have_the_bits_that_each_has_alone():
    n, times = 40, np.array([0.0, 1.0, 3.0])
    rules = [ica(4, tau=tau).vector for tau in (0.1, 0.2, 0.3)]
    together = run_shared(rules, times, n, streams(n, 0))
    for rule, (values, _) in zip(rules, together, strict=True):
        alone, _ = run_shared([rule], times, n, streams(n, 0))[0]
        assert {k: v.tobytes() for k, v in values.items()} == {
            k: v.tobytes() for k, v in alone.items()
        }


@pytest.mark.parametrize("run", [run_vector, run_chain])
def test_an_estimate_that_is_the_feature_moves_on(run):
    rule = replace(ica(4, tau=0.3), start=make_start({"overlap": 1.0, "exact": True}))
    values, diverged = run(rule, np.array([0.0, 1.0]), 50, streams(50, 1))
    assert diverged == ""
    assert values["Q"][0] == pytest.approx(1.0)
    assert 0.3 < values["Q"][1] < 1.0


@pytest.mark.parametrize("m", [1, 3])
def test_an_amplitude_multiplies_the_samples_of_step_k_by_its_value_at_k_over_n(m):
    def ones(rng):
        return lambda size: np.ones(size)

    amplitude = make_signal("2 + t")
    draw = samples(ones, m, streams(10, 0), amplitude, 10)
    c = np.concatenate([draw(4).reshape(4, -1)[:, :m], draw(3).reshape(3, -1)[:, :m]])
    assert c == pytest.approx(np.tile(2 + np.arange(7)[:, None] / 10, m))
