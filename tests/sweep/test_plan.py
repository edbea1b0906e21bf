"""What a plan says of the time until the results are there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hdica.errors import HdicaError
from hdica.process import compiled
from hdica.sweep.run.asked import Plan, SegmentPlan
from hdica.sweep.run.plan import plan
from hdica.sweep.run.runner import run
from hdica.sweep.study.study import study_from
from hdica.systems.method import Method
from hdica.systems.system import System
from tests.sweep import toy

SLOW = Plan("slow", "", (SegmentPlan("walk", 10, 400, 400, 1.0, 8, 1, 3),))


def test_the_wait_is_the_work_shared_and_what_comes_before_and_after_it() -> None:
    alone, shared = SLOW.wait(1), SLOW.wait(4)
    assert alone > SLOW.seconds == 400
    assert 100 < shared < 110
    cold = replace(SLOW, compiling=50.0)
    assert cold.wait(1) - alone == pytest.approx(50)
    assert cold.wait(4) - shared == pytest.approx(50)


def test_workers_are_no_help_for_little_work_and_no_more_than_there_are_blocks() -> None:
    quick = replace(SLOW, segments=(replace(SLOW.segments[0], seconds_per_point=1e-3),))
    assert quick.wait(8) == quick.wait(1)
    two = replace(SLOW, segments=(replace(SLOW.segments[0], block=200),))
    assert two.wait(16) == two.wait(2)


def test_on_a_slower_processor_all_takes_longer_but_fused_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = {
        "study": "paced", "title": "Two methods", "system": "OnlineICA",
        "parameters": {"source": "uniform", "nonlinearity": "x**3"}, "grid": {"tau": [0.02]},
        "times": {"stop": 40, "num": 3}, "methods": {"chain": {"n": [100], "seeds": 8}, "ode": {}},
    }  # fmt: skip
    found = []
    for factor in (1.0, 3.0):
        monkeypatch.setattr("hdica.sweep.run.plan.pace", lambda factor=factor: factor)
        monkeypatch.setattr("hdica.sweep.run.plan.compile_seconds", lambda system, methods: 7.0)
        found.append(plan(study_from(content)))
    one, three = found
    chain, ode = zip(one.segments, three.segments, strict=True)
    assert chain[0].method == "chain"
    assert chain[0].seconds == chain[1].seconds > 0
    assert 3 * ode[0].seconds == pytest.approx(ode[1].seconds)
    assert three.compiling == 21
    # Blocks, and with them the store, do not depend on what was measured.
    assert [s.block for s in one.segments] == [s.block for s in three.segments]
    assert three.wait() == pytest.approx(3 * one.wait() - 2 * chain[0].seconds)
    assert replace(three, segments=()).wait() == pytest.approx(3 * replace(one, segments=()).wait())


def test_nothing_is_waited_for_where_nothing_is_pending() -> None:
    done = replace(SLOW, segments=(replace(SLOW.segments[0], pending=0),), compiling=50.0)
    assert done.wait(1) < 5


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two functions that are compiled, and of another inside it."""
    monkeypatch.setattr(compiled, "PACKAGE", tmp_path)
    monkeypatch.delenv(compiled.PLACE, raising=False)
    inner = tmp_path / "finite" / "inner"
    inner.mkdir(parents=True)
    text = "import numba\n\n@numba.njit(cache=True)\ndef f(x):\n    return x\n"
    (tmp_path / "finite" / "one.py").write_text(f"{text}{text}")
    (inner / "__init__.py").write_text('"""Its own."""\n\nVERSION = 4\n')
    (inner / "two.py").write_text(text)
    return tmp_path / "finite"


def test_what_no_cache_holds_is_compiled_first(package: Path) -> None:
    assert compiled.cold(["hdica.finite"]) == 2
    assert compiled.cold(["hdica.finite", "hdica.finite.inner", "other.finite"]) == 3
    cache = package / "__pycache__"
    cache.mkdir()
    (cache / "one.f-3.py311.nbi").touch()
    assert compiled.cold(["hdica.finite"]) == 0
    assert compiled.cold(["hdica.finite", "hdica.finite.inner"]) == 1


def test_another_place_for_compiled_functions_is_looked_at(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "kept"
    monkeypatch.setenv(compiled.PLACE, str(place))
    folder = place / f"{package.name}_0123abcd"
    folder.mkdir(parents=True)
    assert compiled.cold(["hdica.finite"]) == 2
    (folder / "one.f-3.py311.nbi").touch()
    assert compiled.cold(["hdica.finite"]) == 0


def test_a_plan_counts_what_is_compiled_for_its_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, list[str]]] = []

    def told(system: System, methods: list[Method]) -> float:
        asked.append((system.name, [method.name for method in methods]))
        return 7.0

    monkeypatch.setattr("hdica.sweep.run.plan.compile_seconds", told)
    monkeypatch.setattr("hdica.sweep.run.plan.pace", lambda: 2.0)
    study = study_from(toy.study())
    made = plan(study)
    assert made.compiling == made.as_dict()["compiling"] == 14.0
    assert asked == [(study.system, list(study.methods))]


def test_averages_in_no_closed_form_are_prepared_once_for_all_step_sizes() -> None:
    def preparing(steps: int, **parameters: object) -> float:
        content = {
            "study": "s",
            "title": "s",
            "system": "OnlineICA",
            "parameters": {"start": {"overlap": 0.5}, "nonlinearity": "tanh(x)"} | parameters,
            "grid": {"tau": {"start": 0.02, "stop": 0.2, "num": steps}},
            "times": {"stop": 10, "num": 11},
            "methods": {"ode": {}, "fixed_points": {}},
        }
        planned = plan(study_from(content))
        assert planned.seconds > planned.preparing
        return planned.preparing / planned.pace

    once = preparing(5, source="laplace")
    assert preparing(50, source="laplace") == once > 0.1
    assert preparing(5, source="laplace", nonlinearity="x**3") == 0


def test_a_plan_has_the_memory_of_its_largest_point_and_a_run_refuses_more_than_there_is(
    toy_system: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    line = replace(
        toy.make()["line"], held=lambda system, n: int(1e12 * system.tau * system.start["overlap"])
    )
    toy.lend(monkeypatch, line)
    content = toy.study(methods={"line": {}}, grid={"tau": [0.1, 0.3, 0.2], "Q0": [0.5, 0.25]})
    study, out = study_from(content), tmp_path / "toy.zarr"
    found = plan(study, out)
    assert found.memory == found.as_dict()["segments"][0]["memory"] == pytest.approx(1.2e12)
    with pytest.raises(HdicaError, match=r"a point of line is not allowed \(it needs 1.2e\+03 GB"):
        run(study, out, progress=False)
    assert not (tmp_path / "toy.work").exists()
    small = study_from({**content, "grid": {"tau": [1e-6], "Q0": [0.5]}})
    assert run(small, out, progress=False).complete
