"""Study files and stores are data: nothing in them is run, unpickled or followed elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec

from hdica.cli import call
from hdica.errors import MOST_LETTERS, HdicaError, printable
from hdica.report.write import write
from hdica.sweep.files.frames import codec
from hdica.sweep.files.guarded import GuardedStore
from hdica.sweep.files.manifest import read_manifest
from hdica.sweep.files.paths import (
    DamageError,
    inside,
    manifest_path,
    read_regular,
    work_path,
    write_text,
)
from hdica.sweep.files.sealed import sealed, write_sealed
from hdica.sweep.files.store import open_segment
from hdica.sweep.outcome.export import export
from hdica.sweep.outcome.integrity import verify
from hdica.sweep.outcome.publish import publish
from hdica.sweep.outcome.repair import repair
from hdica.sweep.outcome.results import open_results
from hdica.sweep.outcome.status import status
from hdica.sweep.run.plan import place, prepare
from hdica.sweep.run.runner import run
from hdica.sweep.spec.study import Study, load_study, study_from
from tests.report.test_page import Page
from tests.sweep import flips, toy
from tests.sweep.conftest import values

YAML = json.dumps(toy.study())


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    toy.register()
    out = tmp_path_factory.mktemp("hostile") / "results" / "toy.zarr"
    out.parent.mkdir()
    flips.made(out)
    return out.parent


@pytest.fixture
def study(out: Path, template: Path) -> Study:
    shutil.copytree(template, out.parent)
    return study_from(flips.CONTENT)


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder of somebody else, of which nothing may change."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious.txt").write_text("precious")
    (folder / "zarr.json").write_text("{}")
    (folder / "0").write_bytes(b"precious")

    def state() -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    before = state()
    yield folder
    assert state() == before


# Study files.


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
        (YAML.replace('"A toy"', '"' + "a" * 301 + '"'), "at most 300 characters"),
        (YAML.replace('"A toy"', "2020-01-01"), "a timestamp is not allowed (line 1; texts"),
        (YAML.replace('"title"', "7"), "it has the key 7 (keys are words)"),
        (YAML.replace("0.25", "0x" + "f" * 400), "is a number of 1600 bits (at most 256)"),
        (YAML.replace("0.25", "9" * 5000), "is not valid YAML"),
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
    assert [axis.values for axis in load_study(file).axes()] == [(0.25, 0.5)] * 2


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
    with pytest.raises(HdicaError, match=r"1024 MiB; at most 16 MiB"):
        load_study(file)
    assert time.monotonic() - started < 1


def test_sentences_are_short_and_move_no_cursor() -> None:
    assert str(HdicaError("a\nb  c")) == "a b c"
    assert str(HdicaError("a\x1b[31mb\u202ec")) == r"a\x1b[31mb\u202ec"
    long = str(HdicaError("start " + "x" * 10_000 + " end"))
    assert (long[:5], long[-3:], len(long)) == ("start", "end", MOST_LETTERS)
    assert printable("a\tb\n", "\n\t") == "a\tb\n"


# Paths and links.


@pytest.mark.parametrize("name", ["..", "a/../b", "/etc/passwd", "", "a//b", "a\\b", "a\0b", "./a"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DamageError, match="cannot be one of its own"):
        inside(tmp_path, name)


@pytest.mark.parametrize("name", ["../outside/precious.txt", "/etc/passwd", "a/../../outside/0"])
def test_a_manifest_cannot_name_files_outside_its_store(
    study: Study, out: Path, outside: Path, name: str
) -> None:
    manifest = read_manifest(out)
    assert manifest is not None
    digest = hashlib.sha256(b"precious").hexdigest()
    write_sealed(manifest_path(out), {**manifest, "files": {**manifest["files"], name: digest}})
    with pytest.raises(DamageError, match="it is no file of the store"):
        open_results(out)
    assert verify(out).code == 3
    repair(out)
    assert not manifest_path(out).exists()


def link_file(target: Path, outside: Path) -> None:
    target.unlink()
    target.symlink_to(outside / "0")


def link_folder(target: Path, outside: Path) -> None:
    shutil.rmtree(target)
    target.symlink_to(outside, target_is_directory=True)


def _walk(study: Study, out: Path) -> Path:
    return place(study, out)[0].path


LINKS: list[tuple[str, Callable[[Study, Path], Path]]] = [
    ("a working chunk", lambda s, o: _walk(s, o) / "Q/c/0/0"),
    ("working chunks", lambda s, o: _walk(s, o) / "Q/c"),
    ("the chunks of a status", lambda s, o: _walk(s, o) / "status/c"),
    ("a working array", lambda s, o: _walk(s, o) / "cpu_seconds"),
    ("a working key", lambda s, o: _walk(s, o) / "key/c/0/0"),
    ("metadata", lambda s, o: _walk(s, o) / "Q/zarr.json"),
    ("a segment", _walk),
    ("the record of the study", lambda s, o: work_path(o) / "study.json"),
    ("a published chunk", lambda s, o: o / "walk/Q/c/0/0/0/0/0"),
    ("published chunks", lambda s, o: o / "walk/Q/c"),
    ("a published array", lambda s, o: o / "line/twice"),
    ("a published group", lambda s, o: o / "steady"),
    ("the root's metadata", lambda s, o: o / "zarr.json"),
]


@pytest.mark.parametrize(("what", "where"), LINKS, ids=[what for what, _ in LINKS])
def test_links_are_named_and_never_followed(
    study: Study, out: Path, outside: Path, what: str, where: Callable[[Study, Path], Path]
) -> None:
    before = values(out)
    target = where(study, out)
    (link_folder if target.is_dir() else link_file)(target, outside)
    verdict = verify(out)
    assert verdict.code == 3
    assert any(str(target) in text for text in verdict.damaged)
    for read in (lambda: values(out), lambda: flips.computed(study, out), lambda: status(out)):
        try:
            read()
            said = str(target)
        except HdicaError as exc:
            said = str(exc)
        assert str(target) in said
    repair(out)
    assert not target.is_symlink()
    run(study, out, progress=False)
    publish(study, out)
    assert verify(out).code == 0
    assert values(out) == before


@pytest.mark.parametrize("suffix", [".zarr", ".work", ".manifest.json", ".shards"])
def test_a_link_in_place_of_a_store_is_refused(
    study: Study, out: Path, outside: Path, suffix: str
) -> None:
    place_ = out.with_suffix(suffix)
    moved = outside.parent / f"moved{suffix}"
    place_.rename(moved)
    place_.symlink_to(moved)
    commands: list[Callable[[], object]] = [
        lambda: verify(out), lambda: repair(out), lambda: publish(study, out),
    ]  # fmt: skip
    if suffix != ".shards":
        commands.append(lambda: run(study, out, progress=False))
    for command in commands[: 2 if suffix == ".shards" else 4]:
        with pytest.raises(HdicaError, match="is a link, which is not followed"):
            command()
    assert place_.is_symlink()


def test_nothing_is_written_through_links_left_where_temporary_files_go(
    study: Study, out: Path, outside: Path
) -> None:
    pid = os.getpid()
    for name in (
        f".{out.name}.partial", f".{out.name}.old", f".{out.stem}.manifest.json.{pid}.partial",
        f"{out.stem}.work/.study.json.{pid}.partial",
        f"{out.stem}.work/.{_walk(study, out).name}.{pid}.partial",
    ):  # fmt: skip
        (out.parent / name).symlink_to(outside)
    before = values(out)
    shutil.rmtree(_walk(study, out))
    run(study, out, progress=False)
    publish(study, out)
    assert values(out) == before
    write_text(out.parent / "note.txt", "x")


def test_links_to_locks_are_refused(study: Study, out: Path, outside: Path) -> None:
    lock = work_path(out) / ".lock"
    lock.unlink(missing_ok=True)
    lock.symlink_to(outside / "precious.txt")
    with pytest.raises(HdicaError, match="is a link"):
        publish(study, out)


def test_pipes_and_sockets_in_a_store_are_not_waited_for(
    study: Study, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = out / "walk/Q/c/0/0/0/0/0"
    chunk.unlink()
    os.mkfifo(chunk)
    with pytest.raises(DamageError, match="is no regular file"):
        values(out)
    record = work_path(out) / "study.json"
    record.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(record.parent)  # its whole path may be too long for a socket
        server.bind("study.json")
        with pytest.raises(DamageError, match="is no regular file"):
            status(out)
    assert verify(out).code == 3


def test_what_is_no_published_store_is_never_replaced(study: Study, out: Path) -> None:
    run(study, out, progress=False)
    (out / "notes.txt").write_text("of somebody")
    with pytest.raises(HdicaError, match=r"notes.txt is no file of a published store"):
        publish(study, out)
    shutil.rmtree(out)
    zarr.open_group(out, mode="w", zarr_format=3).create_array("mine", shape=3, dtype="f8")
    with pytest.raises(HdicaError, match="was not written by hdica"):
        publish(study, out)
    shutil.rmtree(out)
    out.write_text("a file")
    with pytest.raises(HdicaError, match="is no folder"):
        publish(study, out)
    assert out.read_text() == "a file"


# Stores that lie.


def relabel(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change metadata as an author would: with a digest that fits."""
    document = json.loads(file.read_text())
    change(document)
    file.write_text(sealed(document))


def published_lie(out: Path, change: Callable[[dict[str, Any]], None]) -> None:
    relabel(out / "zarr.json", change)
    manifest_path(out).unlink()


def nodes(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["consolidated_metadata"]["metadata"]
    return found


class Pickled:
    """What would run if anything were unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("pwned",)


def test_formats_whose_filters_unpickle_are_refused(
    study: Study, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    import pickle

    array = {
        "zarr_format": 2, "node_type": "array", "shape": [1], "chunks": [1], "dtype": "|O",
        "order": "C",
        "compressor": None, "filters": [{"id": "pickle", "protocol": 5}], "fill_value": None,
        "attributes": {"_ARRAY_DIMENSIONS": ["tau"]},
    }  # fmt: skip
    published_lie(out, lambda document: nodes(document).update({"line/evil": array}))
    (out / "line/evil").mkdir()
    payload = np.array([Pickled()], dtype=object)
    (out / "line/evil/0").write_bytes(pickle.dumps([*payload, "|O", (1,)]))
    with pytest.raises(DamageError, match="such as hdica never writes"):
        open_results(out)
    work = _walk(study, out)
    shutil.rmtree(work / "reason")
    (work / "reason").mkdir()
    (work / "reason/.zarray").write_text(json.dumps(array))
    with pytest.raises(DamageError):
        open_segment(work).array("reason")
    assert not Path("pwned").exists()


BIG = 2**40
LIES: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (lambda d: nodes(d)["line/Q"].update(shape=[BIG, 2, 3]), "is missing"),
    (lambda d: nodes(d)["line/Q"]["chunk_grid"]["configuration"].update(chunk_shape=[BIG, 2, 3]),
     "asks for chunks of more than"),
    (lambda d: nodes(d)["line/Q"]["chunk_grid"]["configuration"].update(chunk_shape=[0, 2, 3]),
     "such as hdica never writes"),
    (lambda d: nodes(d)["line/Q"].update(shape=[10**400, 2, 3]), "is missing"),
    (lambda d: nodes(d)["line/Q"].update(shape=[True, 2, 3]), "such as hdica never writes"),
    (lambda d: nodes(d)["line/Q"].update(shape=["3", 2, 3]), "such as hdica never writes"),
    (lambda d: nodes(d)["line/Q"].update(codecs=[]), "never writes"),
    (lambda d: nodes(d)["line/Q"]["codecs"].insert(1, {"name": "numcodecs.bz2"}), "never writes"),
    (lambda d: nodes(d)["line/Q"].update(data_type="numpy.object"), "never writes"),
    (lambda d: nodes(d)["line/Q"].update(storage_transformers=[{"name": "x"}]), "never writes"),
    (lambda d: nodes(d)["line/Q"]["chunk_key_encoding"].update(name="v2"), "never writes"),
    (lambda d: nodes(d).update({"../outside/x": nodes(d)["line/Q"]}), "never writes"),
    (lambda d: nodes(d).update({"line/a b": nodes(d)["line/Q"]}), "never writes"),
    (lambda d: nodes(d)["line/tau"].update(fill_value="not a number"), "cannot be read"),
    (lambda d: d.update(zarr_format=2), "is not of Zarr's format 3"),
    (lambda d: d.update(consolidated_metadata=[1]), "metadata cannot be read"),
    (lambda d: d.pop("consolidated_metadata"), "no consolidated metadata"),
    (lambda d: d["attributes"].pop("study_yaml"), "it has no study"),
    (lambda d: d["attributes"].update(study_yaml="[" * 100_000), "it has no study"),
    (lambda d: d["attributes"].update(study_yaml='{"study": 1, "methods": []}'), "it has no study"),
    (lambda d: d["attributes"].update(
        study_yaml='{"study": "a", "methods": {}, "analysis": {"flow": {"method": [1]}}}'
    ), "analysis: flow.method = [1] is not allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("lie", "message"), LIES)
def test_a_published_store_that_lies_is_refused_before_it_takes_memory(
    study: Study, out: Path, lie: Callable[[dict[str, Any]], None], message: str
) -> None:
    published_lie(out, lie)
    tracemalloc.start()
    started = time.monotonic()
    try:
        with pytest.raises(HdicaError) as caught:
            values(out)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert message in str(caught.value)
    assert peak < 50e6
    assert time.monotonic() - started < 20
    assert verify(out).code in (1, 3)


def chunk_with(values_: np.ndarray, text: bool = False) -> bytes:
    """The file that these values would be as one chunk."""
    memory: dict[str, Any] = {}
    array = zarr.create_array(
        zarr.storage.MemoryStore(memory), shape=values_.shape, chunks=values_.shape,
        dtype=str if text else values_.dtype, compressors=codec(), fill_value="" if text else 0,
        config={"write_empty_chunks": True},
    )  # fmt: skip
    array[...] = values_
    (raw,) = [value.to_bytes() for key, value in memory.items() if key.startswith("c")]
    return bytes(raw)


@pytest.mark.parametrize("where", ["published", "working"])
def test_a_chunk_that_decodes_to_a_hundred_megabytes_is_refused_before_it_does(
    study: Study, out: Path, where: str
) -> None:
    bomb = chunk_with(np.zeros(5_000_000))
    assert len(bomb) < 10_000
    if where == "published":
        (out / "line/Q/c/0/0/0").write_bytes(bomb)
        manifest_path(out).unlink()
    else:
        (_walk(study, out) / "Q/c/0/0").write_bytes(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(DamageError, match="it would decode to 40000000 bytes and not to"):
            values(out) if where == "published" else flips.computed(study, out)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_a_chunk_of_texts_cannot_claim_more_texts_than_there_are(study: Study, out: Path) -> None:
    work = _walk(study, out)
    working = open_segment(work)
    number = next(b for b in range(working.blocks) if working.chunk("reason", b).exists())
    file = working.chunk("reason", number)
    array = zarr.create_array(
        zarr.storage.MemoryStore(found := {}), shape=8, chunks=8, dtype="u1",
        serializer=BytesCodec(), compressors=codec(),
    )  # fmt: skip
    array[:] = np.frombuffer(b"\xff\xff\xff\x7f\0\0\0\0", "u1")
    file.write_bytes(found["c/0"].to_bytes())
    with pytest.raises(DamageError, match="it has 2147483647 texts and not 5"):
        open_segment(work).read("reason", working.span(number))


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.update(block=0),
        lambda a: a.update(block=2**62),
        lambda a: a.update(block=1),
        lambda a: a.update(outputs=["../../x"]),
        lambda a: a.update(outputs=["a/b"]),
        lambda a: a.update(times="now"),
        lambda a: a.update(n=-1),
        lambda a: a.pop("kernel"),
        lambda a: a.update(noise="loud"),
    ],
)
def test_a_segment_that_lies_about_itself_is_refused(
    study: Study, out: Path, change: Callable[[dict[str, Any]], Any]
) -> None:
    path = _walk(study, out)
    relabel(path / "zarr.json", lambda document: change(document["attributes"]))
    with pytest.raises(DamageError, match="metadata cannot be read"):
        open_segment(path).array("status")
    assert verify(out).code == 3
    repair(out)
    assert verify(out).code == 1


def test_a_segment_of_2_to_the_40_points_is_refused_before_it_takes_memory(
    study: Study, out: Path
) -> None:
    path = _walk(study, out)
    for name in open_segment(path).names:
        relabel(path / name / "zarr.json", lambda d: d.update(shape=[BIG, *d["shape"][1:]]))
    tracemalloc.start()
    try:
        with pytest.raises(DamageError, match=r"key/c/1/0 is missing"):
            open_segment(path).keys()
        with pytest.raises(DamageError, match=r"key/c/1/0 is missing"):
            status(out)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_deep_metadata_are_refused(study: Study, out: Path) -> None:
    file = _walk(study, out) / "Q/zarr.json"
    file.write_text("[" * 1_000_000)
    with pytest.raises(DamageError, match="not valid JSON"):
        open_segment(file.parents[1]).array("Q")


def test_parameters_in_a_store_are_validated_and_not_evaluated(
    study: Study, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    larger = study_from(
        {**flips.CONTENT, "grid": {"tau": [0.1, 0.15, 0.17, 0.2], "Q0": [0.25, 0.5]}}
    )
    path = prepare(larger, out)[0].path
    working = open_segment(path)
    evil = json.dumps({"tau": 0.1, "formula": "__import__('os').mkdir('pwned')", "__class__": "x"})
    texts = np.array([evil] * working.size, dtype=object)
    working.array("parameters")[:] = texts
    summary = run(larger, out, progress=False)
    assert summary.counts["failed"] > 0
    assert not Path("pwned").exists()


def test_a_guarded_store_writes_nothing_through_links(tmp_path: Path, outside: Path) -> None:
    root = tmp_path / "store"
    group = zarr.open_group(root, mode="w", zarr_format=3)
    group.create_array("a", shape=3, chunks=3, dtype="f8", compressors=codec())
    shutil.rmtree(root / "a" / "c", ignore_errors=True)
    (root / "a" / "c").symlink_to(outside)
    array = zarr.open_array(GuardedStore(root, nested=False), path="a", mode="r+", zarr_format=3)
    with pytest.raises(DamageError, match="is a link"):
        array[:] = 1.0


# What is shown.


HOSTILE = (
    '<img src=x onerror="alert(1)"></script><script>alert(1)</script>[bold]\x1b]0;owned\x07\u202e'
)


def test_reports_and_tables_show_hostile_texts_as_texts(
    study: Study, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def lie(document: dict[str, Any]) -> None:
        about = document["attributes"]
        content = {**json.loads(about["study_yaml"]), "title": HOSTILE, "description": HOSTILE}
        content["analysis"] = {"compare": {"curves": ["walk", "line"]}}
        about |= {
            "title": HOSTILE, "description": HOSTILE, "study": HOSTILE, "system": HOSTILE,
            "references": HOSTILE, "license": HOSTILE, "processors": HOSTILE, "git_commit": HOSTILE,
            "study_yaml": json.dumps(content),
            "package_versions": json.dumps({HOSTILE: HOSTILE}),
        }  # fmt: skip
        for node in nodes(document).values():
            node["attributes"] |= {"long_name": HOSTILE, "equations": HOSTILE, "kernel": HOSTILE}

    published_lie(out, lie)
    shutil.rmtree(work_path(out))
    folder = out.parent / "report"
    page = Page(write(out, folder)[0].read_text(encoding="utf-8"))
    tags = [tag for tag, _ in page.tags]
    assert "img" not in tags
    assert tags.count("script") == 4
    assert "alert(1)" in "".join(page.text)
    assert {p.name for p in folder.iterdir()} == {"aggregate.nc", "figures", "report.html"}
    assert call(["status", str(out)]) == 0
    said = capsys.readouterr().out
    assert not {"\x1b", "\u202e"} & {*said}
    assert "[bold]" in said


def test_tables_on_a_terminal_hold_no_escape(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import xarray as xr

    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    word = "a\x1b]0;owned\x07[red]b"
    data = xr.Dataset({"Q": ("source", [1.0])}, {"source": [word]})
    for to in ("-", "csv", "json"):
        export(data, to, None, ["source"], word)
        said = capsys.readouterr().out
        assert "\x1b]" not in said
        assert "[red]b" in said


def test_reading_never_leaves_files(study: Study, out: Path) -> None:
    before = sorted(str(p) for p in out.parent.rglob("*"))
    values(out)
    status(out)
    verify(out)
    assert sorted(str(p) for p in out.parent.rglob("*")) == before


def test_read_regular_has_a_largest_size(tmp_path: Path) -> None:
    file = tmp_path / "big"
    file.write_bytes(b"x" * 11)
    assert read_regular(file, 11) == b"x" * 11
    with pytest.raises(DamageError, match="at most 10 are read"):
        read_regular(file, 10)
    assert read_regular(tmp_path / "absent") is None
