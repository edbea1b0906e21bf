"""Answers of queries as Parquet: rows and types of the table, and what the file says of them."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hdica.cli import call
from hdica.errors import HdicaError
from hdica.store import query as export
from hdica.store.query import BINARY, COLUMNS, check_export
from hdica.store.results import open_results
from hdica.study.study import study_from
from tests.sweep import toy
from tests.sweep.conftest import made


@pytest.fixture
def results(out: Path) -> Path:
    made(study_from(toy.study()), out)
    return out


def asked(results: Path, *arguments: str) -> Path:
    file = results.parent / "q.parquet"
    assert call(["query", str(results), *arguments, "--to", "parquet", "--out", str(file)]) == 0
    return file


def test_every_point_seed_and_time_is_a_row_with_its_types(results: Path) -> None:
    found = pd.read_parquet(asked(results, "--method", "walk"))
    expected = open_results(results)["walk"].to_dataset()[["Q"]].drop_vars("step").to_dataframe()
    assert list(found) == ["tau", "Q0", "n", "seed", "time", "Q"]
    kinds = {"tau": "f8", "Q0": "f8", "n": "i8", "seed": "i8", "time": "f8", "Q": "f8"}
    assert {name: found[name].dtype.str[1:] for name in found} == kinds
    order = ["tau", "Q0", "n", "seed", "time"]
    back = found.set_index(order).Q.reindex(expected.index.reorder_levels(order))
    wanted = expected.reorder_levels(order).Q
    assert back.to_numpy().tobytes() == wanted.to_numpy().tobytes()


def test_codes_and_texts_keep_their_types(results: Path) -> None:
    found = pd.read_parquet(asked(results, "--method", "walk", "--var", "status"))
    assert found["status"].dtype == np.uint8
    assert len(found) == 72


def test_a_database_reads_it_without_any_library_of_ours(results: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    file = asked(results, "--method", "walk")
    mean = "select tau, n, avg(Q) from read_parquet(?) group by tau, n order by tau, n"
    found = duckdb.execute(mean, [str(file)]).fetchall()
    expected = open_results(results)["walk"].Q.mean(["Q0", "seed", "time"])
    assert [row[:2] for row in found] == [(t, n) for t in (0.1, 0.2, 0.3) for n in (10, 30)]
    assert [row[2] for row in found] == pytest.approx(expected.sortby("tau").to_numpy().ravel())


def test_the_file_says_what_it_is(results: Path) -> None:
    import pyarrow.parquet as pq

    schema = pq.read_schema(asked(results, "--method", "walk"))
    said = {key.decode(): text.decode() for key, text in schema.metadata.items()}
    attrs = open_results(results).attrs
    for name in ("study", "study_hash", "hdica_version", "bibtex"):
        assert said[name] == attrs[name]
    columns = json.loads(said[COLUMNS])
    assert columns["time"]["units"] == "samples per dimension (k/n)"
    assert schema.field("time").metadata[b"units"] == b"samples per dimension (k/n)"
    assert list(columns) == schema.names


def test_the_same_answer_is_the_same_file(results: Path) -> None:
    first = asked(results, "--method", "line").read_bytes()
    assert asked(results, "--method", "line").read_bytes() == first


@pytest.mark.deep
@pytest.mark.parametrize("to", BINARY)
def test_a_terminal_gets_a_sentence_and_a_pipe_the_bytes(results: Path, to: str) -> None:
    code = f"""
import sys
from tests.sweep import toy
toy.register()
from hdica.cli import call
sys.exit(call(["query", {str(results)!r}, "--method", "line", "--to", {to!r}]))
"""
    ours, theirs = pty.openpty()
    done = subprocess.run([sys.executable, "-c", code], stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    os.close(ours)
    sentence = f"--to {to} is not for a terminal (give --out FILE{BINARY[to]} or redirect)"
    assert (done.returncode, done.stderr.decode()) == (2, f"hdica: {sentence}\n")
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert piped[:4] == {"netcdf": b"\x89HDF", "parquet": b"PAR1"}[to]
    if to == "parquet":
        assert len(pd.read_parquet(io.BytesIO(piped))) == 18


def test_a_missing_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    wanted = r"--to parquet needs the library pyarrow \(pip install 'hdica\[tables\]'\)"
    with pytest.raises(HdicaError, match=wanted):
        check_export("parquet", tmp_path / "q.parquet")
