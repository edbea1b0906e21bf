"""Parameters that go together along one dimension: rows, columns, and the same in a call."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import qmc

import hdica
from hdica.cli import call
from hdica.errors import HdicaError
from hdica.status import DONE, LEFT_OUT
from hdica.store.verify import verify
from hdica.systems import space
from hdica.systems.values import Sample

T9 = {"label": "t9", "student": 9}
PAIRS = {"tau": [0.1, 0.05, 0.02], "Q0": [0.3, 0.5, 0.7]}
ROWS = [
    {"tau": 0.1, "source": "uniform", "label": "fast"},
    {"tau": 0.1, "source": T9},
    {"source": "uniform", "tau": 0.05, "label": "slow"},
]
T9_CASE = "tau = 0.1; source = t9"
ODE = ("--method", "ode")
TIMES = [0, 1, 5]


def study(**parts: object) -> hdica.Study:
    methods = {"chain": {"n": 50, "seeds": 2}, "ode": {}, "fixed_points": {}}
    return hdica.Study(study="cases", system="OnlineICA", times=TIMES, methods=methods, **parts)


def runs(**fields: object) -> np.ndarray:
    ica = hdica.OnlineICA(**fields)
    return hdica.simulate(ica, n=50, times=TIMES, seeds=2, method="chain").Q.to_numpy()


def test_pairs_have_one_dimension_and_both_parameters_along_it(tmp_path: Path) -> None:
    grid, out = {"zip": PAIRS, "source": ["uniform", "laplace"]}, tmp_path / "cases.zarr"
    study(grid=grid).run(out=out)
    found = hdica.open_results(out)["chain"].to_dataset()
    assert found.Q.dims == ("tau", "source", "n", "seed", "time")
    assert found.tau.values.tolist() == [0.02, 0.05, 0.1]
    assert found.Q0.dims == ("tau",)
    for tau, q0 in zip(*PAIRS.values(), strict=True):
        for source in ("uniform", "laplace"):
            one = found.Q.sel(tau=tau, source=source)[0]
            assert q0 == one.Q0
            assert np.array_equal(one, runs(tau=tau, source=source, start={"overlap": q0}))
    # What ignores the start has its states beside each pair.
    assert hdica.open_results(out)["fixed_points"]["Q"].sizes["tau"] == 3
    as_columns = study(cases=PAIRS, grid={"source": ["uniform", "laplace"]})
    assert as_columns.plan(out=out).pending == 0
    assert as_columns.spec == study(grid=grid).spec


def test_cases_are_called_by_their_labels_and_grow(tmp_path: Path) -> None:
    out = tmp_path / "cases.zarr"
    study(cases=ROWS[:2]).run(out=out)
    whole = study(cases=ROWS)
    assert whole.plan(out=out).pending == 2 + 1 + 1
    whole.run(out=out, workers=2)
    found = hdica.open_results(out)["chain"].to_dataset()
    assert found.case.values.tolist() == ["fast", T9_CASE, "slow"]
    assert found.source.values.tolist() == ["uniform", "t9", "uniform"]
    for row in ROWS:
        source = {"student": 9} if row["source"] == T9 else row["source"]
        case = row.get("label", T9_CASE)
        assert np.array_equal(found.Q.sel(case=case)[0], runs(tau=row["tau"], source=source))
    # A store says what its study is: reports and further runs read it there.
    assert whole.spec == type(whole.spec).model_validate(whole.spec.model_dump(mode="json"))
    assert study(cases=ROWS[::-1]).plan(out=out).pending == 0
    assert "cases" not in study(grid={"tau": [0.1]}).spec.model_dump(mode="json")


def test_a_call_keeps_the_digits_of_its_numbers() -> None:
    ica, tau = hdica.OnlineICA(tau=0.1), 0.1 / 3
    found = hdica.limit(ica, times=TIMES, method="ode", over={"zip": {"tau": [tau, 0.02]}}).Q
    alone = hdica.limit(hdica.OnlineICA(tau=tau), times=TIMES, method="ode").Q
    assert np.array_equal(found.isel(tau=1), alone)
    same = {"zip": {"label": ["a", "b"], "tau": [0.1, 0.2]}, "cases": [{"Q0": 0.2}, {"Q0": 0.3}]}
    with pytest.raises(HdicaError, match="two of its dimensions are called 'case'"):
        hdica.limit(ica, times=TIMES, over=same)


def test_a_query_selects_by_every_parameter(tmp_path: Path, capsys) -> None:
    out = tmp_path / "cases.zarr"
    study(cases=ROWS, grid={"Q0": [0.4, 0.6]}).run(out=out)

    def asked(*options: str) -> list[dict[str, float]]:
        assert call(["query", str(out), "--to", "json", "--sel", "time=5", *options]) == 0
        return json.loads(capsys.readouterr().out)

    rows = asked("--sel", "tau=0.1", "--sel", "Q0=0.6", "--sel", "seed=0")
    assert [(row["case"], row["tau"]) for row in rows] == [("fast", 0.1), (T9_CASE, 0.1)]
    slow = ("--sel", "source=uniform", "--sel", "tau=0.06", "--sel", "Q0=0.4", "--nearest")
    (row,) = asked(*slow, "--method", "ode")
    assert (row["case"], row["tau"]) == ("slow", 0.05)
    (row,) = asked("--sel", f"case={T9_CASE}", "--sel", "tau=0.1", "--sel", "Q0=0.4", *ODE)
    assert row["case"] == T9_CASE
    assert call(["query", str(out), "--sel", "tau=0.3"]) != 0
    assert "tau=0.3 is not there (values: 0.1, 0.1, 0.05; --nearest" in capsys.readouterr().err
    assert call(["query", str(out), "--sel", "taau=0.1"]) != 0
    assert "taau is not a dimension (did you mean 'tau'?" in capsys.readouterr().err


def test_a_call_takes_pairs_and_cases() -> None:
    ica = hdica.OnlineICA(tau=0.1)
    found = hdica.simulate(ica, n=50, times=TIMES, seeds=2, method="chain", over={"zip": PAIRS}).Q
    assert found.dims == ("tau", "seed", "time")
    for tau, q0 in zip(*PAIRS.values(), strict=True):
        assert np.array_equal(found.sel(tau=tau), runs(tau=tau, start={"overlap": q0}))
        assert q0 == found.sel(tau=tau).Q0
    over = {"cases": ROWS, "Q0": [0.4, 0.6]}
    limits = hdica.limit(ica, times=TIMES, method="ode", over=over).Q
    assert limits.dims == ("case", "Q0", "time")
    one = hdica.OnlineICA(tau=0.1, source={"student": 9}, start={"overlap": 0.6})
    alone = hdica.limit(one, times=TIMES, method="ode").Q
    assert np.array_equal(limits.isel(case=1).sel(Q0=0.6), alone)


def spread(points: int, **more: object) -> dict[str, object]:
    over = {"tau": {"from": 0.01, "to": 1, "log": True}, "Q0": [0.1, 0.9]}
    return {"points": points, "seed": 1, "over": over, **more}


def test_a_sample_is_sobols_and_grows(tmp_path: Path) -> None:
    out = tmp_path / "cases.zarr"
    study(sample=spread(8)).run(out=out)
    more = study(sample=spread(12), grid={"source": ["uniform"]})
    assert more.plan(out=out).pending == 4 * (2 + 1 + 1)
    more.run(out=out, workers=2)
    found = hdica.open_results(out)["chain"].to_dataset()
    assert found.Q.dims == ("sample", "source", "n", "seed", "time")
    assert found.sample.values.tolist() == [*range(12)]
    shares = qmc.Sobol(2, rng=1).random(16)[:12]
    assert found.tau.values == pytest.approx(0.01 * 100 ** shares[:, 0], rel=1e-11)
    assert found.Q0.values == pytest.approx(0.1 + 0.8 * shares[:, 1], rel=1e-11)
    for k in (0, 11):
        one = runs(tau=float(found.tau[k]), start={"overlap": float(found.Q0[k])})
        assert np.array_equal(found.Q[k, 0, 0], one)
    assert more.spec == type(more.spec).model_validate(more.spec.model_dump(mode="json"))
    # Selected by any parameter that was drawn.
    few = found.where(found.tau > 0.1, drop=True)
    assert few.sizes["sample"] == int((found.tau > 0.1).sum()) > 0


def test_a_hundred_thousand_points_are_planned_without_a_system_for_each(monkeypatch) -> None:
    built = []
    whole = space.build
    monkeypatch.setattr(space, "build", lambda *one, **k: built.append(1) or whole(*one, **k))
    plan = study(sample=spread(100_000)).plan()
    assert plan.points == 100_000 * (2 + 1 + 1)
    assert len(built) < 4000


GRID = {"tau": [0.02, 0.04, 0.06], "Q0": [0.2, 0.5, 0.8]}


def test_points_are_left_out_by_a_condition_and_come_back(tmp_path: Path) -> None:
    out = tmp_path / "cases.zarr"
    study(grid=GRID).run(out=out)
    whole = hdica.open_results(out)["chain"].to_dataset().load()
    few = study(grid=GRID, where="tau*Q0 < 0.02")
    kept = np.multiply.outer(GRID["tau"], GRID["Q0"]) < 0.02
    plan = few.plan(out=out)
    assert (plan.points, plan.pending) == (3 * int(kept.sum()) + 3, 0)
    few.run(out=out)
    found = hdica.open_results(out)
    chain, ode = found["chain"].to_dataset(), found["ode"].to_dataset()
    assert (chain.status[:, :, 0, 0].values == np.where(kept, DONE, LEFT_OUT)).all()
    assert chain.status.attrs["flag_meanings"].split()[LEFT_OUT] == "left_out"
    assert np.array_equal(chain.Q, whole.Q.where(kept[:, :, None, None, None]), equal_nan=True)
    assert (np.isfinite(ode.Q).all("time").values == kept).all()
    # No start is left out of what depends on none: some start is kept at every step size.
    assert (found["fixed_points"].status == DONE).all()
    verdict = verify(out)
    assert verdict.points == plan.points
    assert not verdict.damaged
    assert not verdict.incomplete
    # What was computed before is there when the condition goes, or leaves out less.
    assert study(grid=GRID).plan(out=out).pending == 0
    new = study(grid={**GRID, "Q0": [0.2, 0.35, 0.5, 0.8]}, where="tau < 0.03 or Q0 < 0.4")
    assert new.plan(out=out).pending == 3 * 3
    new.run(out=out, workers=2)
    again = hdica.open_results(out)["chain"].Q
    assert np.array_equal(again.sel(tau=0.02, Q0=0.8), whole.Q.sel(tau=0.02, Q0=0.8))
    assert np.isnan(again.sel(tau=0.06, Q0=0.5)).all()


def test_a_condition_holds_on_parameters_of_cases_and_samples(tmp_path: Path) -> None:
    pairs = study(grid={"zip": PAIRS}, where="Q0 > 0.4")
    assert pairs.plan().points == 2 * (2 + 1 + 1)
    drawn = study(sample=spread(64), where="tau*Q0 < 0.05")
    table = Sample.model_validate(drawn.spec.sample).columns()
    kept = int((np.array(table["tau"]) * np.array(table["Q0"]) < 0.05).sum())
    assert drawn.plan().points == kept * (2 + 1 + 1)


TWICE = [
    {"tau": tau, "source": {"label": "a", "student": nu}, "label": str(nu)}
    for tau, nu in ((0.1, 9), (0.1, 13))
]
TOO_FEW = {"zip": {"tau": [0.1, 0.2], "Q0": [0.3]}}


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"grid": TOO_FEW}, "grid.zip is not allowed (tau has 2 values and Q0 1, and they go"),
        ({"grid": {"zip": [0.1]}}, "grid.zip must be a mapping from parameters to lists"),
        ({"grid": {"zip": PAIRS}, "cases": ROWS}, "grid.zip and cases are not allowed together"),
        ({"cases": [{"tau": 0.1}, {"Q0": 0.1}]}, "cases: row 2 is not allowed (all rows set the"),
        ({"cases": [{"tau": 0.1}] * 2}, "cases: 0.1 appears twice (each case only once)"),
        ({"cases": {"tau": [0.1, 0.1], "Q0": [0.5, 0.5]}}, "cases: 0.1, 0.5 appears twice"),
        ({"cases": [{"tau": 0.1, "label": "a"}, {"tau": 0.2, "label": "a"}]}, "a appears twice"),
        ({"cases": [{"label": "a"}]}, "cases: {'label': 'a'} is not allowed (a mapping such as"),
        ({"cases": {"label": ["a"]}}, "cases sets no parameter"),
        ({"cases": []}, "cases = [] is not allowed (lists by the names of parameters, or a list"),
        ({"grid": {"zip": {}}}, "grid.zip = {} is not allowed"),
        ({"cases": TWICE}, "cases.source: label 'a' is not allowed twice for different values"),
        ({"cases": {"tau": [0.1, 0.2], "source": ["t9", T9]}}, "cases.source: label 't9' is not"),
        ({"cases": 3}, "cases = 3 is not allowed (lists by the names of parameters, or a list"),
        ({"cases": ROWS, "grid": {"tau": [0.1]}}, "grid.tau is already set by cases.tau"),
        ({"cases": ROWS, "parameters": {"tau": 0.1}}, "is already set by parameters.tau"),
        ({"cases": {"tau": [0.1], "taau": [0.2]}}, "cases.taau is not a known parameter"),
        ({"cases": [{"tau": 0.1}, {"tau": -1.0}]}, "cases: tau = -1.0 is not allowed"),
        ({"grid": GRID, "where": "tau*q0 < 1"}, "where: q0 is no number that is swept (did you"),
        ({"grid": GRID, "where": "tau <"}, "where: formula 'tau <': it is not a formula"),
        ({"grid": GRID, "where": "tau > 1"}, "where = 'tau > 1' leaves out every point"),
        ({"grid": GRID, "where": "tau*Q0"}, "where = 'tau*Q0' is no condition (a comparison, as"),
        ({"grid": GRID, "where": "log(tau - 1)"}, "is no condition (a comparison, as"),
        ({"cases": ROWS, "where": "source > 1"}, "where: source is no number that is swept"),
        ({"sample": spread(0)}, "sample.points = 0 is not allowed (a whole number >= 1)"),
        ({"sample": spread(8, seed=-1)}, "sample.seed = -1 is not allowed"),
        ({"sample": spread(8, over={})}, "sample.over = {} is not allowed (ranges by the names"),
        ({"sample": spread(8, over={"tau": 0.1})}, "sample.over.tau = 0.1 is not allowed ([low,"),
        ({"sample": spread(8, over={"tau": [0.2, 0.1]})}, "(from has to be below to)"),
        ({"sample": spread(8, over={"tau": {"from": 0, "to": 1, "log": True}})}, "log needs from"),
        ({"sample": spread(8, over={"tau": [-0.1, 0.1]})}, "sample.tau: tau = -0."),
        ({"sample": spread(8, over={"source": [0.1, 0.2]})}, "source = 0."),
        ({"sample": spread(8, over={"taau": [0.1, 0.2]})}, "sample.over.taau is not a known"),
        ({"sample": spread(8), "grid": {"tau": [0.1]}}, "grid.tau is already set by sample.tau"),
        (
            {"sample": {"points": 8, "ovr": {}}},
            "sample.ovr is not a known key (did you mean 'over'",
        ),
    ],
)
def test_what_are_no_cases_is_one_sentence(parts: dict[str, object], sentence: str) -> None:
    with pytest.raises(HdicaError) as caught:
        study(**parts)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_call_spreads_points_over_ranges_as_a_study_does() -> None:
    given = {"points": 3, "seed": 1, "over": {"tau": [0.02, 0.05], "Q0": [0.3, 0.8]}}
    one = hdica.limit(hdica.OnlineICA(tau=0.1), times=TIMES, over={"sample": given})
    other = study(sample=given).run()["ode"].to_dataset()
    assert one.Q.dims == other.Q.dims == ("sample", "time")
    assert np.array_equal(one.Q, other.Q)
    assert np.array_equal(one.tau, other.tau)
    with pytest.raises(HdicaError, match=r"sample\.points"):
        hdica.limit(hdica.OnlineICA(tau=0.1), times=TIMES, over={"sample": {**given, "points": 0}})


@pytest.mark.parametrize("key", ["beta", "constants.beta", "constants_beta"])
@pytest.mark.parametrize("kind", ["zip", "cases", "sample"])
def test_a_constant_has_one_spelling_wherever_it_is_swept(key: str, kind: str) -> None:
    pairs: object = {key: [0.01, 0.02], "Q0": [0.3, 0.5]}
    over = {"points": 2, "over": pairs} if kind == "sample" else pairs
    rule = {"omega": 1.0, "tau": 0.1, "regularizer": "beta*sign(x)"}
    whole = hdica.Study(
        study="constants",
        system="SparsePCA",
        parameters=rule,
        times=[0, 1],
        methods={"vector": {"n": 20, "seeds": 1}},
        **({"grid": {"zip": over}} if kind == "zip" else {kind: over}),  # type: ignore[arg-type]
    )
    (axis,) = whole.spec.space.axes
    assert [part.dim for part in axis.parts] == ["beta", "Q0"]
    system = hdica.SparsePCA(**rule, constants={"beta": 0.1})  # type: ignore[arg-type]
    found = hdica.simulate(system, n=20, times=[0, 1], seeds=1, method="vector", over={kind: over})
    assert "beta" in found.coords
    assert np.array_equal(found.Q, whole.run()["vector"].to_dataset().sel(n=20).Q)


@pytest.mark.parametrize(
    ("over", "sentence"),
    [
        ({"zip": {"beta": [0.1], "constants.beta": [0.2]}}, "beta is set twice"),
        ({"sample": None}, r"sample\.over = None is not allowed"),
        ({"sample": {"points": 10**9, "over": {"tau": [0.1, 0.2]}}}, r"over\.sample\.points"),
        (
            {"tau": [0.1], "sample": {"points": 2, "over": {"tau": [0.1, 0.2]}}},
            r"over\.sample\.tau is already set by over\.tau",
        ),
        ({"cases": [{"tau": 0.1, "label": ""}]}, "label '' is not allowed"),
        ({"cases": {"tau": [0.1], "label": ["x\ny"]}}, "printable letters"),
    ],
)
def test_what_a_call_cannot_sweep_is_refused(over: dict[str, object], sentence: str) -> None:
    system = hdica.SparsePCA(
        tau=0.1, omega=1.0, regularizer="beta*sign(x)", constants={"beta": 0.1}
    )
    with pytest.raises(HdicaError, match=sentence):
        hdica.limit(system, times=TIMES, over=over)
