"""Stores that lie about themselves: refused before they take memory or run anything."""

from __future__ import annotations

import json
import os
import shutil
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.codecs import BytesCodec

from hdica.errors import HdicaError
from hdica.sweep.files import planned
from hdica.sweep.files.frames import codec
from hdica.sweep.files.guarded import GuardedStore
from hdica.sweep.files.manifest import bind
from hdica.sweep.files.paths import (
    DamageError,
    manifest_path,
)
from hdica.sweep.files.store import open_segment
from hdica.sweep.outcome.integrity import verify
from hdica.sweep.outcome.repair import repair
from hdica.sweep.outcome.results import open_results
from hdica.sweep.outcome.status import status
from hdica.sweep.run.plan import prepare
from hdica.sweep.run.runner import run
from hdica.sweep.study.study import Study, study_from
from tests.sweep import flips
from tests.sweep.conftest import values
from tests.sweep.hostile.lies import nodes, published_lie, relabel, walk_of


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
    work = walk_of(study, out)
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
        bind(out)
        manifest_path(out).unlink()
    else:
        (walk_of(study, out) / "Q/c/0/0").write_bytes(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(DamageError, match="it would decode to 40000000 bytes and not to"):
            values(out) if where == "published" else flips.computed(study, out)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_a_chunk_of_texts_cannot_claim_more_texts_than_there_are(study: Study, out: Path) -> None:
    work = walk_of(study, out)
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
    path = walk_of(study, out)
    relabel(path / "zarr.json", lambda document: change(document["attributes"]))
    with pytest.raises(DamageError, match="metadata cannot be read"):
        open_segment(path).array("status")
    assert verify(out).code == 3
    repair(out)
    assert verify(out).code == 0


def test_a_segment_of_2_to_the_40_points_is_refused_before_it_takes_memory(
    study: Study, out: Path
) -> None:
    path = walk_of(study, out)
    for name in open_segment(path).names:
        relabel(path / name / "zarr.json", lambda d: d.update(shape=[BIG, *d["shape"][1:]]))
    tracemalloc.start()
    try:
        with pytest.raises(DamageError, match=r"does not name the chunks of"):
            open_segment(path).keys()
        with pytest.raises(DamageError, match=r"does not name the chunks of"):
            status(out)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_deep_metadata_are_refused(study: Study, out: Path) -> None:
    file = walk_of(study, out) / "Q/zarr.json"
    file.write_text("[" * 1_000_000)
    with pytest.raises(DamageError, match="not valid JSON"):
        open_segment(file.parents[1]).array("Q")


def digested_anew(working: Any) -> None:
    """Note the digests of what the planner's arrays hold now."""
    digests = {}
    for name in planned.ARRAYS:
        chunks = range(-(-working.size // working.array(name).chunks[0]))
        spans = [planned._span(working, number) for number in chunks]
        digests[name] = [planned._digest(working.raw(name, span)) for span in spans]
    planned._announce(working, "key", working.array("key"), {"planned": digests})


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
    with pytest.raises(DamageError, match="not the chunk that was planned there"):
        run(larger, out, progress=False)
    # With the digests made anew, as somebody can who may write everything.
    digested_anew(open_segment(path))
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
