"""Step sizes that follow what a run observes: the rule, its law, its limit, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.stats import ks_2samp

import hdica
from hdica.errors import HdicaError
from hdica.finite.random.streams import streams_of
from hdica.ingredients.sources import make_source
from hdica.systems.online_ica import system as ica
from hdica.systems.sparse_pca import system as pca
from hdica.systems.system import methods_of, systems
from hdica.systems.trials import content_of

SEEN = {"observed": {"rate": 0.2, "least": 0.3}}
ICA = partial(hdica.OnlineICA, source="rademacher", start={"overlap": 0.5, "exact": True})
OJA = partial(hdica.SparsePCA, omega=1.0, start={"overlap": 0.1, "exact": True})
BOTH = pytest.mark.parametrize(("make", "system"), [(ICA, ica), (OJA, pca)], ids=["ica", "oja"])


TAUS = [
    {"label": "seen", **SEEN},
    {"label": "constant", "value": 0.02},
    {"label": "fast", "observed": {"rate": 1.0}},
]


def observed(rate: float, **others: float) -> dict[str, dict[str, float]]:
    return {"observed": {"rate": rate, **others}}


@BOTH
@pytest.mark.parametrize("least", [0.0, 0.4])
def test_the_step_size_is_the_best_one_of_the_limit_at_the_overlap(
    make: Any, system: Any, least: float
) -> None:
    seen = system.steps(make(tau=observed(1.0, least=least))).observed
    best = hdica.optimal_schedule(make(tau=0.1), start=0.05, goal=0.99)
    square = np.linspace(0, 1, len(seen.sizes))
    tau = np.interp(np.maximum(square, least**2), best.Q**2, best.tau)
    inside = (square > 0.05**2) & (square < 0.98)
    assert np.allclose(np.array(seen.sizes)[inside], tau[inside], rtol=2e-3)
    assert np.all(np.array(seen.sizes)[square <= least**2] == seen.sizes[0])


def plain(
    system: Any, module: Any, n: int, steps: int, law: str, step: Callable[..., Any]
) -> float:
    """Q of the rule on all coordinates, with noise of a law, written out step by step."""
    seen, rule = module.steps(system).observed, module.rule(system).vector
    stream = streams_of(content_of(system), "vector", n)(3)
    rng = stream("start")
    xi = rule.prior.feature(rng, n)
    x, places = rule.start.estimate(rng, xi), np.linspace(0, 1, len(seen.sizes))
    sources, noise = rule.sources(stream("source"))(steps), stream("noise law")
    average = normal = {2: 1.0, 4: 3.0}[seen.power]
    for c in sources:
        y = step(xi, c, make_source(law).sample(noise, n))
        u = x @ y / n**0.5
        share = min(1.0, max(0.0, (average - normal) / seen.scale)) ** (2 / seen.power)
        tau = np.interp(share, places, seen.sizes)
        x = x + tau / n**0.5 * (-(u**3) if seen.power == 4 else u) * y
        x *= (n / (x @ x)) ** 0.5
        average += seen.rate / n * (u**seen.power - average)
    return float(xi @ x / n)


def test_every_step_of_the_vector_follows_the_average() -> None:
    n, steps = 21, 300
    law = "rademacher"
    one = ICA(tau=observed(2.0, least=0.2), noise_law=law)
    got = hdica.simulate(one, n=n, times=[steps / n], seeds=[3], method="vector")
    want = plain(one, ica, n, steps, law, lambda xi, c, z: z + xi * (c / n**0.5 - xi @ z / n))
    assert got.Q.item() == pytest.approx(want, rel=1e-9)
    other = OJA(tau=observed(2.0), noise_law=law)
    got = hdica.simulate(other, n=n, times=[steps / n], seeds=[3], method="vector")
    want = plain(other, pca, n, steps, law, lambda xi, c, z: z + xi * c / n**0.5)
    assert got.Q.item() == pytest.approx(want, rel=1e-9)


@BOTH
def test_chains_have_the_law_of_all_coordinates(make: Any, system: Any) -> None:
    times = [0, 5, 15] if make is OJA else [0, 20, 60]
    runs = partial(hdica.simulate, n=40, times=times, seeds=1500)
    one = make(tau=SEEN)
    chain, vector = (runs(one, method=method).Q for method in ("chain", "vector"))
    slow = runs(make(tau=observed(0.05, least=0.3)), method="chain").Q
    for k in (1, 2):
        assert ks_2samp(chain[:, k], vector[:, k]).pvalue > 1e-3
    assert ks_2samp(slow[:, 2], vector[:, 2]).pvalue < 1e-6


@BOTH
def test_a_run_does_not_depend_on_output_times_or_on_what_runs_beside_it(
    make: Any, system: Any
) -> None:
    one = make(tau=SEEN)
    for method in ("chain", "vector"):
        runs = partial(hdica.simulate, one, n=60, method=method)
        many = runs(times=np.linspace(0, 8, 41), seeds=range(3, 14)).Q
        few = runs(times=[8], seeds=[5, 9]).Q
        assert np.array_equal(few[:, 0], many.sel(time=8, seed=[5, 9]))
        together = runs(times=[8], seeds=[5], over={"tau": TAUS}).Q
        assert np.array_equal(together.sel(tau="seen").values.ravel(), few[0].values)


def test_points_that_share_noise_have_the_numbers_that_they_have_alone() -> None:
    runs = partial(hdica.simulate, n=40, times=[0, 3, 6], seeds=2, noise="shared")
    for method in ("chain", "vector"):
        both = runs(ICA(tau=SEEN), method=method, over={"tau": TAUS}).Q
        for tau in TAUS:
            alone = runs(ICA(tau=SEEN), method=method, over={"tau": [tau]}).Q
            assert np.array_equal(both.sel(tau=tau["label"]), alone.sel(tau=tau["label"]))


@BOTH
@pytest.mark.parametrize("rate", [0.1, 0.7, 5.0])
def test_the_limit_is_within_its_error_of_another_solver(
    make: Any, system: Any, rate: float
) -> None:
    one = make(tau=observed(rate, least=0.05))
    seen, last = system.steps(one).observed, 20.0 if make is OJA else 80.0
    flow, places = system.overlap(one).drift, np.linspace(0, 1, len(seen.sizes))

    def rates(t: float, state: np.ndarray) -> list[float]:
        q, share = state[0], max(0.0, state[1]) ** (2 / seen.power)
        tau = np.interp(share, places, seen.sizes)
        return [float(flow.at(q, tau)), rate * (abs(q) ** seen.power - state[1])]

    times = np.linspace(0, last, 9)
    limit = hdica.limit(one, times=times)
    start = [float(limit.Q[0]), 0.0]
    close = {"rtol": 3e-13, "atol": 1e-15, "max_step": last / 4000}
    other = solve_ivp(rates, (0, last), start, "DOP853", t_eval=times, **close)
    assert np.all(np.abs(limit.Q - other.y[0]) <= limit.Q_error + 1e-12)
    assert float(limit.Q_error.max()) < 1e-6
    assert np.isnan(limit.Q_sd).all()


@BOTH
def test_chains_of_a_large_n_are_on_the_limit(make: Any, system: Any) -> None:
    n, seeds, times = 10_000, 128, [10, 20] if make is OJA else [30, 60]
    runs = hdica.simulate(make(tau=SEEN), n=n, times=times, seeds=seeds, method="chain").Q
    # With what n leaves of the mean at order 1/n.
    near = 3.5 * runs.std("seed", ddof=1) / seeds**0.5 + 10 / n
    right, slower = (
        hdica.limit(make(tau=observed(rate, least=0.3)), times=times).Q for rate in (0.2, 0.1)
    )
    assert np.all(np.abs(runs.mean("seed") - right) < near)
    assert np.all(np.abs(runs.mean("seed") - slower) > near)


def test_a_fast_average_is_as_soon_as_the_schedule_that_knows_the_overlap() -> None:
    best = hdica.optimal_schedule(ICA(tau=0.1), goal=0.99**0.5)
    last = float(best.t)
    ends = [
        float(hdica.limit(ICA(tau=observed(rate)), times=[last]).Q[0] ** 2)
        for rate in (0.05, 0.2, 1.0, 20.0)
    ]
    assert np.all(np.diff(ends) > 0)
    assert ends[-1] == pytest.approx(0.99, abs=1e-4)
    constant = hdica.limit(ICA(tau=float(best.best_constant_tau)), times=[last]).Q[0] ** 2
    assert ends[0] < float(constant) < ends[1] < 0.99


def test_the_other_side_is_a_mirror() -> None:
    ends = [
        hdica.limit(ICA(tau=SEEN, start={"overlap": q}), times=[0, 40]).Q.values
        for q in (0.5, -0.5)
    ]
    assert np.allclose(ends[0], -ends[1], rtol=1e-12)


def test_where_nothing_is_learned_the_limit_stays_and_says_why() -> None:
    limit = hdica.limit(hdica.OnlineICA(tau=SEEN, source="laplace"), times=[0, 5])
    assert np.array_equal(limit.Q, [0.5, 0.5])
    assert "no step size learns the source laplace" in limit.attrs["note"]
    learns = hdica.OnlineICA(tau=SEEN, source="laplace", sign="auto")
    assert float(hdica.limit(learns, times=[0, 50]).Q[-1]) > 0.501


@pytest.mark.parametrize("name", ["OnlineICA", "SparsePCA"])
def test_all_methods_but_three_refuse_it(name: str) -> None:
    one = systems()[name].parameters(tau=SEEN)
    able = [own for own in methods_of(name).values() if not own.scope.refuses(one)]
    assert {own.name for own in able} == {"chain", "vector", "ode"}
    with pytest.raises(HdicaError, match=r"allowed .*: methods 'chain', 'vector' and 'ode'"):
        hdica.limit(one, times=[0, 1], method="pde")


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: ICA(tau=observed(0.0)), r"rate: r"),
        (lambda: ICA(tau={"observed": {"least": 0.2}}), r"rate: r"),
        (lambda: ICA(tau=observed(1.0, least=1.0)), r"0 <= q < 1"),
        (lambda: ICA(tau=observed(1.0, cap=0.1)), r"'cap': 0.1.* is not allowed"),
        (lambda: ICA(nu=SEEN), r"nu = .* is not allowed"),
        (lambda: ICA(tau=SEEN, batch=4), r"batch = 4 is not allowed for such a step size"),
        (lambda: ICA(tau=SEEN, regularizer="0.1*sign(x)"), r"does not close the limit"),
        (lambda: ICA(tau=SEEN, motion={"exchange": 0.1}, prior="gaussian"), r"motion = .* stays"),
        (lambda: hdica.OnlineICA(tau=SEEN, source="gaussian"), r"3 \+ 0 Q\^4 says nothing"),
        (lambda: hdica.OnlineICA(tau=SEEN, source={"student": 3.5}), r"3 \+ inf Q\^4"),
        (lambda: OJA(tau=SEEN, omega="1 + t"), r"omega = '1 \+ t' is not allowed"),
        (lambda: OJA(tau=SEEN, omega=0), r"1 \+ 0 Q\^2 says nothing"),
        (lambda: hdica.SeveralICA(tau=SEEN), r"tau = .* is not allowed"),
        (lambda: hdica.limit(ICA(tau=SEEN), times=[0, 1], bias=True), r"bias .* the samples"),
    ],
)  # fmt: skip
def test_what_it_cannot_be_is_one_sentence(make: Callable[[], object], match: str) -> None:
    with pytest.raises(HdicaError, match=match) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_a_grid_sweeps_its_rate() -> None:
    runs = hdica.limit(
        ICA(tau=observed(0.1)), times=[0, 40], over={"tau.observed.rate": [0.1, 2.0]}
    )
    low, high = runs.Q[:, -1].values
    assert low < high
    assert low == hdica.limit(ICA(tau=observed(0.1)), times=[0, 40]).Q[-1]


def test_an_average_that_is_no_number_has_a_step_size() -> None:
    # A chain that has stopped stands still beside others, whatever is drawn for it.
    from hdica.finite.projected.observed import SIZES, observed, rows_of

    rows = rows_of([ica.steps(ICA(tau=SEEN))], 100)
    assert rows is not None
    (row,) = rows
    for average, place in ((np.nan, SIZES), (-np.inf, SIZES), (0.0, SIZES), (np.inf, -1)):
        row[0] = average
        assert observed(row, 1.0) == pytest.approx(row[place], rel=1e-9)
