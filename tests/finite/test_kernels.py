"""The compiled kernels against plain NumPy, pathwise and in law."""

import itertools

import numpy as np
import pytest
from scipy import stats

from hdica.finite.random.streams import digest, point_stream, run_length
from hdica.finite.record import aligned_zeros, steps_of
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.priors import make_prior
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.ingredients.starts import make_start
from hdica.systems.projected.family import ProjectedRule
from tests.finite.runs import run_chain, run_vector
from tests.reference import ChainNumbers, LaneNormals, online_ica_vector, overlap_start

KS_LEVEL = 1e-4  # some forty tests: a false alarm in a rewrite of the streams once in 250


def make_rule(f="x**3", source="uniform", phi="0", prior="dense", start=None, tau=0.1):
    return ProjectedRule(
        make_source(source),
        make_prior(prior),
        make_start(start or {"overlap": 0.6}),
        make_schedule(tau),
        parse_formula(f),
        parse_formula(phi),
    )


def trials(run, rule, times, n, count, label="test"):
    def one(seed):
        values, diverged = run(
            rule, times, n, lambda part: point_stream({"law": label}, run.__name__, n, seed, part)
        )
        assert diverged == ""
        return values["Q"]

    return np.array([one(seed) for seed in range(count)])


@pytest.mark.parametrize("shape", [(1,), (3, 5), (16, 1000)])
def test_arrays_of_kernels_begin_with_a_cache_line(shape):
    several = [aligned_zeros(*shape) for _ in range(8)]
    assert {one.ctypes.data % 64 for one in several} == {0}
    assert all(one.shape == shape and not one.any() for one in several)


@pytest.mark.parametrize("phi", ["0", "0.4*x", "0.3*sign(x)", "x**3 - x"])
def test_vector_follows_the_printed_rule_step_by_step(phi):
    n, steps, rule = 12, 30, make_rule(phi=phi, prior={"sparse": 0.5}, f="tanh(x) + x**2/5")

    def stream(part):
        return point_stream({}, "vector", n, 1, part)

    got, _ = run_vector(rule, np.array([steps / n]), n, stream)
    rng = stream("start")
    xi = rule.prior.feature(rng, n)
    x = rule.start.estimate(rng, xi)
    sources = iter(rule.source.sample(stream("source"), run_length(0)))
    f, g = rule.push.value, rule.regularizer.value
    x = online_ica_vector(
        LaneNormals(stream("noise")), xi, x, 0.1, f, g, lambda rng: next(sources), steps
    )
    assert got["Q"][0] == pytest.approx(xi @ x / n, rel=1e-11)
    assert got["R"][0] == pytest.approx(np.mean(x * g(x)), rel=1e-10, abs=1e-12)


CASES = list(itertools.product(["x**3", "-tanh(x)"], ["dense", {"sparse": 0.3}], [20, 100, 500]))


@pytest.mark.deep
@pytest.mark.parametrize(("f", "prior", "n"), CASES, ids=str)
def test_chain_and_vector_are_equal_in_law(f, prior, n):
    rule, times = make_rule(f=f, prior=prior), np.array([0.0, 1.0, 4.0])
    count = 1500 if n <= 100 else 300
    vector, chain = (trials(run, rule, times, n, count) for run in (run_vector, run_chain))
    for k in range(times.size):
        assert stats.ks_2samp(vector[:, k], chain[:, k]).pvalue > KS_LEVEL


def test_ks_notices_a_step_size_that_is_fifteen_percent_off():
    # Negative control of the test above.
    times, n = np.array([8.0]), 100
    right = trials(run_vector, make_rule(tau=0.2), times, n, 1500)
    wrong = trials(run_chain, make_rule(tau=0.23), times, n, 1500)
    assert stats.ks_2samp(right[:, 0], wrong[:, 0]).pvalue < KS_LEVEL


@pytest.mark.deep
@pytest.mark.parametrize("n", [20, 100])
def test_linear_regularizer_is_exact_in_the_chain_too(n):
    rule, times = make_rule(phi="3*x"), np.array([3.0])
    vector, chain = (trials(run, rule, times, n, 1500) for run in (run_vector, run_chain))
    assert stats.ks_2samp(vector[:, 0], chain[:, 0]).pvalue > KS_LEVEL
    plain = trials(run_chain, make_rule(), times, n, 1500)
    assert not np.array_equal(plain, chain)


@pytest.mark.parametrize(
    ("source", "start"),
    [("laplace", {"overlap": -0.5}), ({"chi2": 2}, {"normal": {"mean": 0.7, "var": 0.5}})],
    ids=str,
)
def test_chain_is_equal_in_law_to_plain_numpy(source, start):
    n, t, count = 40, 2.0, 1200
    rule = make_rule(source=source, start=start, tau=0.15, f="x**2 - x**3/3")
    chain = trials(run_chain, rule, np.array([t]), n, count)[:, 0]
    rng, reference = np.random.default_rng(8), np.empty(count)
    for i in range(count):
        xi = np.ones(n)
        if "overlap" in start:
            x = overlap_start(rng, xi, start["overlap"])
        else:
            x = rule.start.estimate(rng, xi)
        f = rule.push.value
        x = online_ica_vector(
            rng, xi, x, 0.15, f, lambda x: 0 * x, lambda r: rule.source.sample(r, 1)[0], int(n * t)
        )
        reference[i] = xi @ x / n
    assert stats.ks_2samp(chain, reference).pvalue > KS_LEVEL
    spread = np.sqrt((chain.var() + reference.var()) / count)
    assert abs(chain.mean() - reference.mean()) < 4 * spread


@pytest.mark.parametrize("n", [3, 4, 5, 50])
def test_chain_follows_its_formula_step_by_step_with_numpy_s_numbers(n):
    steps, rule = 200, make_rule(tau=0.3, phi="2*x")
    got, _ = run_chain(rule, np.array([steps / n]), n, lambda p: point_stream({}, "c", n, 1, p))
    q = rule.start.draw_overlap(point_stream({}, "c", n, 1, "start"), n)
    numbers = ChainNumbers(point_stream({}, "c", n, 1, "noise"))
    for c in rule.source.sample(point_stream({}, "c", n, 1, "source"), run_length(0))[:steps]:
        (e, rest), s = numbers.draw(n), np.sqrt(1 - q * q)
        g, shrink = 0.3 / n * (q * c + s * e) ** 3, 1 - 0.3 * 2 / n
        a, b = shrink * q - g * c, shrink * s - g * e
        q = a / np.sqrt(a * a + b * b + g * g * rest)
    assert got["Q"][0] == pytest.approx(q, rel=1e-8)


def test_chain_refuses_a_regularizer_it_is_not_exact_for():
    with pytest.raises(ValueError, match="exact only for the regularizers 0 and beta"):
        run_chain(make_rule(phi="sign(x)"), np.array([1.0]), 20, lambda p: np.random.default_rng(0))


@pytest.mark.parametrize("run", [run_vector, run_chain])
def test_a_trajectory_does_not_depend_on_when_it_is_recorded(run):
    rule, n = make_rule(tau="0.1/(1 + t/5)"), 50
    few = trials(run, rule, np.array([0.0, 100.0]), n, 2)
    many = trials(run, rule, np.linspace(0, 100, 301), n, 2)
    assert np.array_equal(few, many[:, [0, -1]])


@pytest.mark.parametrize("run", [run_vector, run_chain])
def test_divergence_is_recorded_with_step_and_time(run):
    rule = make_rule(f="exp(exp(x**4))", source="laplace", tau=1.0)
    values, diverged = run(
        rule, np.array([0.0, 1e-9, 500.0]), 20, lambda p: point_stream({}, "", 20, 0, p)
    )
    assert "not finite at step" in diverged
    assert "(t = " in diverged
    assert np.isfinite(values["Q"][0])
    assert np.isnan(values["Q"][-1])


def test_steps_are_floor_of_tn_in_decimals():
    times = np.array([0.0, 0.1, 0.3, 0.7, 1.1, 2.675])
    assert steps_of(times, 1000).tolist() == [0, 100, 300, 700, 1100, 2675]
    assert steps_of(np.array([0.25]), 10).tolist() == [2]


def test_streams_depend_on_content_and_not_on_its_order():
    a = point_stream({"tau": 0.1, "n": 1}, "chain", 10, 0, "noise").random(3)
    b = point_stream({"n": 1.0, "tau": 0.1}, "chain", 10, 0, "noise").random(3)
    assert a.tolist() == b.tolist()
    changed = [
        point_stream({"tau": 0.1, "n": 1}, "chain", 10, 0, "source"),
        point_stream({"tau": 0.1, "n": 1}, "chain", 10, 1, "noise"),
        point_stream({"tau": 0.1, "n": 1}, "chain", 11, 0, "noise"),
        point_stream({"tau": 0.1, "n": 1}, "vector", 10, 0, "noise"),
        point_stream({"tau": 0.2, "n": 1}, "chain", 10, 0, "noise"),
    ]
    assert len({tuple(a), *(tuple(s.random(3)) for s in changed)}) == 6


def test_digest_is_the_same_on_every_machine():
    assert digest({"b": [1, 2.5], "a": "x"}).hex().startswith("66efddae6a97")
