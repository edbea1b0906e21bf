"""Simulations of tensorial ICA against golden numbers and against its limits."""

import numpy as np
import pytest
from scipy import stats

import hdica
from tests.systems.tensorial_ica.golden import GOLDEN, median_error

TWO_PHASE = GOLDEN["lj_twophase"]["cases"]
PHASE_ONE = GOLDEN["lj_phase1_success"]["cases"]


def trained(case, seeds):
    given = {"T": case["T"], "c1": case["c1"]} | ({"c2": case["c2"]} if "c2" in case else {})
    ten = hdica.TensorialICA(
        dimension=case["d"], source=case.get("src", "rademacher"), schedule=given
    )
    found = hdica.simulate(ten, times=[0], seeds=seeds, method="training", timeout=None)
    return ten, found


@pytest.mark.deep
@pytest.mark.parametrize("case", TWO_PHASE, ids=lambda c: f"{c['src']}-{c['d']}-{c['T']}")
def test_two_phase_medians_are_those_of_other_code_and_within_ten_percent_of_the_prediction(case):
    seeds = max(24, min(case["n"], int(6e8 / (case["d"] * case["T"]))))
    ten, found = trained(case, seeds)
    tan2 = found["tan2"].values
    assert np.all(tan2 <= 1 / 3)
    median, error = np.median(tan2), median_error(tan2)
    theirs = (case["q75"] - case["q25"]) / 1.349 * 1.2533 / np.sqrt(case["n"])
    assert abs(median - case["med_tan2"]) <= 4 * np.hypot(error, theirs)
    expected = float(hdica.limit(ten, times=[0], method="two_phase")["tan2"])
    assert abs(median / expected - 1) <= 0.1 + 3 * error / expected


@pytest.mark.parametrize(("d", "c2"), [(3, 0.3), (10, 0.3), (10, 1.0)])
def test_a_second_phase_alone_ends_where_its_path_and_its_noise_say(d, c2):
    ten = hdica.TensorialICA(
        dimension=d,
        source="rademacher",
        schedule={"T": 40_000, "c2": c2},
        start={"angle": 0.3},
    )
    tan2 = hdica.simulate(ten, times=[0], seeds=400, method="training")["tan2"].values
    found = hdica.limit(ten, times=[0], method="two_phase")
    mean, error = float(found["mean"]), tan2.std(ddof=1) / 20
    assert abs(tan2.mean() - mean) <= 4 * error + 0.02 * mean
    assert abs(np.median(tan2) - found["tan2"]) <= 4 * median_error(tan2) + 0.02 * mean


@pytest.mark.parametrize("case", PHASE_ONE, ids=lambda c: f"{c['c1']}-{c['d']}-{c['kappa']}")
def test_phase_one_succeeds_as_often_as_in_other_code(case):
    _, found = trained(case, min(case["n"], max(40, int(1.2e9 / (case["d"] * case["T"])))))
    warm = found["half"].values <= 1 / 3
    ours, theirs = int(warm.sum()), round(case["p"] * case["n"])
    table = [[ours, warm.size - ours], [theirs, case["n"] - theirs]]
    assert stats.fisher_exact(table).pvalue > 1e-4


@pytest.mark.parametrize("name", GOLDEN["lj_stationary_mc"]["cases"])
def test_the_stationary_level_is_met_to_its_second_order(name):
    """Averages over ten relaxation times, from starts that have forgotten the axis."""
    case = GOLDEN["lj_stationary_mc"]["cases"][name]
    source, d, eta = name.split("_")
    ten = hdica.TensorialICA(
        dimension=int(d[1:]), source=source, eta=float(eta.removeprefix("eta")), start="axis"
    )
    beta = {"rademacher": 2.0, "uniform": 1.2, "laplace": 3.0}[source]
    unit = 1 / (beta * ten.eta)
    times = np.arange(5, 45, 0.5) * unit
    level = hdica.simulate(ten, times=np.floor(times), seeds=64)["tan2"].mean("time").values
    mean, error = level.mean(), level.std(ddof=1) / np.sqrt(level.size)
    assert abs(mean - case["sim"]) <= 4 * np.hypot(error, case["se"])
    s2, s0 = (float(hdica.stationary_error(ten)[k]) for k in ("S2", "S0"))
    assert abs(mean - s2) <= 0.006 * s2 + 3 * error
    assert abs(mean - s0) > 4 * error


@pytest.mark.parametrize("name", list(GOLDEN["lj_ou_max"]["mc"]))
def test_deviations_from_a_maximiser_grow_as_golden_ones_do(name):
    """Within 4 standard errors of other code, and of the linear law up to the quadratic term."""
    case = GOLDEN["lj_ou_max"]["mc"][name]
    _, source, dim = name.split("_")
    d = int(dim[1:])
    seeds = min(400, int(6e9 / (d * case["times"][-1])))
    ten = hdica.TensorialICA(dimension=d, source=source, eta=case["eta"], start="maximiser")
    v = hdica.simulate(ten, times=case["times"], seeds=seeds, extra=["v"])["v"].values
    found = np.sum((v - d**-0.5) ** 2, axis=2) / (d - 1)
    mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(mean - case["sim"]) <= 4 * np.hypot(error, case["se"]))
    law = hdica.limit(ten, times=case["times"], method="departure")["deviation"].values
    assert law == pytest.approx(case["th"], rel=1e-3)
    assert np.all(np.abs(mean - law) <= 4 * error + 0.03 * law)


def test_a_saddle_is_left_within_its_support_alone():
    """Off the support the process is stable, within it it grows, both as the law says."""
    d, k, eta = 8, 3, 2e-5
    ten = hdica.TensorialICA(dimension=d, source="uniform", eta=eta, start={"support": k})
    times = np.floor(np.array([0.5, 1.0]) / (1.2 * eta))
    v = hdica.simulate(ten, times=times, seeds=400, extra=["v"])["v"].values
    law = hdica.limit(ten, times=times, method="departure")
    outside = (v[:, :, k:] ** 2).mean(axis=2)
    inside = np.sum((v[:, :, :k] - k**-0.5) ** 2, axis=2) / (k - 1)
    for found, name in ((outside, "outside"), (inside, "inside")):
        error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
        away = np.abs(found.mean(axis=0) - law[name].values)
        assert np.all(away <= 4 * error + 0.02 * law[name].values)
    assert law["rate_outside"] == pytest.approx(-1 / k)
    assert law["rate_inside"] == pytest.approx(2 / k)


def test_the_ode_is_where_small_steps_go_and_two_percent_off_is_seen():
    start = {"v": [0.6, 0.5, -0.4, 0.35, 0.3]}
    ten = hdica.TensorialICA(dimension=5, source="rademacher", eta=2e-5, start=start)
    times = [0, 20_000, 40_000, 60_000]
    v = hdica.simulate(ten, times=times, seeds=64, extra=["v"])["v"].values
    limit = hdica.limit(ten, times=times)
    mean, error = v.mean(axis=0), v.std(axis=0, ddof=1) / 8
    assert np.all(np.abs(mean - limit["v"].values) <= 4 * error + 10 * ten.eta)
    wrong = hdica.limit(ten.model_copy(update={"eta": 1.02 * ten.eta}), times=times)["v"].values
    assert np.abs((mean - wrong) / (error + 1e-12))[1:].max() > 5
    assert np.all(limit["tan2_error"].values <= 1e-12)


def test_annealing_falls_with_no_logarithm():
    """t E tan^2 -> (d - 1) mu6/beta^2 for eta = 1/(beta (t + t0))."""
    ten = hdica.TensorialICA(
        dimension=10, source="uniform", start="axis", schedule={"anneal": 1, "t0": 2000}
    )
    last = 200_000
    tan2 = hdica.simulate(ten, times=[last], seeds=200)["tan2"].values[:, 0]
    expected = 9 * (27 / 7) / 1.2**2 / last
    assert abs(tan2.mean() - expected) <= 4 * tan2.std(ddof=1) / np.sqrt(200) + 0.03 * expected


def test_an_estimated_sign_learns_what_a_known_one_does():
    given = {"dimension": 10, "source": "laplace", "eta": 1e-5, "start": "uniform"}
    known = hdica.TensorialICA(**given)
    guessed = hdica.TensorialICA(**given, sign="estimated")
    times = [100_000, 300_000]
    sims = [hdica.simulate(one, times=times, seeds=64) for one in (known, guessed)]
    assert np.all(sims[1]["update_sign"].values[:, -1] == 1)
    ends = [sim["tan2"].values[:, -1] for sim in sims]
    assert stats.ks_2samp(*ends).pvalue > 1e-3
    assert max(np.median(end) for end in ends) < 0.01


def test_escape_from_the_top_takes_the_time_of_its_law():
    case = GOLDEN["lj_escape_from_max"]["cases"]["maxstart_d5_eta2e-05"]
    ten = hdica.TensorialICA(dimension=5, source="rademacher", eta=2e-5, start="maximiser")
    times = np.arange(0, 800_000, 1000)
    tan2 = hdica.simulate(ten, times=times, seeds=400)["tan2"].values
    assert np.all(tan2[:, -1] < 1 / 3)
    first = times[np.argmax(tan2 <= 1 / 3, axis=1)] - 500
    scaled = 2 * ten.eta * first
    error = scaled.std(ddof=1) / 20
    assert abs(scaled.mean() - case["sim"]) <= 4 * np.hypot(error, case["se"])
    law = hdica.traverse_times(ten)
    assert 2 * ten.eta * float(law["N1"]) == pytest.approx(case["th"], rel=0.01)
    assert abs(first.mean() / float(law["N1"]) - 1) <= 4 * error / scaled.mean() + 0.01
    middle = float(law["N1_quantiles"].sel(quantile=0.5))
    assert abs(np.median(first) / middle - 1) <= 5 * median_error(first) / middle + 0.01


@pytest.mark.parametrize("d", [5, 20])
def test_uniform_starts_take_the_time_of_the_transient(d):
    ten = hdica.TensorialICA(dimension=d, source="rademacher", eta=2e-5)
    times = np.arange(0, 400_000, 1000)
    tan2 = hdica.simulate(ten, times=times, seeds=300)["tan2"].values
    assert np.all(tan2[:, -1] < 1 / 3)
    first = times[np.argmax(tan2 <= 1 / 3, axis=1)]
    law = hdica.traverse_times(ten)
    error = first.std(ddof=1) / np.sqrt(first.size)
    # Noise holds the path back near saddles: by a few percent at this step size.
    assert abs(first.mean() - float(law["N2"])) <= 4 * error + 0.03 * float(law["N2"]) + 500
