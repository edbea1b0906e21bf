"""Rules of the family by their push: kernels against NumPy, limits against simulation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hdica.errors import HdicaError
from hdica.finite.random.streams import point_stream
from hdica.ingredients.contrasts import parse_push
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.priors import make_prior
from hdica.ingredients.save import NOTHING
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.ingredients.starts import make_start
from hdica.limits.overlap.drift import solve
from hdica.limits.overlap.nonlinear import pushed_averages, pushed_drift
from hdica.systems.projected.family import ProjectedRule
from tests.finite.runs import run_chain, run_vector

PUSHES = [
    ("tanh(c - u)", "gaussian", 0.3),
    ("c - u", "laplace", 0.2),
    ("c*exp(-u**2/2)", "uniform", 0.4),
    ("c**3 - u**3", "uniform", 0.05),
]
LEVEL = 1e-3


def rule(push: Any, source: str = "gaussian", tau: float = 0.3, phi: str = "0") -> ProjectedRule:
    return ProjectedRule(
        make_source(source),
        make_prior("dense"),
        make_start({"overlap": 0.4}),
        make_schedule(tau),
        push,
        parse_formula(phi),
    )


def stream(seed: int, n: int) -> Any:
    return lambda part: point_stream({"test": "pushed"}, "any", n, seed, part)


def plain(text: str, source: str, tau: float, steps: int, n: int, seed: int) -> float:
    """The overlap after some steps of the rule in NumPy, with noise of its own."""
    rng, push, law = np.random.default_rng([seed, n]), parse_push(text), make_source(source)
    xi = np.ones(n)
    x = 0.4 * xi + math.sqrt(1 - 0.16) * rng.standard_normal(n)
    x *= math.sqrt(n / (x @ x))
    for c in law.sample(rng, steps):
        a = rng.standard_normal(n)
        y = xi * c / math.sqrt(n) + a - xi * (xi @ a) / n
        u = x @ y / math.sqrt(n)
        x = x + tau / math.sqrt(n) * float(push.value(u, c)) * y
        x *= math.sqrt(n / (x @ x))
    return float(xi @ x / n)


@pytest.mark.deep
@pytest.mark.parametrize(("text", "source", "tau"), PUSHES)
def test_vector_and_chain_have_the_law_of_plain_numpy(text: str, source: str, tau: float) -> None:
    n, steps, count = 40, 60, 600
    times = np.array([steps / n])
    one = rule(parse_push(text), source, tau)
    vector = [run_vector(one, times, n, stream(s, n))[0]["Q"][0] for s in range(count)]
    chain = [run_chain(one, times, n, stream(s + count, n))[0]["Q"][0] for s in range(count)]
    known = [plain(text, source, tau, steps, n, s) for s in range(count)]
    for found in (vector, chain):
        assert stats.ks_2samp(found, known).pvalue > LEVEL
        error = math.hypot(np.std(found), np.std(known)) / math.sqrt(count)
        assert abs(np.mean(found) - np.mean(known)) < 4.5 * error
    wrong = [plain(text, source, 1.5 * tau, steps, n, s) for s in range(count)]
    assert stats.ks_2samp(vector, wrong).pvalue < LEVEL  # the test can tell


@pytest.mark.parametrize("run", [run_vector, run_chain])
@pytest.mark.parametrize(("push", "f"), [("-u**3", "x**3"), ("-tanh(u)", "tanh(x)")])
def test_a_push_against_f_is_the_descent_along_f(run: Any, push: str, f: str) -> None:
    times = np.array([0.5, 1.0])
    general, own = (
        run(rule(one, "uniform", 0.05), times, 50, stream(1, 50))[0]
        for one in (parse_push(push), parse_formula(f))
    )
    assert general["Q"] == pytest.approx(own["Q"], abs=1e-12)


@pytest.mark.parametrize("kind", ["0", "0.7*x", "0.2*sign(x)", "tanh(2*x)"])
def test_every_regularizer_acts_as_on_a_descent(kind: str) -> None:
    times = np.array([1.0])
    general, own = (
        run_vector(rule(one, "uniform", 0.05, kind), times, 50, stream(2, 50))[0]
        for one in (parse_push("-u**3"), parse_formula("x**3"))
    )
    assert general["Q"] == pytest.approx(own["Q"], abs=1e-12)
    assert general["R"] == pytest.approx(own["R"], abs=1e-12)


def test_averages_of_regression_are_those_in_closed_form() -> None:
    found = pushed_averages(parse_push("c - u"), make_source("gaussian"))
    q = np.linspace(-0.95, 0.95, 13)
    assert found.gain(q) == pytest.approx(-np.ones(13), abs=1e-13)
    assert found.power(q) == pytest.approx(2 * (1 - q), abs=1e-13)
    rate = 0.3 * (1 - q**2) - 0.09 * q * (1 - q)
    drift = pushed_drift(parse_push("c - u"), make_source("gaussian"))
    assert drift.at(q, 0.3) == pytest.approx(rate, abs=1e-12)


@pytest.mark.deep
@pytest.mark.parametrize(("text", "source", "tau"), PUSHES)
def test_the_limit_is_where_chains_go_and_two_percent_off_is_not(
    text: str, source: str, tau: float
) -> None:
    times, n = np.array([1.0, 3.0]), 4000
    push, law = parse_push(text), make_source(source)
    path = solve(pushed_drift(push, law), make_schedule(tau), 0.4, 0.0, times)
    runs = [run_chain(rule(push, source, tau), times, n, stream(s, n))[0]["Q"] for s in range(400)]
    mean, error = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / math.sqrt(len(runs))
    assert np.all(np.abs(mean - path.q) <= 4 * error + path.error + 3 / n)
    assert np.all(path.error < 1e-9)
    assert not np.allclose(path.q, path.control, atol=1e-6)


@pytest.mark.parametrize("text", ["sign(c - u)", "abs(u)*c", "c - v", "__import__('os')"])
def test_what_is_no_smooth_function_of_u_and_c_is_refused(text: str) -> None:
    with pytest.raises(HdicaError, match=r"^[^\n]+$"):
        parse_push(text)


def test_two_points_that_share_noise_see_the_same_push() -> None:
    from hdica.finite.projected.vector import run_shared

    rules = [rule(parse_push("tanh(c - u)"), tau=tau) for tau in (0.2, 0.3)]
    times = np.array([1.0])
    both = run_shared([one.vector for one in rules], times, 50, stream(3, 50), [NOTHING] * 2)
    for one, found in zip(rules, both, strict=True):
        alone = run_shared([one.vector], times, 50, stream(3, 50), [NOTHING])[0]
        assert all(found[0][k].tobytes() == alone[0][k].tobytes() for k in alone[0])
