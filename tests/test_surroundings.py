"""What a command is started with: streams that are closed, an interpreter without assertions."""

from __future__ import annotations

import importlib
import json
import os
import py_compile
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hdica.cli import call
from hdica.errors import HdicaError, Stopped
from hdica.status import damaged_file
from hdica.store.files import SYNC, syncing
from hdica.store.paths import results_path
from hdica.store.verify import verify

ROOT = Path(__file__).parents[1]
HDICA = str(Path(sys.executable).parent / "hdica")
STUDY = {
    "study": "small",
    "title": "A study of one point",
    "system": "OnlineICA",
    "parameters": {"source": "uniform"},
    "grid": {"tau": [0.05]},
    "times": [0, 1],
    "methods": {"ode": {}},
}


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """What follows ``hdica`` to run a study of one point."""
    (tmp_path / "small.yaml").write_text(json.dumps(STUDY))
    return ["run", str(tmp_path / "small.yaml"), "--out", str(tmp_path / "small.zarr")]


@pytest.mark.deep
@pytest.mark.parametrize("closed", ["2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_streams_may_be_closed(small: list[str], tmp_path: Path, closed: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", HDICA, *small], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    # Nothing that was said has gone into a file which took the number of a stream.
    assert verify(tmp_path / "small.zarr").code == 0
    asked = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", HDICA, "query", small[-1]])
    assert asked.returncode == 0


@pytest.mark.parametrize("level", ["1", "2"])
def test_an_interpreter_without_assertions_is_refused(
    small: list[str], tmp_path: Path, level: str
) -> None:
    without = {**os.environ, "PYTHONOPTIMIZE": level}
    done = subprocess.run([HDICA, *small], env=without, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("hdica: python -O and PYTHONOPTIMIZE are not allowed (")
    assert done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["small.yaml"]
    program = "import hdica\ntry: hdica.open_results('a.zarr')\nexcept hdica.HdicaError: print(7)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=without, capture_output=True, text=True
    )
    assert done.stdout == "7\n", done.stderr


@pytest.mark.parametrize("said", ["maybe", "of", "2", "²"])
def test_a_switch_is_on_or_off(
    small: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], said: str
) -> None:
    monkeypatch.setenv(SYNC, said)
    assert call([*small, "--quiet"]) == 2
    assert capsys.readouterr().err == f"hdica: {SYNC} = {said!r} is not allowed (on or off)\n"
    assert not Path(small[-1]).exists()


def test_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    for said, found in {"": True, "on": True, " 1": True, "OFF": False, "0": False}.items():
        monkeypatch.setenv(SYNC, said)
        assert syncing() == found
    monkeypatch.delenv(SYNC)
    assert syncing()


@pytest.mark.parametrize(
    "out", ["s3://a/b.zarr", "file:///a.zarr", "memory://b.zarr", "~/a.zarr", "~user/a.zarr"]
)
def test_results_lie_on_this_machine(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call([*small[:-1], out]) == 2
    assert os.listdir(tmp_path) == ["small.yaml"]
    with pytest.raises(HdicaError, match=r"^results '.*' is not allowed \("):
        results_path(out)


@pytest.mark.parametrize("out", ["a::b.zarr", "a/~b.zarr", "c:d.zarr", " a.zarr", "é#?%41.zarr"])
def test_any_other_name_is_a_name(small: list[str], tmp_path: Path, out: str) -> None:
    (tmp_path / "a").mkdir()
    assert call([*small[:-1], str(tmp_path / out), "--quiet"]) == 0
    assert verify(tmp_path / out).code == 0


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "inf", "1e-9"])
def test_a_budget_is_a_time_in_which_a_point_can_be_computed(
    small: list[str], capsys: pytest.CaptureFixture[str], budget: str
) -> None:
    assert call([*small, f"--budget={budget}"]) == 2
    assert capsys.readouterr().err.startswith("hdica: cluster: budget = ")


@pytest.mark.deep
def test_numba_that_compiles_nothing_is_refused_where_something_is_simulated(
    small: list[str], tmp_path: Path
) -> None:
    study = {**STUDY, "methods": {"vector": {"n": [10], "seeds": 1}}}
    (tmp_path / "small.yaml").write_text(json.dumps(study))
    plain = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([HDICA, *small], env=plain, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("hdica: NUMBA_DISABLE_JIT = 1 is not allowed with simulations (")
    assert done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["small.yaml"]


@pytest.mark.deep
@pytest.mark.usefixtures("small")
def test_workers_start_from_standard_input_and_from_a_daemonic_process(tmp_path: Path) -> None:
    program = """
import multiprocessing, hdica
def work():
    study = hdica.Study.load("small.yaml")
    tree = study.run("small.zarr", cluster={"mode": "local", "workers": 1})
    print(tree["ode"].status.values.ravel(), flush=True)
one = multiprocessing.get_context("fork").Process(target=work, daemon=True)
one.start()
one.join()
"""
    done = subprocess.run(
        [sys.executable, "-"], input=program, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("[1]\n", "")


@pytest.mark.deep
def test_what_workers_are_forked_from_says_nothing_of_ctrl_c() -> None:
    """It goes to every process of a terminal, while they load their libraries, too."""
    program = """
import os, signal, time
from hdica.run.processes import start_loading
signal.signal(signal.SIGINT, lambda *told: None)
start_loading()
for _ in range(10):
    os.killpg(0, signal.SIGINT)
    time.sleep(0.1)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, start_new_session=True
    )
    assert (done.returncode, done.stderr) == (0, "")


STRUCK = """
import atexit, os, signal, sys
from hdica.command import main
when = os.environ["WHEN"]
class Striking:
    def find_spec(self, name, path=None, target=None):
        if name == when:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Striking())
if when == "end":
    atexit.register(os.kill, os.getpid(), signal.SIGINT)
if os.environ["IGNORED"]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.argv = ["hdica", "--version"]
main()
"""


@pytest.mark.parametrize(
    ("when", "ignored", "code", "said"),
    [
        ("hdica.cli", "", 130, "hdica: interrupted\n"),
        ("typer", "", 130, "hdica: interrupted\n"),
        ("hdica.run.console", "", 130, "hdica: interrupted\n"),
        ("end", "", -signal.SIGINT, ""),
        ("typer", "yes", 0, ""),
    ],
)
def test_ctrl_c_while_a_command_starts_or_ends_is_no_traceback(
    when: str, ignored: str, code: int, said: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STRUCK],
        env={**os.environ, "PYTHONPATH": str(ROOT), "WHEN": when, "IGNORED": ignored},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.deep
def test_a_home_that_cannot_be_written_to_is_not_needed(small: list[str]) -> None:
    given = {key: value for key, value in os.environ.items() if key != "XDG_CACHE_HOME"}
    done = subprocess.run(
        [HDICA, *small, "--quiet"], env={**given, "HOME": "/proc"}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("threads", ["0", "many", ""])
def test_a_number_of_threads_that_numba_does_not_read_is_one_sentence(
    small: list[str], threads: str
) -> None:
    done = subprocess.run(
        [HDICA, *small],
        env={**os.environ, "NUMBA_NUM_THREADS": threads},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(
        f"hdica: NUMBA_NUM_THREADS = {threads!r} is not allowed (a whole "
    )
    assert done.stderr.count("\n") == 1


@pytest.mark.deep
@pytest.mark.usefixtures("small")
def test_a_notebook_runs_studies(tmp_path: Path) -> None:
    """In a running loop, in a ``__main__`` of no file, with streams that are none of the system."""
    program = """
import asyncio, io, sys
class Stream(io.StringIO):
    def write(self, text):
        return super().write(str.__add__(text, ""))
sys.stdout, sys.stderr, real = Stream(), Stream(), sys.stdout
async def cell():
    import hdica
    tree = hdica.Study.load("small.yaml").run("small.zarr", workers=2, progress=True)
    hdica.cli.call(["query", "small.zarr"])
    real.write(str(tree["ode"].status.values.ravel()) + sys.stdout.getvalue())
    real.flush()  # at the end only what is sys.stdout then is sure to be
import hdica.cli
asyncio.run(cell())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[1]")
    assert "tau" in done.stdout


def test_a_compiled_module_that_is_cut_is_named_and_no_other_error_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_rule.py").write_text("x = 1\n")
    cut = Path(py_compile.compile(str(tmp_path / "a_rule.py")))
    cut.write_bytes(cut.read_bytes()[:20])
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EOFError) as raised:
        importlib.import_module("a_rule")
    assert damaged_file(raised.value) == str(cut)
    assert damaged_file(ValueError("no import")) == damaged_file(KeyError("x")) == ""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_a_signal_stops_ends_with_the_status_of_a_shell(
    number: int, status: int
) -> None:
    stopped = Stopped(number)
    assert (stopped.status, str(stopped)) == (status, f"stopped by {signal.Signals(number).name}")
