"""Online sparse PCA: kernels against plain NumPy, pathwise and in law."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from hdica.errors import HdicaError
from hdica.finite.random.streams import point_stream, run_length
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.priors import make_prior
from hdica.ingredients.save import Save
from hdica.ingredients.schedules import make_schedule, make_signal
from hdica.ingredients.starts import make_start
from hdica.systems.sparse_pca.rule import PCARule, oja_chain_refusal, proximal_refusal
from tests.finite.runs import run_chain, run_vector
from tests.reference import ChainNumbers, LaneNormals, online_sparse_pca_vector, soft_threshold

KS_LEVEL = 1e-4  # some thirty tests: a false alarm in a rewrite of the streams once in 300


def make_pca(phi="0", prior="dense", start=None, tau=0.5, omega=1.0, variant="linearised"):
    return PCARule(
        omega=make_signal(omega),
        prior=make_prior(prior),
        start=make_start(start or {"overlap": 0.5}),
        schedule=make_schedule(tau),
        regularizer=parse_formula(phi),
        variant=variant,
    )


def streams(n, seed=1, label="test"):
    return lambda part: point_stream({"law": label}, "pca", n, seed, part)


def trials(run, rule, times, n, count, name="Q"):
    def one(seed):
        values, diverged = run(rule, times, n, streams(n, seed, run.__name__))
        assert diverged == ""
        return values[name]

    return np.array([one(seed) for seed in range(count)])


ETAS = {
    "0": lambda x, p: x,
    "3*x": lambda x, p: x - 3 * x / p,
    "2*sign(x)": lambda x, p: x - 2 * np.sign(x) / p,
    "2*sign(x) - x/2": lambda x, p: x - (2 * np.sign(x) - x / 2) / p,
    "tanh(3*x) + x**2/5": lambda x, p: x - (np.tanh(3 * x) + x**2 / 5) / p,
}
PROXIMAL = {
    "0": lambda x, p: x,
    "3*x": lambda x, p: x / (1 + 3 / p),
    "4*sign(x)": lambda x, p: soft_threshold(x, 4 / p),
    "4*sign(x) + 2*x": lambda x, p: soft_threshold(x, 4 / p) / (1 + 2 / p),
}
CASES = [
    *(("linearised", phi, eta) for phi, eta in ETAS.items()),
    *(("proximal", phi, eta) for phi, eta in PROXIMAL.items()),
]


@pytest.mark.parametrize("tau", [0.5, "0.5/(1 + t)"])
@pytest.mark.parametrize(("variant", "phi", "eta"), CASES)
def test_vector_follows_the_printed_rule_step_by_step(variant, phi, eta, tau):
    n, steps = 12, 30
    rule = make_pca(phi, {"sparse": 0.5}, tau=tau, omega=1.7, variant=variant)
    got, diverged = run_vector(rule, np.array([steps / n]), n, streams(n))
    assert diverged == ""
    rng = streams(n)("start")
    xi = rule.prior.feature(rng, n)
    x = rule.start.estimate(rng, xi)
    sizes = rule.schedule.value(np.arange(steps) / n)
    sources = LaneNormals(streams(n)("source")).standard_normal(run_length(0))[:steps]
    noise = LaneNormals(streams(n)("noise"))
    x = online_sparse_pca_vector(noise, xi, x, sizes, 1.7, lambda x: eta(x, n), sources)
    assert got["Q"][0] == pytest.approx(xi @ x / n, rel=1e-10)
    assert got["R"][0] == pytest.approx(np.mean(x * rule.regularizer.value(x)), rel=1e-9, abs=1e-12)
    assert got["largest"][0] == pytest.approx(np.max(x**2) / n, rel=1e-10)


def test_the_proximal_eta_minimises_what_it_should():
    p, a, b = 10, 4.0, 2.0
    for x in (-1.3, -0.39, 0.2, 0.7):

        def penalised(u, x=x):
            return (u - x) ** 2 / 2 + (a * abs(u) + b * u**2 / 2) / p

        found = minimize_scalar(penalised, bounds=(-3, 3), options={"xatol": 1e-10})
        assert PROXIMAL["4*sign(x) + 2*x"](x, p) == pytest.approx(found.x, abs=1e-6)


@pytest.mark.parametrize("n", [20, 100, 500])
@pytest.mark.parametrize(
    ("prior", "start"),
    [("dense", {"overlap": 0.5}), ({"sparse": 0.3}, {"normal": {"mean": 0.7, "var": 0.5}})],
    ids=str,
)
def test_chain_and_vector_are_equal_in_law(prior, start, n):
    rule, times = make_pca(prior=prior, start=start), np.array([0.0, 1.0, 4.0])
    count = 800 if n <= 100 else 150
    vector, chain = (trials(run, rule, times, n, count) for run in (run_vector, run_chain))
    for k in range(times.size):
        assert stats.ks_2samp(vector[:, k], chain[:, k]).pvalue > KS_LEVEL


@pytest.mark.parametrize("n", [3, 5])
def test_chain_is_exact_in_law_in_few_dimensions_too(n):
    rule, times = make_pca(tau="2/(1 + t)", omega=2.0), np.array([3.0])
    vector, chain = (trials(run, rule, times, n, 1000) for run in (run_vector, run_chain))
    assert stats.ks_2samp(vector[:, 0], chain[:, 0]).pvalue > KS_LEVEL


@pytest.mark.deep
def test_ks_notices_a_step_size_that_is_fifteen_percent_off():
    # Negative control of the tests above.
    n, count, times = 100, 1200, np.array([8.0])
    start = {"overlap": 0.5, "exact": True}
    right = trials(run_vector, make_pca(tau=0.8, start=start), times, n, count)
    wrong = trials(run_chain, make_pca(tau=0.92, start=start), times, n, count)
    assert stats.ks_2samp(right[:, 0], wrong[:, 0]).pvalue < KS_LEVEL


@pytest.mark.parametrize("n", [3, 4, 50])
def test_chain_follows_its_formula_step_by_step_with_numpy_s_numbers(n):
    steps, rule = 200, make_pca(tau=0.3, omega=1.7)
    got, _ = run_chain(rule, np.array([steps / n]), n, streams(n))
    q = rule.start.draw_overlap(streams(n)("start"), n)
    numbers = ChainNumbers(streams(n)("noise"))
    for c in LaneNormals(streams(n)("source")).standard_normal(run_length(0))[:steps]:
        v, (e, rest), s = np.sqrt(2.7) * c, numbers.draw(n), np.sqrt(1 - q * q)
        g = 0.3 / n * (q * v + s * e)
        q = (q + g * v) / np.sqrt((q + g * v) ** 2 + (s + g * e) ** 2 + g * g * rest)
    assert got["Q"][0] == pytest.approx(q, rel=1e-8)


@pytest.mark.parametrize("run", [run_vector, run_chain])
def test_a_linear_regularizer_is_inert(run):
    n, times = 20, np.arange(12) / 20
    plain = run(make_pca(), times, n, streams(n))[0]["Q"]
    weak = run(make_pca("6*x"), times, n, streams(n))[0]["Q"]
    proximal = run(make_pca("30*x", variant="proximal"), times, n, streams(n))[0]
    assert weak == pytest.approx(plain, rel=1e-12)
    assert proximal["Q"] == pytest.approx(plain, rel=1e-12)
    assert proximal["R"] == pytest.approx(np.full(12, 30.0), rel=1e-12)


@pytest.mark.deep
def test_a_linear_regularizer_above_n_turns_the_vector_round_at_every_step():
    n, times = 20, np.array([0.5, 0.55])
    plain, turned, chain = (
        trials(run, make_pca(phi), times, n, 800)
        for run, phi in [(run_vector, "0"), (run_vector, "30*x"), (run_chain, "30*x")]
    )
    assert turned == pytest.approx(plain * [1, -1], rel=1e-10)
    for k in range(times.size):
        assert stats.ks_2samp(turned[:, k], chain[:, k]).pvalue > KS_LEVEL


@pytest.mark.parametrize("run", [run_vector, run_chain])
def test_a_trajectory_does_not_depend_on_when_it_is_recorded(run):
    rule, n = make_pca(tau="0.5/(1 + t/5)"), 50
    few = trials(run, rule, np.array([0.0, 100.0]), n, 2)
    many = trials(run, rule, np.linspace(0, 100, 301), n, 2)
    assert np.array_equal(few, many[:, [0, -1]])


JUMP = {"steps": {"times": [3.0], "values": [0.5, 1e200]}}


@pytest.mark.parametrize(
    ("run", "rule", "why"),
    [
        (
            run_vector,
            make_pca("200*sign(x)", variant="proximal"),
            "every entry to zero at step",
        ),
        (run_vector, make_pca(tau=JUMP), "not finite at step"),
        (run_chain, make_pca(tau=JUMP), "not finite at step"),
        (run_vector, make_pca("20*x"), "every entry to zero at step 0 "),
        (run_chain, make_pca("20*x"), "every entry to zero at step 0 "),
    ],
    ids=["threshold", "vector", "chain", "vector by a factor 0", "chain by a factor 0"],
)
def test_divergence_is_recorded_with_step_and_time(run, rule, why):
    save = (Save((0.0, 9.0), (-1.0, 1.0), (0.5,), {"second": "x**2"}),)
    more = save if run is run_vector else ()
    values, diverged = run(rule, np.array([0.0, 9.0]), 20, streams(20), *more)
    assert why in diverged
    assert "(t = " in diverged
    for name in values.keys() - {"xi", "weight"}:
        assert np.all(np.isfinite(np.delete(values[name], 1, axis=0)) | (name == "fpr"))
        assert np.all(np.isnan(values[name][1]))


def test_refusals_name_the_regularizer_and_what_is_allowed():
    assert proximal_refusal(make_pca("0.2*sign(x) + x")) == ""
    assert oja_chain_refusal(make_pca("2*x")) == ""
    for phi in ("tanh(x)", "-sign(x)", "sign(x) - x"):
        assert repr(phi) in proximal_refusal(make_pca(phi))
    with pytest.raises(HdicaError, match="exact only for the regularizers 0 and beta"):
        run_chain(make_pca("sign(x)"), np.array([1.0]), 20, streams(20))
    with pytest.raises(HdicaError, match="n = 2 is not allowed"):
        run_chain(make_pca(), np.array([1.0]), 2, streams(2))
