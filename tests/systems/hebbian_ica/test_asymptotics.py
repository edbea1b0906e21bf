"""Eigensystem (36) and annealing (18)-(21) of Hebbian ICA."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.systems.hebbian_ica.ode import (
    as_matrix,
    integrate,
    make_field,
    part_jacobians,
)
from hdica.systems.hebbian_ica.optimum import (
    annealed_decay,
    annealed_limit,
    critical_mu0,
    eigensystem,
    rates,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/hebbian_limit.json").read_text())
CUBIC = parse_formula("x**3")
CASES = [
    ([-1], ["uniform"]),
    ([-1, 1], ["uniform", "laplace"]),
    ([1, -1], ["laplace", "rademacher"]),
    ([-1, -1], ["laplace", "rademacher"]),  # not stable
    ([-1], ["uniform", "laplace"]),
    ([1, -1], [{"chi2": 4}, "uniform", "rademacher"]),
    ([-1, 1, 1], ["rademacher", "laplace"]),
    ([-1, 1, -1, 1], ["uniform", {"chi2": 3}]),
    ([1, 1, 1], [{"chi2": 5}]),
]
STABLE = [case for case in CASES if case != CASES[3]]


def laws(specs):
    return [make_source(spec) for spec in specs]


def known(case, phi=CUBIC):
    return rates(case[0], phi, laws(case[1]))


def jacobian_34(known):
    """J of (34) at ``[i, j, k, l]``, shape (K, M, K, M): d(dR_ij/dt)/dR_kl over mu, mu -> 0."""
    xi = np.pad(known.xi, (0, max(known.shape) - known.xi.size))
    out = np.zeros((*known.shape, *known.shape))
    for i, j in np.ndindex(*known.shape):
        out[i, j, i, j] -= xi[i] + xi[j] / 2
        if j < known.shape[0] and i < known.shape[1]:
            out[i, j, j, i] -= xi[i] / 2
    return out


@pytest.mark.parametrize("case", CASES, ids=str)
def test_34_is_the_jacobian_of_the_corrected_limit(case):
    field = make_field(case[0], CUBIC, laws(case[1]))
    learning, _ = part_jacobians(field, np.eye(*field.shape))
    assert jacobian_34(known(case)) == pytest.approx(learning, abs=1e-12)
    fixed, loss = field.parts(np.eye(*field.shape))
    assert fixed == pytest.approx(np.zeros(field.shape), abs=1e-13)
    assert known(case).loss == pytest.approx(loss, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_eigenmatrices_are_a_complete_set(case):
    found = eigensystem(known(case))
    basis, j = as_matrix(found.matrices), as_matrix(jacobian_34(known(case)))
    assert j @ basis == pytest.approx(basis * found.values.ravel(), abs=1e-13)
    assert abs(np.linalg.det(basis)) > 1e-6


@pytest.mark.parametrize("text", ["x**3", "tanh(x)", "x*exp(-x**2/2)"])
def test_xi_needs_only_the_law_of_its_source(text):
    phi, law = parse_formula(text), make_source("laplace")
    x = law.nodes.points
    xi = law.nodes.mean(x * phi.value(x) - phi.derivative.value(x))
    found = rates([-1], phi, [law])
    assert found.xi == pytest.approx([-float(xi)], abs=1e-11)
    assert found.power == pytest.approx([float(law.nodes.mean(phi.value(x) ** 2))], rel=1e-11)


def test_the_slowest_decay_of_every_shape():
    xi = {"uniform": 1.2, "rademacher": 2.0, "laplace": 3.0}

    def slowest(sigma, sources):
        return eigensystem(known((sigma, sources))).values.max()

    assert slowest([-1], ["uniform"]) == pytest.approx(-2 * xi["uniform"])
    assert slowest([-1, -1], ["uniform", "rademacher"]) == pytest.approx(-1.6)
    # Twice the smallest xi is slower than the mean of the two smallest.
    assert slowest([-1] * 2, ["uniform", {"bernoulli_gaussian": 0.9}]) > 0
    assert slowest([-1, 1], ["uniform", {"bernoulli_gaussian": 0.25}]) == pytest.approx(-2.4)
    assert slowest([-1], ["uniform", "laplace"]) == pytest.approx(-xi["uniform"])
    assert slowest([-1, 1, 1], ["uniform", "laplace"]) == pytest.approx(-xi["uniform"] / 2)
    assert critical_mu0(known(([-1, 1, 1], ["uniform", "laplace"]))) == pytest.approx(2 / 1.2)


@pytest.mark.parametrize("case", STABLE, ids=str)
@pytest.mark.parametrize("mu0", [0.2, 1.3])
def test_19_and_20_solve_the_linear_equation(case, mu0):
    state = known(case)
    j, start = as_matrix(jacobian_34(state)), 50.0
    u0 = 1e-3 * np.random.default_rng(3).standard_normal(state.shape)
    times = np.array([50.0, 60.0, 400.0, 3000.0])

    def linear(t, u):
        return mu0 / t * (j @ u) + (mu0 / t) ** 2 * state.loss.ravel()

    solved = solve_ivp(
        linear, (50, 3000), u0.ravel(), t_eval=times, method="DOP853", rtol=1e-12, atol=1e-16
    )
    found = annealed_decay(state, mu0, start, u0, times)
    assert found.reshape(4, -1) == pytest.approx(solved.y.T, rel=1e-9, abs=1e-13)


def test_20_has_a_limit_where_its_denominator_vanishes():
    state = known(([-1], ["uniform"]))
    mu0, times = 1 / 2.4, np.array([10.0, 1e3])
    at = annealed_decay(state, mu0, 10.0, np.zeros((1, 1)), times)
    near = [annealed_decay(state, mu0 + d, 10.0, np.zeros((1, 1)), times) for d in (-1e-6, 1e-6)]
    assert at == pytest.approx((near[0] + near[1]) / 2, rel=1e-9)
    expected = -(mu0**2) * state.power[0] / 2 * np.log(times / 10) / times
    assert at[:, 0, 0] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("name", GOLDEN["annealing"])
def test_the_limit_reaches_21(name):
    row = GOLDEN["annealing"][name]
    shape = {"anneal_k1m1": (1, 1), "anneal_k2m2": (2, 2), "anneal_k3m2": (3, 2)}[name]
    sigma = [-1, -1, 1][: shape[0]]
    sources = laws(["uniform", "rademacher"][: shape[1]])
    state, mu0 = rates(sigma, CUBIC, sources), row["mu0"]
    assert state.xi == pytest.approx(row["xi"], abs=1e-13)
    expected = np.zeros(shape)
    expected[range(shape[1]), range(shape[1])] = row["th"]
    assert annealed_limit(state, mu0) == pytest.approx(expected, abs=1e-12)
    field, after = make_field(sigma, CUBIC, sources), np.array([0.0, 9e3, 2.9e4, 9.9e4, 9.99e5])
    start = 0.98 * np.eye(*shape) + 0.01 * (1 - np.eye(*shape))
    schedule = make_schedule(f"{mu0}/(1000 + t)")
    u = integrate(field.at, schedule, start, after, 1e-12).states - np.eye(*shape)
    for i in range(shape[1]):
        assert 1e6 * u[-1, i, i] == pytest.approx(row["th"][i], rel=1e-4)
        assert 1e6 * u[-1, i, i] == pytest.approx(row["U"][i][-1], rel=2e-5)
    if shape == (
        3,
        2,
    ):  # rows beyond the sources: -mu0 xi_j / 2, up to mu; twice that with (36) as printed
        slopes = np.log(u[2, 2] / u[1, 2]) / np.log(3.0)
        assert slopes == pytest.approx(row["offslopes"][2:], abs=0.015)


def test_19_and_20_are_the_limit_to_second_order():
    # Twice as far and as early: what is neglected must grow fourfold.
    sigma, sources, mu0 = [-1, 1], laws(["uniform", "laplace"]), 1.0
    field, state = make_field(sigma, CUBIC, sources), rates(sigma, CUBIC, sources)
    u0 = np.array([[-0.8, 0.3], [-0.2, -0.9]])
    gaps = []
    for scale in (1e-3, 5e-4):
        start = 10 / scale
        schedule = make_schedule(f"1/({start} + t)")
        after = np.array([0.0, start])
        exact = integrate(field.at, schedule, np.eye(2) + scale * u0, after, 1e-13).states - np.eye(
            2
        )
        found = annealed_decay(state, mu0, start, scale * u0, start + after)
        gaps.append(float(np.abs(exact - found)[1].max()))
        assert gaps[-1] < 0.02 * float(np.abs(exact[1]).max())
    assert gaps[1] == pytest.approx(gaps[0] / 4, rel=0.05)


@pytest.mark.parametrize("case", STABLE, ids=str)
def test_21_is_what_19_becomes(case):
    state = known(case)
    mu0 = 3 * critical_mu0(state)
    late = np.array([1e12])
    found = 1e12 * annealed_decay(state, mu0, 1.0, np.full(state.shape, 0.01), late)[0]
    expected = annealed_limit(state, mu0)
    assert found == pytest.approx(expected, abs=1e-9 * np.abs(expected).max())
    diagonal = -(mu0**2) * state.power / (4 * mu0 * state.xi - 2)
    size = state.xi.size
    assert expected[range(size), range(size)] == pytest.approx(diagonal, rel=1e-12)


def test_the_optimal_mu0_is_the_minimum_of_21():
    system = hdica.HebbianICA(sources=["uniform", "laplace"], projections=2, sigma=[-1, 1], mu=0.1)
    best = hdica.asymptotics(system)
    assert best["mu0_optimal"].values == pytest.approx([1 / 1.2, 1 / 3.0])
    assert best["decay_optimal"].values == pytest.approx([-27 / 7 / 2 / 1.44, -90 / 18])
    alone = known(([-1], ["uniform"]))
    at, *beside = (-annealed_limit(alone, mu0)[0, 0] for mu0 in (1 / 1.2, 0.8, 0.9))
    assert at == pytest.approx(-best["decay_optimal"].values[0])
    assert min(beside) > at


def test_what_is_no_stable_state_is_refused_in_one_sentence():
    with pytest.raises(HdicaError, match="choose the other sign"):
        critical_mu0(known(([1], ["uniform"])))


@pytest.mark.filterwarnings("error")
def test_a_nonlinearity_that_vanishes_on_the_source_leaves_no_noise():
    """<phi^2> = 0 at R* for x^3 - x and a source of +-1: annealing has nothing to do there."""
    known = rates([-1], parse_formula("x**3 - x"), [make_source("rademacher")])
    assert known.xi == pytest.approx([2.0], rel=1e-14)
    assert known.power == pytest.approx([0.0], abs=1e-13)
    assert np.all(known.error < 1e-12)
    system = hdica.HebbianICA(mu=0.1, nonlinearity="x**3 - x", sources=["rademacher"], sigma=[-1])
    assert hdica.asymptotics(system)["decay_optimal"].values == pytest.approx([0.0], abs=1e-13)
