"""The Fokker-Planck limit against golden numbers, closed forms and its own error estimate."""

import json
import math
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.polynomial import Chebyshev
from scipy.special import ndtr

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.priors import make_prior
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.starts import make_start
from hdica.limits.mean_field.density import march as density_march
from hdica.limits.mean_field.density import state as density_state
from hdica.limits.mean_field.density.solve import solve
from hdica.limits.mean_field.density.state import posed
from hdica.limits.mean_field.family import MeanField, Scaled
from hdica.limits.overlap import drift as overlap

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/fokker_planck.json").read_text())
PCA, ICA = GOLDEN["sparse_pca"], GOLDEN["online_ica"]
HALF = {"normal": {"mean": 0.5**0.5, "var": 0.5}}


def sparse_pca(phi="0.27*sign(x)", omega=1.0, tau=0.5, prior=None, start=None):
    return MeanField(
        make_prior(prior or {"sparse": 0.05}),
        make_start(start or HALF),
        make_schedule(tau),
        parse_formula(phi),
        lambda q, t: t * omega * q,
        lambda q, t: t * t * (1 + omega * q * q) / 2,
        lambda t: 1.0,
    )


def online_ica(m4, m6, tau, phi, prior, start):
    k = 3 - m4

    def power(q, t):
        return t * t * (15 - 15 * k * q**4 * (1 - q * q) + q**6 * (m6 - 15))

    return MeanField(
        make_prior(prior),
        make_start(start),
        make_schedule(tau),
        parse_formula(phi),
        lambda q, t: t * k * q**3,
        lambda q, t: power(q, t) / 2,
        lambda t: t,
    )


def detected(density, theta):
    """P(|x| > theta) at each node."""
    low, high = density.cdf(np.array([-theta, theta])).T
    return 1 - high + low


def points_agree(density, golden):
    found = density.at(np.array(golden["x"]))
    assert found == pytest.approx(np.array([golden["P_xi0"], golden["P_xi1"]]), abs=1e-6)


@pytest.fixture(scope="module")
def example2():
    return solve(
        sparse_pca(),
        np.array(PCA["t"]),
        snapshots=(1.0, 15.0),
        functionals={"Q": lambda xi, x: xi * x, "fourth": lambda xi, x: x**4},
    )


def test_example_2_of_sparse_pca(example2):
    assert example2.q == pytest.approx(PCA["Q"], abs=5e-8)
    assert example2.r == pytest.approx(PCA["R"], abs=5e-8)
    # 1e-9 is the accuracy of the golden numbers.
    assert np.all(np.abs(example2.q - PCA["Q"]) <= example2.q_error + 1e-9)
    assert np.all(np.abs(example2.r - PCA["R"]) <= example2.r_error + 1e-9)
    assert example2.q_error.max() <= 2e-7
    assert example2.stopped == ""


def test_conservation_constraint_and_multiplier(example2):
    assert example2.mass_error.max() < 1e-13
    assert example2.moment_error.max() < 1e-13
    assert example2.multiplier_error.max() < 1e-7
    field = sparse_pca()
    known = zip(example2.q, example2.r, strict=True)
    assert example2.curvature == pytest.approx([field.curvature(q, r, 0.5) for q, r in known])
    assert example2.pull == pytest.approx(0.5 * example2.q)


def test_densities_and_support_recovery_of_sparse_pca(example2):
    for density, t in zip(example2.densities, ("1", "15"), strict=True):
        points_agree(density, PCA["density"][t])
        for theta, rates in PCA["roc"][t].items():
            found = detected(density, float(theta))
            assert found == pytest.approx([rates["FPR"], rates["TPR"]], abs=1e-6)


def test_means_agree_with_the_densities(example2):
    assert example2.functionals["Q"] == pytest.approx(example2.q, abs=1e-14)
    for density, t in zip(example2.densities, (1.0, 15.0), strict=True):
        k = PCA["t"].index(t)
        assert density.mean(lambda xi, x: x * x) == pytest.approx(1, abs=2e-7)
        assert density.mean(lambda xi, x: xi * x) == pytest.approx(example2.q[k], abs=2e-7)
        fourth = example2.functionals["fourth"][k]
        assert density.mean(lambda xi, x: x**4) == pytest.approx(fourth, abs=3e-6)


def test_density_is_a_positive_law_and_its_cdf_increases(example2):
    for density in example2.densities:
        low, high = density.support()
        x = np.linspace(low, high, 2001)
        cdf = density.cdf(np.concatenate([[-1e3], x, [1e3]]))
        assert np.all(np.diff(cdf, axis=1) >= 0)
        assert cdf[:, 0] == pytest.approx(0, abs=0)
        assert cdf[:, -1] == pytest.approx(1, abs=1e-14)
        assert np.all(density.at(x) > 0)
        # The density is the slope of the distribution function, across the kink too.
        edges = np.linspace(-1, 1, 401)
        slope = np.diff(density.cdf(edges), axis=1) / np.diff(edges)
        assert slope == pytest.approx(density.at((edges[1:] + edges[:-1]) / 2), abs=1e-4)


@pytest.mark.parametrize("name", ["A1", "A2"])
def test_online_ica_with_l1(name):
    case = ICA[name]
    phi = f"{case['beta']}*sign(x)"
    prior = {"sparse": case["rho"]}
    field = online_ica(case["m4"], case["m6"], case["tau"], phi, prior, case["start"])
    snapshots = [float(t) for t in case["density"]]
    path = solve(field, np.array(case["t"]), snapshots=snapshots)
    assert path.q == pytest.approx(case["Q"], abs=1e-7)
    assert path.r == pytest.approx(case["R"], abs=1e-7)
    assert np.all(np.abs(path.q - case["Q"]) <= path.q_error + 1e-9)
    for density, t in zip(path.densities, case["density"], strict=True):
        points_agree(density, case["density"][t])
        for theta, rates in case["roc"].get(str(int(float(t))), {}).items():
            assert detected(density, float(theta))[::-1] == pytest.approx(rates, abs=1e-6)


def golden_case(name):
    """Field, times and Q of a case with golden numbers."""
    if name == "example 2":
        return sparse_pca(), np.array(PCA["t"]), np.array(PCA["Q"])
    case = ICA[name]
    prior, phi = {"sparse": case["rho"]}, f"{case['beta']}*sign(x)"
    field = online_ica(case["m4"], case["m6"], case["tau"], phi, prior, case["start"])
    return field, np.array(case["t"]), np.array(case["Q"])


@pytest.mark.parametrize("tolerance", [1e-4, 1e-5, 1e-6, 1e-7])
@pytest.mark.parametrize("name", ["example 2", "A1", "A2"])
def test_the_error_is_below_the_tolerance_and_below_its_estimate(name, tolerance):
    field, times, exact = golden_case(name)
    path = solve(field, times, tolerance=tolerance)
    assert path.q_error.max() <= tolerance
    assert np.all(np.abs(path.q - exact) <= path.q_error + 1e-9)
    assert path.moment_error.max() < 1e-13


def test_example_2_at_every_output_time_to_a_millionth():
    times = np.arange(51.0)
    path, finer = (solve(sparse_pca(), times, tolerance=e) for e in (1e-6, 1e-9))
    golden = np.isin(PCA["t"], times)
    shared = np.isin(times, PCA["t"])
    assert path.q[shared] == pytest.approx(np.array(PCA["Q"])[golden], abs=1e-6)
    assert finer.q[shared] == pytest.approx(np.array(PCA["Q"])[golden], abs=2e-9)
    assert np.abs(path.q - finer.q).max() <= 1e-6
    assert np.all(np.abs(path.q - finer.q) <= path.q_error + finer.q_error + 1e-15)
    assert path.cells * path.steps < finer.cells * finer.steps / 10


def test_a_looser_tolerance_costs_less():
    runs = [solve(sparse_pca(), np.array([0.0, 5.0]), tolerance=e) for e in (1e-5, 1e-6, 1e-7)]
    work = [run.cells * run.steps for run in runs]
    assert work[0] < work[1] < work[2]


@pytest.mark.parametrize("row", GOLDEN["gaussian"]["rows"], ids=lambda row: f"tau={row['tau']}")
def test_without_a_regularizer_each_atom_stays_normal(row):
    field = online_ica(
        row["m4"], row["m6"], row["tau"], "0", {"sparse_sign": 0.2}, {"overlap": row["Q0"]}
    )
    path = solve(field, np.array([0.0, row["t"]]), snapshots=(row["t"],))
    assert path.q[1] == pytest.approx(row["Q"], abs=1e-7)
    density = path.densities[0]
    mean = (row["A"] * row["Q0"] + row["B"]) * density.xi
    deviation = math.sqrt(row["A"] ** 2 * (1 - row["Q0"] ** 2) + row["V"])
    x = np.linspace(-4, 4, 81)
    z = (x - mean[:, None]) / deviation
    normal = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) / deviation
    assert density.at(x) == pytest.approx(normal, abs=1e-6)
    assert density.cdf(x) == pytest.approx(ndtr(z), abs=1e-6)


# dQ/dt = tau omega Q (1 - Q^2) - tau^2 Q (1 + omega Q^2)/2 at omega = 1, without a regularizer.
_ID = Chebyshev([0.0, 1.0])
OJA = overlap.Drift(_ID - _ID**3, -0.5 * (_ID + _ID**3))


@pytest.mark.parametrize(
    "tau",
    [0.5, {"steps": {"times": [1.0, 2.5], "values": [0.5, 0.3, 0.6]}}, "0.5/(1 + t/20)"],
    ids=str,
)
@pytest.mark.parametrize("phi", ["0", "0.3*x"])
def test_the_overlap_alone_gives_the_same_without_a_regularizer(phi, tau):
    times = np.array([0.0, 0.5, 1.0, 2.0, 2.5, 4.0])
    field = sparse_pca(phi=phi, tau=tau)
    q0 = field.start.overlap(field.prior)
    exact = overlap.solve(OJA, field.schedule, q0, 0.0, times).q
    path = solve(field, times)
    assert path.q == pytest.approx(exact, abs=1e-7)
    assert np.all(np.abs(path.q - exact) <= path.q_error + 1e-11)


def test_a_linear_part_of_the_regularizer_is_inert():
    times = np.array([0.0, 1.0, 3.0])
    plain = solve(sparse_pca("0.1*sign(x)"), times)
    elastic = solve(sparse_pca("0.1*sign(x) + 0.3*x"), times)
    assert elastic.q == pytest.approx(plain.q, abs=1e-7)
    assert elastic.r == pytest.approx(plain.r + 0.3, abs=1e-7)
    assert elastic.curvature == pytest.approx(plain.curvature - 0.3, abs=1e-7)


@pytest.mark.parametrize(
    "field",
    [
        sparse_pca("0.2*tanh(5*x)"),
        sparse_pca("0.1*sign(x) + 0.2*abs(x - 0.31) + 0.05*sign(x**2 - 0.5)"),
        sparse_pca(prior={"sparse_sign": 0.05}, start={"overlap": 0.3}),
        sparse_pca(tau={"steps": {"times": [0.7], "values": [0.5, 0.3]}}),
    ],
    ids=["smooth", "kinks", "sparse_sign", "jump"],
)
def test_the_error_estimate_holds_against_a_finer_run(field):
    times = np.array([0.0, 0.7, 1.5])
    rough = solve(field, times, tolerance=1e-4)
    fine = solve(field, times, tolerance=2e-10)
    assert fine.levels > rough.levels
    assert np.all(np.abs(rough.q - fine.q) <= rough.q_error + 1e-10)
    assert np.all(np.abs(rough.r - fine.r) <= rough.r_error + 1e-10)
    assert fine.multiplier_error.max() < 1e-7
    assert fine.mass_error.max() < 1e-13


TAUS = [0.5, {"steps": {"times": [0.7], "values": [0.5, 0.3]}}, "0.5/(1 + t/5)"]


@pytest.mark.parametrize("tau", TAUS, ids=str)
def test_coefficients_given_as_functions_are_tabulated(tau):
    times = np.array([0.0, 0.7, 1.5])
    plain = sparse_pca(tau=tau)
    series = replace(
        plain,
        pull=Scaled(plain.pull, Chebyshev([0.0, 1.0]), 1),
        diffusion=Scaled(plain.diffusion, Chebyshev([0.75, 0.0, 0.25]), 2),
    )
    one, other = (solve(f, times, tolerance=1e-5) for f in (plain, series))
    assert one.q == pytest.approx(other.q, abs=1e-12)
    assert one.r == pytest.approx(other.r, abs=1e-12)


def test_coefficients_need_not_be_powers_of_the_step_size():
    # Half the step size but twice the signal, and the other way round, is the same limit.
    times = np.array([0.0, 0.7, 1.5])
    plain = sparse_pca(tau="0.5/(1 + t/5)")
    twice = replace(
        sparse_pca(tau="0.25/(1 + t/5)"),
        pull=lambda q, t: 2 * t * np.sin(np.arcsin(q)),
        diffusion=lambda q, t: plain.diffusion(q, 2 * t),
    )
    assert solve(twice, times).q == pytest.approx(solve(plain, times).q, abs=1e-11)


@pytest.mark.parametrize("prior", [{"sparse_sign": 0.05}, "gaussian"], ids=str)
def test_mirror_images_among_the_nodes_are_solved_once(monkeypatch, prior):
    field, times = sparse_pca(prior=prior, start={"overlap": 0.3}), np.array([0.0, 1.0])
    asked = {
        "snapshots": (1.0,),
        "functionals": {"odd": lambda xi, x: xi * x**2 + x, "part": lambda xi, x: (xi > 0) * x},
        "tolerance": 1e-4,
    }
    half = solve(field, times, **asked)
    monkeypatch.setattr(density_state, "_symmetric", lambda *_: False)
    whole = solve(field, times, **asked)
    assert half.cells < 0.7 * whole.cells
    assert half.q == pytest.approx(whole.q, abs=1e-11)
    assert half.r == pytest.approx(whole.r, abs=1e-11)
    for name in asked["functionals"]:
        assert half.functionals[name] == pytest.approx(whole.functionals[name], abs=1e-11)
    x = np.linspace(-6, 7, 201)
    mine, theirs = half.densities[0], whole.densities[0]
    assert mine.at(x) == pytest.approx(theirs.at(x), abs=1e-10)
    assert mine.cdf(x) == pytest.approx(theirs.cdf(x), abs=1e-10)


def test_a_start_or_a_regularizer_without_the_symmetry_is_not_folded():
    for field in (
        sparse_pca(prior={"sparse_sign": 0.2}),
        sparse_pca("0.2*abs(x)", prior={"sparse_sign": 0.2}, start={"overlap": 0.3}),
        sparse_pca(start={"overlap": 0.3}),
    ):
        problem, places = posed(field)
        assert not problem.mirrored
        assert not places.flipped.any()
        assert problem.weights == pytest.approx(field.prior.nodes.weights)


def test_what_is_kept_does_not_change_a_bit():
    times = np.array([0.0, 0.5, 1.0, 2.5])
    plain = solve(sparse_pca(), times, tolerance=1e-5)
    kept = solve(
        sparse_pca(),
        times,
        tolerance=1e-5,
        snapshots=(0.5, 1.0),
        functionals={"m": lambda xi, x: x},
    )
    for name in ("q", "r", "q_error", "moment_error"):
        assert np.array_equal(getattr(plain, name), getattr(kept, name))


def test_a_sign_flip_of_the_feature_flips_the_overlap():
    times = np.array([0.0, 1.5])
    one, other = (
        solve(sparse_pca(prior={"sparse_sign": 0.05}, start={"overlap": s}), times)
        for s in (0.3, -0.3)
    )
    assert one.q == pytest.approx(-other.q, abs=1e-11)


def test_a_prior_with_a_continuous_part():
    field = sparse_pca(prior={"bernoulli_gaussian": 0.2}, start={"overlap": 0.5})
    path = solve(field, np.array([0.0, 1.0]), snapshots=(1.0,), tolerance=1e-5)
    assert path.q[0] == pytest.approx(0.5, abs=1e-9)
    assert path.moment_error.max() < 1e-13
    density = path.densities[0]
    assert density.xi.size == field.prior.nodes.points.size
    assert density.mean(lambda xi, x: xi * x) == pytest.approx(path.q[1], abs=1e-6)


def test_a_wrong_right_hand_side_is_told_apart():
    times, field = np.array([0.0, 1.0, 3.0]), sparse_pca()
    off = replace(
        field,
        pull=lambda q, tau: 1.02 * field.pull(q, tau),
        diffusion=lambda q, tau: 1.02 * field.diffusion(q, tau),
        strength=lambda tau: 1.02 * field.strength(tau),
    )
    right, wrong = solve(field, times), solve(off, times)
    # A factor on everything is a clock that runs 2 % fast.
    fast = solve(sparse_pca(), 1.02 * times)
    assert wrong.q == pytest.approx(fast.q, abs=2e-7)
    assert np.all(np.abs(wrong.q - right.q)[1:] > 1e3 * right.q_error[1:])


def test_the_condensing_phase_keeps_its_constraint_while_the_domain_grows():
    times = np.array([0.0, 5.0, 100.0, 400.0])
    path = solve(sparse_pca(omega=0.1), times, snapshots=(5.0, 400.0), tolerance=1e-5)
    assert path.stopped == ""
    assert path.moment_error.max() < 1e-13
    assert np.all(path.curvature < 0)
    # |2h| t -> 1 with logarithmic corrections, R -> tau^2/2, Q -> 0.
    assert -path.curvature[-1] * times[-1] == pytest.approx(1.1, abs=0.1)
    assert path.r[-1] == pytest.approx(0.125, abs=0.004)
    assert 0 < path.q[-1] < path.q[-2] < path.q[1]
    early, late = path.densities
    outside = [1 - d.cdf(np.array([60.0]))[0, 0] for d in (early, late)]
    assert outside[0] < 1e-12 < outside[1]


def test_a_run_it_cannot_afford_stops_with_a_sentence(monkeypatch):
    monkeypatch.setattr(density_march, "BUDGET", 1e5)
    times = np.array([0.0, 5.0, 1e4])
    path = solve(sparse_pca(omega=0.1), times, snapshots=(1e4,), functionals={"m": lambda xi, x: x})
    assert "condenses" in path.stopped
    assert path.stopped.count(". ") == 0
    for values in (path.q, path.r, path.curvature, path.pull, path.q_error, path.functionals["m"]):
        assert np.isfinite(values).tolist() == [True, True, False]
    assert np.all(np.isnan(path.densities[0].at(np.array([0.0]))))
    assert np.all(np.isnan(path.densities[0].cdf(np.array([0.0]))))


def test_the_dynamic_threshold_lies_between():
    lower = solve(sparse_pca(omega=0.24), np.array([0.0, 150.0]), tolerance=1e-4)
    upper = solve(sparse_pca(omega=0.265), np.array([0.0, 150.0]), tolerance=1e-4)
    assert lower.q[1] < 0.1 < lower.q[0] < 0.6 < upper.q[1]


@pytest.mark.parametrize(
    ("tau", "narrow"),
    [(1e-3, "0"), (1e-13, "0"), ({"steps": {"times": [1], "values": [0.5, 1e-9]}}, "1.0")],
)
def test_a_density_of_too_many_cells_is_refused_before_they_take_memory(tau, narrow):
    """With l1 the narrowest layer is of width tau^2: 15 million cells at 1e-3, which took 12 GB."""
    tracemalloc.start()
    try:
        words = rf"at t = {narrow}\d* that it needs .* cells \(at most 1e\+06: choose"
        with pytest.raises(HdicaError, match=words):
            solve(sparse_pca(phi="0.1*sign(x)", omega=3.0, tau=tau), np.array([0.0, 2.0]))
        assert tracemalloc.get_traced_memory()[1] < 1e8
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("start", [{"normal": {"mean": 1, "var": 0}}, {"overlap": 1.0}])
def test_a_start_without_a_density_is_refused(start):
    with pytest.raises(HdicaError, match=r"variance 0 .* 'particles'"):
        solve(sparse_pca(start=start), np.array([0.0, 1.0]))


def test_the_start_alone():
    path = solve(sparse_pca(), np.array([0.0]), snapshots=(0.0,))
    assert path.q == pytest.approx([PCA["Q"][0]], abs=1e-10)
    normal = math.exp(-0.5) / math.sqrt(math.pi)
    assert path.densities[0].at(np.array([0.0]))[0, 0] == pytest.approx(normal, abs=1e-9)
