"""``make env``: what it says when it cannot work, and when it installs.

Python is replaced by a stand-in that only notes what it was asked."""

import os
import subprocess
from pathlib import Path

import pytest

from tests import rooms

ROOT = Path(__file__).parents[1]

STAND_IN = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
  "-c "*version_info*) exit {too_old} ;;
  "-c "*venv*) exit {no_venv} ;;
  "--version") echo "Python 3.9.2" ;;
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("Makefile", "requirements.lock", "requirements-test.lock", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    return tmp_path


def make(
    folder: Path, *goals: str, too_old: int = 0, no_venv: int = 0
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    python = folder / "python3"
    python.write_text(STAND_IN.format(too_old=too_old, no_venv=no_venv))
    python.chmod(0o755)
    calls = folder / "calls"
    calls.write_text("")
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "CALLS": str(calls)}
    done = subprocess.run(
        ["make", *(goals or ["env", f"PYTHON={python}"])],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    return done, calls.read_text().splitlines()


def installs(calls: list[str]) -> list[str]:
    return [call for call in calls if call.startswith("-m pip install")]


def test_first_call_installs_the_lock_with_hashes_and_then_the_package(folder: Path) -> None:
    done, calls = make(folder)
    assert done.returncode == 0, done.stderr
    lock, package, more = installs(calls)
    for one, name in ((lock, "requirements.lock"), (more, "requirements-test.lock")):
        assert "--require-hashes" in one
        assert one.endswith(f"-r {name}")
    assert "--no-deps" in package
    assert "--editable ." in package


def test_studies_need_no_tools_of_the_tests(folder: Path) -> None:
    python = f"PYTHON={folder / 'python3'}"
    done, calls = make(folder, "run", python)
    assert done.returncode != 0  # there is no Snakemake
    assert len(installs(calls)) == 2
    assert not any("requirements-test" in call for call in calls)
    assert [call.endswith("requirements-test.lock") for call in installs(make(folder)[1])] == [True]
    assert installs(make(folder, "run", python)[1]) == []


def test_second_call_runs_nothing_and_a_changed_lock_installs_again(folder: Path) -> None:
    make(folder)
    done, calls = make(folder)
    assert done.returncode == 0
    assert calls == []
    with (folder / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    done, calls = make(folder)
    assert done.returncode == 0
    assert len(installs(calls)) == 3
    with (folder / "requirements-test.lock").open("a") as lock:
        lock.write("# changed\n")
    assert len(installs(make(folder)[1])) == 1
    assert make(folder)[1] == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"too_old": 1}, ["needs Python 3.11", "is Python 3.9.2"]),
        ({"no_venv": 1}, ["needs the venv module", "python3-venv"]),
    ],
)
def test_unusable_python_gets_one_sentence_and_no_environment(
    folder: Path, given: dict[str, int], said: list[str]
) -> None:
    done, calls = make(folder, **given)
    assert done.returncode != 0
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("hdica")]
    assert all(part in sentence for part in said)
    assert installs(calls) == []
    assert not (folder / ".venv").exists()


def test_bench_installs_the_rivals_in_an_environment_of_its_own(folder: Path) -> None:
    python = f"PYTHON={folder / 'python3'}"
    done, calls = make(folder, "bench", python)
    assert done.returncode == 0, done.stderr
    assert not (folder / ".venv").exists()
    lock, rivals = installs(calls)
    assert "-r requirements.lock" in lock
    assert ".[benchmarks]" in rivals
    assert calls[-1] == "-m benchmarks --write"
    assert make(folder, "bench", python)[1] == ["-m benchmarks --write"]
    assert make(folder, "env", python)[0].returncode == 0
    assert not any("benchmarks" in call for call in (folder / "calls").read_text().splitlines())


def test_missing_python_gets_one_sentence(folder: Path) -> None:
    done, _ = make(folder, "env", "PYTHON=python-that-is-not-here")
    assert done.returncode != 0
    assert "there is no python-that-is-not-here" in done.stderr


RESULTS = [("", "results"), ("results: out  # here", "out"), ('results: "a/b/"', "a/b")]


@pytest.mark.parametrize(("line", "place"), RESULTS)
def test_a_build_ends_with_the_line_that_names_the_gallery(
    folder: Path, line: str, place: str
) -> None:
    (folder / "config").mkdir()
    (folder / "config/config.yaml").write_text(f"studies: []\n{line}\nshards: 1\n")
    python = f"PYTHON={folder / 'python3'}"
    make(folder, "env", python)
    snakemake = folder / ".venv/bin/snakemake"
    for code in (0, 1):
        snakemake.write_text(f"#!/bin/sh\necho 'Elapsed time: 0:00:01'\nexit {code}\n")
        snakemake.chmod(0o755)
        done, _ = make(folder, "run", python)
        assert (done.returncode == 0) == (code == 0)
        last = done.stdout.splitlines()[-1]
        assert (last == f"reports: {place}/index.html") == (code == 0)


def test_two_commands_run_every_test_between_them(folder: Path) -> None:
    python = f"PYTHON={folder / 'python3'}"
    make(folder, "env", python)
    suite = "-m pytest -n auto"
    for goals, called in (
        (("test",), f"{suite} -m not deep"),
        (("test-deep",), suite),
        (("test-deep", "DEEP=rest"), f"{suite} -m deep"),
        (("test", "ROOM=report", "PYTEST=-k store"), f"{suite} -m not deep --room report -k store"),
    ):
        done, calls = make(folder, *goals, python)
        assert done.returncode == 0, done.stderr
        assert [" ".join(call.split()) for call in calls] == [called]


def test_tests_of_a_room_are_its_own_and_those_of_what_imports_it() -> None:
    for room, file, chosen in (
        ("report", "report/test_page.py", True),
        ("report", "browser/test_page.py", True),
        ("report", "test_cli.py", True),
        ("report", "limits/test_passage.py", False),
        ("verdict", "verdict/test_contract.py", True),
        ("verdict", "analysis/test_phase.py", True),
        ("verdict", "finite/test_kernels.py", False),
        ("finite", "errata/test_wang_lu_2017.py", True),
        ("cli_files", "test_cli_new.py", True),
        ("cli_files", "sweep/test_spread.py", False),
    ):
        assert rooms.concerns(room, rooms.HERE / file) == chosen, (room, file)
    folders = {path.parent.name for path in rooms.HERE.glob("*/test_*.py")}
    assert folders <= {*rooms.names(), *rooms.OF_OTHERS}
    assert set(rooms.OF_OTHERS.values()) <= set(rooms.names())
