"""Questions that cannot be meant: refused in one sentence, and never answered by other rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from hdica.cli import call
from hdica.store.publish import publish
from hdica.study.study import Study

NO_NUMBERS = ("nan", "-NaN", "inf", "-Infinity", "1e999", "-1e5000")


@pytest.fixture
def store(study: Study, out: Path) -> str:
    publish(study, out)
    return str(out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What is said of a command that prints nothing and exits with 2."""
    capsys.readouterr()
    assert call(list(words)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("hdica: ")
    assert said.err.count("\n") == 1
    return said.err


@pytest.mark.deep
def test_a_value_that_is_no_finite_number_selects_nothing(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "answer"
    for word in NO_NUMBERS:
        for text in (word, f"0.1,{word}", f"{word}:0.2", f"0.1:{word}"):
            words = ("query", store, "--sel", f"tau={text}", "--to", "csv", "--out", str(file))
            assert "a finite number is needed" in refused(capsys, *words), text
        assert "a finite number is needed" in refused(capsys, *words, "--nearest"), word
    assert not file.exists()


def test_a_value_that_is_no_number_selects_nothing(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = ("٠.١", "²", "0.1²", "1_0", "0x1", "0.1,", ",0.1", "0.1,,0.2", "0.1:0.2:0.3", "a", "'")
    for text in wrong:
        assert "is not allowed" in refused(capsys, "query", store, "--sel", f"tau={text}"), text


def test_a_dimension_is_averaged_over_once(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    for twice in (("tau", "tau"), ("tau", "seed", "tau")):
        means = [word for dim in twice for word in ("--mean", dim)]
        said = refused(capsys, "query", store, *means)
        assert said == "hdica: --mean tau is given twice (each dimension only once)\n"


def test_a_shard_that_is_none_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, out = tmp_path / "toy.yaml", tmp_path / "toy.zarr"
    study.write_text("{}")
    for shard in ("²/4", "1/²", "٠/4", "4/4", "-1/4", "0/0", "1", "1/4/4", "/", ""):
        said = refused(capsys, "run", str(study), "--out", str(out), f"--shard={shard}")
        assert said == (
            f"hdica: --shard {shard!r} is not allowed (i/m with 0 <= i < m, for example 0/4)\n"
        )
    assert [path.name for path in tmp_path.iterdir()] == ["toy.yaml"]
