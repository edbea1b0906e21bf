"""Batches, signs that change and sources that move: the kernels against NumPy, step by step."""

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.finite.random.streams import run_length
from hdica.systems.hebbian_ica.fields import Motion, make_motion
from hdica.systems.hebbian_ica.rule import (
    chain_draws,
    draws,
    first_overlaps,
    first_weights,
    run_varied_chain,
    run_varied_vector,
)
from hdica.systems.hebbian_ica.system import HebbianICA, rule
from tests.reference import LaneNormals
from tests.systems.hebbian_ica.cases import hebbian, stream_of
from tests.systems.hebbian_ica.varied_reference import (
    bartlett,
    batch_step,
    frame,
    reduced_batch,
    reduced_turn,
    turned,
)

ETA, STEPS = 0.004, 90
MIXED = {
    "sources": ["uniform", "laplace"],
    "projections": 2,
    "start": {"overlap": [[0.7, 0.2], [-0.1, 0.6]]},
}
ALL = {"drift": 0.3, "jumps": {"times": [2.0, 4.0], "share": [0.6, 1.0]}}
SYSTEMS = {
    "one sample, adaptive": {"sigma": "adaptive", "start": {"overlap": 0.9}},
    "batch of 3": {"sigma": [-1], "batch": 3, "start": {"overlap": 0.6}},
    "batch of 5, K2 M2, tanh": MIXED | {"sigma": [1, -1], "batch": 5, "nonlinearity": "tanh(x)"},
    "batch of 2 = K, adaptive": MIXED | {"sigma": "adaptive", "batch": 2},
    "signs jump": MIXED
    | {"sigma": {"steps": {"times": [1, 5.5], "values": [[1, -1], [-1, -1], [-1, 1]]}}},
    "sources move": MIXED | {"sigma": [-1, 1], "motion": ALL},
    "everything, K1 M2": {
        "sources": ["rademacher", {"chi2": 3}],
        "sigma": "adaptive",
        "batch": 4,
        "motion": ALL,
        "nonlinearity": "tanh(x) + x**2/9",
        "alpha": 0.3,
    },
    "K3 M1, batch of 2": {
        "projections": 3,
        "sigma": [1, -1, 1],
        "batch": 2,
        "motion": {"drift": 1.0},
        "nonlinearity": "x**3 - x",
    },
}


class Means:
    """Signs of a step by plain bookkeeping."""

    def __init__(self, system, problem):
        self.system, self.problem, self.mean = system, problem, np.zeros(problem.projections)
        self.slope = problem.nonlinearity.derivative.value

    def signs(self, step, n, y):
        if self.system.sigma == "adaptive":
            now = np.mean(y * self.problem.nonlinearity.value(y) - self.slope(y), axis=0)
            self.mean += max(1 / (step + 1), ETA) * (now - self.mean)
            return np.sign(self.mean)
        if isinstance(self.system.sigma, dict):
            steps = self.system.sigma["steps"]
            return np.array(steps["values"][sum(step / n >= t for t in steps["times"])])
        return np.array(self.system.sigma)


def share(system, step, n):
    """What is left of the old directions at the beginning of a step."""
    if system.motion is None:
        return 1.0
    jumps = system.motion.get("jumps", {"times": [], "share": []})
    found = np.exp(-system.motion["drift"] / n)
    for time, lost in zip(jumps["times"], jumps["share"], strict=True):
        found *= 1 - lost if (step - 1) / n < time <= step / n else 1.0
    return found


@pytest.mark.parametrize("n", [7, 16, 33])
@pytest.mark.parametrize("name", SYSTEMS)
def test_vector_follows_the_rule_step_by_step_with_numpy_s_numbers(name, n):
    system = HebbianICA(eta=ETA, **SYSTEMS[name])
    problem, stream = rule(system), stream_of(1, n)
    (_, m), phi = problem.shape, problem.nonlinearity.value
    got, diverged = run_varied_vector(problem, np.array([0.0, STEPS / n]), n, stream)
    assert diverged == ""
    w, means = first_weights(problem.start, problem.shape, n, stream("start")), None
    normals = LaneNormals(stream("noise"))
    sources = np.stack([d(run_length(0)) for d in draws(problem, stream) * problem.batch], axis=1)
    means = Means(system, problem)
    for step in range(STEPS):
        left = share(system, step, n)
        if left != 1.0:
            b = np.array([normals.standard_normal(n) for _ in range(m)])
            b[:, :m] = 0.0
            w = turned(w, frame(b), left)
        x = np.array([normals.standard_normal(n) for _ in range(problem.batch)])
        x[:, :m] = sources[step].reshape(problem.batch, m)
        w = batch_step(w, x, ETA, problem.alpha, means.signs(step, n, x @ w), phi)
    assert got["R"][1] == pytest.approx(w[:m].T, abs=1e-9)
    assert got["Q"][1] == pytest.approx(w.T @ w, abs=1e-9)


@pytest.mark.parametrize("n", [5, 6, 40])
@pytest.mark.parametrize("name", SYSTEMS)
def test_chain_follows_the_reduction_step_by_step_with_numpy_s_numbers(name, n):
    system = HebbianICA(eta=ETA, **SYSTEMS[name])
    problem, stream = rule(system), stream_of(2, n)
    (k, m), phi, batch = problem.shape, problem.nonlinearity.value, problem.batch
    got, diverged = run_varied_chain(problem, np.array([0.0, STEPS / n]), n, stream)
    assert diverged == ""
    r, lower = first_overlaps(problem.start, problem.shape, n, stream("start"))
    drawn = np.stack([d(run_length(0)) for d in chain_draws(problem, n, stream)], axis=1)
    means, rank = Means(system, problem), min(batch, k)
    for step in range(STEPS):
        row = drawn[step]
        sizes = [batch * m, batch * k, rank, rank * (rank - 1) // 2, k * m, m, m * (m - 1) // 2]
        s, g, chi, low, z, more, below = np.split(row, np.cumsum(sizes))[:7]
        left = share(system, step, n)
        if left != 1.0:
            r, lower = reduced_turn(r, lower, z.reshape(k, m), bartlett(more, below), left)
        s, g = s.reshape(batch, m), g.reshape(batch, k)
        sigma = means.signs(step, n, s @ r.T + g @ lower.T)
        a = bartlett(chi, low)
        r, lower = reduced_batch(r, lower, s, g, a, ETA, problem.alpha, sigma, phi)
    assert got["R"][1] == pytest.approx(r, abs=1e-8)
    assert got["Q"][1] == pytest.approx(r @ r.T + lower @ lower.T, abs=1e-8)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_trajectory_does_not_depend_on_when_it_is_recorded(name):
    problem = rule(HebbianICA(eta=ETA, **SYSTEMS[name]))
    few, many, n = np.array([0.0, 40.0]), np.linspace(0, 40, 83), 20
    for run in (run_varied_chain, run_varied_vector):
        one, other = (run(problem, times, n, stream_of(0, n))[0] for times in (few, many))
        for key in one:
            assert np.array_equal(one[key], other[key][[0, -1]], equal_nan=True), key


def test_a_jump_is_seen_after_its_time():
    motion = make_motion({"jumps": {"times": [0.3, 1.0], "share": 0.5}})
    assert motion == Motion(0.0, (0.3, 1.0), (0.5, 0.5))
    # With n = 10 the steps 3 and 10 begin with a turn; with n = 7 step 3 is the first from 0.3 on.
    for n, steps in ((10, [3, 10]), (7, [3, 7])):
        value = motion.turn(n).value(np.arange(12) / n)
        assert np.flatnonzero(value != 1.0).tolist() == steps
    assert Motion(2.0).turn(50).constant == pytest.approx(np.exp(-0.04))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"batch": 0}, r"batch = 0 is not allowed \(a whole number >= 1, or 'full'\)"),
        ({"batch": 1.5}, "batch = 1.5 is not allowed"),
        ({"batch": "all"}, "batch = 'all' is not allowed"),
        ({"batch": True}, "batch = True is not allowed"),
        ({"motion": {}}, r"motion = \{\} is not allowed"),
        ({"motion": {"drift": -1}}, r"motion = \{'drift': -1\} is not allowed \(allowed: \{drift"),
        ({"motion": {"speed": 1}}, "motion = .* is not allowed"),
        ({"motion": {"jumps": {"times": [1]}}}, "motion: jumps = .* is not allowed"),
        ({"motion": {"jumps": {"times": [2, 1], "share": 0}}}, "motion: times = .*increasing"),
        ({"motion": {"jumps": {"times": [], "share": 0}}}, "motion: times = .* is not allowed"),
        ({"motion": {"jumps": {"times": [1], "share": 1.1}}}, "motion: share = 1.1 is not"),
        ({"motion": {"jumps": {"times": [1], "share": [1, 1]}}}, "motion: share = .*each of 1"),
        ({"sigma": {"steps": {"times": [1], "values": [[-1]]}}}, "sigma = {steps.* is not allowed"),
        ({"sigma": {"steps": {"times": [1], "values": [[-1], [0]]}}}, "sigma = {steps.*one more"),
        ({"sigma": {"steps": {"times": [0], "values": [[-1], [1]]}}}, "sigma: steps with times"),
        ({"sigma": {"steps": [[-1]]}}, "sigma = {steps.* is not allowed"),
        (
            {"sigma": {"steps": {"times": [1], "values": [[-1], [1, 1]]}}},
            r"sigma = \[1, 1\] is not allowed \(one sign a projection: 1\)",
        ),
    ],
    ids=str,
)
def test_what_is_not_allowed_is_said_in_one_sentence(given, sentence):
    with pytest.raises(HdicaError, match=sentence):
        HebbianICA(mu=0.1, **given)


def test_a_dimension_in_which_sources_have_nowhere_to_turn_is_refused():
    problem = rule(hebbian(sources=["uniform"] * 3, mu=0.1, start="zero", motion={"drift": 1}))
    for run in (run_varied_chain, run_varied_vector):
        with pytest.raises(HdicaError, match=r"^n = 5 is not allowed with motion and 3 sources"):
            run(problem, np.array([1.0]), 5, stream_of(0))
