"""Online tensorial ICA as users meet it: the contract, its refusals, what its fields mean."""

import math

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING
from hdica.systems.tensorial_ica.record import SYSTEM
from hdica.systems.tensorial_ica.system import phases, step_sizes

ETA = {"dimension": 6, "source": "rademacher", "eta": 1e-3}


def test_the_calls_of_the_manual():
    ten = hdica.TensorialICA(dimension=20, source="rademacher", eta=2e-3, start="axis")
    sim = hdica.simulate(ten, times=[0, 1000], seeds=range(8), extra=["v"])
    assert sim["tan2"].dims == ("seed", "time")
    assert sim["v"].dims == ("seed", "time", "component")
    assert sim["v"].shape == (8, 2, 20)
    assert sim["step"].values.tolist() == [0, 1000]
    assert "v" not in hdica.simulate(ten, times=[0, 1000], seeds=2)
    lim = hdica.limit(ten, times=[0, 1000])
    assert lim["v"].dims == ("time", "component")
    assert lim["v"].values[1] == pytest.approx(np.eye(20)[0], abs=1e-12)
    level = hdica.stationary_error(ten)
    assert float(level["S2"]) == pytest.approx(0.0109386, abs=5e-8)
    assert float(level["S0"]) == pytest.approx(19 * 2e-3 / 4, rel=1e-12)


@pytest.mark.parametrize(
    ("start", "v"),
    [
        ("axis", [1, 0, 0, 0, 0, 0]),
        ("maximiser", [6**-0.5] * 6),
        ({"support": 3}, [3**-0.5] * 3 + [0] * 3),
        ({"angle": 0.3}, [math.cos(0.3)] + [math.sin(0.3) / 5**0.5] * 5),
        ({"v": [3, 0, -4, 0, 0, 0]}, [0.6, 0, -0.8, 0, 0, 0]),
    ],
)
def test_a_start_is_the_vector_it_names(start, v):
    ten = hdica.TensorialICA(**ETA, start=start)
    for found in (
        hdica.simulate(ten, times=[0], seeds=1, extra=["v"])["v"].isel(seed=0),
        hdica.limit(ten, times=[0])["v"],
    ):
        assert found.isel(time=0).values == pytest.approx(v, abs=1e-15)


def test_uniform_starts_are_uniform():
    """Of v_1^2 on the sphere of dimension 6 the law is beta(1/2, 5/2)."""
    from scipy import stats

    ten = hdica.TensorialICA(**ETA)
    v = hdica.simulate(ten, times=[0], seeds=4000, extra=["v"])["v"].isel(time=0)
    law = stats.beta(0.5, 2.5)
    assert stats.kstest(v.isel(component=2).values ** 2, law.cdf).pvalue > 1e-3
    assert stats.kstest(v.isel(component=2).values ** 2, stats.beta(0.5, 2).cdf).pvalue < 1e-2


def test_phases_have_the_step_sizes_of_the_theorems():
    total, beta = 10_000, 1.2
    unit = math.log(total) / (beta * total)
    given = {"dimension": 6, "source": "uniform"}
    both = hdica.TensorialICA(**given, schedule={"T": total, "c1": 0.5, "c2": 1.5})
    sizes = step_sizes(both)
    assert sizes.value(np.array([0, 4999, 5000, 9999])) == pytest.approx(
        [3 * unit, 3 * unit, 1.5 * unit, 1.5 * unit]
    )
    first = hdica.TensorialICA(**given, schedule={"T": total, "c1": 0.5})
    second = hdica.TensorialICA(**given, schedule={"T": total, "c2": 1.5})
    assert step_sizes(first).constant == pytest.approx(3 * unit)
    assert step_sizes(second).constant == pytest.approx(1.5 * unit)
    assert (phases(first).end, phases(second).end, phases(both).end) == (5000, 5000, 10_000)
    cubed = hdica.TensorialICA(**given, schedule={"kappa": 2, "c1": 0.5})
    assert phases(cubed).total == 432
    falling = hdica.TensorialICA(**given, schedule={"anneal": 1, "t0": 50})
    assert step_sizes(falling).value(np.array([0.0, 50.0])) == pytest.approx(
        [1 / (beta * 50), 1 / (beta * 100)]
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"dimension": 1, "eta": 0.1}, "dimension = 1 is not allowed"),
        ({"dimension": True, "eta": 0.1}, "dimension = True is not allowed"),
        ({"dimension": 3}, "eta, schedule: none of them is not allowed"),
        ({**ETA, "schedule": {"T": 100, "c1": 1}}, "eta, schedule: eta and schedule is not"),
        ({**ETA, "eta": -1}, "eta = -1.0 is not allowed"),
        ({**ETA, "eta": True}, "a step size is a finite number > 0"),
        ({**ETA, "source": "gaussian"}, "fourth moment of 3 is not allowed"),
        ({**ETA, "source": {"student": 3.5}}, "no finite moment of order 4"),
        ({**ETA, "start": "top"}, "start = 'top' is not allowed"),
        ({**ETA, "start": {"angle": 1.6}}, "angles in \\[0, pi/2\\)"),
        ({**ETA, "start": {"v": [1, 0]}}, "start.v with 2 numbers is not allowed"),
        ({**ETA, "start": {"v": [0] * 6}}, "is not allowed"),
        ({**ETA, "start": {"support": 7}}, "start.support = 7 is not allowed"),
        ({**ETA, "mixing": "full"}, "mixing = 'full' is not allowed"),
        ({**ETA, "sign": -1}, "sign = -1 is not allowed"),
        ({**ETA, "bounds": {"lemma_9": 1}}, "bounds.lemma_9 is not known"),
        ({"dimension": 3, "schedule": {"T": 2, "c1": 1}}, "schedule.T = 2 is not allowed"),
        ({"dimension": 3, "schedule": {"T": 20, "c3": 1}}, "schedule = .* is not allowed"),
        ({"dimension": 3, "schedule": {"T": 20}}, "schedule = .* is not allowed"),
        ({"dimension": 3, "schedule": {"kappa": 0.01, "c1": 1}}, "T = kappa d\\^3 >= 3"),
        ({"dimension": 3, "schedule": {"kappa": 1e308, "c1": 1}}, "its step sizes are nan"),
        ({"dimension": 3, "schedule": {"T": 1e300, "c1": 1e-300}}, "its step sizes are 0: finite"),
        ({"dimension": 3, "schedule": {"T": 99, "c1": 1e308}}, "its step sizes are inf: finite"),
        ({"dimension": 3, "schedule": {"anneal": 1e308, "t0": 1e-9}}, "its step sizes are inf"),
        ({"dimension": 3, "schedule": {"anneal": 1, "t0": 0}}, "schedule.t0 = 0 is not allowed"),
    ],
)
def test_what_is_refused_is_named_in_one_sentence(given, sentence):
    with pytest.raises(HdicaError, match=sentence) as refused:
        hdica.TensorialICA(**given)
    assert "\n" not in str(refused.value)


def test_methods_refuse_what_they_cannot_do():
    uniform = hdica.TensorialICA(**ETA)
    with pytest.raises(HdicaError, match="start = 'uniform' is not allowed for the transient"):
        hdica.limit(uniform, times=[0, 1])
    with pytest.raises(HdicaError, match="a training needs its number of samples"):
        hdica.simulate(uniform, times=[0, 1], method="training")
    with pytest.raises(HdicaError, match="no method of TensorialICA gives what is asked for"):
        hdica.simulate(uniform, times=[0, 1], snapshots=[0])
    with pytest.raises(HdicaError, match="n = 100 is not allowed"):
        hdica.simulate(uniform, n=100, times=[0, 1])
    with pytest.raises(HdicaError, match="dimension = 6 is not allowed for this picture"):
        hdica.landscape(uniform)
    angle = hdica.TensorialICA(**ETA, start={"angle": 0.2})
    with pytest.raises(HdicaError, match="is not allowed for a departure"):
        hdica.limit(angle, times=[0, 1], method="departure")
    falling = hdica.TensorialICA(dimension=3, schedule={"anneal": 1, "t0": 9}, start="axis")
    with pytest.raises(HdicaError, match="a constant step size"):
        hdica.stationary_error(falling)


@pytest.mark.parametrize(
    ("method", "least", "start"),
    [
        ("departure", 6, "axis"),
        ("departure", 8, "maximiser"),
        ("traverse", 6, "uniform"),
        ("traverse", 8, "maximiser"),
        ("batch_level", 6, "axis"),
    ],
)
def test_a_moment_that_is_missing_is_known_before_anything_is_computed(method, least, start):
    chosen = next(one for one in SYSTEM.methods if one.name == method)
    for order, refused in ((least - 0.5, True), (least + 0.5, False)):
        given = ETA | {"source": {"student": order}, "start": start}
        assert ("moment" in chosen.scope.refuses(hdica.TensorialICA(**given))) == refused


def test_a_start_a_rounding_away_from_a_component_is_no_maximiser():
    for start in ({"angle": 1e-13}, {"v": [1, 1e-14, 0, 0, 0, 0]}):
        law = hdica.traverse_times(hdica.TensorialICA(**ETA, start=start))
        assert (float(law["N2"]), float(law["N3"])) == (0, 0)
        assert math.isnan(float(law["N1"]))
    saddle = {"v": [1, 1, 1e-14, 0, 0, 0]}
    found, exact = (
        hdica.traverse_times(hdica.TensorialICA(**(ETA | {"source": "uniform"}), start=start))
        for start in (saddle, {"support": 2})
    )
    assert found["N1"].values == exact["N1"].values > 0


def test_trainings_of_the_same_length_keep_their_own_first_phases():
    """One of two phases of 500 steps beside one of a first phase of 1000 steps."""
    schedules = {"T": 1000, "c1": 0.5, "c2": 1.5}, {"T": 2000, "c1": 0.5}
    trials = [(hdica.TensorialICA(dimension=6, schedule=one), 0) for one in schedules]
    training = next(one for one in SYSTEM.methods if one.name == "training")
    beside = training.together.compute(trials, np.zeros(1), None, NOTHING)
    for (system, seed), one in zip(trials, beside, strict=True):
        alone = training.run(system, np.zeros(1), None, seed, NOTHING)
        assert {k: v.tolist() for k, v in one.values.items()} == {
            k: v.tolist() for k, v in alone.values.items()
        }


def test_samples_that_cannot_be_whitened_leave_the_start():
    """Nearly all of them are 0 in every direction."""
    rare = {"discrete": {"values": [-10, 0, 10], "weights": [0.005, 0.99, 0.005]}}
    ten = hdica.TensorialICA(dimension=5, source=rare, eta=1e-4, start={"angle": 0.5})
    for method in ("batch_fastica", "batch_gradient"):
        found = hdica.simulate(ten, times=[20, 5000], seeds=1, method=method).isel(seed=0)
        assert found["converged"].values.tolist() == [0, 1]
        assert found["iterations"].values[0] == 0
        assert float(found["tan2"][0]) == pytest.approx(math.tan(0.5) ** 2)


def test_what_a_method_holds_grows_with_what_it_allocates():
    held = {one.name: one.cost.memory for one in SYSTEM.methods}
    large = hdica.TensorialICA(dimension=1000, eta=1e-6)
    mixed = large.model_copy(update={"mixing": "random"})
    assert held["deflation"](large, None, 0.0) >= 1000**2
    assert held["observed"](mixed, None, 0.0) >= 1000**2
    assert held["observed"](large, None, 0.0) < 10**4


def test_critical_points_are_counted_and_their_rates_are_those_of_the_drift():
    found = hdica.fixed_points(hdica.TensorialICA(**ETA))
    assert found["multiplicity"].values.sum() == 3**6 - 1
    assert found["multiplicity"].values[[0, -1]].tolist() == [12, 64]
    assert found["stable"].values.tolist() == [True] + [False] * 5
    assert found["unstable"].values.tolist() == [0, 1, 2, 3, 4, 5]
    assert found["kind"].values[0] == "informative"
    for k, v in enumerate(found["v"].values, start=1):
        step = 1e-6
        other = v.copy()
        other[0], other[-1] = v[0] + step, v[-1] + (0 if k == 6 else step)
        moved = other**3 - other * np.sum(other**4)
        if k < 6:
            assert moved[-1] / step == pytest.approx(-1 / k, abs=1e-3)


def test_the_picture_shows_the_landscape():
    sphere = hdica.landscape(hdica.TensorialICA(**(ETA | {"dimension": 3})))["value"]
    assert float(sphere.min()) == pytest.approx(-1)
    assert float(sphere.max()) == pytest.approx(-1 / 3, abs=1e-3)
    circle = hdica.landscape(hdica.TensorialICA(**(ETA | {"dimension": 2})))["value"]
    assert circle.dims == ("azimuth",)
    assert float(circle.max()) == pytest.approx(-0.5, abs=1e-3)
