"""A study file is data: nothing in it is run, and what is wrong with it is one sentence."""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from pathlib import Path

import pytest

from hdica.errors import MOST_LETTERS, HdicaError, printable
from hdica.inputs import plain_yaml
from hdica.study.study import load_study
from tests.sweep import toy

YAML = json.dumps(toy.study())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("study: !!python/object/apply:os.system ['touch a']",
        "a python/object/apply:os.system is"),
        ("study: !!python/name:os.system x", "a python/name:os.system is not"),
        ("study: !include /etc/passwd", "a !include is not allowed"),
        (YAML.replace('"A toy"', "!!binary aGVsbG8="), "a binary is not allowed"),
        (YAML.replace('"A toy"', "!!int ''"), "is not valid YAML"),
        (YAML.replace('"A toy"', '"a\\x1b]0;title\\x07b"'), "title holds the character U+001B"),
        (YAML.replace('"A toy"', '"a\\u202eb"'), "the character U+202E, which is not allowed"),
        (YAML.replace('"A toy"', '"a\\uD800b"'), "title holds the character U+D800"),
        (YAML.replace('"A toy"', '"a\\nb"'), "title: it has a line break"),
        (YAML.replace('"A toy"', '"' + "a" * 301 + '"'), "at most 300 letters"),
        (YAML.replace('"A toy"', "2020-01-01"), "a timestamp is not allowed (line 1; texts"),
        (YAML.replace('"title"', "7"), "it has the key 7 (keys are words)"),
        (YAML.replace("0.25", "0x" + "f" * 400), "is a number of 1600 bits (at most 256)"),
        (YAML.replace("0.25", "9" * 5000), "a number of 5000 digits is not allowed"),
        (YAML.replace("0.25", ".nan"), "grid.Q0 = nan is not allowed"),
        (YAML.replace("0.25", "1e400"), "grid.Q0 = inf is not allowed"),
        (YAML.replace('"Q0"', '"start./../../x"'), "is not a known parameter"),
        (YAML.replace('"Q0"', '"prior.' + "a" * 300 + '"'), "is not a known parameter"),
        (YAML.replace('"study": "toy"', '"study": "../toy"'), "study = '../toy' is not allowed"),
        ("a: &a [*a]", "holds itself (by an alias)"),
        ("a: \x00", "is not valid YAML"),
        ("---\na: 1\n---\nb: 1", "is not valid YAML"),
    ],
)  # fmt: skip
def test_a_hostile_study_file_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "toy.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(HdicaError) as caught:
        load_study(file)
    assert message in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= MOST_LETTERS
    assert os.listdir(tmp_path) == ["toy.yaml"]


def test_aliases_that_stand_for_little_are_allowed(tmp_path: Path) -> None:
    file = tmp_path / "toy.yaml"
    file.write_text(
        "study: toy\ntitle: A toy\nsystem: Toy\ntimes: [0, 1]\n"
        "grid: {tau: &some [0.25, 0.5], Q0: *some}\n"
        "methods: {walk: &how {n: 10, seeds: 2}, line: }\n"
    )
    assert [axis.values for axis in load_study(file).space.axes] == [(0.25, 0.5)] * 2


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "toy.yaml"
    os.mkfifo(file)
    with pytest.raises(HdicaError, match="is no regular file"):
        load_study(file)
    with pytest.raises(HdicaError, match="is no regular file"):
        load_study("/dev/zero")
    for encoding in ("utf-16", "latin-1"):
        file.unlink()
        file.write_bytes((YAML + "# é").encode(encoding))
        with pytest.raises(HdicaError, match="is no UTF-8"):
            load_study(file)
    file.write_bytes(YAML.encode("utf-8-sig"))
    assert load_study(file).study == "toy"


def test_a_huge_file_is_refused_by_its_size(tmp_path: Path) -> None:
    file = tmp_path / "toy.yaml"
    with file.open("wb") as stream:
        stream.truncate(2**30)
    started = time.monotonic()
    with pytest.raises(HdicaError, match=r"1024.0 MiB; at most 2 MiB"):
        load_study(file)
    assert time.monotonic() - started < 1


def test_characters_that_json_escapes_as_two_are_one(tmp_path: Path) -> None:
    """As every writer of JSON does that keeps to ASCII."""
    title = "\U0001d70f, \U0001f9ea and é"
    file = tmp_path / "toy.yaml"
    for text in (json.dumps(toy.study(title=title)), json.dumps(toy.study(title=title), indent=1)):
        assert "\\ud835\\udf0f" in text
        file.write_text(text)
        assert load_study(file).title == title
    file.write_text(YAML.replace('"A toy"', '"\\ud835"'))
    with pytest.raises(HdicaError, match=r"title holds the character U\+D835"):
        load_study(file)


@pytest.mark.deep
@pytest.mark.parametrize("form", ["flow", "block", "nested"])
def test_more_values_than_are_read_are_refused_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(plain_yaml, "MOST_NODES", 2000)
    many = {
        "flow": "a: [" + "0.1, " * 400_000 + "0.1]",
        "block": "a:\n" + "- 0.1\n" * 300_000,
        "nested": "a:\n" + "- {b: [1, 2, 3]}\n" * 100_000,
    }
    file = tmp_path / "toy.yaml"
    file.write_text(many[form])
    tracemalloc.start()
    try:
        with pytest.raises(HdicaError, match="it has more than 50000 values \\(at most"):
            load_study(file)
        # All of them would take a gigabyte, the text itself has 2 MiB.
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    finally:
        tracemalloc.stop()


def test_a_long_list_is_refused_by_its_size(tmp_path: Path) -> None:
    file = tmp_path / "toy.yaml"
    file.write_text("grid: {tau: [" + "0.125, " * 1_500_000 + "0.1]}")
    with pytest.raises(HdicaError, match=r"10.0 MiB; at most 2 MiB"):
        load_study(file)


def test_sentences_are_short_and_move_no_cursor() -> None:
    assert str(HdicaError("a\nb  c")) == "a b c"
    assert str(HdicaError("a\x1b[31mb\u202ec")) == r"a\x1b[31mb\u202ec"
    long = str(HdicaError("start " + "x" * 10_000 + " end"))
    assert (long[:5], long[-3:], len(long)) == ("start", "end", MOST_LETTERS)
    assert printable("a\tb\n", "\n\t") == "a\tb\n"
