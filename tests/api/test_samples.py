"""How many samples: closed forms, golden numbers, and what runs do with what is promised."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import hdica
from hdica import OnlineICA, SparsePCA
from hdica.cli import call
from hdica.errors import HdicaError
from hdica.limits.bands.schedule import fastest as along_density
from hdica.limits.passage import samples
from hdica.limits.passage.chain import exact_passage
from hdica.systems.online_ica.escape import trapped
from hdica.systems.online_ica.system import mean_field
from hdica.systems.sparse_pca.system import unstable

UNIFORM = OnlineICA(tau=0.02, source="uniform", start={"overlap": 0.5, "exact": True})
OJA = SparsePCA(tau=0.1, omega=1.0, start={"overlap": 0.3})
TRAPPED = OnlineICA(nu=1.0, source="rademacher", start={"overlap": 0})


@pytest.mark.parametrize(
    ("source", "q0", "q1", "t", "first", "last", "constant", "constant_t"),
    [
        ("uniform", 0.25, 0.9, 222.099704318, 0.016091954023, 0.0199304017716, 0.0215237713686,
         230.643716787),
        ("rademacher", 0.25, 0.99, 96.5293345165, 0.0280373831776, 0.0176504567724, 0.0311585324022,
         116.324767365),
    ],
)  # fmt: skip
def test_golden_schedules(source, q0, q1, t, first, last, constant, constant_t) -> None:
    ica = OnlineICA(tau=0.02, source=source)
    best = hdica.optimal_schedule(ica, q0**0.5, q1**0.5)
    assert float(best.t) == pytest.approx(t, rel=1e-9)
    assert best.tau.values[[0, -1]] == pytest.approx([first, last], rel=1e-9)
    assert float(best.best_constant_tau) == pytest.approx(constant, rel=1e-7)
    assert float(best.best_constant_t) == pytest.approx(constant_t, rel=1e-9)
    mirrored = hdica.optimal_schedule(ica, -(q0**0.5), q1**0.5)
    assert np.allclose(mirrored.Q, -best.Q, rtol=0, atol=1e-14)
    assert float(mirrored.t) == pytest.approx(t, rel=1e-9)


def test_the_schedule_of_oja_is_in_closed_form() -> None:
    best = hdica.optimal_schedule(OJA, 0.1, 0.9**0.5)
    assert float(best.t) == pytest.approx(24.7721424073, rel=1e-9)
    q = best.Q**2
    assert np.allclose(best.tau, (1 - q) / (1 + q), rtol=1e-12)
    of_batch = OJA.model_copy(update={"batch": 4})
    assert float(hdica.optimal_schedule(of_batch, 0.1, 0.9**0.5).t) == pytest.approx(
        float(best.t) / 4, rel=1e-9
    )


@pytest.mark.parametrize("system", [UNIFORM, OJA], ids=lambda one: type(one).__name__)
def test_the_limit_arrives_when_it_says_and_no_other_constant_is_sooner(system) -> None:
    best = hdica.optimal_schedule(system, goal=0.9)
    assert float(best.t) < float(best.best_constant_t)

    def there(tau: float) -> float:
        one = system.model_copy(update={"tau": tau, "start": {"overlap": float(best.Q[0])}})
        return float(hdica.limit(one, times=[0, float(best.best_constant_t)], method="ode").Q[-1])

    tau = float(best.best_constant_tau)
    assert there(tau) == pytest.approx(0.9, abs=1e-8)
    assert max(there(0.97 * tau), there(1.03 * tau)) < 0.9


def varied(**fields) -> xr.Dataset:
    """The schedule of soft thresholding with some other parameters."""
    return hdica.optimal_schedule(SPARSE["soft thresholding"].model_copy(update=fields))


def test_a_density_has_the_schedule_of_the_closed_form() -> None:
    closed = hdica.optimal_schedule(UNIFORM, goal=0.9**0.5)
    path = along_density(mean_field(UNIFORM), 0.9**0.5, 400.0)
    assert 0 < path.time[-1] - float(closed.t) < path.error < 0.05
    assert path.constant_time == pytest.approx(float(closed.best_constant_t), rel=1e-5)
    assert path.constant == pytest.approx(float(closed.best_constant_tau), rel=2e-3)
    begins, middle = path.time[:-1], (path.time[1:] + path.time[:-1]) / 2
    assert path.tau[:-1] == pytest.approx(np.interp(middle, closed.time, closed.tau), rel=0.02)
    assert path.q[:-1] == pytest.approx(np.interp(begins, closed.time, closed.Q), abs=2e-3)


def on_steps(system, best: xr.Dataset, factors: np.ndarray | float = 1.0):
    """The system on the schedule of a density, step sizes times factors."""
    values = (best.tau.values[:-1] * factors).tolist()
    steps = {"times": best.time.values[1:-1].tolist(), "values": values}
    return system.model_copy(update={"tau": {"steps": steps}})


SPARSE = {
    "soft thresholding": SparsePCA(
        tau=0.5, omega=1.0, regularizer="beta*sign(x)", constants={"beta": 0.27},
        prior={"sparse": 0.05}, start={"normal": {"mean": 0.5**0.5, "var": 0.5}},
    ),
    "ICA from below": OnlineICA(
        tau="0.02/(1 + t/100)", source="rademacher", regularizer="beta*tanh(4*x)",
        constants={"beta": 0.02}, prior={"sparse": 0.1}, start={"overlap": -0.4},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.deep] * k)
                                  for k, one in enumerate(SPARSE)])  # fmt: skip
def test_no_schedule_near_that_of_a_density_arrives_sooner(name: str) -> None:
    system = SPARSE[name]
    best = hdica.optimal_schedule(system, goal=0.9)
    assert float(best.t_error) < 1e-3 * float(best.t)
    assert float(best.t) < 0.9 * float(best.best_constant_t)

    def there(one, t: float) -> float:
        return abs(float(hdica.limit(one, times=[0, t], method="pde").Q[-1]))

    end = float(best.t)
    assert there(on_steps(system, best), end) == pytest.approx(0.9, abs=1e-6)
    constant = system.model_copy(update={"tau": float(best.best_constant_tau)})
    assert there(constant, float(best.best_constant_t)) == pytest.approx(0.9, abs=1e-6)
    pieces = np.arange(best.time.size - 1)
    for third in np.array_split(pieces, 3):
        for factor in (0.93, 1.07):
            other = np.where(np.isin(pieces, third), factor, 1.0)
            assert there(on_steps(system, best, other), end) < 0.9 - 1e-4


@pytest.mark.deep
def test_runs_follow_the_schedule_of_a_density() -> None:
    system = SPARSE["soft thresholding"]
    best = hdica.optimal_schedule(system, goal=0.9)
    one, times = on_steps(system, best), [0, float(best.t)]
    runs = hdica.simulate(one, n=4000, times=times, seeds=40, method="vector").Q[:, -1]
    assert abs(float(runs.mean()) - 0.9) < 4 * float(runs.std(ddof=1)) / 40**0.5 + 2e-3
    constant = system.model_copy(update={"tau": float(best.best_constant_tau)})
    others = hdica.simulate(constant, n=4000, times=times, seeds=40, method="vector").Q[:, -1]
    assert float(others.mean()) < 0.85


def share(system, found: xr.Dataset, n: int, seeds: int) -> float:
    """Of runs on a schedule of steps, how many reach the overlap with the samples."""
    end, ends = float(found.time[-1]), np.linspace(0, float(found.time[-1]), 201)
    values = np.interp((ends[1:] + ends[:-1]) / 2, found.time, found.schedule)
    steps = {"steps": {"times": ends[1:-1].tolist(), "values": values.tolist()}}
    times = np.linspace(0, float(found.samples) / n, 400)
    assert times[-1] > 0.8 * end
    one = system.model_copy(update={"tau": steps})
    runs = hdica.simulate(one, n=n, times=times, seeds=seeds, method="chain", timeout=None).Q
    return float((np.abs(runs).max("time") >= float(found.overlap)).mean())


@pytest.mark.parametrize(
    ("system", "n", "seeds"),
    [pytest.param(UNIFORM, 4000, 400, marks=pytest.mark.deep), (OJA, 4000, 1000)],
    ids=["ICA", "Oja"],
)
def test_runs_from_an_informative_start_keep_the_promise(system, n: int, seeds: int) -> None:
    for p in (0.5, 0.95):
        found = hdica.samples_to_overlap(system, n, 0.9, p)
        reached = round(share(system, found, n, seeds) * seeds)
        assert stats.binomtest(reached, seeds, p).pvalue > 1e-3
        # Samples of the limit alone have half of the runs there.
        assert stats.binomtest(reached, seeds, 1.45 - p).pvalue < 1e-6
        assert float(found.probability_half) < 1e-3
        assert float(found.probability_double) > 0.999


def test_an_update_of_a_batch_takes_so_many_samples() -> None:
    """The limit of Oja has the drift of one sample; only its scatter falls with the batch."""
    need = {m: hdica.samples_to_overlap(OJA.model_copy(update={"batch": m}), 4000) for m in (1, 4)}
    updates = {m: float(one.samples) / m for m, one in need.items()}
    assert updates[4] < updates[1]
    for m, one in need.items():
        assert float(one.growth) == float(one.samples)
        assert float(one.time[-1]) == pytest.approx(updates[m] / 4000, rel=0.1)
        per = "updates per dimension" if m > 1 else "samples per dimension"
        assert one.time.attrs["units"] == per
    system = OJA.model_copy(update={"batch": 4})
    steps = need[4].assign(samples=need[4].samples / 4)  # those that a run of the batch takes
    reached = round(share(system, steps, 4000, 200) * 200)
    assert stats.binomtest(reached, 200, 0.95).pvalue > 1e-3


@pytest.mark.parametrize(
    ("n", "p"),
    [(20, 0.9), *(pytest.param(*one, marks=pytest.mark.deep) for one in [(50, 0.5), (100, 0.9)])],
)
def test_runs_from_a_random_start_keep_the_promise(n: int, p: float) -> None:
    runs = 800 if n < 100 else 400
    found = hdica.samples_to_overlap(TRAPPED, n, 0.8, p, "random")
    assert float(found.growth) == 0
    assert "schedule" not in found
    one = TRAPPED.model_copy(update={"nu": n * float(found.tau)})
    for part, chance in ((1.0, p), (0.5, found.probability_half), (2, found.probability_double)):
        times = [part * float(found.samples) / n]
        seen = hdica.simulate(one, n=n, times=times, seeds=runs, method="escape_times")[
            "first_seen"
        ]
        assert stats.binomtest(int(seen.sum()), runs, float(chance)).pvalue > 1e-3
        assert stats.binomtest(int(seen.sum()), runs, 0.75 * float(chance)).pvalue < 1e-3


def test_the_chain_of_oja_near_zero_is_that_of_its_simulations() -> None:
    system = OJA.model_copy(update={"tau": 0.4, "start": {"overlap": 0}})
    law = exact_passage(unstable(OJA).chain(12, 0.4, 0.6), "random")
    steps = np.arange(0, 1200)
    runs = hdica.simulate(system, n=12, times=steps / 12, seeds=800, method="chain", timeout=None)
    there = np.abs(runs.Q.values) >= 0.6
    assert there.any(axis=1).all()
    first = there.argmax(axis=1)
    assert abs(first.mean() - law.mean) < 4 * law.sd / 800**0.5
    # A sample without the signal's variance along the feature leaves far later.
    plain = exact_passage(replace(unstable(OJA).chain(12, 0.4, 0.6), scale=1.0), "random")
    assert plain.mean > 2 * law.mean


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_oja_leaves_a_random_start_with_the_promised_probability() -> None:
    """By the exact law at n = 100, and what it adds to the limit beyond."""
    n, p = 250, 0.5
    found = hdica.samples_to_overlap(OJA, n, 0.8, p, "random", timeout=None)
    samples, runs = float(found.samples), 800
    assert float(found.escape) == samples
    system = OJA.model_copy(update={"tau": float(found.tau), "start": {"overlap": 0}})
    steps = np.arange(0, 2 * round(samples))
    seen = hdica.simulate(
        system, n=n, times=steps / n, seeds=runs, method="chain", timeout=None
    ).Q.values
    there = np.abs(seen) >= 0.8
    first = np.where(there.any(axis=1), there.argmax(axis=1), np.inf)
    promised = {samples: p, samples / 2: float(found.probability_half)}
    promised[2 * samples - 1] = float(found.probability_double)
    for number, chance in promised.items():
        reached = int(np.sum(first <= number))
        assert stats.binomtest(reached, runs, min(chance, 1.0)).pvalue > 1e-3


@pytest.mark.deep
@pytest.mark.parametrize(
    ("n", "p", "number", "nu"),
    [(50, 0.5, 69090, 1.25), (100, 0.5, 473570.24313, 1.52434916278),
     (100, 0.9, 1462929.13446, 1.4729491714)],
)  # fmt: skip
def test_golden_samples(n: int, p: float, number: float, nu: float) -> None:
    found = hdica.samples_to_overlap(TRAPPED, n, 0.8, p, "random")
    assert float(found.samples) == pytest.approx(number, rel=2e-5)
    assert n * float(found.tau) == pytest.approx(nu, rel=4e-3 if n == 50 else 1e-3)
    assert float(found.samples_error) < 1e-4 * number


@pytest.mark.deep
@pytest.mark.parametrize(("p", "c", "m"), [(0.5, 0.101603320139, 15.1795269947),
                                           (0.9, 0.321234344563, 14.6557255272)])  # fmt: skip
def test_constants_of_no_parameter(p: float, c: float, m: float) -> None:
    assert samples.universal(p) == pytest.approx((c, m), rel=1e-3)


@pytest.mark.deep
def test_larger_dimensions_are_within_their_error(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = hdica.samples_to_overlap(TRAPPED, 160, 0.9, 0.9, "random")
    monkeypatch.setattr(samples, "EXACT", 120)
    found = hdica.samples_to_overlap(TRAPPED, 160, 0.9, 0.9, "random")
    gap = abs(float(found.samples - exact.samples))
    assert gap < float(found.samples_error) < 0.1 * float(exact.samples)
    far = trapped(TRAPPED).far(160, 0.9, 0.8)[0]
    assert abs(far - float(exact.escape)) > 2 * float(found.samples_error)
    # Growth from 0.8 is that of the best schedule.
    way = hdica.optimal_schedule(TRAPPED, 0.8, 0.9)
    assert float(exact.growth) == pytest.approx(160 * float(way.t), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: hdica.samples_to_overlap(
                OJA.model_copy(update={"batch": 4}), 100, start="random"
            ),
            "not allowed with a regularizer, a batch or another noise_law",
        ),
        (
            lambda: hdica.samples_to_overlap(hdica.HebbianICA(mu=0.1), 100, start="random"),
            "not allowed for HebbianICA",
        ),
        (lambda: hdica.samples_to_overlap(OJA, 2), "n = 2 is not allowed"),
        (lambda: hdica.samples_to_overlap(OJA, 100, probability=1), "0 < probability < 1"),
        (lambda: hdica.samples_to_overlap(OJA, 100, 0.2), "an overlap of 0.3 is not allowed"),
        (lambda: hdica.samples_to_overlap(OJA, 3, start=0.05), "fluctuations are as large"),
        (lambda: hdica.optimal_schedule(OJA, "random"), "start = 'random' is not allowed"),
        (lambda: hdica.optimal_schedule(TRAPPED), "an overlap of 0 is not allowed"),
        (
            lambda: hdica.optimal_schedule(OnlineICA(tau=0.1, source="laplace")),
            "no step size leads",
        ),
        (
            lambda: hdica.optimal_schedule(hdica.TensorialICA(dimension=9, eta=0.1)),
            "closes the limit",
        ),
        (
            lambda: hdica.samples_to_overlap(OnlineICA(tau=0.1, regularizer="sign(x)"), 100),
            "does not close",
        ),
        (lambda: varied(omega="1 + t/10"), "signal that varies"),
        (lambda: varied(motion={"exchange": 0.1}), "a feature that stays"),
        (lambda: varied(start={"overlap": 0.95}), "an overlap of 0.95 is not allowed"),
        (
            lambda: varied(constants={"beta": 5.0}),
            r"goal = 0.9 is not reached with any constant step",
        ),
        (
            lambda: hdica.optimal_schedule(OnlineICA(nu=1, regularizer="sign(x)")),
            "nu is not allowed for limits",
        ),
        (
            lambda: hdica.samples_to_overlap(OnlineICA(nu=1, source="laplace"), 20, start="random"),
            "nothing leads away from Q = 0",
        ),
    ],
)
def test_what_is_not_known_is_one_sentence(call, sentence: str) -> None:
    with pytest.raises(HdicaError, match=sentence):
        call()


def test_a_start_whose_mean_is_not_known_at_n_has_its_samples_too() -> None:
    sparse = OJA.model_copy(
        update={"prior": {"sparse": 0.3}, "start": {"normal": {"mean": 0.6, "var": 0.64}}}
    )
    found = hdica.samples_to_overlap(sparse, 4000)
    assert 0 < float(found.samples_error) < 0.01 * float(found.samples)


def test_the_command_line_gives_a_sentence_and_a_row_for_each_system(tmp_path, capsys) -> None:
    oja = ["--system", "SparsePCA", "--set", "start.overlap=0.3", "--set", "tau=0.1"]
    assert call(["samples", *oja, "--n", "400", "--overlap", "0.8", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    found = hdica.samples_to_overlap(OJA, 400, 0.8)
    assert row["samples"] == float(found.samples)
    # The step size of a system does not matter, and need not be there.
    assert call(["samples", *oja[:4], "--n", "400", "--overlap", "0.8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [row]
    assert (row["n"], row["tau"], row["last_tau"]) == (400, None, float(found.schedule[-1]))
    assert call(["samples", *oja, "--n", "400", "--overlap", "0.8"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{row['samples']:.4g} ± ")
    assert "lead to an overlap of 0.8 with probability 0.95 at n = 400" in text
    file = tmp_path / "some.yaml"
    study = {"study": "some", "system": "SparsePCA", "times": [0, 1], "methods": {"ode": {}}}
    study["parameters"] = {"tau": 0.1}
    study["grid"] = {"tau": [0.1, 0.2], "omega": [1.0, 2.0], "Q0": [0.3, 0.95]}
    file.write_text(json.dumps(study))
    assert call(["samples", str(file), "--json"]) == 2  # tau twice
    capsys.readouterr()
    del study["parameters"]
    file.write_text(json.dumps(study))
    assert call(["samples", str(file), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["omega"], row["Q0"], "samples" in row) for row in rows] == [
        (1.0, 0.3, True), (1.0, 0.95, False), (2.0, 0.3, True), (2.0, 0.95, False),
    ]  # fmt: skip
    assert "0 < its size < 0.9" in rows[1]["refused"]
    # What a study leaves out at every step size is left out here.
    file.write_text(json.dumps(study | {"where": "omega*Q0 < 0.5 or tau*omega > 0.3"}))
    assert call(["samples", str(file), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["omega"], row["Q0"]) for row in rows] == [(1.0, 0.3), (2.0, 0.3), (2.0, 0.95)]
    for wrong, sentence in (
        ([], "either STUDY or --system"),
        ([str(file), *oja], "either STUDY or --system"),
        ([str(file), "--set", "tau=1"], "not allowed with a study"),
        (["--system", "SparsePCA", "--set", "tau"], "KEY=VALUE"),
        ([*oja, "--start", "0.9"], "0 < its size < 0.9"),
        ([*oja, "--start", "near"], "--start"),
        ([*oja, *("--n", "400") * 201], "at most 200"),
    ):
        assert call(["samples", *wrong]) == 2
        assert sentence in capsys.readouterr().err


def test_a_smaller_chance_takes_fewer_samples() -> None:
    needs = [float(hdica.samples_to_overlap(OJA, 400, 0.9, p).samples) for p in (0.1, 0.5, 0.9)]
    assert needs == sorted(needs)
    assert math.isnan(float(hdica.samples_to_overlap(OJA, 400).tau))
