"""Calls that take longer than they may, whatever they compute and in whichever thread."""

from __future__ import annotations

import importlib
import inspect
import math
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError, OutOfTime
from hdica.process.progress import USUAL, check_deadline, tell, within

LONGEST = 20.0
"""Seconds that anything here may take on a busy machine; without a limit it would be far more."""
FAR_OUT = {"tau": 0.05, "source": {"chi2": 1e-9}, "nonlinearity": "tanh(x)"}
"""Averages that are refined for half a minute before they are given up."""
LIMITED = (
    "asymptotics",
    "best",
    "best_step",
    "conflict_region",
    "critical",
    "critical_curve",
    "effective_potential",
    "escape_signs",
    "escape_time",
    "fixed_points",
    "limit",
    "sensitivity",
)


def elsewhere(function: Callable[[], Any]) -> Any:
    """What a function returns or raises in a thread of the caller's own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result(LONGEST)


def here(function: Callable[[], Any]) -> Any:
    return function()


def late(call: Callable[[], Any]) -> str:
    """What is said of a call that takes too long, within a short time."""
    began = time.monotonic()
    with pytest.raises(OutOfTime) as raised:
        call()
    assert time.monotonic() - began < LONGEST
    assert isinstance(raised.value, HdicaError)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.deep
@pytest.mark.parametrize("where", [here, elsewhere])
def test_a_limit_ends_in_time_and_says_what_it_was_at(where: Callable[..., Any]) -> None:
    ica = hdica.OnlineICA(**FAR_OUT)
    said = late(lambda: where(lambda: hdica.limit(ica, times=[0, 1], timeout=2.0)))
    assert said.startswith(
        "hdica.limit of OnlineICA(nonlinearity='tanh(x)', source={'chi2': 1e-09}"
    )
    assert "took longer than timeout = 2 s, at averages of tanh(x) over chi2(1e-09): " in said
    assert said.endswith("or None for no limit, or parameters that are less extreme")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fixed_points", ()),
        ("critical", ()),
        ("critical_curve", ("tau", "beta", [0.1, 0.2])),
    ],
)
def test_steady_states_end_in_time(name: str, arguments: tuple[Any, ...]) -> None:
    constants = {"constants": {"beta": 0.1}, "regularizer": "beta*sign(x)"}
    ica = hdica.OnlineICA(**FAR_OUT, **constants)
    assert f"hdica.{name} of " in late(lambda: getattr(hdica, name)(ica, *arguments, timeout=0.5))


def test_a_density_and_its_potential_end_in_time() -> None:
    pca = hdica.SparsePCA(tau=0.1, prior={"sparse": 1e-9}, regularizer="0.1*sign(x)")
    assert "hdica.limit of " in late(
        lambda: hdica.effective_potential(pca, times=[0, 10], timeout=0.5)
    )


def test_a_simulation_ends_in_time_and_leaves_no_thread() -> None:
    ica = hdica.OnlineICA(tau=0.05)
    hdica.simulate(ica, n=10, times=[0, 1], method="vector")  # compiled before the clock runs
    before = set(threading.enumerate())
    said = late(
        lambda: hdica.simulate(ica, n=10**5, times=[0, 10**4], method="vector", timeout=0.5)
    )
    assert "with n = 100000 took longer than timeout = 0.5 s: " in said
    assert set(threading.enumerate()) <= before


def loop() -> None:
    while True:
        check_deadline()


def swallow() -> None:
    """A search that takes errors for those of a trial, and goes on with the next one."""
    while True:
        try:
            tell("this trial")
        except Exception as exc:  # never: the test would not end
            raise AssertionError("a trial has failed") from exc


def fortran() -> None:
    """A solver in Fortran that calls back for ever."""
    from scipy.integrate import odeint

    def rate(y: Any, t: float) -> Any:
        check_deadline()
        return -1e7 * (y - math.cos(1e9 * t))

    odeint(rate, [0.0], [0.0, 1e9], mxstep=10**9)


def compiled() -> None:
    """A solver in C that calls back for ever."""
    from scipy.optimize import root

    def slow(x: Any) -> Any:
        while True:
            check_deadline()

    root(slow, [1.0], method="hybr")


@pytest.mark.parametrize("compute", [loop, swallow, fortran, compiled])
@pytest.mark.parametrize("where", [here, elsewhere])
def test_a_check_ends_whatever_makes_it(
    where: Callable[..., Any], compute: Callable[[], None]
) -> None:
    said = late(lambda: where(lambda: within(0.2, "this", compute)))
    at = ", at this trial" if compute is swallow else ""
    assert said.startswith(f"this took longer than timeout = 0.2 s{at}: ")
    check_deadline()  # the deadline ends with the call


PARTS = {
    "steps of a kernel": "hdica.finite.record.AT_ONCE",
    "steps of a density": "hdica.limits.mean_field.density.march._NUMBERS",
    "rows of an average": "hdica.limits.mean_field.steady.confinement._AT_ONCE",
    "iterations of FastICA": "hdica.finite.fastica.iteration._AT_ONCE",
}


def bits(found: Any) -> bytes:
    """Every number of a dataset."""
    return b"".join(v.values.tobytes() for v in found.data_vars.values() if v.dtype.kind != "O")


def _in_parts(which: str) -> bytes:
    """The bits of a result that is computed in parts."""
    if which == "rows of an average":
        steady = hdica.SparsePCA(tau=0.1, prior={"sparse": 0.1}, regularizer="0.1*tanh(4*x)")
        return bits(hdica.fixed_points(steady))
    if which == "iterations of FastICA":
        from hdica.finite.fastica.iteration import fastica
        from hdica.ingredients.contrasts import make_contrast

        rng = np.random.default_rng(1)
        y, starts = rng.laplace(size=(300, 4)), rng.normal(size=(3, 4))
        found = fastica(y, starts, make_contrast("logcosh"), path=True)
        assert found.path is not None
        several = (found.w, found.iterations, found.converged, found.score, found.path)
        return b"".join(one.tobytes() for one in several)
    pca = hdica.SparsePCA(tau=0.1, prior={"sparse": 0.2}, regularizer="0.1*sign(x)")
    if which == "steps of a density":
        return bits(hdica.limit(pca, times=[0, 0.5, 2]))
    ica = hdica.OnlineICA(tau=0.05)
    rules = [
        (pca, "vector"),
        (pca.model_copy(update={"motion": {"exchange": 0.5}}), "vector"),
        (ica, "vector"),
        (hdica.HebbianICA(mu=0.1), "vector"),
        (hdica.HebbianICA(mu=0.1, batch=3), "vector"),
        (hdica.SeveralICA(tau=0.05), "vector"),
    ]
    found = [hdica.simulate(one, n=30, times=[0, 1, 20], method=how) for one, how in rules]
    return b"".join(map(bits, found))


@pytest.mark.parametrize("which", PARTS)
def test_how_often_the_deadline_is_checked_changes_no_bit(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, checks = _in_parts(which), []
    home = PARTS[which].rpartition(".")[0]
    monkeypatch.setattr(PARTS[which], 1)
    monkeypatch.setattr(f"{home}.check_deadline", lambda: checks.append(1))
    assert _in_parts(which) == whole
    assert len(checks) > 10


@pytest.mark.deep
def test_one_combination_that_takes_too_long_leaves_the_others_alone() -> None:
    pca = hdica.SparsePCA(tau=0.1, prior={"sparse": 0.1}, regularizer="0.1*sign(x)")
    times = [0, 1, 10]
    alone = hdica.limit(pca, times=times)
    found = hdica.limit(pca, times=times, over={"rho": [0.1, 1e-9]}, timeout=5.0)
    assert np.array_equal(found.Q[0], alone.Q)
    assert np.isnan(found.Q[1]).all()
    said = found.note.values[1]
    assert "SparsePCA(prior={'sparse': 1e-09}" in said
    assert "took longer than timeout = 5 s, at density: refinement " in said


@pytest.mark.deep
def test_one_combination_that_has_no_limit_leaves_the_others_alone() -> None:
    pca, times = hdica.SparsePCA(tau=0.1), [0, 1, 10]
    found = hdica.limit(pca, times=times, over={"omega": [1.0, 1e20]})
    assert np.array_equal(found.Q[0], hdica.limit(pca, times=times).Q)
    assert np.isnan(found.Q[1]).all()
    assert "its rates are so large that rounding hides where it goes" in found.note.values[1]
    with pytest.raises(HdicaError, match="the limit could not be followed to t = 10: "):
        hdica.limit(pca, times=times, over={"omega": [1e19, 1e20]})


def test_a_call_inside_another_has_its_limit() -> None:
    def outer() -> float:
        return within(1e-9, "inside", lambda: time.sleep(0.05) or 7.0)

    assert within(LONGEST, "outside", outer) == 7.0
    assert within(None, "no limit", threading.current_thread) is threading.current_thread()


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf"), True, "5"])
def test_a_wrong_timeout_is_refused(timeout: Any) -> None:
    ica = hdica.OnlineICA(tau=0.05)
    with pytest.raises(HdicaError, match=r"timeout = .* is not allowed \(seconds > 0, or None"):
        hdica.fixed_points(ica, timeout=timeout)
    with pytest.raises(HdicaError, match="is not allowed"):
        hdica.limit(ica, times=[0, 1], over={"tau": [0.1]}, timeout=timeout)


@pytest.mark.parametrize("timeout", [1e30, 10**400])
def test_a_limit_beyond_what_the_system_counts_is_one_all_the_same(timeout: float) -> None:
    assert within(timeout, "for ever", lambda: 7.0) == 7.0


def test_whatever_may_take_long_has_a_limit_and_says_so() -> None:
    for name in LIMITED:
        function = getattr(hdica, name)
        assert inspect.signature(function).parameters["timeout"].default == USUAL == 120.0, name
        said = " ".join((inspect.getdoc(function) or "").split())
        here = "None for no" in said
        assert here or re.search("timeout, progress As in :func:`(hdica.limit|fixed_points)`", said)
        assert here or name not in ("limit", "fixed_points")
    assert inspect.signature(hdica.simulate).parameters["timeout"].default == "plan"
    assert " (the default)" in late(lambda: _at_once("limit"))


def _at_once(name: str) -> None:
    """A call with the usual limit, which is over at once."""
    with pytest.MonkeyPatch.context() as patched:
        began = iter([0.0])  # when the call does, and after it the end of all time
        clock = SimpleNamespace(monotonic=lambda: next(began, math.inf))
        patched.setattr("hdica.process.progress.time", clock)
        getattr(hdica, name)(hdica.OnlineICA(**FAR_OUT), times=[0, 1])


SCRIPT = """
import hdica, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have told to ignore
ica = hdica.OnlineICA(tau=0.05, source={'chi2': 1e-9}, nonlinearity='tanh(x)')
# All is loaded: CPython 3.11 ends with SIGINT's status once a keyboard came into an ``exec``, which
# whatever makes classes calls, even if that was heeded.
hdica.limit(hdica.OnlineICA(tau=0.05), times=[0, 1])
print("begun", flush=True)
try:
    hdica.limit(ica, times=[0, 1])
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.deep
def test_a_keyboard_is_heeded_while_something_is_computed() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(1)
    told = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == "interrupted\n"
    assert process.wait(LONGEST) == 0
    assert time.monotonic() - told < 10


SLOW_MODULE = """
import time
for _ in range(30):
    time.sleep(0.01)
whole = True
"""


def test_an_import_is_not_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "slow_module.py").write_text(SLOW_MODULE)

    def imports() -> None:
        importlib.import_module("slow_module")
        loop()

    try:
        late(lambda: within(0.1, "this", imports))
        assert sys.modules["slow_module"].whole
    finally:
        sys.modules.pop("slow_module", None)


COLD = """
import time
import numba
import hdica.limits.numerics.compiled  # from where on numba's caches are ours
from hdica.process.progress import within
from hdica.errors import OutOfTime

def compiles():
    @numba.njit("float64(float64)", cache=True)
    def first(x):
        return x + 1.0
    time.sleep(0.3)
    @numba.njit("float64(float64)", cache=True)
    def second(x):
        return first(x) + 1.0
    return second

try:
    within(0.2, "this", compiles)
except OutOfTime:
    print("late")
print(compiles()(1.0), within(None, "this", compiles)(1.0))
"""


def test_a_call_ends_between_two_functions_that_are_compiled(tmp_path: Path) -> None:
    script = tmp_path / "cold.py"
    script.write_text(COLD)
    found = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120
    )
    assert found.stdout == "late\n3.0 3.0\n", found.stderr


AT_ONCE = """
import hdica, random, sys, threading, time
import numpy as np

ica = hdica.OnlineICA(tau=0.05, start={"overlap": 0.7})
rough = hdica.OnlineICA(tau=0.05, nonlinearity="abs(x)*tanh(x)", start={"overlap": 0.5})
pca = hdica.SparsePCA(tau=0.1, prior={"sparse": 0.1}, regularizer="0.1*sign(x)")
hebbian = hdica.HebbianICA(mu=0.1)
CALLS = [
    lambda limit: hdica.limit(ica, times=[0, 1], timeout=limit).Q,
    lambda limit: hdica.limit(rough, times=[0, 1], timeout=limit).Q,
    lambda limit: hdica.limit(hebbian, times=[0, 1], timeout=limit).R,
    lambda limit: hdica.fixed_points(ica, timeout=limit).Q,
    lambda limit: hdica.simulate(ica, n=50, times=[0, 1], timeout=limit).Q,
    lambda limit: hdica.simulate(pca, n=50, times=[0, 1], method="vector", timeout=limit).Q,
]
until, late, first = time.monotonic() + 8, [], {}
LEAST = 21

def several(seed):
    draw = random.Random(seed)
    while (now := time.monotonic()) < until or (len(late) < LEAST and now < until + 60):
        which = draw.randrange(len(CALLS))
        try:
            found = CALLS[which](10 ** draw.uniform(-3.5, 0)).values.tobytes()
        except hdica.OutOfTime:
            late.append(which)
        else:
            assert first.setdefault(which, found) == found

threads = [threading.Thread(target=several, args=(seed,)) for seed in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(late) >= LEAST, late
for which, call in enumerate(CALLS):
    found = call(None).values.tobytes()
    assert first.setdefault(which, found) == found
assert sys.getswitchinterval() == 0.005
print("equal")
"""


@pytest.mark.deep
def test_several_threads_run_out_of_time_again_and_again_and_nothing_is_left_locked() -> None:
    found = subprocess.run(
        [sys.executable, "-c", AT_ONCE], capture_output=True, text=True, timeout=120
    )
    assert found.stdout == "equal\n", found.stderr
