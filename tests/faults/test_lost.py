"""What is computed again after a kill: exactly what was not committed, and nothing for ever."""

from __future__ import annotations

import os
import signal

import pytest

from hdica.store.results import status
from tests.faults.bench import LOCAL, Bench, compute, content

pytestmark = pytest.mark.faults


def test_a_rerun_computes_what_was_not_committed_and_nothing_else(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = bench.start(LOCAL)
    run.until(lambda: bench.done() > 0, "the first block")
    os.killpg(run.process.pid, signal.SIGKILL)
    assert run.ended() == -signal.SIGKILL
    run.gone()
    bench.undamaged()
    left = status(bench.out).total("pending")
    assert 0 < left < 91
    before = len(bench.calls)
    monkeypatch.setenv("TOY_CALLS", bench.environment()["TOY_CALLS"])
    compute(bench.study, bench.out)
    assert len(bench.calls) - before == left
    bench.whole()


@pytest.mark.deep
def test_a_point_that_kills_its_worker_leaves_the_rest_alone(bench: Bench) -> None:
    bench.variables["DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"] = "0"
    methods = {"walk": {"n": [10], "seeds": 8}, "line": {}}
    bench.study = content(0.03, grid={"tau": [0.1, 0.19], "Q0": [0.5]}, methods=methods)
    run = bench.start(LOCAL)
    assert run.ended() == 1, run.text
    assert run.sentence.startswith(
        "hdica: 8 points are pending; a rerun computes what is missing ("
    )
    assert run.sentence.endswith(": it has ended the process that computed it (SIGKILL))")
    run.gone()
    bench.undamaged()
    found = status(bench.out)
    # Somebody may have killed them from outside: they are left, and their neighbours are not.
    assert (found.total("pending"), found.total("done")) == (8, 10)
