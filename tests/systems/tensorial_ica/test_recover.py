"""All components: coupon collecting, deflation against a plain reference, and their errors."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hdica.finite.random.streams import streams_of
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.systems.tensorial_ica.paths import (
    coupon_mean,
    coupon_sd,
    deflation,
    part_of,
    repeats,
    runs_of,
    start_in_complement,
)
from hdica.systems.tensorial_ica.rule import TensorialRule, draws, run_together

LEVEL = 4.0  # standard errors
STREAMS = streams_of("recovery", "tests", 1)


def uniform_start(d):
    return lambda rng: start_in_complement(np.zeros((0, d)), rng)


def make_rule(d, eta=2e-3, source="rademacher", sign=-1.0):
    schedule = make_schedule(eta, name="eta")
    return TensorialRule(d, make_source(source), sign, schedule, uniform_start(d))


def lottery(d, success=1.0, seed=0):
    """Runs that end at an axis drawn at random, or at none."""

    def run(streams):
        found = []
        for stream in streams:
            rng = stream("start")
            tan2 = 0.01 if rng.random() < success else 0.5
            values = {"tan2": np.array([9.0, tan2]), "nearest": np.array([0, rng.integers(d)])}
            found.append((values, ""))
        return found

    return run


# --- how many runs ---


def test_expected_number_of_runs_by_hand():
    assert coupon_mean(1) == 1
    assert coupon_mean(2) == 3
    assert coupon_mean(3) == pytest.approx(5.5)
    assert coupon_sd(2) == pytest.approx(math.sqrt(2))
    assert coupon_mean(1, 0.25) == 4
    assert coupon_sd(1, 0.25) == pytest.approx(math.sqrt(12))
    assert coupon_mean(100) == pytest.approx(100 * (math.log(100) + 0.5772157 + 1 / 200), abs=1e-3)


@pytest.mark.parametrize("success", [1.0, 0.6])
def test_number_of_runs_is_the_collectors(success):
    d, seeds = 8, 400
    counts = [repeats(lottery(d, success), d, STREAMS(seed)).count for seed in range(seeds)]
    mean, sd = coupon_mean(d, success), coupon_sd(d, success)
    assert abs(np.mean(counts) - mean) < LEVEL * sd / math.sqrt(seeds)
    # The standard deviation has, for this skewed law, an error of about sd/sqrt(seeds).
    assert abs(np.std(counts, ddof=1) - sd) < LEVEL * sd / math.sqrt(seeds)
    # Control: neither d runs nor all of them successful.
    assert abs(np.mean(counts) - d * math.log(d)) > LEVEL * sd / math.sqrt(seeds)


def test_ledger_of_runs():
    found = repeats(lottery(5, 0.7), 5, STREAMS(3))
    assert found.complete
    assert found.count == found.components.size == found.tan2.size == found.first_runs.max()
    for axis in range(5):
        first = np.flatnonzero(found.components == axis)[0]
        assert found.first_runs[axis] == first + 1
        assert found.errors[axis] == found.tan2[first]
    assert np.all((found.components >= 0) == (found.tan2 < 1 / 3))
    assert found.largest == 0.01


def test_runs_that_share_a_call_are_those_that_do_not():
    def alone(streams):
        return [lottery(5)([stream])[0] for stream in streams[:1]]

    together, apart = (repeats(run, 5, STREAMS(4)) for run in (lottery(5), alone))
    assert together.components.tolist() == apart.components.tolist()


def test_repeats_of_the_rule_find_every_axis():
    # beta eta t = 6 is enough for d = 5, but for a start in a few thousand.
    d, counts = 5, []
    for seed in range(40):
        found = repeats(runs_of(make_rule(d), 3000), d, STREAMS(seed))
        assert found.complete
        assert found.largest < 1 / 3
        counts.append(found.count)
    assert abs(np.mean(counts) - coupon_mean(d)) < LEVEL * coupon_sd(d) / math.sqrt(40)
    again = repeats(runs_of(make_rule(d), 3000), d, STREAMS(39))
    assert again.tan2.tobytes() == found.tan2.tobytes()


def test_repeats_with_the_wrong_sign_find_nothing_and_give_up():
    found = repeats(runs_of(make_rule(5, sign=1.0), 3000), 5, STREAMS(0), most=20)
    assert (found.count, found.complete) == (20, False)
    assert np.all(found.components == -1)
    assert math.isnan(found.largest)


# --- deflation ---


def reference(rule, steps, stream):
    """The same with a projection matrix, and samples projected instead of the iterate."""
    d, found = rule.dimension, []
    for r in range(d):
        own, projector = part_of(stream, r + 1), np.eye(d)
        for v in found:
            projector = projector - np.outer(v, v)
        v = projector @ own("start").standard_normal(d)
        v /= np.linalg.norm(v)
        total = 0.0
        for t, z in enumerate(draws(rule.source, d, own("source"))(steps if r < d - 1 else 0)):
            y = v @ z
            total += y**4 - 3
            sign = rule.sign or np.sign(total)
            v = v + rule.schedule.value(np.array(float(t))) * sign * y**3 * (projector @ z)
            v /= np.linalg.norm(v)
        found.append(v)
    return np.array(found)


# On its way from saddle to saddle a component magnifies the rounding of those before it: the
# longest of these paths are those that end early at their axes.
@pytest.mark.parametrize(
    ("source", "steps"), [("rademacher", 1100), ("uniform", 150), ("laplace", 1500)]
)
@pytest.mark.parametrize("estimated", [True, False])
def test_deflation_is_the_projected_rule(source, steps, estimated):
    rule = make_rule(6, "0.01/(1 + t/100)", source)
    rule = replace(rule, sign=None if estimated else math.copysign(1, rule.source.moment(4) - 3))
    found = deflation(rule, steps, STREAMS(0))
    assert np.allclose(found.vectors, reference(rule, steps, STREAMS(0)), rtol=0, atol=1e-9)
    assert np.allclose(found.vectors @ found.vectors.T, np.eye(6), rtol=0, atol=1e-14)
    assert found.diverged == ""


def test_first_component_is_that_of_the_rule_alone():
    rule, stream = make_rule(7, source="uniform"), STREAMS(5)
    found = deflation(rule, 2500, stream)
    times = np.array([float(found.steps[0] - 1), float(found.steps[0]), 2500.0])
    ((alone, _),) = run_together([rule], times, [part_of(stream, 1)])
    assert found.tan2[0] == pytest.approx(alone["tan2"][2], rel=1e-9)
    assert found.components[0] == alone["nearest"][2]
    assert alone["tan2"][0] > 1 / 3 >= alone["tan2"][1]


@pytest.mark.parametrize("d", [5, 10])
def test_deflation_finds_every_component(d):
    found = deflation(make_rule(d), 3000 if d == 5 else 8000, STREAMS(d))
    assert found.complete
    assert sorted(found.components.tolist()) == list(range(d))
    assert found.largest < 0.05
    assert np.all(found.steps >= 0)
    assert np.any(found.steps > 100)
    assert np.allclose(found.vectors @ found.vectors.T, np.eye(d), rtol=0, atol=1e-14)
    again = deflation(make_rule(d), 3000 if d == 5 else 8000, STREAMS(d))
    assert again.vectors.tobytes() == found.vectors.tobytes()


def test_the_last_component_is_what_the_others_leave():
    found = deflation(make_rule(5), 3000, STREAMS(1))
    assert found.steps[-1] == 0
    rest = np.eye(5) - found.vectors[:-1].T @ found.vectors[:-1]
    assert np.allclose(rest, np.outer(found.vectors[-1], found.vectors[-1]), rtol=0, atol=1e-13)


@pytest.mark.deep
def test_errors_do_not_add_up_from_component_to_component():
    # E tan^2 = (d - 1) eta/4 (1 + 14 (d - 1) eta/4) for Rademacher sources, one after another.
    d, eta, seeds = 5, 5e-4, 150
    found = [deflation(make_rule(d, eta), 16000, STREAMS(100 + seed)) for seed in range(seeds)]
    tan2 = np.array([f.tan2 for f in found if f.complete])
    assert len(tan2) > 0.97 * seeds
    small = (d - 1) * eta / 4
    error = tan2.std(axis=0, ddof=1) / math.sqrt(len(tan2))
    assert np.all(np.abs(tan2.mean(axis=0) - small * (1 + 14 * small)) < LEVEL * error)
    # Control: this tells one component from two.
    assert np.all(np.abs(tan2.mean(axis=0) - 2 * small) > LEVEL * error)


def test_deflation_with_the_wrong_sign_finds_nothing():
    found = deflation(make_rule(6, sign=1.0), 4000, STREAMS(0))
    assert not found.complete
    assert found.largest > 1
    assert np.all(found.tan2[:3] > 1 / 3)


def test_a_step_that_is_not_finite_ends_it_in_a_sentence():
    found = deflation(make_rule(4, 1e200, "laplace", 1.0), 50, STREAMS(0))
    assert found.diverged.startswith("component 1: the update was not finite at step ")
    assert not found.complete
    assert np.all(np.isnan(found.tan2))
    assert np.all(found.components == -1)


def test_start_is_uniform_on_the_complement():
    found, rng = np.eye(5)[[1, 3]], np.random.default_rng(0)
    starts = np.array([start_in_complement(found, rng) for _ in range(4000)])
    assert np.all(starts[:, [1, 3]] == 0)
    assert np.allclose(np.sum(starts**2, axis=1), 1)
    # Second and fourth moments of a coordinate of the sphere in three dimensions: 1/3 and 1/5.
    for power, expected in ((2, 1 / 3), (4, 1 / 5)):
        values = starts[:, [0, 2, 4]] ** power
        error = values.std(axis=0) / math.sqrt(len(starts))
        assert np.all(np.abs(values.mean(axis=0) - expected) < LEVEL * error)
