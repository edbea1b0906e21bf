"""Step sizes that are formulas in n: each simulation has its own, a limit what remains of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.systems import fields

START = {"overlap": 0.6, "exact": True}


@pytest.mark.parametrize(
    ("text", "n", "tau"),
    [("2/n", 50, 0.04), ("a*n**(-0.5)", 64, 0.25), ("max(1/n, 0.01)", 400, 0.01)],
)
@pytest.mark.parametrize("cls", [hdica.OnlineICA, hdica.SparsePCA, hdica.SeveralICA])
def test_a_simulation_has_the_step_size_of_its_n(cls, text: str, n: int, tau: float) -> None:
    system = cls(tau=text, constants={"a": 2.0})
    assert fields.schedule(fields.at_dimension(system, n)).constant == pytest.approx(tau)
    # A constant of that name is what the user says.
    own = cls(tau="2/n", constants={"n": 8.0})
    assert fields.schedule(fields.at_dimension(own, n)).constant == 0.25


def one_feature(tau: float | str) -> hdica.OnlineICA:
    return hdica.OnlineICA(tau=tau, source="rademacher", start=START)


def two_features(tau: float | str) -> hdica.SeveralICA:
    start = {"overlap": [0.6, 0.3]}
    return hdica.SeveralICA(tau=tau, sources=["rademacher", "uniform"], start=start)


@pytest.mark.parametrize("method", ["chain", "vector"])
@pytest.mark.parametrize("make", [one_feature, two_features])
def test_runs_have_it_in_law(make: Callable[..., object], method: str) -> None:
    def mean(tau: float | str, seeds: int = 400) -> tuple[float, float]:
        runs = hdica.simulate(make(tau), n=100, times=[0, 10], seeds=seeds, method=method)
        q = runs.Q.isel(time=-1).values.reshape(seeds, -1)[:, 0]
        return float(q.mean()), float(q.std(ddof=1)) / seeds**0.5

    (of_n, error), (same, its_error) = mean("4/n"), mean(0.04)
    assert abs(of_n - same) < 4 * np.hypot(error, its_error)
    wrong, its_error = mean(0.1)
    assert abs(of_n - wrong) > 8 * np.hypot(error, its_error)


def test_nu_may_depend_on_n_too() -> None:
    system = hdica.OnlineICA(nu="sqrt(n)", start={"overlap": 0})
    assert fields.schedule(fields.at_dimension(system, 100)).constant == pytest.approx(0.1)
    times = hdica.simulate(system, n=16, times=[50], seeds=4, method="escape_times")
    assert np.isfinite(times["first"]).all() or (times["first_seen"] == 0).any()


def test_samples_of_ones_own_have_the_step_size_of_their_n() -> None:
    rng = np.random.default_rng(1)
    samples = rng.normal(size=(400, 25))

    def estimate(tau: float | str) -> np.ndarray:
        ica = hdica.OnlineICA(
            tau=tau, data={"array": samples}, start={"normal": {"mean": 0.0, "var": 1.0}}
        )
        rule = hdica.simulate(ica, times=[0, 4, 8], seeds=40, method="blind")
        return rule["fourth"].mean("seed").values

    assert np.allclose(estimate("1/n")[1:], estimate(0.04)[1:], rtol=0.25)


def test_a_limit_takes_what_remains_or_says_that_nothing_does() -> None:
    some = hdica.OnlineICA(tau="0.05*(1 + 10/n)/(1 + t/(50 + 1/n))", start=START)
    same = hdica.OnlineICA(tau="0.05/(1 + t/50)", start=START)
    found, wanted = (hdica.limit(one, times=[0, 5, 20]).Q for one in (some, same))
    assert np.array_equal(found, wanted)
    for text, what in (
        ("2/n", "vanishes as n -> infinity"),
        ("n/100", "grows with n beyond all bounds"),
        ("0.2 + 0.1*sin(n)", "has no limit as n -> infinity that is known"),
    ):
        ica = hdica.OnlineICA(tau=text)
        for call in (
            lambda ica=ica: hdica.limit(ica, times=[1]),
            lambda ica=ica: hdica.fixed_points(ica),
            lambda text=text: hdica.limit(hdica.SeveralICA(tau=text), times=[1]),
            lambda text=text: hdica.fixed_points(hdica.SeveralICA(tau=text)),
            lambda text=text: hdica.critical(hdica.SparsePCA(tau=text), "omega"),
            lambda text=text: hdica.limit(
                hdica.SparsePCA(tau=text, regularizer="sign(x)"), times=[1]
            ),
        ):
            with pytest.raises(HdicaError, match=rf"is not allowed for limits .*{what}"):
                call()


def test_what_n_leaves_of_a_mean_is_not_known_of_it() -> None:
    for one in (
        hdica.OnlineICA(tau="0.05 + 2/n", start=START),
        hdica.SparsePCA(tau="0.1 + n**(-0.5)", start=START),
        hdica.SparsePCA(tau="0.1 + 1/n", start=START, regularizer="0.1*sign(x)"),
        hdica.SeveralICA(tau="0.05 + 2/n"),
    ):
        assert np.isfinite(hdica.limit(one, times=[0, 2]).Q).all()
        with pytest.raises(HdicaError, match=r"bias = True is not allowed for tau = .* on n"):
            hdica.limit(one, times=[0, 2], bias=True)


def test_a_step_that_switches_at_a_time_of_its_n() -> None:
    system = hdica.OnlineICA(tau="where(t > 1/n, 0.05, 0.1)", start=START)
    assert fields.schedule(fields.at_dimension(system, 10)).at(0.05) == 0.1
    assert fields.schedule(fields.at_dimension(system, 10)).at(0.15) == 0.05
    with pytest.raises(HdicaError, match="has no limit as n -> infinity that is known"):
        hdica.limit(system, times=[0, 2])


def test_a_study_sweeps_it_and_refuses_its_limits() -> None:
    parts = {"system": "OnlineICA", "grid": {"tau": ["2/n", "4/n"]}, "times": [0, 5]}
    runs = {"chain": {"n": [20, 50], "seeds": 2}}
    assert hdica.Study(study="sizes", methods=runs, **parts).plan().points == 8
    with pytest.raises(HdicaError, match=r"methods.ode does not apply: tau = '2/n'"):
        hdica.Study(study="sizes", methods={**runs, "ode": {}}, **parts)


def test_other_systems_have_no_n_in_their_step_sizes() -> None:
    with pytest.raises(HdicaError, match="'n' is neither a variable nor a constant"):
        hdica.HebbianICA(mu="1/n")
    with pytest.raises(HdicaError, match="finite number > 0"):
        hdica.OnlineICA(tau="-1/n")
