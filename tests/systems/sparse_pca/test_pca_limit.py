"""Online sparse PCA at finite n against independent simulations and the limit."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

from hdica.ingredients.save import NOTHING, Save
from tests.finite.runs import run_chain, run_vector
from tests.systems.sparse_pca.test_rule import make_pca, streams, trials

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/finite_pca.json").read_text())
EXAMPLE = {"prior": {"sparse": 0.05}, "start": {"normal": {"mean": 0.5**0.5, "var": 0.5}}}
OIST = "0.27*sign(x)"
LEVEL = 4.0  # standard errors
# p times the bias at t = 1, 2, 3, 5, 15 is of this size. Measured with other seeds, p = 200 (1500
# trials) and 500 (300): Q -0.7(5), -1.6(7), -4.8(10), -17.7(12), -8(1) and -1.8(16), -3.8(25),
# -8(3), -24(4), -2(3), the 8 from trials that are still on their way at t = 15, which p = 1000
# has not (0.2(9)); R at most 0.4(1) and 0.5(2); rates of the support 2.6(7) and 3(4).
BIAS = {"Q": np.array([2, 4, 9, 27, 2]), "R": np.array([0.3, 0.4, 0.6, 1.0, 0.3]), "rate": 3.0}


def mean_and_error(values):
    return np.mean(values, axis=0), np.std(values, axis=0, ddof=1) / np.sqrt(len(values))


def example_2(omega, p, times, count, save=NOTHING):
    rule = make_pca(OIST, omega=omega, **EXAMPLE)
    found = [run_vector(rule, times, p, streams(p, seed), save)[0] for seed in range(count)]
    return {name: mean_and_error([f[name] for f in found]) for name in found[0]}


@pytest.fixture(scope="module")
def simulated():
    thresholds = (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    save = Save((1.0, 15.0), (-1.0, 0.0, 1.0), thresholds)
    return example_2(1.0, 1000, np.array([1.0, 2.0, 3.0, 5.0, 15.0]), 40, save)


def independent():
    golden = GOLDEN["oist_example2_simulated"]
    early, late = golden["p1000_100reps"], golden["p1000_20reps_t15"]
    return np.array([*early["Q"], late["Q"]]), np.array([*early["se"], late["se"]])


def test_mean_overlap_agrees_with_independent_simulations(simulated):
    (mean, error), (other, spread) = simulated["Q"], independent()
    assert np.all(np.abs(mean - other) < LEVEL * np.hypot(error, spread))
    late = GOLDEN["oist_example2_simulated"]["p1000_20reps_t15"]
    mean, error = simulated["R"]
    assert abs(mean[-1] - late["R"]) < LEVEL * np.hypot(error[-1], late["R_se"])


def test_a_signal_twenty_percent_off_does_not_agree_with_them():
    # Negative control of the test above, in size what its error bars can tell for certain.
    mean, error = example_2(0.8, 1000, np.array([1.0, 2.0, 3.0, 5.0]), 30)["Q"]
    other, spread = independent()
    assert np.any(np.abs(mean - other[:4]) > LEVEL * np.hypot(error, spread[:4]))


def test_mean_overlap_and_energy_agree_with_the_limit(simulated):
    golden = GOLDEN["oist_example2"]
    rows = [golden["t"].index(t) for t in (1, 2, 3, 5, 15)]
    for name in ("Q", "R"):
        mean, error = simulated[name]
        away = np.abs(mean - np.array(golden[name])[rows])
        assert np.all(away < LEVEL * error + BIAS[name] / 1000)


def test_support_recovery_agrees_with_the_limit(simulated):
    for row, t in enumerate(("1", "15")):
        golden = GOLDEN["oist_example2"]["roc"][t].values()
        for name, label in (("tpr", "TPR"), ("fpr", "FPR")):
            mean, error = simulated[name][0][row], simulated[name][1][row]
            limit = np.array([g[label] for g in golden])
            assert np.all(np.abs(mean - limit) < LEVEL * error + BIAS["rate"] / 1000)


@pytest.mark.deep
def test_chain_has_the_mean_and_the_spread_of_oja_s_limit():
    golden, n, count = GOLDEN["oja"], 2000, 800
    start = {"overlap": golden["Q0"], "exact": True}
    rule = make_pca(tau=golden["tau"], omega=golden["omega"], start=start)
    found = trials(run_chain, rule, np.array(golden["t"]), n, count)
    mean, error = mean_and_error(found)
    # With other seeds n times the bias is largest at t = 5: -6.6(3) at n = 250, -6.6(8) at 1000;
    # and the spread is within 3(2) % of its limit at n = 2000 (at 250 it is twice the limit).
    assert np.all(np.abs(mean - golden["Q"]) < LEVEL * error + 8 / n)
    spread = np.sqrt(n) * found.std(axis=0, ddof=1)
    relative = LEVEL / np.sqrt(2 * count) + 0.03
    assert spread == pytest.approx(np.array(golden["sqrt_p_sd"]), rel=relative)


def final_overlaps(variant, n, count):
    rule = make_pca(OIST, variant=variant, **EXAMPLE)
    return trials(run_vector, rule, np.array([4.0]), n, count)[:, 0]


def test_the_two_variants_differ_on_the_same_samples_by_order_n_to_minus_three_halves():
    """They treat abs(x~) < beta/n differently, by at most beta/n and with the sign of x~.

    About beta n entries a unit of time are there, each moves Q by about beta/n^2, and their
    signs are random: together beta^(3/2) n^(-3/2), below the 1/n by which both miss the limit.
    """
    sizes, counts = (100, 300, 900), (200, 60, 30)
    gaps = [
        final_overlaps("linearised", n, c) - final_overlaps("proximal", n, c)
        for n, c in zip(sizes, counts, strict=True)
    ]
    size = [np.sqrt(np.mean(g**2)) for g in gaps]
    order = -np.polyfit(np.log(sizes), np.log(size), 1)[0]
    assert order == pytest.approx(1.5, abs=0.25)
    for gap in gaps:
        assert abs(gap.mean()) < LEVEL * gap.std() / np.sqrt(gap.size)


@pytest.mark.deep
def test_below_every_threshold_one_entry_carries_what_the_bulk_does_not():
    """At t >> sqrt(p)/beta, x_1^2 = p (1 - m) with m near m0 = tau^4/(2 beta^2).

    The bulk feels the curvature 2h = -beta/x_1, which adds 20 |h|/(g lambda^4) to the second
    moment 2/lambda^2 of its Laplace law, lambda = beta/g, g = tau^2/2.
    """
    p, tau, beta, limit = 400, 0.5, 0.27, GOLDEN["uninformative"]["missing_mass"]
    g, rate = tau**2 / 2, beta / (tau**2 / 2)

    def excess(m):
        return 2 / rate**2 + beta / (2 * np.sqrt(p * (1 - m)) * g) * 20 / rate**4 - m

    expected = 1 - brentq(excess, 2 / rate**2, 0.8)
    assert 2 / rate**2 == pytest.approx(1 - limit, rel=1e-12)
    times = np.linspace(200, 400, 6)
    rule = make_pca(OIST, omega=0.05, tau=tau, **EXAMPLE)
    found = trials(run_vector, rule, times, p, 40, "largest")
    # First order in |h| only: 0.501, where these runs give 0.460(9) and others 0.476(13), and at
    # p = 800 0.523 against 0.509(6).
    assert abs(found.mean() - expected) < 0.08
    # With m0 > 1 (a weaker regularizer) nothing condenses.
    rule = make_pca("0.1*sign(x)", omega=0.05, tau=tau, **EXAMPLE)
    weak = trials(run_vector, rule, times, p, 1, "largest")
    assert weak.max() < 0.1
