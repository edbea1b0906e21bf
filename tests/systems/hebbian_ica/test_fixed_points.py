"""Jacobian and fixed points of the limit of Hebbian ICA."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hdica
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.overlap.fixed_points import find_fixed_points
from hdica.systems.hebbian_ica.averages import mean_function
from hdica.systems.hebbian_ica.ode import (
    as_matrix,
    eigenvalues,
    jacobian,
    make_field,
    part_jacobians,
)
from tests.systems.hebbian_ica.single_states import optimal_point, scalar_drift

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/hebbian_limit.json").read_text())
CUBIC = parse_formula("x**3")
SIGMA = {"uniform": -1, "rademacher": -1, "laplace": 1}


def laws(*specs):
    return [make_source(spec) for spec in specs]


@pytest.mark.parametrize("source", SIGMA)
def test_critical_mu_has_ten_digits(source):
    system = hdica.HebbianICA(mu=0.1, sources=[source], sigma=[SIGMA[source]])
    found = hdica.critical(system)["value"].values
    assert found == pytest.approx([GOLDEN["scalar"]["critical_mu"][source]], abs=6e-11)


@pytest.mark.parametrize("source", SIGMA)
def test_all_fixed_points_of_one_projection(source):
    law, sigma = make_source(source), SIGMA[source]
    k4, m6 = law.moment(4) - 3, law.moment(6)
    for mu, pair in GOLDEN["scalar"]["q_unstable_stable"][source].items():
        found = find_fixed_points(scalar_drift(sigma, CUBIC, law), float(mu))
        unstable, stable = found.q[found.q > 0] ** 2
        assert [unstable, stable] == pytest.approx(pair, abs=1e-9)
        assert found.stable.tolist() == [True, False, True, False, True]
        for q in (unstable, stable):
            loss = float(mu) * (15 + 15 * k4 * q**2 * (1 - q) + (m6 - 15) * q**3)
            assert 2 * abs(k4) * q * (1 - q) == pytest.approx(loss, abs=1e-12)


def test_a_wrong_sign_has_no_critical_mu():
    assert hdica.critical(hdica.HebbianICA(mu=0.1, sigma=[1]))["value"].size == 0


@pytest.mark.parametrize("row", GOLDEN["jacobian"], ids=lambda row: str(row["xi"]))
def test_eigenvalues_of_the_limit_match_independent_numbers(row):
    source_of = {1.2: "uniform", 2.0: "rademacher", 3.0: "laplace"}
    names = [source_of[xi] for xi in row["xi"]]
    sigma = [SIGMA[name] for name in names] + [1] * (row["K"] - len(names))
    field = make_field(sigma, CUBIC, laws(*names))
    learning, _ = part_jacobians(field, np.eye(row["K"], row["M"]))
    found = np.sort(np.linalg.eigvals(as_matrix(learning)).real)
    assert found == pytest.approx(row["eigs_sorted"], abs=1e-12)
    if row["K"] > row["M"]:
        assert np.abs(found - row["eigs_if_36_as_printed"]).max() > 0.4


def test_the_printed_order_of_sigma_is_unstable_at_mixed_signs():
    """(17) as printed has an eigenvalue above zero where (14) holds, against (34)."""
    average, sigma = mean_function(CUBIC, laws("uniform", "laplace")), np.diag([-1.0, 1.0])
    columns = []
    for unit in np.eye(4).reshape(4, 2, 2):
        r = np.eye(2) + 1e-30j * unit
        phi_s, phi_y, _ = average(r)
        printed = sigma @ phi_s - sigma @ (phi_y + phi_y.T) @ r / 2
        columns.append(printed.imag.ravel() / 1e-30)
    found = np.sort(np.linalg.eigvals(np.array(columns).T).real)
    assert found == pytest.approx(GOLDEN["jacobian_printed_order"], abs=1e-12)
    right = eigenvalues(make_field([-1, 1], CUBIC, laws("uniform", "laplace")), np.eye(2), 1e-9)
    assert right.real.max() < 0


def test_complex_steps_agree_with_differences():
    field = make_field([-1, 1, 1], CUBIC, laws({"chi2": 3}, "laplace"))
    r = np.array([[0.6, 0.1], [-0.2, 0.5], [0.3, 0.2]])
    exact, plain = (part_jacobians(one, r) for one in (field, replace(field, exact=False)))
    for a, b in zip(exact, plain, strict=True):
        assert a == pytest.approx(b, abs=1e-8 * np.abs(a).max())
    errors = []
    for step in (1e-2, 1e-3):
        unit = np.zeros((3, 2))
        unit[1, 0] = step
        slope = (field.at(r + unit, 0.1) - field.at(r - unit, 0.1)) / (2 * step)
        errors.append(np.abs(slope - jacobian(field, r, 0.1)[:, :, 1, 0]).max())
    assert errors[1] < errors[0] / 50  # of second order


def test_the_optimal_point_is_the_stable_one_of_each_projection():
    sources = laws("uniform", "laplace")
    field = make_field([-1, 1], CUBIC, sources)
    found, _ = optimal_point(field, 0.03, np.eye(2))
    for i, (sigma, law) in enumerate(zip((-1, 1), sources, strict=True)):
        alone = find_fixed_points(scalar_drift(sigma, CUBIC, law), 0.03)
        assert found[i, i] == pytest.approx(alone.q[-1], abs=1e-12)
    assert found[0, 1] == found[1, 0] == 0.0
    assert eigenvalues(field, found, 0.03).real.max() < 0
    assert np.abs(field.at(found, 0.03)).max() < 1e-14


@pytest.mark.parametrize(
    ("phi", "sigma", "sources", "found"),
    [
        ("x**3", [-1, 1], ["uniform", "laplace"], [[1, 0], [0, 1]]),
        ("x**3", [1, -1, -1], ["uniform", "laplace"], [[0, -1], [1, 0], [0, 0]]),
        ("x**3", [-1], ["laplace", "uniform"], [[0, 1]]),
        ("x**3 + 0.2*x**2", [1], [{"chi2": 4}], [[-1]]),
        ("tanh(x)", [1, 1], ["uniform", "rademacher"], [[0, 1], [-1, 0]]),
    ],
    ids=str,
)
def test_small_mu_is_the_first_order_of_every_optimal_point(phi, sigma, sources, found):
    field = make_field(sigma, parse_formula(phi), laws(*sources))
    gaps = []
    for mu in (4e-3, 2e-3):
        r, first = optimal_point(field, mu, np.array(found, dtype=float))
        assert eigenvalues(field, r, mu).real.max() < 0
        assert np.abs(field.at(r, mu)).max() < 1e-11 * mu
        gaps.append(np.abs(r - first)[first != 0].max())
    assert gaps[1] == pytest.approx(gaps[0] / 4, rel=0.15)


def test_skewed_sources_mix_to_first_order():
    """<phi> of two sources pushes them together: R = I - mu J^-1 D, off the diagonal too."""
    field, mu = make_field([1, 1], CUBIC, laws({"chi2": 4}, {"chi2": 3})), 1e-5
    learning, _ = part_jacobians(field, np.eye(2))
    push = np.linalg.solve(as_matrix(learning), field.parts(np.eye(2))[1].ravel()).reshape(2, 2)
    found = optimal_point(field, mu, np.eye(2))[0] - np.eye(2)
    assert found == pytest.approx(-mu * push, rel=2e-3)
    assert abs(push[0, 1]) > 0.1


@pytest.mark.deep
def test_the_optimal_point_ends_at_the_fold():
    end = GOLDEN["scalar"]["critical_mu"]["uniform"]

    def states(mu):
        given = {"sources": ["uniform"] * 2, "projections": 2, "sigma": [-1, -1], "mu": mu}
        found = hdica.fixed_points(hdica.HebbianICA(**given))
        return found.where(found["kind"] == "informative", drop=True)

    near = states(end - 1e-6)
    assert -2e-3 < near["eigenvalue"].values[near["stable"].values == 1].max() < 0
    assert states(end + 1e-6)["R"].size == 0
