"""Stores that lie about themselves: refused before they take memory or run anything."""

from __future__ import annotations

import json
import os
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
from hdica.run.runner import run
from hdica.store.files import DamageError
from hdica.store.paths import manifest_path
from hdica.store.publish import publish
from hdica.store.published import bind, codec
from hdica.store.results import open_results
from hdica.store.sealed import as_array, keys_in, read_block, texts_in, write_block
from hdica.store.verify import verify
from hdica.store.working import described
from hdica.study.study import Study
from tests.sweep.conftest import values
from tests.sweep.hostile.lies import nodes, published_lie, walk_of


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
    assert not Path("pwned").exists()


BIG = 2**40
LIES: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (lambda d: nodes(d)["line/Q"].update(shape=[BIG, 2, 3]), "metadata cannot be read"),
    (lambda d: nodes(d)["line/Q"]["chunk_grid"]["configuration"].update(chunk_shape=[BIG, 2, 3]),
     "asks for chunks of more than"),
    (lambda d: nodes(d)["line/Q"]["chunk_grid"]["configuration"].update(chunk_shape=[0, 2, 3]),
     "such as hdica never writes"),
    (lambda d: nodes(d)["line/Q"].update(shape=[10**400, 2, 3]), "metadata cannot be read"),
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


def test_a_chunk_that_decodes_to_a_hundred_megabytes_is_refused_before_it_does(
    study: Study, out: Path
) -> None:
    bomb = chunk_with(np.zeros(5_000_000))
    assert len(bomb) < 10_000
    (out / "line/Q/c/0/0/0").write_bytes(bomb)
    bind(out)
    manifest_path(out).unlink()
    tracemalloc.start()
    try:
        with pytest.raises(DamageError, match="it would decode to 40000000 bytes and not to"):
            values(out)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_a_chunk_of_texts_cannot_claim_more_texts_than_there_are(study: Study, out: Path) -> None:
    file = next((out / "walk/reason/c").rglob("0"))
    while file.is_dir():
        file = file / "0"
    array = zarr.create_array(
        zarr.storage.MemoryStore(found := {}), shape=8, chunks=8, dtype="u1",
        serializer=BytesCodec(), compressors=codec(),
    )  # fmt: skip
    array[:] = np.frombuffer(b"\xff\xff\xff\x7f\0\0\0\0", "u1")
    file.write_bytes(found["c/0"].to_bytes())
    bind(out)
    manifest_path(out).unlink()
    with pytest.raises(DamageError, match=r"it has 2147483647 texts and not \d+"):
        open_results(out)["walk"].reason.load()


def test_parameters_in_a_block_are_shown_and_not_evaluated(
    study: Study, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = sorted(walk_of(study, out).iterdir())[0]
    block = read_block(file)
    evil = json.dumps({"tau": 0.1, "formula": "__import__('os').mkdir('pwned')", "__class__": "x"})
    texts = [evil] * len(texts_in(block.arrays["parameters"]))
    arrays = {k: v for k, v in block.arrays.items() if k != "key"} | {"parameters": as_array(texts)}
    write_block(file.parent, block.about, keys_in(block.arrays), arrays)
    assert "mkdir" in described(file)
    run(study, out, progress=False)
    publish(study, out)
    assert verify(out).code == 0
    assert not Path("pwned").exists()


def test_deep_metadata_are_refused(study: Study, out: Path) -> None:
    (out / "zarr.json").write_text("[" * 1_000_000)
    with pytest.raises(DamageError, match="not valid JSON"):
        open_results(out)
