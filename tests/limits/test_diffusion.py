import math

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.ingredients.quadrature import gaussian_nodes, panel_nodes
from hdica.limits.numerics import densities as module
from hdica.limits.numerics.densities import _moved, density, paths, survival
from hdica.limits.numerics.first_passage import Diffusion, first_passage
from tests.limits.passage_times import passage_times

BROWNIAN = Diffusion(lambda x: 0 * x, lambda x: 1 + 0 * x)
WELL = Diffusion(lambda x: -x / 2, lambda x: 1 + 0 * x)
TIMES = np.array([0.01, 0.1, 0.5, 1.0, 3.0, 10.0])


def quartic(g):
    return Diffusion(lambda r: r * (g * r * r - 0.5), lambda r: 1 + 0 * r)


def series(amplitude, times):
    k = 2 * np.arange(400)[:, None] + 1
    return (amplitude(k) * np.exp(-((k * math.pi / 2) ** 2) * times / 2)).sum(axis=0)


@pytest.mark.parametrize("start", [0.0, 0.3])
def test_survival_of_a_free_path(start):
    def amplitude(k):
        return 4 / (math.pi * k) * np.sin(k * math.pi / 2) * np.cos(k * math.pi * start / 2)

    found, error = survival(BROWNIAN, 1.0, start, TIMES, scale=1.0)
    assert found == pytest.approx(series(amplitude, TIMES), abs=1e-8)
    assert error.max() < 1e-7


def test_survival_of_a_spread_start():
    found, _ = survival(BROWNIAN, 1.0, lambda y: np.clip(y, 0, 1), TIMES, scale=1.0)
    want = series(lambda k: 8 / (math.pi * k) ** 2, TIMES)
    assert found == pytest.approx(want, abs=1e-8)


def test_density_of_an_ornstein_uhlenbeck_process():
    x, times = np.linspace(-4, 4, 33), np.array([0.5, 2.0, 30.0])
    found, error = density(WELL, 12.0, 0.7, times, x, scale=2.0)
    for k, t in enumerate(times):
        mean, var = 0.7 * math.exp(-t / 2), 1 - math.exp(-t)
        sides = [np.exp(-((x - s * mean) ** 2) / (2 * var)) for s in (1, -1)]
        assert found[k] == pytest.approx(sum(sides) / 2 / math.sqrt(2 * math.pi * var), abs=1e-7)
    assert error.max() < 1e-6


@pytest.mark.parametrize("g", [1.0, 0.1])
def test_survival_has_the_moments_of_the_first_passage(g):
    high, scale = 4 / math.sqrt(2 * g), 1 / math.sqrt(2 * g)
    want = first_passage(quartic(g), 0.0, high, 0.0)
    edges = np.concatenate([[0.0], want.mean * 2.0 ** np.arange(-12.0, 6)])
    t, w = panel_nodes(edges, 8)
    found, error = survival(quartic(g), high, 0.0, t, scale=scale)
    assert np.sum(w * found) == pytest.approx(want.mean, rel=2e-6)
    assert np.sum(2 * w * t * found) == pytest.approx(want.mean**2 + want.sd**2, rel=1e-5)
    assert error.max() < 1e-5


def test_density_integrates_to_the_survival():
    x, w = panel_nodes(np.linspace(-3, 3, 13), 8)
    times = np.array([0.5, 3.0])
    inside, _ = density(quartic(0.2), 3.0, 1.0, times, x, scale=1.5)
    left, _ = survival(quartic(0.2), 3.0, 1.0, times, scale=1.5)
    assert np.sum(w * inside, axis=1) == pytest.approx(left, abs=2e-6)


def test_grids_converge_with_order_two(monkeypatch):
    want, _ = survival(quartic(0.2), 3.0, 0.0, TIMES, scale=1.5)
    monkeypatch.setattr(module, "_LEVELS", 2)
    monkeypatch.setattr(module, "romberg", lambda levels: (levels[-1], levels[-1] - levels[0]))
    gaps = []
    for cells in (24, 48, 96):
        monkeypatch.setattr(module, "_CELLS", cells)
        gaps.append(np.abs(survival(quartic(0.2), 3.0, 0.0, TIMES, scale=1.5)[0] - want).max())
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(2, abs=0.1)
    assert np.log2(gaps[1] / gaps[2]) == pytest.approx(2, abs=0.1)


def test_paths_are_reproducible_and_of_weak_order_two():
    # dX = -X dt + X dB/2 has E X = exp(-t); the scheme's own means are known in closed form.
    scaled = Diffusion(lambda x: -x, lambda x: (x / 2) ** 2)
    one = paths(scaled, np.ones(4), np.array([0.0, 1.0]), 0.25, np.random.default_rng(3))
    two = paths(scaled, np.ones(4), np.array([0.0, 1.0]), 0.25, np.random.default_rng(3))
    assert np.array_equal(one, two)
    assert np.array_equal(one[0], np.ones(4))
    count, biases = 400_000, []
    for step in (0.5, 0.25):
        rng = np.random.default_rng(7)
        x = paths(scaled, np.ones(count), np.array([1.0]), step, rng)[0]
        error = x.std() / math.sqrt(count)
        biases.append((x.mean() - math.exp(-1), error))
    # Of order two: (1 - h + h^2/2)^(1/h) - exp(-1), far from zero and from order one.
    for (bias, error), step in zip(biases, (0.5, 0.25), strict=True):
        want = (1 - step + step**2 / 2) ** (1 / step) - math.exp(-1)
        assert abs(bias - want) < 4 * error
        assert want > 10 * error


@pytest.mark.parametrize("power", [1, 2, 3, 4])
def test_one_step_is_wrong_by_the_third_power_of_its_length(power):
    # Weak order 2, without any sampling: E X^k = exp((k (k - 1)/2 - k) t) for dX = -X dt + X dB.
    scaled, nodes, gaps = Diffusion(lambda x: -x, lambda x: x * x), gaussian_nodes(40), []
    for step in (0.02, 0.01):
        end = _moved(scaled, np.ones(40), step, math.sqrt(step) * nodes.points)
        exact = math.exp((power * (power - 1) / 2 - power) * step)
        gaps.append(abs(float(nodes.mean(end**power)) - exact))
    # With k = 3 the terms in step^3 nearly cancel: higher order is fine.
    assert math.log2(gaps[0] / gaps[1]) > 2.8


def test_matrix_entries_are_independent_copies_with_the_stationary_law():
    rng = np.random.default_rng(11)
    start = rng.standard_normal((20_000, 2, 3))
    end = paths(WELL, start, np.array([3.0]), 0.05, rng)[0]
    error = 1 / math.sqrt(end.shape[0])
    flat = end.reshape(end.shape[0], -1)
    gap = np.cov(flat.T) - np.eye(6)
    assert np.abs(gap).max() < 4.5 * math.sqrt(2) * error
    assert np.abs(flat.mean(axis=0)).max() < 4.5 * error


@pytest.mark.deep
def test_passage_times_follow_the_fokker_planck_equation():
    g, high = 0.08, 10.0
    rng = np.random.default_rng(5)
    times, reached = passage_times(quartic(g), np.zeros(1500), high, 0.01, 400.0, rng)
    assert reached.all()
    want = first_passage(quartic(g), 0.0, high, 0.0)
    error = want.sd / math.sqrt(times.size)
    assert abs(times.mean() - want.mean) < 3.5 * error
    # Half the exponent, as (27) is printed, would give about 9.7.
    assert abs(times.mean() - 9.7) > 15 * error
    at = np.array([5.0, 15.0, 40.0])
    left, _ = survival(quartic(g), high, 0.0, at, scale=2.5)
    share = (times[:, None] > at).mean(axis=0)
    assert np.all(np.abs(share - left) < 4 * np.sqrt(left * (1 - left) / times.size))


def test_the_bridge_removes_the_error_of_the_order_of_the_root_of_the_step():
    rng = np.random.default_rng(8)
    times, reached = passage_times(BROWNIAN, np.zeros(20_000), 1.0, 0.05, 30.0, rng)
    assert reached.all()
    # Without the bridge the mean would be (1 + 0.5826 sqrt(0.05))^2 = 1.277 instead of 1.
    error = math.sqrt(2 / 3 / times.size)
    assert abs(times.mean() - 1) < 4 * error + 0.01


def test_given_up_paths_are_marked():
    rng = np.random.default_rng(1)
    times, reached = passage_times(WELL, np.array([0.0, 3.0]), 2.5, 0.1, 0.2, rng)
    assert reached.tolist() == [False, True]
    assert times.tolist() == [0.2, 0.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: survival(WELL, 2.0, 3.0, TIMES, scale=1.0), "start: 3.0"),
        (lambda: survival(WELL, 2.0, 0.0, np.array([0.0]), scale=1.0), "times"),
        (lambda: survival(WELL, math.inf, 0.0, TIMES, scale=1.0), "threshold: inf"),
        (lambda: density(WELL, 2.0, 0.0, TIMES, np.array([2.5]), scale=1.0), "points"),
        (lambda: paths(WELL, np.zeros(2), TIMES, 0.0, np.random.default_rng(0)), "step: 0.0"),
        (lambda: paths(WELL, np.zeros(2), -TIMES, 0.1, np.random.default_rng(0)), "times"),
        (
            lambda: passage_times(WELL, np.zeros(2), -1.0, 0.1, 1.0, np.random.default_rng(0)),
            "threshold -1.0",
        ),
    ],
)
def test_refusals(call, words):
    with pytest.raises(HdicaError, match=words):
        call()
