"""Several parameters, and several dimensions, in one call: the bits of single points."""

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError

ICA = hdica.OnlineICA(tau=0.05, Q0=0.5)
TIMES = {"stop": 2, "num": 3}
TAUS = (0.04, 0.02)


def same(grid, single):
    for name in single.data_vars:
        assert grid[name].dims == single[name].dims
        assert grid[name].values.tolist() == single[name].values.tolist() or np.array_equal(
            grid[name].values, single[name].values, equal_nan=True
        ), name


def test_trials_of_a_grid_have_the_bits_that_they_have_alone():
    asked = {"times": TIMES, "seeds": 4}
    grid = hdica.simulate(ICA, n=[100, 200], over={"tau": TAUS}, **asked)
    assert grid["Q"].dims == ("tau", "n", "seed", "time")
    assert tuple(grid["tau"].values) == TAUS
    assert grid["step"].dims == ("n", "time")
    for tau in TAUS:
        for n in (100, 200):
            single = hdica.simulate(ICA.model_copy(update={"tau": tau}), n=n, **asked)
            here = grid.sel(tau=tau, n=n)
            same(here, single)
            assert here["step"].values.tolist() == single["step"].values.tolist()


def test_several_dimensions_without_a_grid():
    found = hdica.simulate(ICA, n=(200, 100), times=TIMES, seeds=2)
    assert found["Q"].dims == ("n", "seed", "time")
    assert found["n"].values.tolist() == [200, 100]
    same(found.sel(n=100), hdica.simulate(ICA, n=100, times=TIMES, seeds=2))


def test_one_dimension_is_no_dimension_of_the_result():
    found = hdica.simulate(ICA, n=100, times=TIMES, over={"Q0": [0.2, 0.4]})
    assert found["Q"].dims == ("Q0", "seed", "time")
    assert found["n"].item() == 100
    same(found.sel(Q0=0.4), hdica.simulate(ICA.model_copy(update={"Q0": 0.4}), n=100, times=TIMES))


@pytest.mark.parametrize("noise", ["own", "shared"])
def test_words_and_ranges_and_shared_noise(noise):
    asked = {"n": 50, "times": TIMES, "seeds": [3, 1], "method": "vector", "noise": noise}
    over = {"source": ["uniform", "laplace"], "tau": {"start": 0.02, "stop": 0.04, "num": 2}}
    grid = hdica.simulate(ICA, over=over, **asked)
    assert grid["Q"].dims == ("source", "tau", "seed", "time")
    for source in over["source"]:
        single = ICA.model_copy(update={"source": source, "tau": 0.04})
        same(grid.sel(source=source, tau=0.04), hdica.simulate(single, **asked))


def test_a_combination_without_a_result_says_why():
    pca = hdica.SparsePCA(tau=0.1)
    over = {"regularizer": ["0", "sign(x)"]}
    found = hdica.simulate(pca, n=50, times=TIMES, seeds=2, method="chain", over=over)
    assert found["status"].values.tolist() == [[1, 1], [3, 3]]
    assert np.isnan(found["Q"].sel(regularizer="sign(x)")).all()
    assert "exact only for" in found["reason"].values[1, 0]
    same(found.sel(regularizer="0"), hdica.simulate(pca, n=50, times=TIMES, seeds=2))
    # By itself the method that applies everywhere is taken.
    auto = hdica.simulate(pca, n=50, times=TIMES, seeds=2, over=over)
    assert auto.attrs["method"] == "vector"
    assert (auto["status"] == 1).all()


def test_a_combination_that_takes_too_long_leaves_the_others():
    hdica.simulate(ICA, n=50, times=[0, 1], method="vector")  # compiled
    slow = {"n": [50, 10**6], "times": [0, 1], "method": "vector", "timeout": 0.3}
    found = hdica.simulate(ICA, **slow)
    assert found["status"].values.tolist() == [[1], [3]]
    assert "took longer than timeout = 0.3 s" in found["reason"].values[1, 0]


def test_the_limit_takes_what_a_grid_of_a_study_takes():
    over = {"Q0": [0.3, 0.6], "source": ["uniform", "rademacher"]}
    grid = hdica.limit(ICA, times=TIMES, over=over)
    assert grid["Q"].dims == ("Q0", "source", "time")
    single = hdica.limit(hdica.OnlineICA(tau=0.05, Q0=0.6, source="rademacher"), times=TIMES)
    same(grid.sel(Q0=0.6, source="rademacher"), single)
    normal = hdica.OnlineICA(tau=0.05, start={"normal": {"mean": 0.5, "var": 0.5}})
    assert hdica.limit(normal, times=TIMES, over=over).equals(grid)


def test_constants_and_dotted_paths():
    pca = hdica.SparsePCA(tau=0.1, rho=0.2, regularizer="b*x", constants={"b": 0.1})
    found = hdica.limit(pca, times=[0, 1], over={"prior.sparse": [0.1, 0.3], "b": [0.0, 0.2]})
    assert found["Q"].dims == ("prior_sparse", "b", "time")
    single = hdica.SparsePCA(tau=0.1, rho=0.3, regularizer="b*x", constants={"b": 0.2})
    same(found.sel(prior_sparse=0.3, b=0.2), hdica.limit(single, times=[0, 1]))


def test_steady_states_of_a_grid():
    found = hdica.fixed_points(ICA, over={"tau": [0.2, 0.02]})
    assert found["Q"].dims == ("tau", "fixed_point")
    counts = (found["kind"] != "").sum("fixed_point").values.tolist()
    assert counts == [1, 5]
    assert found["stable"].dtype == bool
    assert found["Q"].where(found["stable"]).count("fixed_point").values.tolist() == [1, 3]
    for tau, count in zip((0.2, 0.02), counts, strict=True):
        single = hdica.fixed_points(ICA.model_copy(update={"tau": tau}))
        same(found.sel(tau=tau).isel(fixed_point=slice(count)), single)
        assert found["note"].sel(tau=tau).item() == single.attrs.get("note", "")
    beyond = found.sel(tau=0.2).isel(fixed_point=slice(1, None))
    assert np.isnan(beyond["Q"]).all()
    assert not beyond["stable"].any()


def test_steady_states_of_matrices():
    system = hdica.HebbianICA(mu=0.02, nonlinearity="x**3", sigma=[-1])
    found = hdica.fixed_points(system, over={"mu": [0.02, 0.04]})
    assert found["R"].dims == ("mu", "fixed_point", "projection", "source")
    assert found["certified"].dims == ("mu",)
    single = hdica.fixed_points(system.model_copy(update={"mu": 0.04}))
    same(found.sel(mu=0.04).isel(fixed_point=slice(single.sizes["fixed_point"])), single)


def test_transitions_of_a_grid():
    found = hdica.critical(ICA, over={"source": ["uniform", "laplace"]})
    assert found["value"].dims == ("source", "transition")
    same(found.sel(source="uniform"), hdica.critical(ICA))
    assert np.isnan(found["value"].sel(source="laplace")).all()
    assert "no step size learns" in found["note"].sel(source="laplace").item()


def test_a_combination_without_steady_states_says_why():
    found = hdica.fixed_points(ICA, over={"tau": ["0.02", "0.1/(1 + t)"]})
    assert "a constant step size" in found["note"].values[1]
    assert found["kind"].values[1].tolist() == [""] * 5


CALLS = {
    "limit": lambda **given: hdica.limit(ICA, times=[0, 1], **given),
    "simulate": lambda **given: hdica.simulate(ICA, n=20, times=[0, 1], **given),
    "fixed_points": lambda **given: hdica.fixed_points(ICA, **given),
    "critical": lambda **given: hdica.critical(ICA, **given),
}


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.parametrize(
    ("over", "said"),
    [
        ({}, r"over = \{\} is not allowed \(at least one parameter"),
        (0.1, r"over = 0.1 is not allowed \(at least one parameter"),
        ({"speed": [1]}, "over.speed is not a known parameter"),
        ({"Q0": {"stop": 1}}, "over.Q0: num is missing"),
        ({"Q0": []}, r"over: Q0 = \[\] is not allowed"),
        ({"Q0": [0.1, "a"]}, "over: Q0 = .* is not allowed"),
        ({"Q0": [0.1, 0.1]}, "all finite and different"),
        ({"Q0": [0.1, 2.0]}, "overlap = 2.0 is not allowed"),
        ({"Q0": [0.1], "start.overlap": [0.2]}, "over.start.overlap is already set by over.Q0"),
        ({"seed": [1]}, "'seed' is not allowed .it names a dimension"),
        ({1: [1]}, "over: 1 is not allowed"),
        ({"source": ["gauss"]}, "source: 'gauss' is not known"),
    ],
)
def test_what_is_asked_of_a_grid_is_checked_alike(function, over, said):
    with pytest.raises(HdicaError, match=said):
        CALLS[function](over=over)


@pytest.mark.parametrize(
    "function",
    [hdica.fixed_points, hdica.critical, lambda *a, **k: hdica.limit(*a, times=[0], **k)],
)
def test_what_is_no_system_is_refused(function):
    with pytest.raises(HdicaError, match="system: a str is not allowed"):
        function("OnlineICA", over={"tau": [0.1]})


def test_what_varies_is_not_swept():
    with pytest.raises(HdicaError, match="'tau' is not allowed .its critical values are found"):
        hdica.critical(ICA, over={"tau": [0.1]})
