"""The limit (17) of Hebbian ICA."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from hdica.ingredients.formula import parse_formula
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.limits.overlap import drift as overlap
from hdica.systems.hebbian_ica.averages import mean_function
from hdica.systems.hebbian_ica.ode import integrate, make_field, solve
from hdica.systems.online_ica import system as online_ica

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/hebbian_limit.json").read_text())
PHI = {"cubic": "x**3", "tanh": "tanh(x)"}
MIXED = "k2_uniform_laplace_cubic_mixedsigma"


def field_of(row):
    sources = [make_source(spec) for spec in row["sources"]]
    return make_field(row["sigma"], parse_formula(PHI[row["phi"]]), sources)


def path_of(row):
    schedule = make_schedule(row["mu"])
    return solve(field_of(row), schedule, np.array(row["R0"]), np.array(row["times"]))


@pytest.mark.parametrize("name", GOLDEN["ode"])
def test_limit_matches_independent_numbers(name):
    row = GOLDEN["ode"][name]
    path = path_of(row)
    assert path.r == pytest.approx(np.array(row["R"]), abs=row["tolerance"])
    assert np.all(path.error < 5e-9)
    assert float(np.abs(path.control - path.r).max()) > 1e-4


@pytest.mark.parametrize("name", GOLDEN["ode"])
def test_limit_agrees_with_the_mean_of_simulations(name):
    # Largest |z| of at most eight entries; the chain at n = 2000 differs from its limit by
    # about 1/n, and Laplace sources have skewed means.
    row = GOLDEN["ode"][name]
    drawn = row["chain"]["2000"]
    gap = np.abs(path_of(row).r[-1] - np.array(drawn["mean"]))
    assert np.all(gap < 4 * np.array(drawn["standard_error"]) + 1 / 2000)


def test_sigma_stands_on_both_sides_of_its_averages():
    """(17) as printed, with sigma on the left only, is 100 standard errors off at mixed signs."""
    row = GOLDEN["ode"][MIXED]
    average = mean_function(parse_formula("x**3"), [make_source(spec) for spec in row["sources"]])
    sigma, mu = np.diag(row["sigma"]), row["mu"]

    def printed(_, flat):
        r = flat.reshape(2, 2)
        phi_s, phi_y, phi_phi = average(r)
        learning = sigma @ phi_s - sigma @ (phi_y + phi_y.T) @ r / 2
        return (mu * learning - mu**2 * phi_phi @ r / 2).ravel()

    end = float(row["times"][-1])
    solved = solve_ivp(printed, (0, end), np.ravel(row["R0"]), rtol=1e-10, atol=1e-12)
    wrong, right = solved.y[:, -1].reshape(2, 2), path_of(row).r[-1]
    assert wrong == pytest.approx(np.array(row["R_printed_order"]), abs=1e-8)
    assert right[0, 1] == pytest.approx(0.102467, abs=1e-6)
    drawn = row["chain"]["2000"]
    mean, error = drawn["mean"][0][1], drawn["standard_error"][0][1]
    assert abs(right[0, 1] - mean) < 4 * error
    assert abs(wrong[0, 1] - mean) > 100 * error


@pytest.mark.parametrize(
    ("mu", "integral"),
    [
        (0.5, lambda t: 0.25 * t),
        ("1/(1 + t)", lambda t: 1 - 1 / (1 + t)),
        (
            {"steps": {"times": [1.0, 2.5], "values": [1.0, 0.5, 2.0]}},
            lambda t: np.minimum(t, 1) + 0.25 * np.clip(t - 1, 0, 1.5) + 4 * np.maximum(t - 2.5, 0),
        ),
    ],
)
def test_a_linear_nonlinearity_only_forgets(mu, integral):
    # phi = x has <y y'> = I: L = 0 and D = -R/2 for any signs, so R = R0 exp(-int mu^2/2).
    sources = [make_source("laplace"), make_source({"chi2": 3}), make_source("uniform")]
    field = make_field([1, -1], parse_formula("x"), sources)
    start = np.array([[0.5, 0.1, -0.3], [0.0, 0.6, 0.2]])
    times = np.array([0.0, 0.5, 1.0, 2.0, 2.5, 4.0])
    path = solve(field, make_schedule(mu), start, times)
    expected = np.exp(-integral(times) / 2)[:, None, None] * start
    assert path.r == pytest.approx(expected, abs=1e-10)
    wrong = np.exp(-1.02 * integral(times) / 2)[:, None, None] * start
    assert path.control == pytest.approx(wrong, abs=1e-9)


@pytest.mark.parametrize(
    ("source", "phi", "sigma"),
    [
        ("uniform", "x**3", -1),
        ("laplace", "x**3", 1),
        ({"chi2": 4}, "x**3 + 0.2*x**2", 1),
        ("uniform", "tanh(x)", 1),
        ("uniform", "x*abs(x)", -1),
        ({"bernoulli_gaussian": 0.3}, "tanh(x)", -1),
    ],
    ids=str,
)
def test_one_projection_of_one_source_is_online_ica(source, phi, sigma):
    f = phi if sigma == -1 else f"-({phi})"
    system = online_ica.OnlineICA(tau=0.05, source=source, nonlinearity=f)
    times, schedule = np.linspace(0, 40, 5), make_schedule(0.05)
    other = overlap.solve(online_ica.drift(system), schedule, 0.7, 0.0, times)
    field = make_field([sigma], parse_formula(phi), [make_source(source)])
    path = solve(field, schedule, np.array([[0.7]]), times)
    assert np.all(np.abs(path.r[:, 0, 0] - other.q) <= path.error[:, 0, 0] + other.error)
    assert np.all(path.error < (1e-5 if field.phi.kinks else 1e-8))


def test_the_path_of_one_projection_matches_independent_numbers():
    row = GOLDEN["scalar"]["path"]
    field = make_field([-1], parse_formula("x**3"), [make_source(row["source"])])
    path = solve(
        field, make_schedule(row["mu"]), np.array([[row["R0"]]]), np.array(row["times"], float)
    )
    assert path.r[:, 0, 0] == pytest.approx(row["R"], abs=1e-9)


@pytest.mark.parametrize("text", ["x**3", "tanh(x)", "x**2"])
def test_nothing_is_learned_from_nothing(text):
    sources = [make_source({"chi2": 3}), make_source("laplace")]
    field = make_field([1, -1], parse_formula(text), sources)
    path = solve(field, make_schedule(0.1), np.zeros((2, 2)), np.array([0.0, 5.0, 30.0]))
    assert np.all(path.r == 0.0)


def test_error_falls_with_the_tolerance_and_bounds_it():
    row = GOLDEN["ode"][MIXED]
    field, times = field_of(row), np.array(row["times"])
    schedule, start = make_schedule(row["mu"]), np.array(row["R0"])
    exact = integrate(field.at, schedule, start, times, 1e-13).states
    errors = [
        float(np.abs(integrate(field.at, schedule, start, times, tol).states - exact).max())
        for tol in (1e-4, 1e-6, 1e-8, 1e-10)
    ]
    assert all(later < earlier / 5 for earlier, later in pairwise(errors))
    path = solve(field, schedule, start, times)
    assert np.all(np.abs(path.r - exact) <= path.error)


def test_error_bounds_what_quadrature_adds():
    # A polynomial through the quadrature of other functions: x**3 as a formula that hides it.
    sources = [make_source("uniform"), make_source("laplace")]
    exact = make_field([-1, 1], parse_formula("x**3"), sources)
    hidden = make_field([-1, 1], parse_formula("x**3 + 0*abs(x) + 1e-300*sin(x)"), sources)
    assert exact.exact
    assert not hidden.exact
    times, start = np.array([0.0, 20.0]), np.array([[0.7, 0.2], [-0.1, 0.6]])
    one, other = (solve(f, make_schedule(0.02), start, times) for f in (exact, hidden))
    assert np.all(np.abs(one.r - other.r) <= one.error + other.error)
    assert np.all(other.error < 1e-6)
