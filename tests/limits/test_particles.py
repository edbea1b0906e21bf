"""McKean-Vlasov particles against solved limits, exact laws and plain NumPy."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial import Chebyshev
from scipy import stats

import hdica
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.priors import make_prior
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.starts import make_start
from hdica.limits.mean_field import particles
from hdica.limits.mean_field.family import OVERLAP, PENALTY, MeanField
from hdica.limits.overlap.drift import Drift, solve

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/particles.json").read_text())
SPARSE = {"sparse": 0.3}
UNIFORM = (1.8, 27 / 7)


def field(prior, start, tau, phi, pull, diffusion, strength):
    return MeanField(
        make_prior(prior),
        make_start(start),
        make_schedule(tau),
        parse_formula(phi),
        pull,
        diffusion,
        strength,
    )


def cubic(phi="0.1*sign(x)", tau=0.04, prior=SPARSE, q0=0.7, moments=UNIFORM):
    """Online ICA with f = x^3 and a source of the given fourth and sixth moments."""
    m4, m6 = moments

    def diffusion(q, tau):
        return tau**2 * (15 + 15 * q**4 * (1 - q * q) * (m4 - 3) + q**6 * (m6 - 15)) / 2

    return field(
        prior, {"overlap": q0}, tau, phi, lambda q, t: t * (3 - m4) * q**3, diffusion, lambda t: t
    )


def sparse_pca(phi="0.27*sign(x)", prior=None):
    """Example 2 of Wang and Lu 2016."""
    return field(
        prior or {"sparse": 0.05},
        {"normal": {"mean": 0.5**0.5, "var": 0.5}},
        0.5,
        phi,
        lambda q, t: t * q,
        lambda q, t: t * t * (1 + q * q) / 2,
        lambda t: 1.0,
    )


def stream(seed):
    return lambda part: np.random.default_rng([seed, *part.encode()])


def paths(limit, times, count, seeds, name="Q", **options):
    """One order parameter, shape (seeds, T)."""
    found = [particles.run(limit, np.asarray(times), count, stream(s), **options) for s in seeds]
    assert not any(diverged for _, diverged in found)
    return np.array([values[{"Q": OVERLAP, "R": PENALTY}[name]] for values, _ in found])


def last_seen(limit, time, count, stream):
    seen = {}
    particles.run(
        limit,
        np.array([time]),
        count,
        stream,
        observe=lambda xi, z, index: seen.update(xi=xi, z=z),
    )
    return seen


def closed_overlap(times, tau, q0=0.7, moments=UNIFORM):
    """Q at phi = 0 from its own differential equation, Wang and Lu 2017 below (11)."""
    q, (m4, m6) = Chebyshev([0.0, 1.0]), moments
    power = 15 + 15 * q**4 * (1 - q * q) * (m4 - 3) + q**6 * (m6 - 15)
    drift = Drift((q * q - 1) * q**3 * (m4 - 3), -0.5 * q * power)
    return solve(drift, make_schedule(tau), q0, 0.0, np.asarray(times)).q


def mean_and_error(values):
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("case", "limit", "index"),
    [("ica_l1", cubic(), slice(1, 9)), ("sparse_pca_example_2", sparse_pca(), slice(1, 9))],
)
def test_order_parameters_of_solved_limits(case, limit, index):
    golden = GOLDEN[case]
    for name, bias in (("Q", 4e-4), ("R", 2e-4)):  # of steps of 0.05: see the test of the order
        found = paths(limit, golden["t"][index], 5000, range(24), name, step=0.05)
        mean, error = mean_and_error(found)
        assert np.all(np.abs(mean - golden[name][index]) < 4.5 * error + bias)
        assert np.all(error < 1e-3)


def test_one_run_of_many_particles():
    found = paths(cubic(), [40.0], 100_000, [0])
    assert found[0, 0] == pytest.approx(0.808316846, abs=5e-4)


def test_the_error_falls_as_the_square_of_the_step_at_a_kink():
    exact, steps = GOLDEN["ica_l1"], (0.8, 0.4, 0.2)
    runs = [paths(cubic(), [40.0], 20_000, range(12), step=s)[:, 0] for s in steps]
    means, errors = zip(*(mean_and_error(r) for r in runs), strict=True)
    deviation = np.array(means) - exact["Q"][exact["t"].index(40.0)]
    assert np.all(np.array(errors) < 1e-4)
    assert deviation[0] > 100 * errors[0]
    # Order between 1.3 and 2.6 from each halving, at four standard errors.
    for coarse, fine in ((0, 1), (1, 2)):
        assert deviation[coarse] / (deviation[fine] + 4 * errors[fine]) > 2**1.3
        assert deviation[coarse] / (deviation[fine] - 4 * errors[fine]) < 2**2.6


@pytest.mark.deep
def test_the_error_falls_as_the_square_of_the_step_where_phi_is_smooth():
    limit, seeds = sparse_pca("0.4*tanh(2*x)", SPARSE), range(48)
    fine, coarse, reference = (
        mean_and_error(paths(limit, [3.0], 20_000, seeds, step=s)[:, 0]) for s in (0.4, 0.8, 0.1)
    )
    first, second = coarse[0] - reference[0], fine[0] - reference[0]
    spread = np.hypot(fine[1], reference[1])
    assert first > 8 * np.hypot(coarse[1], reference[1])
    assert abs(second - first / 4) < 4 * spread


@pytest.mark.parametrize("phi", ["0", "2*x"])
@pytest.mark.parametrize(
    "tau",
    [0.05, "0.08/(1 + t/30)", {"steps": {"times": [7.3, 21.0], "values": [0.03, 0.08, 0.05]}}],
    ids=str,
)
def test_overlap_is_free_of_noise_and_of_second_order_where_it_is_closed(phi, tau):
    times = np.array([5.0, 20.0, 40.0])
    exact = closed_overlap(times, tau)
    errors = []
    for step in (0.1, 0.05, particles.STEP):
        found = paths(cubic(phi, tau), times, 60, range(3), step=step)
        assert np.ptp(found, axis=0) == pytest.approx(0.0, abs=1e-12)
        errors.append(np.abs(found[0] - exact).max())
    assert errors[-1] < 1.2e-4
    assert np.all(np.log2(np.array(errors[:-1]) / errors[1:]) > 1.8)


@pytest.mark.parametrize("row", GOLDEN["ica_conditional_gaussian"]["rows"], ids=str)
def test_law_given_the_feature_is_the_exact_normal_one(row):
    limit = cubic("0", row["tau"], q0=row["Q0"], moments=(row["m4"], row["m6"]))
    seen = last_seen(limit, row["t"], 40_000, stream(3))
    mean = row["A"] * row["Q0"] + row["B"]
    sd = np.sqrt(row["A"] ** 2 * (1 - row["Q0"] ** 2) + row["V"])
    for value in np.unique(seen["xi"]):
        z = seen["z"][seen["xi"] == value]
        assert stats.kstest(z, "norm", (mean * value, sd)).pvalue > 1e-4
        assert stats.kstest(z, "norm", (mean * value, 1.1 * sd)).pvalue < 1e-4


def test_a_random_prior_agrees_with_its_simulation_at_finite_n():
    prior, phi, times = {"bernoulli_gaussian": 0.3}, "0.5*sign(x)", [5.0, 15.0]
    start = {"overlap": 0.7, "exact": True}  # one source of noise less
    limit = cubic(phi, prior=prior)
    mean, error = mean_and_error(paths(limit, times, 5000, range(24)))
    ica = hdica.OnlineICA(tau=0.04, regularizer=phi, prior=prior, start=start)
    finite = hdica.simulate(ica, n=800, times=times, seeds=range(48))["Q"].values
    there, spread = mean_and_error(finite)
    allowed = 4 * np.hypot(error, spread)
    assert np.all(allowed < 6e-3)
    assert np.all(np.abs(mean - there) < allowed)
    without = closed_overlap(times, 0.04)  # the regularizer matters
    assert abs(without[1] - mean[1]) > 2 * allowed[1]


@pytest.mark.deep
def test_matching_takes_most_of_the_noise_and_of_the_bias_away(monkeypatch):
    golden, count, seeds = GOLDEN["ica_l1"], 200, range(300)
    times, exact = [40.0], golden["Q"][golden["t"].index(40.0)]
    matched = paths(cubic(), times, count, seeds, step=0.1)[:, 0]
    monkeypatch.setattr(particles, "matched", lambda w, xi, z: w)
    monkeypatch.setattr(particles, "matched", lambda w, xi, z: w)
    independent = paths(cubic(), times, count, seeds, step=0.1)[:, 0]
    assert matched.std() < independent.std() / 10
    # Bias of -2/count and more against one of some 0.04/count and that of the steps.
    assert exact - independent.mean() > 0.005
    assert abs(exact - matched.mean()) < 0.001


@pytest.mark.deep
def test_means_over_seeds_of_few_particles_are_biased_by_less_than_a_tenth_over_count():
    golden, count = GOLDEN["ica_l1"], 100
    index = [golden["t"].index(t) for t in (20.0, 40.0)]
    found = paths(cubic(), [20.0, 40.0], count, range(200))
    mean, error = mean_and_error(found)
    bias = np.abs(mean - np.array(golden["Q"])[index])
    assert np.all(error < 3e-4)
    assert np.all(bias < 0.1 / count + 4 * error)


def test_bits_depend_on_the_stream_alone():
    limit, few = cubic(tau={"steps": {"times": [3.0], "values": [0.04, 0.06]}}), [2.2, 9.7]
    many = np.sort(np.append(np.linspace(0.0, 12.0, 57), few))
    at = [np.flatnonzero(many == t)[0] for t in few]
    for name in ("Q", "R"):
        one, two = paths(limit, few, 500, [0, 1], name)
        assert np.array_equal(one, paths(limit, many, 500, [0], name)[0, at])
        assert np.array_equal(one, paths(limit, few, 500, [0], name)[0])
        assert not np.any(one == two)


def test_what_is_observed_is_what_is_measured():
    seen = []

    def observe(xi, z, index):
        with pytest.raises(ValueError, match="read-only"):
            z[0] = 0.0
        seen.append((index, np.mean(xi * z), np.mean(z * 0.27 * np.sign(z)), np.mean(z * z)))

    values, _ = particles.run(
        sparse_pca(), np.array([0.0, 0.3, 2.0]), 400, stream(0), observe=observe
    )
    index, q, r, norm = np.array(seen).T
    assert index.tolist() == [0, 1, 2]
    assert q == pytest.approx(values[OVERLAP], abs=1e-14)
    assert r == pytest.approx(values[PENALTY], abs=1e-14)
    assert norm == pytest.approx(1.0, abs=1e-14)


def test_a_start_has_its_overlap_exactly_and_its_normal_law():
    for limit, q0 in ((cubic(), 0.7), (sparse_pca(prior=SPARSE), np.sqrt(0.3 / 2))):
        seen = last_seen(limit, 0.0, 1000, stream(1))
        assert np.mean(seen["xi"] * seen["z"]) == pytest.approx(q0, abs=1e-12)
        mean, variance = limit.start.conditional(seen["xi"])
        rest = (seen["z"] - mean) / np.sqrt(variance)
        # Quantiles are far closer to the law than the 0.02 of independent numbers.
        assert stats.kstest(rest, "norm").statistic < 0.01


@pytest.mark.parametrize(
    ("phi", "reason"), [("exp(exp(x**4))", "not finite at t = 0"), ("sign(x)", "needed 3 steps")]
)
def test_what_cannot_be_followed_says_so(monkeypatch, phi, reason):
    monkeypatch.setattr(particles, "MAX_STEPS", 3)
    values, diverged = particles.run(cubic(phi), np.array([0.0, 30.0]), 300, stream(0))
    assert reason in diverged
    assert np.isnan(values[OVERLAP][1])
    assert np.isfinite(values[OVERLAP][0]) == (phi == "sign(x)")


@pytest.mark.parametrize(
    ("options", "name"), [({"count": 3}, "count = 3"), ({"count": 50, "step": 0.0}, "step = 0.0")]
)
def test_refusals_name_the_value(options, name):
    count = options.pop("count")
    with pytest.raises(hdica.HdicaError, match=name):
        particles.run(cubic(), np.array([1.0]), count, stream(0), **options)


def test_the_velocity_is_gamma_of_equation_15_word_by_word():
    """Wang and Lu 2017, with phi = 0.27 sign(x), tau = 0.5 and Lambda = 2 g."""
    limit, rng = sparse_pca(), np.random.default_rng(5)
    xi, z = limit.prior.feature(rng, 200), rng.standard_normal(200)
    now = particles.cloud(limit, xi, z)
    assert (now.q, now.r) == pytest.approx((np.mean(xi * z), 0.27 * np.mean(np.abs(z))), rel=1e-12)
    for q, r in ((now.q, now.r), (0.6, 0.2)):
        spread = 0.25 * (1 + q * q)
        gamma = 0.5 * q * xi - 0.27 * np.sign(z) - z * (0.5 * q * q - r + spread / 2)
        found = particles.velocity(limit, xi, now, (q, r), 0.5)
        assert found == pytest.approx(gamma, rel=1e-12)
        assert 2 * limit.diffusion(q, 0.5) == pytest.approx(spread, rel=1e-12)


def test_steps_end_at_jumps_and_do_not_creep_up_to_them():
    limit = cubic("0", {"steps": {"times": [7.3, 21.0], "values": [0.03, 0.08, 0.05]}})
    xi = np.ones(50)
    z = particles.normalised(0.7 * xi + np.random.default_rng(0).standard_normal(50))
    path = particles.steps(limit, xi, z, np.random.default_rng(1), 0.1)
    taken = list(itertools.takewhile(lambda step: step.t < 30.0, path))
    ends, lengths = [s.end for s in taken], np.array([s.end - s.t for s in taken])
    assert {7.3, 21.0} <= set(ends)
    assert np.sum(lengths < 0.3 * np.median(lengths)) <= 2
