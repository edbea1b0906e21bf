"""Chains of Hebbian ICA beside each other, output times, divergences, dimensions: the same bits."""

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.finite.random import LANES
from hdica.systems.hebbian_ica.rule import run_chains, run_vector
from hdica.systems.hebbian_ica.system import rule
from tests.systems.hebbian_ica.cases import hebbian, stream_of

TIMES = np.array([0.0, 0.7, 3.0])
N = 50
PAIR = {"projections": 2, "start": {"overlap": [[0.7, 0.2], [-0.1, 0.6]]}}
SETS = {
    "polynomials": [
        hebbian(mu=0.05),
        hebbian(sources=["laplace"], sigma=[1], nonlinearity="x**3 - x", mu=0.01, start="zero"),
        hebbian(nonlinearity="x**5/20", nu="9/(1 + t)", alpha=0.9),
        hebbian(mu=2000.0),  # diverges
        hebbian(sources=["rademacher"], eta={"steps": {"times": [1], "values": [0.002, 0.001]}}),
        hebbian(mu=0.1, start="random"),
        hebbian(mu=0.2, alpha=0.2),
        hebbian(sources=[{"chi2": 3}], mu=0.02),
    ],
    "functions": [
        hebbian(nonlinearity="tanh(x)", sigma=[1], mu=mu, start=start)
        for mu, start in [(0.3, "random"), (0.1, {"overlap": 0.5}), (0.2, "zero"), (1e200, "zero")]
    ],
    "K2 M2": [
        hebbian(sources=["uniform", "laplace"], sigma=[-1, 1], mu=0.02, **PAIR),
        hebbian(sources=["uniform"] * 2, sigma=[-1, -1], mu=5000.0, **PAIR),
        hebbian(sources=["rademacher"] * 2, sigma=[-1, -1], mu="0.1/(1 + t)", **PAIR),
    ],
}


def same(one, other):
    assert one[1] == other[1]
    assert one[0].keys() == other[0].keys()
    for name, values in one[0].items():
        assert values.tobytes() == other[0][name].tobytes(), name


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("name", SETS)
def test_a_chain_does_not_depend_on_the_chains_beside_it(name, count):
    rules = [rule(system) for system in SETS[name]]
    assert len({problem.alike for problem in rules}) == 1
    alone = [run_chains([r], TIMES, N, [stream_of(k)])[0] for k, r in enumerate(rules)]
    assert sum("not finite at step" in why for _, why in alone) == 1
    for first in range(0, len(rules), count):
        chosen = range(first, min(first + count, len(rules)))
        found = run_chains([rules[k] for k in chosen], TIMES, N, [stream_of(k) for k in chosen])
        for k, one in zip(chosen, found, strict=True):
            same(one, alone[k])
    last = rules[::-1][:LANES]
    order = range(len(rules))[::-1][:LANES]
    for k, one in zip(
        order, run_chains(last, TIMES, N, [stream_of(k) for k in order]), strict=True
    ):
        same(one, alone[k])


def runs(problem, times, n, seed):
    return [
        run_vector(problem, times, n, stream_of(seed, n)),
        run_chains([problem], times, n, [stream_of(seed, n)])[0],
    ]


@pytest.mark.parametrize("name", SETS)
def test_a_trajectory_does_not_depend_on_when_it_is_recorded(name):
    problem = rule(SETS[name][2])
    few, many = np.array([0.0, 100.0]), np.linspace(0, 100, 301)
    for one, other in zip(runs(problem, few, N, 1), runs(problem, many, N, 1), strict=True):
        assert one[1] == other[1] == ""
        for key in one[0]:
            assert np.array_equal(one[0][key], other[0][key][[0, -1]])


def test_shapes_are_time_projection_source():
    system = hebbian(
        sources=["uniform", "laplace", "rademacher"], projections=2, mu=0.01, sigma=[-1, 1],
        start="random",
    )  # fmt: skip
    for values, _ in runs(rule(system), TIMES, N, 0):
        assert values["R"].shape == (3, 2, 3)
        assert values["Q"].shape == (3, 2, 2)
        assert np.array_equal(values["Q"], np.swapaxes(values["Q"], 1, 2))
        # I - R R' stays positive as far as W'W = Q.
        rest = values["Q"] - values["R"] @ np.swapaxes(values["R"], 1, 2)
        assert np.all(np.linalg.eigvalsh(rest) > -1e-12)


@pytest.mark.parametrize("run", [0, 1], ids=["vector", "chain"])
def test_divergence_is_recorded_with_step_and_time(run):
    problem = rule(hebbian(sources=["laplace"], sigma=[1], mu=5.0))
    values, diverged = runs(problem, np.array([0.0, 1e-9, 500.0]), 20, 0)[run]
    assert diverged.startswith("the update was not finite at step ")
    assert "(t = " in diverged
    assert np.all(np.isfinite(values["R"][:2]))
    assert np.all(np.isnan(values["R"][2]))
    assert np.all(np.isnan(values["Q"][2]))


def test_divergence_begins_where_the_norm_leaves_its_basin():
    """Q <- Q (1 + alpha (1 - Q))^2 blows up from Q > 1 + 2/alpha on: the kick decides."""
    small, large = (rule(hebbian(eta=eta)) for eta in (0.001, 0.5))
    times = np.array([0.0, 20.0])
    for (calm, calm_end), (_, wild_end) in zip(
        runs(small, times, 12, 3), runs(large, times, 12, 3), strict=True
    ):
        assert calm_end == ""
        assert abs(calm["Q"][1, 0, 0] - 1) < 0.5
        assert "not finite" in wild_end


def test_a_boundary_start_keeps_its_digits():
    """At R = 1 nothing of C is left at first, and what the noise makes is of order eta^2."""
    problem = rule(hebbian(sources=["rademacher"], eta=1e-7, start={"overlap": 1.0}))
    for values, _ in runs(problem, np.array([0.0, 0.1]), 10, 0):
        rest = values["Q"][1, 0, 0] - values["R"][1, 0, 0] ** 2
        assert values["R"][0, 0, 0] == 1.0
        assert 0 < abs(rest) < 1e-12


def test_a_dimension_that_is_too_small_is_refused():
    problem = rule(hebbian(sources=["uniform"] * 3, projections=2, mu=0.1, sigma=[1, 1],
                           start="random"))  # fmt: skip
    for run in (
        lambda: run_vector(problem, TIMES, 4, stream_of(0)),
        lambda: run_chains([problem], TIMES, 4, [stream_of(0)]),
    ):
        with pytest.raises(HdicaError, match=r"^n = 4 is not allowed .*\(n >= 5: "):
            run()


def test_adaptive_signs_find_those_of_14():
    """Near the sources the running mean has the sign of <s phi(s) - phi'(s)>."""
    system = hebbian(
        sources=["uniform", "laplace"],
        projections=2,
        sigma="adaptive",
        mu=0.01,
        start={"overlap": [[0.98, 0.0], [0.0, 0.98]]},
    )
    found = [run_vector(rule(system), np.array([60.0]), 50, stream_of(k))[0] for k in range(4)]
    assert all(values["sigma"][0].tolist() == [-1.0, 1.0] for values in found)
    assert all(np.all(np.diagonal(values["R"][0]) > 0.8) for values in found)
