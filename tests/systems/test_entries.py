"""Method `entries` of the projected systems: what it keeps, honours and refuses."""

import numpy as np
import pytest

import hdica

TIMES = np.linspace(0, 10, 6)
ICA = hdica.OnlineICA(
    tau=0.04, regularizer="0.1*sign(x)", prior={"sparse": 0.3}, start={"overlap": 0.7}
)


def simulated(system, n=200, times=TIMES, seeds=(0,), **options):
    return hdica.simulate(system, n=n, times=times, seeds=seeds, method="entries", **options)


def score(system, limit, variable="Q", seeds=8, n=200):
    """Standard score of the mean of runs over that of a limit, at the last time."""
    runs = simulated(system, n, seeds=range(seeds))[variable].isel(time=-1).values
    exact = float(hdica.limit(limit, times=TIMES)[variable][-1])
    return (runs.mean() - exact) / (runs.std(ddof=1) / np.sqrt(seeds))


@pytest.mark.parametrize(
    "system",
    [
        ICA,
        ICA.model_copy(update={"regularizer": "tanh(x)"}),
        hdica.SparsePCA(tau=0.5, omega=1.5, regularizer="0.1*sign(x)", prior={"sparse": 0.3}),
    ],
    ids=["lasso", "smooth", "sparse_pca"],
)
def test_order_parameters_scatter_about_the_limit(system):
    assert abs(score(system, system)) < 4
    assert abs(score(system, system, "R")) < 4


def test_it_honours_batch_and_sign():
    many = hdica.OnlineICA(tau=0.3, batch=8, start={"overlap": 0.8})
    assert abs(score(many, many)) < 4
    assert abs(score(many, many.model_copy(update={"batch": 1}))) > 8
    turned = {"tau": 0.02, "source": "laplace", "start": {"overlap": 0.7}}
    auto = hdica.OnlineICA(**turned, sign="auto")
    assert abs(score(auto, auto)) < 4
    assert abs(score(auto, hdica.OnlineICA(**turned))) > 6


def test_a_path_does_not_depend_on_the_times_at_which_it_is_seen():
    every = simulated(ICA, times=np.linspace(0, 10, 101), extra=["path"])
    some = simulated(ICA, extra=["path"])
    for name in ("Q", "R", "path"):
        assert np.array_equal(every[name].sel(time=TIMES), some[name])
    other = simulated(ICA, seeds=[1], extra=["path"])
    assert not np.array_equal(other["path"], some["path"])


def test_single_entries_are_those_of_the_estimate():
    found = simulated(ICA, extra=["path"], snapshots=[0, 10], estimate=True)
    xi, estimate = found["xi_entry"].values[0], found["estimate"].values[0]
    assert found["path"].dims == ("seed", "time", "group", "walker")
    for k, value in enumerate(found["group"].values):
        own = np.flatnonzero(np.abs(xi - value) < 1e-6)[:5]
        ends = found["path"].values[0][[0, -1], k]
        assert np.array_equal(ends, estimate[:, own])
    assert float(found["Q"][0, -1]) == pytest.approx(np.mean(xi * estimate[1]), abs=1e-12)


def test_a_group_with_few_entries_has_no_more_paths():
    found = simulated(ICA.model_copy(update={"prior": {"sparse": 0.1}}), n=30, extra=["path"])
    known = np.isfinite(found["path"]).all("time").values[0].sum(axis=1)
    assert known.tolist() == [5, 3]


def correlation(found, value):
    """Over the entries of a group and seeds: correlation of an entry at two times, with error."""
    parts = []
    for seed in range(found.sizes["seed"]):
        xi, x = found["xi_entry"].values[seed], found["estimate"].values[seed]
        own = np.abs(xi - value) < 1e-2
        parts.append(np.corrcoef(x[0, own], x[1, own])[0, 1])
    return np.mean(parts), np.std(parts, ddof=1) / np.sqrt(len(parts))


@pytest.mark.deep
def test_entries_of_the_algorithm_remember_as_long():
    asked = {"n": 1000, "times": [0, 10, 20], "seeds": range(8), "snapshots": [10, 20]}
    asked["estimate"] = True
    real = hdica.simulate(ICA, method="vector", **asked)
    free = simulated(ICA, **asked)
    wrong = simulated(ICA.model_copy(update={"batch": 2}), **asked)
    for value in (0.0, 1 / np.sqrt(0.3)):
        (a, da), (b, db), (c, dc) = (correlation(one, value) for one in (real, free, wrong))
        assert abs(a - b) < 4 * np.hypot(da, db) + 5 / 1000
        assert abs(a - c) > 6 * np.hypot(da, dc)


def test_it_is_taken_by_name_alone_and_refuses_what_has_no_density():
    assert hdica.simulate(ICA, n=50, times=[0, 1]).attrs["method"] == "vector"
    point = {"normal": {"mean": 1.0, "var": 0.0}}
    with pytest.raises(hdica.HdicaError, match="variance 0"):
        simulated(ICA.model_copy(update={"start": point}))
    # Without a regularizer the limit is three numbers, and needs no density.
    simulated(hdica.OnlineICA(tau=0.04, start=point, prior={"sparse": 0.3}), n=50)
    with pytest.raises(hdica.HdicaError, match="no finite moment"):
        simulated(ICA.model_copy(update={"source": {"student": 5}}))
