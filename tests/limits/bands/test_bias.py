"""What n leaves of means over the entries at order 1/n: closed cases, runs, and what has none."""

from dataclasses import replace

import numpy as np
import pytest

import hdica
from hdica.limits.bands import bias
from hdica.limits.bands.sweep import means, overlap
from hdica.limits.overlap.drift import second_order
from hdica.systems.online_ica.system import beyond as ica_rule
from hdica.systems.online_ica.system import mean_field as ica_field
from hdica.systems.sparse_pca.system import beyond, mean_field
from tests.limits.bands.test_bands import ICA, OIST, SIZE

EXACT = {"overlap": 0.3, "exact": True}
ICA_HIGH = {"overlap": 0.7, "exact": True}
SPARSE = {"sparse": 0.3}
CLOSED = [
    hdica.SparsePCA(tau=0.5, omega=1.0, start=EXACT),
    hdica.SparsePCA(tau=0.5, omega=1.0, start={"overlap": 0.3}),
    hdica.SparsePCA(tau=0.5, omega=1.0, prior=SPARSE, start={"normal": {"mean": 0.6, "var": 0.64}}),
    hdica.SparsePCA(tau=0.5, omega=1.0, prior=SPARSE, start=EXACT, regularizer="0.2*x"),
    hdica.OnlineICA(tau=0.05, source="uniform", start={"overlap": 0.8, "exact": True}),
    hdica.OnlineICA(
        tau=0.1, source="rademacher", prior=SPARSE, start=ICA_HIGH, regularizer="0.3*x"
    ),
    hdica.OnlineICA(tau=0.05, source={"chi2": 8}, nonlinearity="tanh(x)", start=ICA_HIGH),
]
OTHERS = [
    # Batches, and step sizes that vary: the whole march has an error of 1/400 there.
    hdica.SparsePCA(tau=0.5, omega=1.0, start=EXACT, batch=4),
    hdica.SparsePCA(tau="0.5/(1 + t/4)", omega=1.0, start={"overlap": 0.3}),
    hdica.SparsePCA(tau="0.5/(1 + t/4)", prior=SPARSE, start=EXACT, batch=3, regularizer="0.2*x"),
    hdica.OnlineICA(
        tau="0.2*(1 + t/5)", source="rademacher", start=ICA_HIGH, regularizer="0.3*x", batch=3
    ),
]


@pytest.mark.deep
@pytest.mark.parametrize("system", CLOSED, ids=lambda one: f"{type(one).__name__}{one.start}")
def test_without_a_regularizer_it_is_that_of_the_overlap(system: object) -> None:
    times = [0.0, 2.0, 5.0]
    density = hdica.limit(system, times=times, bias=True, method="pde")
    overlaps = hdica.limit(system, times=times, bias=True, method="ode")
    np.testing.assert_allclose(density.Q_bias, overlaps.Q_bias, rtol=1e-3, atol=1e-4)


@pytest.mark.deep
@pytest.mark.parametrize("system", OTHERS, ids=lambda one: f"{type(one).__name__}-{one.batch}")
def test_batches_and_step_sizes_that_vary(system: object) -> None:
    times = [2.0, 5.0]
    density = hdica.limit(system, times=times, bias=True, method="pde").Q_bias
    overlaps = hdica.limit(system, times=times, bias=True, method="ode").Q_bias
    np.testing.assert_allclose(density, overlaps, rtol=4e-3)
    plain = hdica.limit(system.model_copy(update={"batch": 1}), times=times, bias=True).Q_bias
    assert system.batch == 1 or np.all(np.abs(plain / overlaps - 1) > 0.02)


@pytest.mark.parametrize(("system", "time"), [(OIST, 3.0), (ICA, 5.0)], ids=["OIST", "ICA"])
def test_the_length_of_the_estimate_has_none(system: object, time: float) -> None:
    of = (mean_field, beyond) if system is OIST else (ica_field, ica_rule)
    target = means(time, [overlap, lambda xi, x: x * x])
    (along, square), _ = bias.biases(of[0](system), of[1](system), target)
    assert abs(square) < 1e-7 * abs(along)


def test_a_step_adds_what_the_chain_of_the_overlap_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """D1 of xi x on cells against that of one overlap, all through a run."""
    system = hdica.SparsePCA(tau=0.5, omega=1.0, prior=SPARSE, start={"overlap": 0.5})
    seen = []
    known = bias.step_bias

    def told(place: object, values: np.ndarray) -> np.ndarray:
        plain = (place.cells.xi * place.cells.x)[:, None]
        q = np.array(place.q)
        other = second_order(place.products, q, place.tau)
        seen.append((float(known(place, plain)[0]), float(other)))
        return known(place, values)

    monkeypatch.setattr(bias, "step_bias", told)
    bias.biases(mean_field(system), beyond(system), means(2.0, [overlap]))
    mine, theirs = np.array(seen).T
    assert mine.size > 20
    np.testing.assert_allclose(mine, theirs, rtol=5e-3, atol=2e-4)


def test_halved_cells_and_steps_take_off_three_quarters_of_the_error() -> None:
    system = CLOSED[0]
    known = float(hdica.limit(system, times=[5.0], bias=True, method="ode").Q_bias[0])
    field, at = mean_field(system), np.array([5.0])
    problem, prior = bias.posed_whole(field)
    plan = bias.graded(bias.coarse(problem, np.array([1e-3, 5.0]), 1e-5)[0], at)
    task = problem, prior, beyond(system), means(5.0, [overlap])
    errors = np.array([abs(bias._level(*task, plan, 2**k)[0] - known) for k in range(4)])
    orders = np.log2(errors[:-1] / errors[1:])
    assert np.all(np.abs(orders[1:] - 2) < 0.3), (errors, orders)


# An l1 regularizer that acts on what the sample has moved (OIST), and one that acts before it.
BIN = "where((x > 0.5) & (x < 1), 1, 0)"
STRONG = hdica.OnlineICA(
    tau=0.12, source="rademacher", regularizer="0.5*sign(x)", prior=SPARSE, start={"overlap": 0.85}
)
BATCHED = STRONG.model_copy(update={"tau": "0.3/(1 + t/5)", "batch": 3})
RUNS = [(OIST, 400, 3.0, 2000), (STRONG, 200, 10.0, 1500), (BATCHED, 200, 5.0, 2000)]


@pytest.mark.deep
@pytest.mark.parametrize(("system", "n", "time", "seeds"), RUNS, ids=["OIST", "ICA", "batches"])
def test_means_of_runs_are_where_it_says(system: object, n: int, time: float, seeds: int) -> None:
    """Q, E abs(x), rates and a bin of the density; three at least differ from 0 by four errors."""
    kept = {
        "thresholds": [0.5], "snapshots": [time],
        "functionals": SIZE | {"fourth": "x**4", "met": "xi*tanh(x)", "bin": BIN},
    }  # fmt: skip
    limit = hdica.limit(system, times=[time], bias=True, method="pde", **kept)
    runs = hdica.simulate(system, n=n, times=[time], seeds=seeds, method="vector", **kept)
    told = 0
    for name in ("Q", "R", "size", "met", "fourth", "tpr", "fpr", "bin"):
        values = runs[name].transpose("seed", ...).values.reshape(seeds, -1)
        mean, term = limit[name].values.ravel(), limit[f"{name}_bias"].values.ravel()
        error = values.std(axis=0, ddof=1) / np.sqrt(seeds)
        off = values.mean(axis=0) - mean
        # The next order: at most a share of 20/n of the term, and 2 % that its solver may be off.
        allowed = 4 * error + (0.02 + 20 / n) * np.abs(term / n) + 1e-6
        assert np.all(np.abs(off - term / n) < allowed), (name, off * n, term, error * n)
        told += int(np.sum(np.abs(off) > 6 * error))
    assert told >= 3


def test_where_phi_acts_makes_a_difference_that_runs_tell() -> None:
    """The control: the same limit, with phi on the estimate before the sample has moved it."""
    target = means(3.0, [lambda xi, x: np.abs(x), lambda xi, x: x**4])
    field, rule = mean_field(OIST), beyond(OIST)
    right, _ = bias.biases(field, rule, target)
    wrong, _ = bias.biases(field, replace(rule, moved=False), target)
    assert abs(wrong[0] - right[0]) > 0.05


@pytest.mark.deep
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"omega": "1 + t"}, "where omega varies"),
        ({"tau": {"steps": {"times": [0.5], "values": [0.5, 0.1]}}}, "where tau jumps"),
        ({"prior": "gaussian"}, "where the feature is drawn"),
        ({"variant": "proximal"}, "with variant = 'proximal'"),
        ({"motion": {"exchange": 0.1}, "prior": {"sparse": 0.3}}, "with motion"),
    ],
)
def test_what_has_none_says_so(change: dict, sentence: str) -> None:
    system = hdica.SparsePCA(**{"tau": 0.5, "regularizer": "0.1*sign(x)", **change})
    with pytest.raises(hdica.HdicaError, match="bias = True is not allowed " + sentence):
        hdica.limit(system, times=[1.0], bias=True)
