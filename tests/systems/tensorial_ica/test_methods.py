"""Methods of tensorial ICA beyond paths, through the public functions."""

import numpy as np
import pytest

import hdica
from hdica.systems.tensorial_ica.bounds import TAN_WARM

SMALL = {"dimension": 5, "source": "uniform", "eta": 2e-4}


def simulated(system, method, times, seeds, **more):
    return hdica.simulate(system, times=times, seeds=seeds, method=method, **more)


def test_observed_coordinates_are_the_same_path_rotated():
    ten = hdica.TensorialICA(**SMALL, mixing="random")
    times = [0, 10, 300]
    seen = simulated(ten, "observed", times, 2, extra=["u", "v"])
    plain = simulated(ten, "vector", times, 2, extra=["v"])
    assert seen["v"].values == pytest.approx(plain["v"].values, abs=1e-11)
    norm = (seen["u"] ** 2).sum("component")
    assert norm.values == pytest.approx(np.ones((2, 3)), abs=1e-12)
    assert not np.allclose(seen["u"], seen["v"], atol=0.05)
    unmixed = simulated(ten.model_copy(update={"mixing": "identity"}), "observed", times, 2)
    assert unmixed["tan2"].values == pytest.approx(seen["tan2"].values, rel=1e-8)


def test_a_training_ends_where_the_path_of_its_step_sizes_does():
    ten = hdica.TensorialICA(
        dimension=5, source="uniform", schedule={"T": 4001, "c1": 0.3, "c2": 1.5}
    )
    ends = simulated(ten, "training", [0], 3)
    path = simulated(ten, "vector", [2000.5, 4001], 3)["tan2"].values
    assert ends["half"].values.tobytes() == path[:, 0].tobytes()
    assert ends["tan2"].values.tobytes() == path[:, 1].tobytes()


def test_a_level_is_the_mean_of_the_second_half():
    ten = hdica.TensorialICA(**SMALL, start="axis")
    times = [0, 100, 200, 300, 400]
    level = simulated(ten, "settled", times, 3)["tan2"].values
    path = simulated(ten, "vector", times, 3)["tan2"].values
    assert level == pytest.approx(path[:, 2:].mean(axis=1), rel=1e-14)


def test_offline_estimates_do_not_depend_on_the_mixing_and_beat_the_online_rule():
    given = {**SMALL, "start": {"angle": 0.4}}
    mixed, plain = (hdica.TensorialICA(**given, mixing=how) for how in ("random", "identity"))
    times = [0, 3, 20_000]
    for method in ("batch_fastica", "batch_gradient"):
        found = [simulated(ten, method, times, 2) for ten in (mixed, plain)]
        # Streams are those of the system without its mixing: the samples are the same.
        assert found[0]["tan2"].values == pytest.approx(found[1]["tan2"].values, rel=1e-5)
        assert found[0]["converged"].values[:, 2].tolist() == [1, 1]
        assert found[0]["iterations"].values[:, :2].tolist() == [[0, 0], [0, 0]]
        assert found[0]["tan2"].values[:, :2] == pytest.approx(np.tan(0.4) ** 2)
        online = simulated(mixed, "vector", times, 2)["tan2"].values[:, 2]
        assert np.all(found[0]["tan2"].values[:, 2] < online)


def test_all_components_are_found_by_repeats_and_by_deflation():
    ten = hdica.TensorialICA(
        dimension=5, source="rademacher", schedule={"T": 20_000, "c1": 0.3, "c2": 1.5}
    )
    repeats = simulated(ten, "repeats", [0], 40)
    law = hdica.simulate(ten, times=[0], seeds=1, method="repeats")
    assert law["made"].values[0] == repeats["made"].values[0]
    mean = float(repeats["repeats"].mean())
    expected, spread = 5 * (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5), 5.017
    assert abs(mean - expected) <= 4 * spread / np.sqrt(40)
    assert np.all(repeats["success"].values == 1)
    deflation = simulated(ten, "deflation", [0], 5)
    assert np.all(deflation["complete"].values == 1)
    assert deflation["tan2"].max() < 0.05


def test_the_approach_joins_the_transient_and_the_level():
    ten = hdica.TensorialICA(dimension=100, source="rademacher", eta=5e-5, start={"angle": 0.5})
    times = np.array([0, 5000, 10_000, 20_000, 60_000])
    mean = simulated(ten, "vector", times, 48)["tan2"]
    error = mean.std("seed", ddof=1).values / np.sqrt(48)
    found = hdica.limit(ten, times=times, method="approach")["tan2"].values
    assert np.all(np.abs(mean.mean("seed").values - found) <= 4 * error + 0.03 * found)
    transient = hdica.limit(ten, times=times)["tan2"].values
    assert transient[-1] < 0.01 * found[-1]


def test_bounds_scale_with_their_constants_and_lie_above_what_is_predicted():
    ten = hdica.TensorialICA(dimension=20, source="rademacher", eta=1e-4, start={"angle": 0.5})
    times = [0, 1, 1000, 100_000]
    one = hdica.bounds(ten, times=times)
    half = hdica.bounds(ten.model_copy(update={"bounds": {"noise": 0.5}}), times=times)
    assert one["lemma_3"].values[-1] == pytest.approx(2 * half["lemma_3"].values[-1], rel=5e-3)
    for name in ("lemma_3", "lemma_6", "theorem_4", "theorem_7", "corollary_8"):
        bound, level = (one[f"{name}{end}"].values[2:] for end in ("", "_predicted"))
        assert np.all(bound >= level), name
    assert np.isnan(one["theorem_4"].values[:2]).all()
    assert one["lemma_5"].values == pytest.approx(1e-4 * np.sqrt(times))
    assert np.tan(0.5) < TAN_WARM
    random = hdica.bounds(ten.model_copy(update={"start": "uniform"}), times=times)
    assert np.isnan(random["lemma_3"]).all()
    with pytest.raises(hdica.HdicaError, match="laplace"):
        hdica.bounds(ten.model_copy(update={"source": "laplace"}), times=times)


def test_every_critical_point_is_one():
    ten = hdica.TensorialICA(dimension=3, source="uniform", eta=1e-3)
    from hdica.ingredients.save import NOTHING
    from hdica.systems.system import methods_of

    values = methods_of("TensorialICA")["critical_points"].run(ten, [], None, None, NOTHING).values
    v = values["v"][np.isfinite(values["value"])]
    assert len(np.unique(v.round(9), axis=0)) == len(v) == 26
    assert np.abs(v**3 - v * np.sum(v**4, axis=1)[:, None]).max() < 1e-15
    assert -np.sum(v**4, axis=1) == pytest.approx(values["value"][:26])
