"""Arrays on disk: what is allowed is read as it is, what is not is refused before it is decoded."""

import gzip
import io
import json
import sys
import zipfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numcodecs
import numcodecs.errors
import numcodecs.registry
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

from hdica.errors import HdicaError
from hdica.inputs.arrays import Refused, check_archive, open_array
from hdica.inputs.filters import load_filters

ROWS = np.random.default_rng(0).normal(size=(100, 30))
PLAIN = {
    "zarr_format": 3, "node_type": "array", "shape": [40, 10], "data_type": "float64",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [40, 10]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0.0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "attributes": {},
}  # fmt: skip
OLD = {
    "zarr_format": 2, "shape": [40, 10], "chunks": [40, 10], "dtype": "<f8", "fill_value": 0,
    "order": "C", "filters": None, "compressor": None,
}  # fmt: skip
THREE = [None, BloscCodec(), GzipCodec(), ZstdCodec(level=3, checksum=True)]
TWO = [None, *(numcodecs.get_codec({"id": k}) for k in ("blosc", "zlib", "gzip", "zstd", "lz4"))]


def chunks(*shape):
    return {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(shape)}}}


def sharded(
    *codecs, index=({"name": "bytes", "configuration": {"endian": "little"}},), size=(20, 10)
):
    inner = {"chunk_shape": list(size), "codecs": list(codecs), "index_codecs": list(index)}
    return [{"name": "sharding_indexed", "configuration": {"index_location": "end"} | inner}]


@pytest.mark.parametrize(
    "how",
    [{"compressors": c} for c in THREE]
    + [{"compressors": c, "shards": (40, 30)} for c in THREE]
    + [{"compressors": c, "zarr_format": 2} for c in TWO]
    + [{"zarr_format": 2, "order": "F", "filters": [numcodecs.Shuffle(8)]}]
    + [{"chunk_key_encoding": {"name": "v2", "separator": "."}}, {"dtype": ">f4"}],
)
def test_what_is_allowed_is_read_as_it_is(tmp_path: Path, how: dict) -> None:
    rows = ROWS.astype(how.get("dtype", "f8"))
    how = {key: value for key, value in how.items() if key != "dtype"}
    zarr.create_array(str(tmp_path / "y.zarr"), data=rows, chunks=(10, 15), **how)
    found = open_array(tmp_path / "y.zarr")
    assert np.array_equal(found[...], rows)
    assert np.array_equal(found.oindex[np.array([3, 1]), :], rows[[3, 1]])


BYTES, PICKLE = {"name": "bytes"}, {"name": "numcodecs.pickle"}
NAMED = {
    "a pickle as objects": (OLD, {"dtype": "|O", "filters": [{"id": "pickle"}]}, "type '|O'"),
    "a pickle that filters numbers": (OLD, {"filters": [{"id": "pickle"}]}, "filters"),
    "a pickle that compresses": (OLD, {"compressor": {"id": "pickle"}}, "compressor 'pickle'"),
    "another package's codec": (OLD, {"compressor": {"id": "imagecodecs_jpeg"}}, "compressor"),
    "fields of objects": (OLD, {"dtype": [["a", "|O"]]}, "type"),
    "a codec of numcodecs": (PLAIN, {"codecs": [BYTES, PICKLE]}, "codecs"),
    "texts": (PLAIN, {"data_type": "string", "codecs": [{"name": "vlen-utf8"}]}, "type"),
    "a structure": (PLAIN, {"data_type": {"name": "struct"}}, "type"),
    "a pickle in a shard": (PLAIN, {"codecs": sharded(BYTES, PICKLE)}, "codecs"),
    "a shard in a shard": (PLAIN, {"codecs": sharded(*sharded(BYTES))}, "codecs"),
    "a pickle in the index": (PLAIN, {"codecs": sharded(BYTES, index=(PICKLE,))}, "codecs"),
    "a transformer": (PLAIN, {"storage_transformers": [{"name": "x"}]}, "transformers"),
    "a shape beyond numbers": (PLAIN, {"shape": [10**30, 10]}, "chunks; at most"),
    "chunks of one number": (PLAIN, {"shape": [10**6, 100], **chunks(1, 1)}, "chunks; at most"),
    "a chunk beyond memory": (PLAIN, {"shape": [10**9, 10**6], **chunks(10**5, 10**4)}, "at most"),
    "more than its files": (PLAIN, {"shape": [10**6, 10**3], **chunks(10**4, 10**3)}, "promises"),
    "a chunk of nothing": (PLAIN, chunks(0, 10), "whole numbers from 1"),
    "a large shard": (PLAIN, {**chunks(10**6, 9), "codecs": sharded(BYTES, size=(1, 1))}, "shard"),
    "a truth as a number": (PLAIN, {"shape": [True, 10]}, "whole numbers"),
    "no list": (PLAIN, {"shape": "big"}, "whole numbers"),
    "no array": (PLAIN, {"node_type": "group"}, "no Zarr array"),
    "another format": (PLAIN, {"zarr_format": 4}, "no Zarr array"),
}  # fmt: skip


@pytest.mark.parametrize("case", NAMED)
def test_nothing_of_what_is_not_allowed_is_decoded(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode(*args, **kwargs):
        raise AssertionError("a codec was made")

    monkeypatch.setattr(numcodecs.registry, "get_codec", decode)
    monkeypatch.setattr(zarr, "open_array", decode)
    base, change, why = NAMED[case]
    old = base is OLD
    (tmp_path / "c" / "0").mkdir(parents=True)
    (tmp_path / (".zarray" if old else "zarr.json")).write_text(json.dumps({**base, **change}))
    (tmp_path / ("0.0" if old else "c/0/0")).write_bytes(bytes(3200))
    with pytest.raises(Refused, match=why):
        open_array(tmp_path)


@cache
def bombs() -> dict[str, tuple[dict, bytes]]:
    """Metadata and the file of a chunk that says or is other than 3200 bytes."""
    large = gzip.compress(bytes(10**7), 1)
    header = bytearray(numcodecs.Blosc().encode(bytes(3200)))
    header[4:8] = (2**31 - 1).to_bytes(4, "little")
    zstd = numcodecs.Zstd().encode(bytes(10**7))
    three = {name: [*PLAIN["codecs"], {"name": name}] for name in ("gzip", "zstd", "blosc")}
    two = {name: {"compressor": {"id": name}} for name in ("gzip", "zlib", "lz4")}
    index = (0).to_bytes(8, "little") + len(large).to_bytes(8, "little") + b"\xff" * 16
    return {
        "gzip": ({**PLAIN, "codecs": three["gzip"]}, large),
        "zstd": ({**PLAIN, "codecs": three["zstd"]}, zstd),
        "blosc": ({**PLAIN, "codecs": three["blosc"]}, bytes(header)),
        "zstd, more frames": (
            {**PLAIN, "codecs": three["zstd"]},
            numcodecs.Zstd().encode(bytes(3200)) + zstd,
        ),
        "zstd, cut": (
            {**PLAIN, "codecs": three["zstd"]},
            numcodecs.Zstd().encode(bytes(range(200)) * 16)[:-1],
        ),
        "nothing": (PLAIN, b""),
        "too short": (PLAIN, bytes(3199)),
        "no gzip": ({**PLAIN, "codecs": three["gzip"]}, b"no"),
        "no zstd": ({**PLAIN, "codecs": three["zstd"]}, b"no zstd"),
        "gzip, old": ({**OLD, **two["gzip"]}, large),
        "zlib, old": ({**OLD, **two["zlib"]}, numcodecs.Zlib().encode(bytes(10**7))),
        "lz4, old": ({**OLD, **two["lz4"]}, (2**31 - 1).to_bytes(4, "little") + bytes(90)),
        "gzip in a shard": ({**PLAIN, "codecs": sharded(*three["gzip"])}, large + index),
        "a shard without its index": ({**PLAIN, "codecs": sharded(*three["gzip"])}, b"0123"),
        "a chunk beyond its shard": (
            {**PLAIN, "codecs": sharded(*three["gzip"])},
            (9).to_bytes(8, "little") + (10**9).to_bytes(8, "little") + b"\xff" * 16,
        ),
    }


@pytest.mark.parametrize("case", bombs())
def test_a_chunk_of_another_size_is_refused_before_it_takes_memory(
    tmp_path: Path, case: str
) -> None:
    document, raw = bombs()[case]
    old = document["zarr_format"] == 2
    (tmp_path / "c" / "0").mkdir(parents=True)
    (tmp_path / (".zarray" if old else "zarr.json")).write_text(json.dumps(document))
    (tmp_path / ("0.0" if old else "c/0/0")).write_bytes(raw)
    with pytest.raises(Refused, match=r"a (zstd )?(chunk|shard) (decodes to|is (empty|damaged))"):
        open_array(tmp_path)


@pytest.mark.parametrize(
    ("shape", "chunk", "why"),
    [
        ([2**28], [2**28], "shape promises 2147483648 bytes"),
        ([2**24], [2**20], "shape promises 134217728 bytes"),
        ([1000, 10**4], [1000, 1], "chunks promise 80000000 bytes for a row"),
        ([100], [2**24], "shape promises 134217728 bytes"),
        ([2**20, 256], [2**20, 256], "shape promises 2147483648 bytes"),
        ([10**5], [1], "100000 chunks, and its files have 0 bytes"),
    ],
)
def test_small_numbers_and_chunks_without_files_are_counted_for_what_they_take(
    tmp_path: Path, shape: list[int], chunk: list[int], why: str
) -> None:
    grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
    document = {**PLAIN, "shape": shape, "data_type": "uint8", "chunk_grid": grid}
    (tmp_path / "zarr.json").write_text(json.dumps(document))
    with pytest.raises(Refused, match=why):
        open_array(tmp_path)


def test_zeros_with_few_entries_are_read_however_small_their_file(tmp_path: Path) -> None:
    for name, shape in {"vector": (2 * 10**6,), "hot": (5000, 1000)}.items():
        few = np.zeros(shape, dtype="u1")
        few[7] = 1
        zarr.create_array(str(tmp_path / name), data=few)
        assert open_array(tmp_path / name)[7].sum() == few[7].sum()


def test_a_shard_that_names_the_same_bytes_many_times_is_refused(tmp_path: Path) -> None:
    packed, count = gzip.compress(bytes(8 * 2**20), 1), 40
    index = (bytes(8) + len(packed).to_bytes(8, "little")) * count
    gzipped = sharded(*PLAIN["codecs"], {"name": "gzip"}, size=(2**20,))
    document = {**PLAIN, "shape": [9], **chunks(count * 2**20), "codecs": gzipped}
    (tmp_path / "c").mkdir()
    (tmp_path / "zarr.json").write_text(json.dumps(document))
    (tmp_path / "c/0").write_bytes(packed + index)
    with pytest.raises(Refused, match="its chunks are more than its"):
        open_array(tmp_path)


def test_metadata_that_are_no_metadata_are_refused(tmp_path: Path) -> None:
    for text in ("", "[" * 10**5, "null", "[]", "{}", '{"zarr_format": 3}', "x" * 2**21):
        (tmp_path / "zarr.json").write_text(text)
        with pytest.raises(Refused):
            open_array(tmp_path)


@pytest.mark.parametrize("kind", ["objects", "archive", "cut", "text"])
def test_other_than_an_array_of_numbers_is_no_npy_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "y.npy"
    if kind == "objects":
        np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    elif kind == "archive":
        with path.open("wb") as file:
            np.savez(file, y=ROWS)
    elif kind == "cut":
        np.save(path, ROWS)
        path.write_bytes(path.read_bytes()[:-8])
    else:
        path.write_text("1 2 3")
    with pytest.raises(Refused, match=r"\.npy file"):
        open_array(path)


def test_an_archive_that_expands_beyond_proportion_is_refused(tmp_path: Path) -> None:
    small, large = io.BytesIO(), tmp_path / "large.npz"
    np.savez_compressed(small, filters=np.zeros((2, 3, 5, 5)))
    (tmp_path / "small.npz").write_bytes(small.getvalue())
    check_archive(tmp_path / "small.npz")
    with zipfile.ZipFile(large, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("filters.npy", bytes(10**8))
    with pytest.raises(Refused, match="expands from"):
        check_archive(large)


def test_an_archive_of_many_small_numbers_or_objects_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "many.npz").open("wb") as file:
        np.savez_compressed(file, filters=np.zeros((3, 1, 2000, 2000), dtype="i1"))
    with zipfile.ZipFile(tmp_path / "a.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"]" * 3 * 10**6)
    for name, why in {"many.npz": "to 12000000 numbers", "a.pt": "list of tensors"}.items():
        with pytest.raises(Refused, match=why):
            check_archive(tmp_path / name)


def test_snapshots_that_expand_together_are_refused(tmp_path: Path) -> None:
    for step in range(3):
        with (tmp_path / f"{step}.npz").open("wb") as file:
            np.savez_compressed(file, filters=np.zeros((1, 1, 2000, 2000), dtype="i1"))
    with pytest.raises(HdicaError, match="its files expand from .* bytes to more than"):
        load_filters(tmp_path)


def test_a_tensor_that_repeats_a_number_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensor = SimpleNamespace(ndim=4, detach=None, numel=lambda: 10**10)
    torch = SimpleNamespace(load=lambda *args, **kwargs: {"conv": tensor})
    monkeypatch.setitem(sys.modules, "torch", torch)
    (tmp_path / "a.pt").write_bytes(b"a checkpoint")
    with pytest.raises(HdicaError, match="conv expands beyond its bytes"):
        load_filters(tmp_path / "a.pt")


def test_the_installed_codec_of_pickles_refuses_by_itself(tmp_path: Path) -> None:
    codec = numcodecs.get_codec({"id": "pickle"})
    with pytest.raises(numcodecs.errors.UnsafeDecodeError):
        codec.decode(codec.encode(np.array([{}], dtype=object)))


def test_a_header_that_promises_too_much_is_refused_before_it_takes_memory(tmp_path: Path) -> None:
    head = b"\x93NUMPY\x02\x00"
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000, 100), }\n"
    small = head + len(text).to_bytes(4, "little") + text + bytes(80)
    for name, raw in {"long": head + (2**30).to_bytes(4, "little"), "many": small}.items():
        path = tmp_path / f"{name}.npy"
        path.write_bytes(raw)
        with pytest.raises(Refused, match="header has more than|shape promises 80000000000 bytes"):
            check_archive(path)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("filters.npy", small)
    with pytest.raises(Refused, match="shape promises"):
        check_archive(tmp_path / "a.npz")


def test_metadata_that_are_no_file_are_not_read(tmp_path: Path) -> None:
    zarr.create_array(str(tmp_path / "y.zarr"), data=ROWS, zarr_format=2)
    (tmp_path / "y.zarr" / ".zattrs").unlink()
    (tmp_path / "y.zarr" / ".zattrs").symlink_to("/dev/zero")
    with pytest.raises(Refused, match=r"\.zattrs is no regular file"):
        open_array(tmp_path / "y.zarr")
