"""Fluctuations of order n^-1/2 about the limit of Hebbian ICA."""

import json
from pathlib import Path

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.limits.overlap import drift as overlap
from hdica.systems.hebbian_ica.fluctuations import noise, solve_fluctuations
from hdica.systems.hebbian_ica.ode import integrate, make_field
from hdica.systems.online_ica import system as online_ica

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/hebbian_limit.json").read_text())
PHI = {"cubic": "x**3", "tanh": "tanh(x)"}
MIXED = GOLDEN["ode"]["k2_uniform_laplace_cubic_mixedsigma"]


def field_of(row):
    sources = [make_source(spec) for spec in row["sources"]]
    return make_field(row["sigma"], parse_formula(PHI[row["phi"]]), sources)


@pytest.mark.parametrize(
    ("source", "phi", "sigma"),
    [
        ("uniform", "x**3", -1),
        ("laplace", "x**3", 1),
        ({"chi2": 4}, "x**3 + 0.2*x**2", 1),
        ("uniform", "tanh(x)", 1),
    ],
    ids=str,
)
def test_one_projection_of_one_source_fluctuates_as_online_ica(source, phi, sigma):
    f = phi if sigma == -1 else f"-({phi})"
    system = online_ica.OnlineICA(tau=0.03, source=source, nonlinearity=f)
    times, schedule = np.linspace(0, 40, 5), make_schedule(0.03)
    other = overlap.solve(online_ica.drift(system), schedule, 0.7, 0.0, times).spread
    field = make_field([sigma], parse_formula(phi), [make_source(source)])
    found = solve_fluctuations(field, schedule, np.array([[0.7]]), times)
    gap = np.abs(found.covariance[:, 0, 0, 0, 0] - other**2)
    assert np.all(gap <= found.error[:, 0, 0, 0, 0] + 1e-9)
    assert float(found.error.max()) < 3e-4
    assert found.spread[1:, 0, 0] == pytest.approx(other[1:], rel=1e-4)


@pytest.mark.parametrize(
    "name", [name for name in GOLDEN["ode"] if not name.endswith("tanh_mixedsigma")]
)
def test_spread_of_simulations_at_large_n(name):
    # The standard deviation of 400 runs at n = 2000 is known to 1/sqrt(2 * 399) = 3.5 %; 4.5 of
    # these are allowed for up to four entries, whose laws have somewhat heavier tails.
    row = GOLDEN["ode"][name]
    drawn = row["chain"]["2000"]
    times = np.array([0.0, row["times"][-1]])
    found = solve_fluctuations(field_of(row), make_schedule(row["mu"]), np.array(row["R0"]), times)
    seen = np.array(drawn["standard_error"]) * np.sqrt(drawn["runs"] * 2000)
    assert np.all(np.abs(seen / found.spread[-1] - 1) < 4.5 * 0.0354)


@pytest.mark.deep
def test_what_a_start_adds_is_carried_by_the_flow():
    """S0 = v v' adds (Phi v)(Phi v)', with the derivative Phi of the limit by its start."""
    field, schedule = field_of(MIXED), make_schedule(MIXED["mu"])
    start, times = np.array(MIXED["R0"]), np.array([0.0, 15.0, 40.0])
    v = np.array([[0.3, -1.0], [0.5, 0.8]])
    ends = [
        integrate(field.at, schedule, start + h * v, times, 1e-12).states for h in (-1e-4, 1e-4)
    ]
    carried = (ends[1] - ends[0]) / 2e-4
    added = np.einsum("tij,tkl->tijkl", carried, carried)
    without, with_start = (
        solve_fluctuations(field, schedule, start, times, s0).covariance
        for s0 in (None, np.einsum("ij,kl->ijkl", v, v))
    )
    assert with_start - without == pytest.approx(added, abs=1e-5)
    assert float(np.abs(added - np.einsum("tijkl->tjilk", added)).max()) > 0.1


def test_noise_is_that_of_single_steps():
    """Cov(xi) against a sample of steps at n -> infinity, with R and Q as they change there."""
    field, r, mu, count = field_of(MIXED), np.array(MIXED["R0"]), 0.05, 400_000
    rng = np.random.default_rng(5)
    s = np.stack([law.sample(rng, count) for law in field.sources], axis=1)
    root = np.linalg.cholesky(np.eye(2) - r @ r.T)
    y = s @ r.T + rng.standard_normal((count, 2)) @ root.T
    p = mu * field.sigma * field.phi.value(y)
    xi = np.empty((count, 2, 2))
    for i, j in np.ndindex(2, 2):
        dq = sum(
            (p[:, i] * y[:, k] + y[:, i] * p[:, k] + p[:, i] * p[:, k]) * r[k, j] for k in (0, 1)
        )
        xi[:, i, j] = p[:, i] * s[:, j] - dq / 2
    flat = xi.reshape(count, 4) - xi.reshape(count, 4).mean(0)
    products = flat[:, :, None] * flat[:, None]
    error = products.std(0) / np.sqrt(count)
    z = np.abs(noise(field)(r, mu) - products.mean(0)) / error
    assert float(z.max()) < 4.5
    other = np.abs(noise(field)(r, 1.1 * mu) - products.mean(0)) / error
    assert float(other.max()) > 10


@pytest.mark.parametrize("text", ["x**3", "tanh(x)"])
def test_random_starts_stay_random_about_zero(text):
    """About R = 0, S' = mu^2 P (1 - S): of order n^-1/2 and of variance 1/n for ever."""
    phi, mu, times = parse_formula(text), 0.1, np.array([0.0, 4.0, 20.0])
    sources = [make_source("uniform")]
    field = make_field([1, -1], phi, sources)
    power = 15.0 if text == "x**3" else 0.394294490
    one = np.eye(2).reshape(2, 1, 2, 1)
    random = solve_fluctuations(field, make_schedule(mu), np.zeros((2, 1)), times, one)
    fixed = solve_fluctuations(field, make_schedule(mu), np.zeros((2, 1)), times)
    assert random.covariance == pytest.approx(np.array([one] * 3), abs=1e-4)
    grown = 1 - np.exp(-power * mu**2 * times)
    assert fixed.covariance == pytest.approx(grown[:, None, None, None, None] * one, abs=1e-4)


def test_covariances_are_symmetric_and_start_from_nothing():
    field, schedule = field_of(MIXED), make_schedule(MIXED["mu"])
    start, times = np.array(MIXED["R0"]), np.array([0.0, 40.0])
    found = solve_fluctuations(field, schedule, start, times)
    assert found.covariance == pytest.approx(np.einsum("tijkl->tklij", found.covariance), abs=1e-12)
    assert np.all(found.covariance[0] == 0)
    assert float(found.error.max()) < 1e-5
    assert np.all(found.spread[1] > 0.1)


def test_what_has_no_finite_noise_is_refused_in_one_sentence():
    heavy, plain = make_source({"student": 9}), make_source("uniform")
    with pytest.raises(HdicaError, match="kinks"):
        noise(make_field([1], parse_formula("sign(x)"), [plain]))
    with pytest.raises(HdicaError, match="no finite moment of order 12"):
        noise(make_field([1], parse_formula("x**3"), [heavy]))
    with pytest.raises(HdicaError, match="quadrature points"):
        noise(make_field([1] * 4, parse_formula("x**3"), [plain] * 4))


@pytest.mark.deep
def test_the_bands_of_the_limit_are_those_of_the_central_limit_theorem() -> None:
    system = hdica.HebbianICA(
        mu=0.05, sources=["uniform", "rademacher"], projections=2, nonlinearity="x**3"
    )
    asked = hdica.limit(system, times=[0, 20], bands=True)
    known = hdica.limit(system, times=[0, 20], method="clt")
    assert asked.attrs["method"] == "ode"
    np.testing.assert_array_equal(asked.R_sd, known.R_sd)
    np.testing.assert_array_equal(asked.R, known.R)
    again = hdica.limit(system, times=[0, 20], method="clt", bands=True)
    np.testing.assert_array_equal(again.R_sd, known.R_sd)
    batches = system.model_copy(update={"batch": 4})
    with pytest.raises(hdica.HdicaError, match="central limit theorem"):
        hdica.limit(batches, times=[0, 20], bands=True)
