from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from hdica.cli import app, call
from hdica.run.plan import megabytes, plan
from hdica.run.runner import RunSummary
from hdica.store.files import discard
from hdica.store.paths import work_path
from hdica.study.study import load_study
from tests.sweep import toy

ROOT = Path(__file__).parents[1]
TINY = ROOT / "config" / "studies" / "tiny.yaml"
COMMANDS = sorted(str(c.callback.__name__) for c in app.registered_commands if c.callback)


@pytest.fixture(autouse=True)
def toy_system() -> Iterator[None]:
    toy.register()
    yield
    toy.forget()


def write(folder: Path, **changes: Any) -> Path:
    file = folder / "toy.yaml"
    file.write_text(json.dumps(toy.study(**changes)), encoding="utf-8")
    return file


@pytest.fixture
def study(tmp_path: Path) -> str:
    return str(write(tmp_path))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study that is computed and published."""
    toy.register()
    folder = tmp_path_factory.mktemp("template")
    assert call(["run", str(write(folder)), "--out", str(folder / "toy.zarr"), "--quiet"]) == 0
    return folder


@pytest.fixture
def results(template: Path, tmp_path: Path) -> str:
    """A fresh copy of the computed and published study."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return str(tmp_path / "toy.zarr")


def refused(capsys: pytest.CaptureFixture[str], code: int = 2) -> str:
    """The one sentence on stderr; nothing is on stdout."""
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("hdica: ")
    assert found.err.count("\n") == 1
    return found.err


def test_commands_are_those_of_the_contract() -> None:
    assert {"validate", "plan", "run", "status", "verify", "repair", "query", "report"} <= {
        *COMMANDS
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_shows_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call([command, "--help"]) == 0
    assert f"Example: hdica {command} " in " ".join(capsys.readouterr().out.split())


def test_without_a_command_it_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert call([]) == 2
    assert "Usage: hdica" in capsys.readouterr().err
    assert call(["--help"]) == 0
    assert "Example: hdica run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "No such command 'fly'"),
        (["run"], "Missing argument 'STUDY'"),
        (["run", "x.yaml", "--wokers", "2"], "No such option: --wokers"),
        (["run", "x.yaml", "--workers", "0"], "Invalid value for '--workers'"),
        (["run", "x.yaml", "--shard", "4/4"], "--shard '4/4' is not allowed"),
        (["run", "absent.yaml"], "cannot read absent.yaml (No such file or directory)"),
        (["run", str(TINY), "--out", "x"], "results 'x' is not allowed (the name must end in"),
        (["status", "absent.zarr"], "absent.zarr does not exist"),
        (["verify", "absent.zarr"], "absent.zarr does not exist"),
        (["repair", "absent.zarr"], "absent.zarr does not exist"),
        (["query", "absent.zarr"], "absent.zarr does not exist"),
        (["report", "absent.zarr"], "absent.zarr does not exist"),
    ],
)
def test_wrong_usage_is_one_sentence_and_status_two(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(arguments) == 2
    assert message in refused(capsys)


@pytest.mark.parametrize("command", ["validate", "plan", "run"])
def test_a_wrong_study_is_one_sentence_and_status_two(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, grid={"tau": [-1.0]})
    assert call([command, str(file)]) == 2
    assert "study 'toy': grid.tau: tau = -1.0 is not allowed" in refused(capsys)


def test_validate_and_plan_write_nothing(
    study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["validate", study]) == 0
    assert "toy is valid: 3 methods" in capsys.readouterr().out
    assert call(["plan", study, "--out", str(tmp_path / "toy.zarr")]) == 0
    shown = capsys.readouterr().out
    assert "79 points to compute" in shown
    files = megabytes(2 * plan(load_study(Path(study))).bytes)
    assert f"at most {files} on disk" in " ".join(shown.split())
    assert [p.name for p in tmp_path.iterdir()] == ["toy.yaml"]
    one = write(tmp_path, methods={"line": {}}, analysis={})
    assert call(["validate", str(one)]) == 0
    assert "toy is valid: 1 method, at most" in capsys.readouterr().out


def test_plan_in_json(study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["plan", study, "--out", str(tmp_path / "toy.zarr"), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["points"], made["pending"], made["blocks"]) == (79, 79, 4)
    assert made["seconds"] > 0
    assert made["bytes"] > 79 * 24
    assert made["segments"][0]["n"] == 10


def test_run_status_verify(
    study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["run", study]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "toy: 79 points to compute"
    assert said[1].startswith("toy: 79 of 79 points computed in ")
    assert said[2] == "results/toy.zarr is published: 79 points"
    assert call(["run", study]) == 0
    assert capsys.readouterr().err == "results/toy.zarr is up to date: 79 points\n"
    assert call(["status", "results/toy.zarr"]) == 0
    assert "toy: working store" in capsys.readouterr().out
    assert call(["status", "results/toy.zarr", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == 79
    assert call(["verify", "results/toy.zarr"]) == 0
    assert "is whole: 79 points" in capsys.readouterr().out


def test_shards_and_publish(study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "toy.zarr")
    assert call(["run", study, "--out", out, "--quiet", "--shard", "0/2"]) == 0
    assert call(["verify", out, "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["verdict"] == "incomplete"
    assert verdict["damaged"] == []
    assert call(["run", study, "--out", out, "--quiet", "--shard", "1/2"]) == 0
    assert call(["publish", study, "--out", out]) == 0
    assert call(["verify", out]) == 0


def test_repair_says_whether_anything_was_damaged(
    results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["repair", results]) == 0
    assert capsys.readouterr().out == "nothing is damaged\n"
    next(work_path(results).glob("line-*/*.block")).write_bytes(b"")
    assert call(["repair", results]) == 0
    assert capsys.readouterr().out == "1 repair; hdica run restores the points\n"


@pytest.mark.deep
def test_damage_is_status_three_and_repair_brings_it_back(
    results: str, study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(results) / "line" / "Q" / "c" / "0" / "0" / "0"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert call(["verify", results]) == 3
    found = capsys.readouterr()
    assert f"{file} is damaged" in found.err
    assert "points of line: tau 0.1 to 0.3, Q0 0.25 to 0.5" in found.err
    assert "is damaged" in found.out
    assert call(["repair", results]) == 0
    assert call(["verify", results]) == 1
    assert call(["run", study, "--out", results, "--quiet"]) == 0
    assert call(["verify", results]) == 0


def test_a_missing_chunk_stops_a_query_and_is_computed_again_by_a_run(
    results: str, study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (Path(results) / "line" / "Q" / "c" / "0" / "0" / "0").unlink()
    assert call(["query", results]) == 3
    assert "line/Q/c/0/0/0 is missing" in refused(capsys, 3)
    for block in work_path(results).glob("line-*/*.block"):
        block.write_bytes(block.read_bytes()[:-1])
    assert call(["run", study, "--out", results, "--quiet"]) == 0
    said = capsys.readouterr().err
    assert "is damaged, its length is wrong" in said
    assert "its points are pending" in said
    assert call(["query", results]) == 0


def test_failed_points_are_status_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, grid={"tau": [0.13, 0.17], "Q0": [0.5]})
    out = str(tmp_path / "toy.zarr")
    assert call(["run", str(file), "--out", out]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-2] == "12 points diverged; when and why is in the variable 'reason'"
    assert said[-1].startswith("hdica: 12 points failed; the reasons are in")
    assert call(["query", out, "--method", "walk", "--var", "reason", "--to", "csv"]) == 0
    found = capsys.readouterr()
    assert "ZeroDivisionError: step size 0.13 is unlucky" in found.out
    assert "of these points 12 are diverged, 12 are failed" in found.err


def test_lost_blocks_are_status_one(
    study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object, **__: object) -> RunSummary:
        return RunSummary(pending=5, lost=["block 3 of walk: its workers were killed"])

    monkeypatch.setattr("hdica.run.compute.run", lose)
    assert call(["run", study, "--out", str(tmp_path / "toy.zarr"), "--quiet"]) == 1
    assert "5 points are pending; a rerun computes what is missing (block 3 of walk" in refused(
        capsys
    )


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_query_prints_every_digit(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--sel", "tau=0.3", "--sel", "Q0=0.25", "--sel", "n=30", "--sel", "time=0.5:2"]
    assert call(["query", results, *arguments, "--to", "csv"]) == 0
    found = rows(capsys.readouterr().out)
    assert list(found[0]) == ["tau", "Q0", "n", "seed", "time", "Q"]
    assert len(found) == 12
    tree = xr.open_datatree(results, engine="zarr")
    exact = tree["walk"].Q.sel(tau=0.3, Q0=0.25, n=30, time=[0.5, 2]).values.ravel()
    assert [float(row["Q"]) for row in found] == exact.tolist()
    assert call(["query", results, *arguments, "--to", "json"]) == 0
    assert [row["Q"] for row in json.loads(capsys.readouterr().out)] == exact.tolist()


def test_query_writes_netcdf(results: str, tmp_path: Path) -> None:
    file = tmp_path / "q.nc"
    arguments = ["--sel", "tau=0.3", "--to", "netcdf", "--out", str(file)]
    assert call(["query", results, *arguments]) == 0
    with xr.open_dataset(file, engine="h5netcdf") as found:
        expected = xr.open_datatree(results, engine="zarr")["walk"].Q.sel(tau=0.3)
        assert found.Q.dims == ("Q0", "n", "seed", "time")
        assert found.Q.values.tobytes() == expected.values.tobytes()
        assert found.attrs["study"] == "toy"


@pytest.mark.parametrize("to", ["csv", "json", "netcdf", "parquet", "-"])
def test_an_answer_replaces_a_file_and_nothing_else(
    results: str, to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "precious").write_text("mine")
    file = tmp_path / "out" / "q"
    arguments = ["query", results, "--sel", "tau=0.3", "--to", to, "--out"]
    for plant, said in (
        (lambda: file.symlink_to(tmp_path / "precious"), "is a link, which is not followed"),
        (lambda: file.mkdir(), "is a folder"),
        (lambda: os.mkfifo(file), "is no regular file, and is not replaced"),
    ):
        plant()
        assert call([*arguments, str(file)]) == 2
        assert f"{file} {said}" in refused(capsys)
        discard(file)
    assert call([*arguments, str(tmp_path / "absent" / "q")]) == 2
    assert f"{tmp_path / 'absent'} does not exist" in refused(capsys)
    file.write_text("old")
    assert call([*arguments, str(file)]) == 0
    assert file.read_bytes() != b"old"
    assert list(file.parent.iterdir()) == [file]
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_table_averages_over_seeds(results: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["query", results, "--sel", "tau=0.1", "--sel", "n=10", "--sel", "time=2"]) == 0
    found = capsys.readouterr()
    head, *body = found.out.splitlines()
    assert head.split() == ["tau", "Q0", "n", "time", "Q", "Q_se", "Q_count"]
    assert len(body) == 2
    tree = xr.open_datatree(results, engine="zarr")
    some = tree["walk"].Q.sel(tau=0.1, Q0=0.25, n=10, time=2)
    se = float(some.std(ddof=1)) / 6**0.5
    mean = float(some.mean())
    assert body[0].split() == ["0.1", "0.25", "10", "2", f"{mean:.6g}", f"{se:.6g}", "6"]
    assert found.err == "other methods: line, steady (choose with --method)\n"
    assert call(["query", results, "--sel", "tau=0.1", "--sel", "seed=0:", "--sel", "n=10"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 2 * 6 * 3


def test_query_chooses_the_method_that_has_the_dimensions(
    results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["query", results, "--sel", "fixed_point=0", "--to", "csv"]) == 0
    assert rows(capsys.readouterr().out) == [{"fixed_point": "0", "root": "1.0"}]
    assert call(["query", results, "--method", "line", "--mean", "tau", "--to", "csv"]) == 0
    assert list(rows(capsys.readouterr().out)[0]) == [
        "Q0", "time", "Q", "Q_count", "twice", "twice_count",
    ]  # fmt: skip


def test_query_takes_the_nearest_only_on_request(
    results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["query", results, "--method", "line", "--sel", "tau=0.28", "--to", "csv"]
    assert call(arguments) == 2
    assert "tau=0.28 is not there (values: 0.1, 0.2, 0.3;" in refused(capsys)
    assert call([*arguments, "--nearest"]) == 0
    assert {row["tau"] for row in rows(capsys.readouterr().out)} == {"0.3"}


def test_a_query_reads_a_number_as_a_grid_writes_it(
    results: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        call(["query", results, "--method", "line", "--sel", "tau=1/10,3/10", "--to", "csv"]) == 0
    )
    assert {row["tau"] for row in rows(capsys.readouterr().out)} == {"0.1", "0.3"}
    assert call(["query", results, "--method", "walk", "--sel", "n=20/2", "--to", "csv"]) == 0
    assert {row["n"] for row in rows(capsys.readouterr().out)} == {"10"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sel", "tau=1/0"], "--sel tau=1/0 is not allowed (a number is needed)"),
        (["--sel", "tua=1"], "--sel tua is not a dimension (did you mean 'tau'?"),
        (["--sel", "tau"], "--sel 'tau' is not allowed (dim=value"),
        (["--sel", "tau=1", "--sel", "tau=2"], "--sel tau is given twice"),
        (["--sel", "tau=x"], "--sel tau=x is not allowed (a number is needed)"),
        (["--sel", "tau=5:6"], "no tau lies in 5:6 (values: 0.1, 0.2, 0.3)"),
        (["--sel", "n=10", "--method", "line"], "--sel n is not a dimension"),
        (["--sel", "n=10", "--sel", "fixed_point=0"], "no method has all the dimensions"),
        (["--method", "lien"], "--method 'lien' is not in these results (did you mean 'line'?"),
        (["--var", "R"], "--var 'R' is not there"),
        (["--mean", "sede"], "--mean sede is not a dimension (did you mean 'seed'?"),
        (["--to", "xml"], "--to 'xml' is not allowed (allowed: csv, json, netcdf, parquet, -)"),
    ],
)
def test_a_wrong_query_is_one_sentence(
    results: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["query", results, *arguments]) == 2
    assert message in refused(capsys)


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys, hdica.cli; hdica.cli.call(['--help']);"
        "heavy = {'numpy', 'scipy', 'numba', 'sympy', 'zarr', 'xarray', 'pandas', 'distributed'};"
        "sys.exit(str(sorted(heavy & set(sys.modules))) if heavy & set(sys.modules) else 0)"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


def test_the_shell_completes_commands() -> None:
    done = python(
        "-c",
        "from hdica.cli import main; main()",
        _HDICA_COMPLETE="complete_bash",
        COMP_WORDS="hdica ver",
        COMP_CWORD="1",
    )
    assert done.stdout.split() == ["verify"]


@pytest.mark.deep
def test_a_closed_pipe_is_no_error(results: str) -> None:
    code = f"import hdica.cli, sys; sys.exit(hdica.cli.call(['query', {results!r}, '--to', 'csv']))"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Error" not in process.stderr.read()
        assert process.wait() == 0


@pytest.mark.deep
def test_tiny_runs_from_its_file_to_an_answer(tmp_path: Path) -> None:
    out = str(tmp_path / "tiny.zarr")
    script = ("-W", "error", "-m", "hdica.cli")
    done = python(*script, "run", str(TINY), "--out", out, "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert python(*script, "verify", out).returncode == 0
    sel = ("--sel", "tau=0.05", "--sel", "n=400", "--sel", "Q0=0.8", "--sel", "time=5")
    answer = python(*script, "query", out, *sel, "--to", "csv", "--mean", "seed")
    (row,) = rows(answer.stdout)
    assert 0.6 < float(row["Q"]) < 1
    assert int(row["Q_count"]) == 16
    assert python(*script, "status", str(tmp_path / "absent.zarr")).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["plan", "s.yaml", "--workers", "two"], "'--workers': a whole number is allowed"),
        (["plan", "s.yaml", "--workers", "0"], "'--workers': at least 1 is allowed"),
        (["run", "s.yaml", "--budget", "x"], "'--budget': a number is allowed"),
        (["query", "s.yaml"], "s.yaml is a file and no store (a folder, as"),
        (["explore", "s.yaml", "--no-browser"], "s.yaml is a file and no store (a folder, as"),
        *(
            ([one, "file.zarr"], "file.zarr is a file and no store")
            for one in ("query", "report", "verify", "repair", "status")
        ),
        (["run", "s.yaml", "--out", "file.zarr"], "file.zarr is no folder (move it away"),
        (["validate", "text.yaml"], "methods = 'ode' is not allowed (a mapping from methods"),
        (["validate", "several.yaml"], "methods = ['ode'] is not allowed (a mapping from methods"),
        (["validate", "tab.yaml"], "column 1: a tab is not allowed there (YAML takes spaces)"),
    ],
)
def test_mistakes_of_a_new_user_are_refused_in_plain_words(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    study = {
        "study": "s",
        "system": "OnlineICA",
        "parameters": {"tau": 0.01},
        "times": [0, 1],
        "methods": {"ode": {}},
    }
    Path("s.yaml").write_text(json.dumps(study))
    Path("file.zarr").touch()
    Path("text.yaml").write_text(json.dumps(study | {"study": "text", "methods": "ode"}))
    Path("several.yaml").write_text(json.dumps(study | {"study": "several", "methods": ["ode"]}))
    Path("tab.yaml").write_text("study: tab\ngrid:\n\ttau: [1]\n")
    assert call(arguments) == 2
    printed = capsys.readouterr().err
    assert sentence in printed
    assert printed.count("\n") == 1
    assert not Path("file.work").exists()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.deep
@pytest.mark.parametrize(
    "name",
    [
        "toy.manifest.json", "toy.zarr/zarr.json", "toy.zarr/", "toy.zarr/new", "TOY.zarr/new",
        "Toy.Manifest.JSON", "other.manifest.json", "toy.work/a.csv",
        "toy.work/.lock", "toy.shards/a",
        ".toy.zarr.old", "inner/../toy.zarr/a", "link/zarr.json", "another.zarr",
    ],
)  # fmt: skip
def test_nothing_else_is_written_where_a_store_has_its_files(
    name: str, results: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "link").symlink_to("toy.zarr")
    place, before = f"{tmp_path}/{name}", contents(tmp_path)
    commands: list[list[str]] = [
        ["query", results, "--to", "json", "--out", place],
        ["report", results, "--out", place],
        ["new", f"{tmp_path}/toy.work/a.yaml", "--system", "OnlineICA"],
    ]
    for command in commands:
        assert call(command) == 2, command
        (line,) = capsys.readouterr().err.splitlines()
        assert "is for the files of a store alone: take another name than *.zarr" in line
    assert contents(tmp_path) == before


def test_other_names_beside_a_store_are_taken(results: str, tmp_path: Path) -> None:
    (tmp_path / "mine.work").mkdir()
    for name in ("toy.json", "manifest.json", "mine.work/a.json"):
        assert call(["query", results, "--to", "json", "--out", str(tmp_path / name)]) == 0


def test_an_animation_and_a_manifest_of_data_keep_off_a_store(
    results: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    from hdica.errors import HdicaError
    from hdica.report.animated import Animation

    with pytest.raises(HdicaError, match=r"filename = '.*a.gif' is not allowed \(.*toy.zarr is"):
        Animation.save(None, f"{results}/a.gif")  # type: ignore[arg-type]
    monkeypatch.setenv("HDICA_DATA", str(tmp_path))
    assert call(["data", "write", "toy.zarr"]) == 2
    assert "is for the files of a store alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("other.zarr", "other.zarr/mine.txt is no file of a published store and would be lost"),
        ("toy.zarr/inner.zarr", "toy.zarr is for the files of a store alone"),
    ],
)
def test_a_place_that_is_somebody_elses_is_refused_before_anything_is_computed(
    name: str,
    sentence: str,
    results: str,
    study: str,
    tmp_path: Path,
    monkeypatch: Any,
    capsys: Any,
) -> None:
    (tmp_path / "other.zarr").mkdir()
    (tmp_path / "other.zarr" / "mine.txt").write_text("mine")
    monkeypatch.setenv("TOY_CALLS", str(tmp_path / "calls"))
    assert call(["run", study, "--out", str(tmp_path / name), "--quiet"]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "calls").exists()
    assert not list(tmp_path.rglob("other.work")) + list(tmp_path.rglob("inner.work"))


def test_a_limit_on_memory_is_named(
    results: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hdica.errors import HdicaError
    from hdica.systems.arguments import check_memory

    monkeypatch.setattr("resource.getrlimit", lambda which: (10**8, 10**9))
    assert call(["status", results]) == 2
    assert "ulimit -v: 0.1 GB of memory are too little (0.5 are" in capsys.readouterr().err
    with pytest.raises(HdicaError, match=r"needs 0.2 GB of memory, and ulimit -v allows 0.1: few"):
        check_memory(2e8, "all", "fewer")

    def full(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("resource.getrlimit", lambda which: (10**9, 10**9))
    assert call(["run", str(TINY), "--out", f"{results[:-5]}2.zarr", "--quiet"]) == 2
    assert "a run of tiny is not allowed with ulimit -v at 1 GB" in capsys.readouterr().err
    monkeypatch.setattr("hdica.store.results.status", full)
    assert call(["status", results]) == 2
    assert "out of memory, of which ulimit -v allows 1 GB (select" in capsys.readouterr().err
