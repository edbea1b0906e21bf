"""Systems whose dimension is a field: their stochastic methods have no n, from Python to pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.analysis.aggregate import aggregate
from hdica.errors import HdicaError
from hdica.finite.random.streams import point_stream
from hdica.report import write
from hdica.report.page import panels
from hdica.run.plan import plan
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.store.query import dim_order, query
from hdica.store.results import open_results, status
from hdica.study.study import Study, study_from
from tests.systems import test_contract as contract
from tests.systems.wander import RECORD, Wander, known

TIMES = [0.0, 3.0, 10.0]
SYSTEM = Wander(dimension=4, eta=0.2)
GRID = {"dimension": [3, 5], "eta": [0.1, 0.3]}


@pytest.fixture(autouse=True)
def registered() -> Any:
    with known():
        yield


def study(**changes: Any) -> Study:
    content = {
        "study": "wander", "title": "Walks", "system": "Wander", "grid": GRID, "times": TIMES,
        "methods": {"wander": {"seeds": 4}, "fade": {}},
    }  # fmt: skip
    return study_from(content | changes)


def refused(**asked: Any) -> str:
    with pytest.raises(HdicaError) as found:
        hdica.simulate(SYSTEM, times=TIMES, **asked)
    return str(found.value)


@pytest.mark.deep
@pytest.mark.parametrize(
    "promise",
    [
        contract.test_it_returns_what_it_declares_and_the_same_twice,
        contract.test_some_example_has_a_number_in_every_variable,
        contract.test_every_variable_and_dimension_says_what_it_is,
        contract.test_a_refusal_is_one_sentence,
        contract.test_what_is_asked_for_by_name_changes_no_other_number,
        contract.test_a_study_of_it_resumes_with_the_bits_of_one_run,
    ],
)
def test_the_contract_of_every_method_holds(promise: Any, tmp_path: Path) -> None:
    named = "by_name" in promise.__name__
    for method in [m for m in RECORD.methods if m.outputs.extras or not named]:
        more = {"tmp_path": tmp_path / method.name} if "resumes" in promise.__name__ else {}
        promise(RECORD, method, **more)


def test_trials_have_no_n() -> None:
    found = hdica.simulate(SYSTEM, times=TIMES, seeds=3)
    assert found["m"].dims == ("seed", "time")
    assert "n" not in found.coords
    assert found["step"].values.tolist() == [0, 3, 10]
    assert found["step"].attrs["long_name"] == "step k = floor(t)"
    assert found["time"].attrs["units"] == "steps"
    numbers = point_stream(
        {"system": "Wander", "dimension": 4, "eta": 0.2}, "wander", 0, 2, "noise"
    )
    x = np.ones(4)
    for k in range(10):
        x = 0.8 * x + 0.2 * numbers.standard_normal(4)
        if k == 2:
            assert found["m"].values[2, 1] == x.mean()
    assert found["m"].values[2, 2] == x.mean()


def test_trials_over_a_grid_have_the_bits_that_they_have_alone() -> None:
    found = hdica.simulate(SYSTEM, times=TIMES, seeds=2, over=GRID)
    assert found["m"].dims == ("dimension", "eta", "seed", "time")
    assert found["step"].dims == ("time",)
    assert "n" not in found.coords
    one = hdica.simulate(Wander(dimension=5, eta=0.3), times=TIMES, seeds=2)
    assert found["m"].sel(dimension=5, eta=0.3).values.tobytes() == one["m"].values.tobytes()


def test_n_is_missing_or_not_allowed_in_one_sentence() -> None:
    no_n = "n = 50 is not allowed (method 'wander' has no n)"
    missing = "n is missing (method 'sized' needs it: a whole number >= 3)"
    assert refused(n=50) == no_n
    assert refused(n=[50, 60], over=GRID) == no_n
    assert refused(n=50, over=GRID) == no_n
    assert refused(method="sized") == missing
    assert refused(method="sized", over=GRID) == missing
    assert "n = 2 is not allowed" in refused(n=2)
    assert hdica.simulate(SYSTEM, times=TIMES, n=50, method="sized")["n"].item() == 50


def test_the_memory_of_a_point_depends_on_its_own_dimension() -> None:
    large = {"times": [0.0], "timeout": None}
    with pytest.raises(
        HdicaError, match=r"method 'wander' is not allowed \(it needs .*: a smaller"
    ):
        hdica.simulate(Wander(dimension=2000, eta=0.2), **large)
    with pytest.raises(HdicaError, match=r"method 'wander' is not allowed"):
        hdica.simulate(SYSTEM, over={"dimension": [3, 2000]}, **large)


def test_a_study_gives_no_n_and_may_not() -> None:
    with pytest.raises(HdicaError, match=r"methods.wander.n is not allowed \(wander has no n\)"):
        study(methods={"wander": {"n": 50, "seeds": 2}})
    with pytest.raises(HdicaError, match=r"methods.sized.n is missing \(a stochastic method"):
        study(methods={"sized": {"seeds": 2}})
    asked = plan(study())
    assert [(s.method, s.n, s.points) for s in asked.segments] == [
        ("wander", None, 16),
        ("fade", None, 4),
    ]


def test_methods_of_both_kinds_in_one_study(tmp_path: Path) -> None:
    out = tmp_path / "both.zarr"
    both = study(methods={"wander": {"seeds": 4}, "sized": {"n": [10, 20], "seeds": 2}, "fade": {}})
    assert run(both, out, progress=False).complete
    publish(both, out)
    assert [(row.method, row.n) for row in status(out).rows] == [
        ("wander", None), ("sized", 10), ("sized", 20), ("fade", None)
    ]  # fmt: skip
    with open_results(out) as tree:
        assert dim_order(tree, "wander") == ["dimension", "eta", "seed", "time"]
        walk, size = tree["wander"].to_dataset().load(), tree["sized"].to_dataset()
        assert walk["step"].dims == ("time",)
        assert walk["step"].values.tolist() == [0, 3, 10]
        assert size["step"].dims == ("n", "time")
        assert "step" not in tree["fade"].to_dataset()
        alone = hdica.simulate(Wander(dimension=5, eta=0.1), times=TIMES, seeds=4)
        here = walk["m"].sel(dimension=5, eta=0.1)
        assert here.values.tobytes() == alone["m"].values.tobytes()
        one = query(tree, {"dimension": "3", "eta": "0.1"}, "wander", mean=["seed"])
        assert one["m"].dims == ("time",)
        runs = aggregate(tree)["runs"]
        assert runs["n"].values.tolist() == ["", "10, 20", ""]


ANALYSES = {
    "compare": {"curves": ["wander", "sized", "fade"]},
    "decay": {"curves": ["wander", "fade"], "target": 0},
    "paths": {"simulation": "wander"},
    "phase": {"simulation": "wander", "x": "eta", "y": "dimension", "limit": "fade"},
}


def page(study: Study, out: Path) -> str:
    run(study, out, progress=False)
    publish(study, out)
    return write(out, out.with_suffix(""))[0].read_text(encoding="utf-8")


@pytest.mark.deep
def test_analyses_that_need_no_n_show_none(tmp_path: Path) -> None:
    methods = {"wander": {"seeds": 4}, "sized": {"n": [10, 20], "seeds": 2}, "fade": {}}
    out = tmp_path / "some.zarr"
    text = page(study(methods=methods, analysis=ANALYSES), out)
    with open_results(out) as tree:
        assert tree["wander"]["time"].attrs == {"long_name": "time t = k", "units": "steps"}
        drawn = panels(aggregate(tree))
    for name in ("compare", "decay", "paths"):
        assert {p.x_label.plain for p in drawn[name]} == {"t (steps)"}, name
    for heading in (
        "Methods side by side",
        "Learning curves",
        "Single runs",
        "Where learning stops",
    ):
        assert heading in text
    shown = text[: text.index("<script")] if "<script" in text else text
    assert not re.search(r"\bnan\b", shown)
    row = re.search(r"<tr>\s*<td[^>]*>wander</td>.*?</tr>", text, re.DOTALL)
    assert row is not None
    assert "<td>–</td>" in row[0]
    assert "∞" not in row[0]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("convergence", {"simulation": "wander", "limit": "fade"}),
        ("steady", {"simulation": "wander", "x": "eta"}),
    ],
)
def test_analyses_over_n_refuse_methods_without(name: str, given: dict[str, Any]) -> None:
    sentence = rf"analysis.{name}.simulation = 'wander' is not allowed \(one with n is needed\)"
    with pytest.raises(HdicaError, match=sentence):
        study(analysis={name: given})


@pytest.mark.deep
def test_what_suits_every_system_is_not_chosen_without_n(tmp_path: Path) -> None:
    out = tmp_path / "quiet.zarr"
    text = page(study(), out)
    assert "Error against dimension" not in text
    with open_results(out) as tree:
        assert set(aggregate(tree).children) == {"runs", "phase", "points"}
    wide = study(methods={"sized": {"n": [10, 20], "seeds": 8}, "wander": {"seeds": 2}, "fade": {}})
    other = tmp_path / "loud.zarr"
    run(wide, other, progress=False)
    publish(wide, other)
    with open_results(other) as tree:
        found = aggregate(tree)
    assert found["convergence"]["simulation"].values.tolist() == ["sized"]
    assert found["convergence"]["sup_time"].attrs["units"] == "steps"
    assert {p.x_label.plain for p in panels(found)["trajectories"]} == {"t (steps)"}


def test_times_are_asked_for_only_where_something_has_a_time():
    ten = hdica.TensorialICA(dimension=3, source="rademacher", schedule={"T": 300, "c1": 0.3})
    found = hdica.simulate(ten, seeds=2, method="repeats")
    with_times = hdica.simulate(ten, seeds=2, method="repeats", times=[0])
    assert found.drop_attrs().identical(with_times.drop_attrs())
    grid = hdica.simulate(ten, seeds=2, method="repeats", over={"dimension": [3, 4]})
    assert grid["repeats"].sel(dimension=3).equals(found["repeats"].assign_coords(dimension=3))
    eta = hdica.TensorialICA(dimension=3, source="rademacher", eta=1e-3, start="axis")
    for call in (hdica.simulate, hdica.limit):
        with pytest.raises(HdicaError, match=r"times is missing \(method '\w+' needs it: a list"):
            call(eta)
    with pytest.raises(HdicaError, match="times is missing"):
        hdica.simulate(ten, over={"dimension": [3, 4]})


def test_a_study_says_its_times_only_where_something_has_a_time():
    study = {
        "study": "all_of_them",
        "system": "TensorialICA",
        "parameters": {"dimension": 3, "source": "rademacher", "schedule": {"T": 300, "c1": 0.3}},
        "methods": {"repeats": {"seeds": 2}},
    }
    assert study_from(study).times == (0.0,)
    with pytest.raises(HdicaError, match="times is missing"):
        study_from(study | {"methods": {"vector": {"seeds": 2}}})
