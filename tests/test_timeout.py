"""Calls that take longer than they may, whatever they are at and in whichever thread."""

from __future__ import annotations

import ctypes
import importlib
import inspect
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError, OutOfTime
from hdica.process.interrupt import Beside, Late
from hdica.process.timeout import USUAL, within
from tests.faults import trouble

LONGEST = 20.0
"""Seconds that anything here may take on a busy machine; without a limit it would be far more."""
FAR_OUT = {"tau": 0.05, "source": {"chi2": 1e-9}, "nonlinearity": "tanh(x)"}
"""Averages that are refined for half a minute before they are given up."""
LIMITED = (
    "asymptotics",
    "best",
    "conflict_region",
    "critical",
    "critical_curve",
    "effective_potential",
    "escape_signs",
    "escape_time",
    "fixed_points",
    "limit",
    "sensitivity",
    "tracking",
)


def elsewhere(function: Callable[[], Any]) -> Any:
    """What a function gives or raises in a thread of the caller's own."""
    call = Beside(function)
    assert call.wait(LONGEST)
    return call.result()


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


@pytest.mark.parametrize("kind", ["loop", "integrate", "spin", "hang"])
@pytest.mark.parametrize("where", [here, elsewhere])
def test_nothing_that_lets_go_of_python_goes_on_for_ever(
    where: Callable[..., Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.faults import kernels  # compiled before the clock runs

    assert kernels.spin.nopython_signatures
    monkeypatch.setattr("hdica.process.timeout.GRACE", 0.3)
    compute = rest if kind == "hang" else trouble.KINDS[kind]
    try:
        said = late(lambda: where(lambda: within(0.2, "this", compute)))
    finally:
        trouble.release()
    assert said.startswith("this took longer than timeout = 0.2 s: ")


def rest() -> None:
    """Wait in the system's code, for a time that these tests may take."""
    ctypes.CDLL(None).sleep(5)


def test_a_kernel_that_does_not_return_is_left_behind_with_least_priority() -> None:
    call = Beside(trouble.spin)
    try:
        assert not call.end(0.5)
        number = call._thread.native_id
        assert number is not None
        if sys.platform == "linux":
            assert within(LONGEST, "its priority", lambda: _falls_to(number, 19))
    finally:
        trouble.release()
    assert call.wait(LONGEST)
    with pytest.raises(Late):
        call.result()


def _falls_to(number: int, least: int) -> bool:
    while os.getpriority(os.PRIO_PROCESS, number) != least:
        time.sleep(0.01)
    return True


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
        said = inspect.getdoc(function) or ""
        assert "None for no" in " ".join(said.split()), name
    assert inspect.signature(hdica.simulate).parameters["timeout"].default == "plan"
    assert " (the default)" in late(lambda: _at_once("limit"))


def _at_once(name: str) -> None:
    """A call with the usual limit, which is over at once."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("hdica.process.timeout.Beside.wait", lambda self, seconds=None: False)
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
import threading, time
begun.set()
for _ in range(100):
    time.sleep(0.01)
whole = True
"""


@pytest.mark.parametrize("guarded", [True, False])
def test_an_import_is_not_cut_short(
    guarded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not guarded:  # what it would be otherwise
        monkeypatch.setattr("hdica.process.interrupt.GUARDED", frozenset())
    begun = threading.Event()
    monkeypatch.setattr("builtins.begun", begun, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "slow_module.py").write_text(SLOW_MODULE)

    def forever() -> None:
        importlib.import_module("slow_module")
        while True:
            time.sleep(0.01)

    call = Beside(forever)
    try:
        assert begun.wait(LONGEST)
        assert call.end(LONGEST)
        assert isinstance(call.raised, Late)
        assert hasattr(sys.modules.get("slow_module"), "whole") == guarded
    finally:
        sys.modules.pop("slow_module", None)


def test_what_is_left_behind_while_it_compiles_is_told_when_it_has_done_so() -> None:
    busy, free = threading.Event(), threading.Event()

    def compiles() -> None:
        as_numba(busy, free)
        while True:
            time.sleep(0.01)

    call = Beside(compiles)
    assert busy.wait(LONGEST)
    began = time.monotonic()
    assert not call.end(0.1, 0.3)
    assert time.monotonic() - began > 0.35
    free.set()
    assert call.wait(LONGEST)
    assert isinstance(call.raised, Late)


def _until(busy: threading.Event, free: threading.Event) -> None:
    while not free.wait(0.01):
        busy.set()


as_numba = FunctionType(_until.__code__, {"__name__": "numba.core.compiler"})
"""A function that looks as if it stood in Numba's compiler."""
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


PROFILED = """
import sys, time
from hdica.process.interrupt import Beside

def goes_on():
    while True:
        time.sleep(0.001)

for work, after in ((goes_on, 0.0), (lambda: time.sleep(0.1), 0.0997)):
    for k in range(10):
        one = Beside(work)
        one.wait(after)
        assert one.end(10)
calls = []
sys.setprofile(lambda *event: calls.append(event[1]))
(lambda: None)()
sys.setprofile(None)
print(len(calls) > 0)
"""


def test_what_follows_can_be_profiled() -> None:
    """CPython 3.11 never returned from a profiled call once an exception was taken back."""
    done = subprocess.run(
        [sys.executable, "-c", PROFILED], capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
