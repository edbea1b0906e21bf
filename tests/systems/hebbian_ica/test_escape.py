import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import expon, ks_2samp

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.escape import escape_law, limit_range, near_zero, optimum, scaled_time
from hdica.systems.hebbian_ica.escape_times import (
    Race,
    escape,
    finite_range,
    first_escape,
    last_escape,
    last_survival,
    one_step,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/hebbian_escape.json").read_text())
CUBIC, TANH = parse_formula("x**3"), parse_formula("tanh(x)")
FORMULA = {"cubic": CUBIC, "tanh": TANH}
UNIFORM, RADEMACHER, LAPLACE = (make_source(s) for s in ("uniform", "rademacher", "laplace"))
ALONE = {"uniform": -1, "rademacher": -1, "laplace": 1}


def alone(source, nu, **more):
    return escape([source], CUBIC, [ALONE[source.label]], nu, **more)


@pytest.mark.parametrize("name", GOLDEN["limit"])
def test_the_limit(name):
    source, phi, nu = name.split("_")
    trap, nu = near_zero(FORMULA[phi], make_source(source)), float(nu.removeprefix("nu"))
    row = GOLDEN["limit"][name]
    for start, want, tolerance in (("zero", row["T0"], 2e-6), ("random", row["Tavg"], 4e-5)):
        time = scaled_time(trap.depth(nu), start).mean / (trap.power * nu**2)
        assert time == pytest.approx(want, rel=tolerance)


def test_small_learning_rates_are_slow_too():
    # F -> 1.6431 g^-1/2, so that T = F/(P nu^2) grows like nu^-3/2: not what the text says.
    gaps = [
        scaled_time(g).mean * math.sqrt(g) / GOLDEN["scaled_time"]["small_nu"] - 1
        for g in (1e4, 1e6)
    ]
    assert abs(gaps[1]) < abs(gaps[0]) / 5 < 0.01


def test_the_optimum_is_universal():
    want = GOLDEN["scaled_time"]["optimum"]
    for start, which in (("zero", "0"), ("random", "avg")):
        best = optimum(start)
        assert best.depth == pytest.approx(want[f"g{which}"], rel=2e-6)
        assert best.value == pytest.approx(want[f"v{which}"], rel=2e-6)
        for factor in (0.95, 1.05):
            g = factor * best.depth
            assert scaled_time(g, start).mean * g * g > best.value * 1.0005
    found = alone(UNIFORM, 1.0)
    assert found.nu_optimal.item() == pytest.approx(1.2587, abs=5e-5)
    assert found.mean_optimal.item() == pytest.approx(1.56429, abs=5e-6)
    best = optimum("zero")
    for source, nu, time in ((RADEMACHER, 1.9926, 0.53791), (LAPLACE, 2.9888, 0.23907)):
        trap = near_zero(CUBIC, source)
        assert optimum("random").nu(trap) == pytest.approx(nu, abs=6e-5)
        assert optimum("random").time(trap) == pytest.approx(time, abs=6e-6)
        assert best.nu(trap) > optimum("random").nu(trap)


def test_the_exponent_is_twice_the_printed_one():
    trap = near_zero(CUBIC, UNIFORM)

    def log_time(nu):
        return scaled_time(trap.depth(nu)).log_mean

    slope = (log_time(16.0) - log_time(12.0)) / 4
    assert slope == pytest.approx(GOLDEN["scaled_time"]["slope"]["slope"][-1], rel=1e-6)
    assert slope == pytest.approx(trap.exponent(1.0), rel=2e-3)
    assert abs(slope / (trap.exponent(1.0) / 2) - 1) > 0.9


@pytest.mark.parametrize("name", GOLDEN["finite"]["cases"])
def test_finite_n(name):
    source, n, nu = name.split("_")
    source, n, nu = make_source(source), int(n[1:]), float(nu[2:])
    trap = near_zero(CUBIC, source)
    one = finite_range(CUBIC, source, trap, nu, n, "random", 0.8)
    law = escape_law(one)
    assert law.mean == pytest.approx(GOLDEN["finite"]["cases"][name], rel=1e-3)
    assert law.passage.error < 1e-9


def test_a_hundred_dimensions_are_far_from_the_limit():
    assert alone(UNIFORM, 4.0, n=100, start="random").mean.item() == pytest.approx(585, abs=0.5)
    assert alone(UNIFORM, 4.0, start="random").mean.item() == pytest.approx(10.32, abs=5e-3)


def test_finite_n_tends_to_the_limit_like_one_over_n():
    want = alone(UNIFORM, 2.0).mean.item()
    gaps = [alone(UNIFORM, 2.0, n=n).mean.item() / want - 1 for n in (4000, 40_000, 400_000)]
    assert gaps[0] / gaps[1] == pytest.approx(10, rel=0.2)
    assert gaps[1] / gaps[2] == pytest.approx(10, rel=0.05)


@pytest.mark.parametrize("case", GOLDEN["simulated"]["chain"], ids=lambda c: f"{c['src']}{c['nu']}")
def test_simulated_chains(case):
    found = alone(make_source(case["src"]), case["nu"], n=case["N"], start="random")
    # The diffusion is an approximation: 10 % in general, 20 % where eta is large (n = 50).
    allowed = 0.2 if case["N"] == 50 else 0.1
    assert abs(found.mean.item() - case["mean"]) < 3 * case["se"] + allowed * case["mean"]


@pytest.mark.parametrize(("phi", "source"), [(CUBIC, LAPLACE), (TANH, UNIFORM)])
def test_moments_of_one_step_against_simulation(phi, source):
    q, n, count = 0.5, 40, 2_000_000
    rng = np.random.default_rng(2)
    s, e = source.sample(rng, count), rng.standard_normal(count)
    rest = rng.chisquare(n - 2, count)
    y = s * q + e * math.sqrt(1 - q * q)
    square = phi.value(y) ** 2
    moments = one_step(phi, source, 0.8)
    series = (
        (moments.learning(q / 0.8), phi.value(y) * (s - q * y)),
        (moments.noise(q / 0.8), square * (s - q * y) ** 2),
        (
            moments.rest(q / 0.8) + n * q * moments.power(q / 0.8),
            square * (q * (s * s + e * e + rest) - 3 * q * y * y + 2 * s * y),
        ),
    )
    for value, sample in series:
        assert abs(sample.mean() - value) < 4 * sample.std() / math.sqrt(count)
        assert abs(value) > 8 * sample.std() / math.sqrt(count)


def test_near_zero_the_moments_are_those_of_the_limit():
    n, nu, r = 10**9, 3.0, np.array([0.5, 1.0, 2.0])
    trap = near_zero(TANH, LAPLACE)
    found = one_step(TANH, LAPLACE, 0.8).diffusion(n, nu, trap.sigma, trap.power)
    assert found.drift(r) == pytest.approx(-r / 2 + trap.depth(nu) * r**3, rel=1e-6)
    assert found.variance(r) == pytest.approx(np.ones(3), rel=1e-6)


def test_moments_and_survival_belong_together():
    law = escape_law(limit_range(near_zero(CUBIC, UNIFORM), 1.0, "random"))
    t = np.linspace(0, 60, 60_001)
    left = law.survival(t)
    assert np.trapezoid(left, t) == pytest.approx(law.mean, rel=1e-5)
    second = np.trapezoid(2 * t * left, t)
    assert math.sqrt(second - law.mean**2) == pytest.approx(law.sd, rel=1e-5)
    assert law.survival(np.array([law.median])) == pytest.approx([0.5], abs=1e-9)
    assert law.error < 1e-4


def test_deep_traps_have_an_exponential_law():
    found = alone(UNIFORM, 400.0)
    assert found.median.item() == pytest.approx(found.mean.item() * math.log(2), rel=1e-9)
    assert found.first == pytest.approx(found.mean.item(), rel=1e-9)
    deeper = alone(UNIFORM, 600.0)
    assert (deeper.mean.item(), deeper.first) == (math.inf, math.inf)
    assert deeper.laws[0][0].log_mean == pytest.approx(
        near_zero(CUBIC, UNIFORM).log_kramers(600.0), abs=1e-3
    )


def exponential(rate):
    return lambda t: rate * t


def test_races_of_exponential_clocks_in_closed_form():
    equal = Race((3,), (2,), [[exponential(1.0)]], 1.0, 1.0)
    assert first_escape(equal) == pytest.approx(1 / 6, rel=1e-9)
    assert last_escape(equal) == pytest.approx(1 / 6 + 1 / 2, rel=1e-9)
    # Two projections of different sign, each with its own source.
    pair = Race((1, 1), (1, 1), [[exponential(1.0), None], [None, exponential(4.0)]], 0.25, 1.0)
    assert first_escape(pair) == pytest.approx(1 / 5, rel=1e-9)
    assert last_escape(pair) == pytest.approx(1 + 1 / 4 - 1 / 5, rel=1e-8)
    # One projection, two sources of different strength: it can have only one.
    single = Race((1,), (1, 1), [[exponential(1.0), exponential(3.0)]], 1 / 3, 1.0)
    assert last_escape(single) == pytest.approx(1 / 4, rel=1e-8)


def test_the_law_of_the_last_escape_in_closed_form():
    t = np.array([3.0, 0.0, 0.2, 1.0, 6.0])
    # Two projections and two sources: the first of four clocks, then the one that is left.
    square = Race((2,), (2,), [[exponential(1.0)]], 1.0, 1.0)
    assert last_survival(square, t) == pytest.approx((4 * np.exp(-t) - np.exp(-4 * t)) / 3)
    pair = Race((1, 1), (1, 1), [[exponential(1.0), None], [None, exponential(4.0)]], 0.25, 1.0)
    both = 1 - (1 - np.exp(-t)) * (1 - np.exp(-4 * t))
    assert last_survival(pair, t) == pytest.approx(both, abs=1e-4)
    # Clocks whose rate grows, two projections, one source: the law is that of the first.
    slow = Race((2,), (1,), [[lambda t: t**2]], 1.0, 1.0)
    assert last_survival(slow, t) == pytest.approx(np.exp(-2 * t**2), abs=1e-12)


@pytest.mark.deep
def test_the_law_of_the_last_escape_has_its_mean():
    found = escape([UNIFORM, LAPLACE], CUBIC, [-1, 1], 1.0, n=200, start="random")
    t = np.linspace(0, 40 * found.last, 40_001)
    assert np.trapezoid(found.survival_last(t), t) == pytest.approx(found.last, rel=1e-3)
    assert np.trapezoid(found.survival(t), t) == pytest.approx(found.first, rel=1e-3)


def of_independent_copies(clock, shape):
    """First and last escape of races between independent entries, in plain Python."""
    found = []
    for one in clock.reshape(-1, *shape):
        left, times = one.copy(), []
        for _ in range(min(shape)):
            i, j = np.unravel_index(left.argmin(), shape)
            times.append(left[i, j])
            left[i, :] = left[:, j] = math.inf
        found.append((times[0], times[-1]))
    return np.array(found).T


def chains(k, m, nu, n, seeds):
    system = hdica.HebbianICA(
        sources=["rademacher"] * m, projections=k, sigma=[-1] * k, nu=nu, threshold=0.8
    )
    found = hdica.simulate(
        system, n=n, times=[0, 60.0 * n**2], seeds=seeds, method="escape_times", timeout=None
    )
    assert found["last_seen"].values.all()
    return system, found["first"].values.ravel(), found["last"].values.ravel()


@pytest.mark.deep
def test_chains_race_like_independent_copies_at_a_rate_that_traps():
    """K = M = 2 beside chains of one entry: no diffusion, and no law, comes in between."""
    n, nu = 30, 1.0
    _, alone, _ = chains(1, 1, nu, n, 1600)
    _, first, last = chains(2, 2, nu, n, 400)
    copies = of_independent_copies(alone, (2, 2))
    assert ks_2samp(first, copies[0]).pvalue > 1e-3
    assert ks_2samp(last, copies[1]).pvalue > 1e-3
    # Negative controls: the larger of two first escapes, and the last of four without a rule.
    pairs = alone.reshape(-1, 2, 2)
    assert ks_2samp(last, pairs.min(axis=2).max(axis=1)).pvalue < 1e-3
    assert ks_2samp(last, pairs.max(axis=(1, 2))).pvalue < 1e-3


def test_races_against_simulation():
    rng, runs = np.random.default_rng(4), 40_000
    rates = np.array([[1.0, 3.0], [1.0, 3.0]])
    clock = expon.rvs(size=(runs, 2, 2), random_state=rng) / rates
    first = clock.reshape(runs, 4).argmin(axis=1)
    left = clock[np.arange(runs), 1 - first // 2, 1 - first % 2]
    race = Race((2,), (1, 1), [[exponential(1.0), exponential(3.0)]], 1 / 3, 1.0)
    assert abs(last_escape(race) - left.mean()) < 4 * left.std() / math.sqrt(runs)


@pytest.mark.parametrize("shape", GOLDEN["simulated"]["rademacher_N100_nu2"])
def test_first_escapes_of_several_entries(shape):
    k, m = (int(c) for c in shape.split(","))
    mean, error = GOLDEN["simulated"]["rademacher_N100_nu2"][shape]
    found = escape([RADEMACHER] * m, CUBIC, [-1] * k, 2.0, n=100, start="random")
    # The diffusion of a single entry is up to 10 % off at this n.
    assert abs(found.first - mean) < 2 * error + 0.1 * mean
    whole = alone(RADEMACHER, 2.0, n=100, start="random").mean.item()
    # Not quite exponential: the least of k m copies is a little later than 1/(k m).
    if k * m > 1:
        assert 1.0 < found.first * k * m / whole < 1.3


def test_the_last_escape_has_one_source_left():
    found = escape([UNIFORM] * 2, CUBIC, [-1, -1], 1.0, n=100, start="random")
    simulated = GOLDEN["simulated"]["uniform_N100_nu1_K2M2"]
    spread = found.sd[0, 0] / math.sqrt(simulated["runs"])
    assert abs(found.first - simulated["first"]) < 3 * spread
    assert abs(found.last - simulated["last"]) < 3 * spread
    # If both rows still had both sources, the last would come after about 1.2.
    assert found.last > 2.0


def test_entries_of_the_wrong_sign_never_escape():
    found = escape([UNIFORM, LAPLACE], CUBIC, [-1, 1], 1.0)
    assert np.isinf(found.mean).tolist() == [[False, True], [True, False]]
    assert found.laws[0][1] is None
    means = sorted(np.diag(found.mean))
    assert found.first < means[0]
    assert means[1] < found.last < sum(means)
    one = alone(UNIFORM, 1.0)
    assert one.first == one.last == one.mean.item()
    assert first_escape(one.race) == pytest.approx(one.mean.item(), rel=1e-5)
    assert last_escape(one.race) == pytest.approx(one.mean.item(), rel=1e-5)


def test_starts():
    times = [alone(UNIFORM, 2.0, start=r).mean.item() for r in ("zero", 1.0, 3.0)]
    assert times[0] > times[1] > times[2] > 0
    at = [alone(UNIFORM, 2.0, n=400, start=q).mean.item() for q in (0.0, -0.05, 0.05, 0.9)]
    assert at[0] > at[1] == at[2] > at[3] == 0.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sigma": [1]}, "no entry escapes"),
        ({"nu": 0.0}, "nu: 0.0"),
        ({"nu": 1e5}, "at most 10000 is computed"),
        ({"n": 2}, "at least K [+] M [+] 1 = 3"),
        ({"sources": [make_source("gaussian")]}, "no entry escapes"),
    ],
)
def test_refusals(change, words):
    request = {"sources": [UNIFORM], "phi": CUBIC, "sigma": [-1], "nu": 1.0}
    with pytest.raises(HdicaError, match=words):
        escape(**{**request, **change})
