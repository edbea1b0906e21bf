"""What a plan says of the time until the results are there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hdica.errors import HdicaError
from hdica.run.plan import Plan, SegmentPlan, plan
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.store.verify import verify
from hdica.study.segment import Segment
from hdica.study.study import study_from
from tests.sweep import toy

SLOW = Plan("slow", "", (SegmentPlan("walk", 10, 400, 400, 1.0, 8, 1),))


def test_points_are_looked_up_once_and_only_where_there_are_blocks(
    toy_system: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    study, out = study_from(toy.study()), tmp_path / "toy.zarr"
    counted: list[str] = []
    keys = Segment.keys
    monkeypatch.setattr(Segment, "keys", lambda self: (counted.append(self.name), keys(self))[1])
    assert plan(study, out).pending
    assert not counted
    run(study, out, progress=False)
    publish(study, out)
    counted.clear()
    assert not verify(out).damaged
    assert counted
    assert len(counted) == len(set(counted))


def test_the_wait_is_the_work_shared_and_what_comes_before_and_after_it() -> None:
    alone, shared = SLOW.wait(1), SLOW.wait(4)
    assert alone > SLOW.seconds == 400
    assert 100 < shared < 110


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
        monkeypatch.setattr("hdica.run.plan.pace", lambda factor=factor: factor)
        found.append(plan(study_from(content)))
    one, three = found
    chain, ode = zip(one.segments, three.segments, strict=True)
    assert chain[0].method == "chain"
    assert chain[0].seconds == chain[1].seconds > 0
    assert 3 * ode[0].seconds == pytest.approx(ode[1].seconds)
    # Blocks, and with them the store, do not depend on what was measured.
    assert [s.block for s in one.segments] == [s.block for s in three.segments]
    assert three.wait() == pytest.approx(3 * one.wait() - 2 * chain[0].seconds)
    assert replace(three, segments=()).wait() == pytest.approx(3 * replace(one, segments=()).wait())


def test_nothing_is_waited_for_where_nothing_is_pending() -> None:
    done = replace(SLOW, segments=(replace(SLOW.segments[0], pending=0),))
    assert done.wait(1) < 5


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
    line = toy.make()["line"]
    cost = replace(line.cost, memory=lambda s, n, last: int(1e12 * s.tau * s.start["overlap"]))
    toy.lend(monkeypatch, replace(line, cost=cost))
    content = toy.study(methods={"line": {}}, grid={"tau": [0.1, 0.3, 0.2], "Q0": [0.5, 0.25]})
    study, out = study_from(content), tmp_path / "toy.zarr"
    found = plan(study, out)
    assert found.memory == found.as_dict()["segments"][0]["memory"] == pytest.approx(1.2e12)
    with pytest.raises(HdicaError, match=r"a point of line is not allowed \(it needs 1.2e\+03 GB"):
        run(study, out, progress=False)
    assert not (tmp_path / "toy.work").exists()
    small = study_from({**content, "grid": {"tau": [1e-6], "Q0": [0.5]}})
    assert run(small, out, progress=False).complete
