"""Hebbian ICA at finite n against plain NumPy, step by step, and against independent numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

from hdica.finite.random.streams import point_stream, run_length
from hdica.systems.hebbian_ica.rule import (
    VectorState,
    _vector,
    first_overlaps,
    first_weights,
    run_chains,
    run_vector,
)
from hdica.systems.hebbian_ica.system import HebbianICA, rule
from tests.reference import LaneNormals
from tests.systems.hebbian_ica.reference import ReducedNumbers, positive, reduced_step, step

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/hebbian_simulation.json").read_text())


def stream_of(seed, n=10, label="steps"):
    return lambda part: point_stream({"test": label}, "hebbian", n, seed, part)


def close(one, other, error=1e-12):
    assert np.max(np.abs(np.asarray(one) - np.asarray(other))) < error


def test_the_reference_makes_the_step_of_13():
    case = GOLDEN["unit_step13"]
    sigma = np.array(case["sigma"])
    w = np.array(case["W"])
    w = step(w, np.array(case["x"]), case["eta"], case["alpha"], sigma, lambda y: y**3)
    close(w, case["W_next"])
    close(w.T @ w, case["Q_next"])
    close(w[: case["M"]].T, case["R_next"])


def test_the_kernel_of_all_coordinates_makes_the_step_of_13():
    case = GOLDEN["unit_step13"]
    (n, _), m, x = np.shape(case["W"]), case["M"], np.array(case["x"])
    system = HebbianICA(
        sources=["uniform", "laplace"],
        projections=2,
        sigma=case["sigma"],
        eta=case["eta"],
        alpha=case["alpha"],
    )
    state = VectorState.begin(np.array(case["W"]), stream_of(0))
    # As after a pass: the normal part of the sample, and its share of y.
    state.x[m:n], state.count[0] = x[m:], 0
    state.y[:] = np.array(case["W"])[m:].T @ x[m:]
    made = _vector(rule(system), state, n)(x[None, :m], np.full((1, m), case["eta"]))
    assert made.tolist() == [1, 1]
    close(state.w[:, :n].T, case["W_next"])
    close(state.q, case["Q_next"])
    assert not np.any(state.w[:, n:])


def test_the_reference_makes_the_reduced_step():
    case = GOLDEN["unit_reduced_step"]
    r, lower, s, g = (np.array(case[key]) for key in ("R", "L", "s", "g"))
    sigma = np.array(case["sigma"])
    r, lower = reduced_step(
        r, lower, s, g, case["rho"], case["eta"], case["alpha"], sigma, lambda y: y**3
    )
    close(r, case["R_next"])
    close(lower, case["L_next"])
    close(lower @ lower.T, case["C_next"])


def test_the_reduced_step_is_the_step_of_13():
    """With n = U g + e, the reduction and the rule itself make the same step."""
    rng = np.random.default_rng(5)
    n, k, m, sigma = 9, 3, 2, np.array([1.0, -1.0, 1.0])
    w = np.linalg.qr(rng.standard_normal((n, k)))[0] * [1.02, 0.99, 1.0]
    x, phi = rng.standard_normal(n), np.tanh
    r, normal = w[:m].T, w[m:]
    u, upper = np.linalg.qr(normal)
    lower, u = positive(upper.T), u * np.where(np.diag(upper) < 0, -1.0, 1.0)
    g = u.T @ x[m:]
    rho = np.linalg.norm(x[m:] - u @ g)
    new = step(w, x, 0.3, 0.7, sigma, phi)
    r, lower = reduced_step(r, lower, x[:m], g, rho, 0.3, 0.7, sigma, phi)
    close(r, new[:m].T)
    close(r @ r.T + lower @ lower.T, new.T @ new)


SYSTEMS = {
    "K1 M1": {"sources": ["uniform"], "sigma": [-1], "start": {"overlap": 0.6}},
    "K1 M1 tanh": {"sources": ["laplace"], "sigma": [-1], "nonlinearity": "tanh(x)"},
    "K1 M2 skewed": {"sources": [{"chi2": 2}, "uniform"], "sigma": [1], "nonlinearity": "x**2"},
    "K2 M1": {"sources": ["rademacher"], "sigma": [-1, 1], "projections": 2, "alpha": 0.9},
    "K2 M2": {
        "sources": ["uniform", "laplace"],
        "sigma": [-1, 1],
        "projections": 2,
        "start": {"overlap": [[0.7, 0.2], [-0.1, 0.6]]},
        "alpha": 0.2,
    },
    "K2 M3": {
        "sources": ["uniform", "rademacher", "laplace"],
        "sigma": [1, -1],
        "projections": 2,
        "nonlinearity": "tanh(2*x) + x**3/50",
    },
    "K3 M2": {
        "sources": ["uniform", "rademacher"],
        "sigma": [-1, -1, 1],
        "projections": 3,
        "nonlinearity": "x**3 - x",
        "start": "zero",
    },
}
ETA = 0.004


def replay(problem, stream, steps):
    """Sources of the first steps, shape (steps, M), as the recording loop draws them."""
    parts = ["source", *(f"source {j}" for j in range(1, len(problem.sources)))]
    columns = [
        source.sample(stream(part), run_length(0))[:steps]
        for source, part in zip(problem.sources, parts, strict=True)
    ]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("n", [6, 16, 17, 50])
@pytest.mark.parametrize("name", SYSTEMS)
def test_vector_follows_13_step_by_step_with_numpy_s_numbers(name, n):
    steps, problem = 60, rule(HebbianICA(eta=ETA, **SYSTEMS[name]))
    stream = stream_of(1, n)
    got, diverged = run_vector(problem, np.array([0.0, steps / n]), n, stream)
    assert diverged == ""
    w = first_weights(problem.start, problem.shape, n, stream("start"))
    normals, m = LaneNormals(stream("noise")), len(problem.sources)
    for s in replay(problem, stream, steps):
        x = normals.standard_normal(n)
        x[:m] = s
        w = step(w, x, ETA, problem.alpha, problem.signs, problem.nonlinearity.value)
    close(got["R"][1], w[:m].T, 1e-9)
    close(got["Q"][1], w.T @ w, 1e-9)
    close(got["Q"][0], np.eye(len(w.T)), 1e-14)


@pytest.mark.parametrize("n", [5, 6, 7, 8, 50])
@pytest.mark.parametrize("name", SYSTEMS)
def test_chain_follows_the_reduction_step_by_step_with_numpy_s_numbers(name, n):
    steps, problem = 200, rule(HebbianICA(eta=ETA, **SYSTEMS[name]))
    k, m = problem.shape
    stream = stream_of(2, n)
    ((got, diverged),) = run_chains([problem], np.array([steps / n]), n, [stream])
    assert diverged == ""
    r, lower = first_overlaps(problem.start, (k, m), n, stream("start"))
    numbers = ReducedNumbers(stream("noise"))
    for s in replay(problem, stream, steps):
        g, rho = numbers.components(k, n - m - k)
        phi = problem.nonlinearity.value
        r, lower = reduced_step(r, lower, s, g, rho, ETA, problem.alpha, problem.signs, phi)
    close(got["R"][0], r, 1e-8)
    close(got["Q"][0], r @ r.T + lower @ lower.T, 1e-8)


def test_a_schedule_is_read_at_every_step():
    system = HebbianICA(mu="0.4/(1 + t/3)", sigma=[-1], start={"overlap": 0.5})
    problem, n, steps = rule(system), 12, 100
    stream = stream_of(3, n)
    ((chain, _),) = run_chains([problem], np.array([steps / n]), n, [stream])
    numbers = ReducedNumbers(stream("noise"))
    r, lower = np.array([[0.5]]), np.array([[np.sqrt(0.75)]])
    for k, s in enumerate(replay(problem, stream, steps)):
        g, rho = numbers.components(1, n - 2)
        eta = 0.4 / (1 + k / n / 3) / n
        r, lower = reduced_step(r, lower, s, g, rho, eta, 0.5, problem.signs, lambda y: y**3)
    close(chain["R"][0], r, 1e-9)


def test_adaptive_signs_follow_the_running_mean_step_by_step():
    system = HebbianICA(
        sources=["uniform", "laplace"],
        projections=2,
        nonlinearity="tanh(x)",
        sigma="adaptive",
        eta=ETA,
        start={"overlap": [[0.9, 0.0], [0.0, 0.9]]},
    )
    problem, n, steps = rule(system), 20, 120
    stream = stream_of(4, n)
    got, _ = run_vector(problem, np.array([0.0, steps / n]), n, stream)
    w = first_weights(problem.start, problem.shape, n, stream("start"))
    normals, mean = LaneNormals(stream("noise")), np.zeros(2)
    for k, s in enumerate(replay(problem, stream, steps)):
        x = normals.standard_normal(n)
        x[:2] = s
        y = w.T @ x
        mean += max(1 / (k + 1), ETA) * (y * np.tanh(y) - 1 / np.cosh(y) ** 2 - mean)
        w = step(w, x, ETA, 0.5, np.sign(mean), np.tanh)
    close(got["R"][1], w[:2].T, 1e-9)
    assert got["sigma"].tolist() == [[0.0, 0.0], np.sign(mean).tolist()]
