"""Data files by the hundred, broken and hostile: no code of theirs runs, and each costs little.

One process takes all of them, with little more memory than it has when it begins. More of them:
``python -m tests.inputs.test_campaign 500 .`` writes them below the current folder and reads them.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import resource
import subprocess
import sys
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
from numpy.random import Generator

ROOT = Path(__file__).parents[2]
CANARY = "code-has-run"
ROOM, SECONDS = 2**30, 10.0
SPIED = (
    "pickle.find_class", "subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.exec",
    "socket.connect", "socket.bind", "os.remove", "os.rename", "os.mkdir",
)  # fmt: skip
"""Of what a reader does, what none needs."""
WORDS: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1.5, "", "x", [], {}, [1, 2], [-1], [10**9, 10**6], "|O", "<f8",
    "|V8", "float64", "string", [["a", "|O"]], {"id": "pickle"}, [{"id": "pickle"}],
    [{"id": "vlen-utf8"}], [{"name": "numcodecs.pickle"}], [{"name": "vlen-utf8"}], "NaN", "\x00",
)  # fmt: skip


class Runs:
    """What leaves a folder behind when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (CANARY,)


def harmed(rng: Generator, raw: bytes) -> bytes:
    """Bytes as they are, cut, flipped, emptied, or with more behind them."""
    kind, place = rng.integers(6), int(rng.integers(max(1, len(raw))))
    if kind == 0:
        return raw[:place]
    if kind == 1:
        changed = bytearray(raw)
        for one in rng.integers(len(raw) or 1, size=4) if raw else ():
            changed[one] ^= 1 << int(rng.integers(8))
        return bytes(changed)
    if kind == 2:
        return raw + rng.bytes(40)
    return b"" if kind == 3 and rng.random() < 0.3 else raw


def numbers(rng: Generator) -> np.ndarray[Any, Any]:
    shape = [(9,), (20, 4), (), (0,), (3, 3, 3), (4, 1, 5, 5), (2, 4, 3, 5, 5)][rng.integers(7)]
    kinds = ("f8", ">f4", "f2", "i8", "u1", "?", "c16", "M8[s]", "U3", "S2", "f8,i4", "O")
    kind = np.dtype(str(rng.choice(kinds, p=[0.45] + [0.05] * 11)))
    if kind.hasobject:
        found = np.empty(shape, dtype=object)
        found[...] = Runs()
        return found
    return (rng.normal(size=shape) * 9).astype("f8").astype(kind if kind.names is None else "f8")


def npy(rng: Generator) -> bytes:
    file = io.BytesIO()
    np.save(file, numbers(rng), allow_pickle=True)
    raw = file.getvalue()
    if rng.random() < 0.4:
        text = str(rng.choice([
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 100), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-3, 100), }",
            "{'descr': '<f8', 'fortran_order': 2, 'shape': " + str((10**30,) * 3) + ", }",
            f"__import__('os').mkdir('{CANARY}')", "{'descr': '|O', 'shape': (3,)}", "(" * 5000,
        ]))  # fmt: skip
        raw = b"\x93NUMPY\x02\x00" + (len(text) + 1).to_bytes(4, "little") + text.encode() + b"\n"
        raw += rng.bytes(80)
    if rng.random() < 0.15:
        raw = pickle.dumps([Runs()])
    return harmed(rng, raw)


def npz(rng: Generator) -> bytes:
    file, how = io.BytesIO(), int(rng.choice([0, 8, 12, 14]))
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", how) as archive:
        warnings.simplefilter("ignore")  # two members of one name
        for name in ("filters.npy", "step.npy", "../filters.npy", "filters.npy")[
            : rng.integers(1, 5)
        ]:
            if rng.random() < 0.1:
                archive.writestr(name, bytes(9 * 10**7), zipfile.ZIP_DEFLATED, 1)
            else:
                archive.writestr(name, npy(rng))
    raw = bytearray(file.getvalue())
    if rng.random() < 0.2:  # how long the first member is, as its entry in the directory says
        place = raw.rfind(b"PK\x01\x02")
        raw[place + 24 : place + 28] = (2**31).to_bytes(4, "little")
    return harmed(rng, bytes(raw))


def checkpoint(rng: Generator) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"weight": Runs()}))
        archive.writestr("archive/version", "3\n")
    return harmed(rng, [file.getvalue(), pickle.dumps(Runs()), npz(rng)][rng.integers(3)])


def changed(rng: Generator, given: Any) -> Any:
    """Metadata with one entry of somewhere replaced, or left out."""
    if isinstance(given, dict) and given and rng.random() < 0.9:
        key = str(rng.choice(sorted(given)))
        rest = {k: v for k, v in given.items() if k != key}
        return rest if rng.random() < 0.1 else {**rest, key: changed(rng, given[key])}
    if isinstance(given, list) and given and isinstance(given[0], dict) and rng.random() < 0.8:
        return [changed(rng, given[0]), *given[1:]]
    return WORDS[rng.integers(len(WORDS))]


def bombs() -> dict[str, bytes]:
    large = bytes(3 * 10**7)
    return {
        "gzip": gzip.compress(large, 1), "zlib": zlib.compress(large, 1),
        "zstd": numcodecs.Zstd().encode(large), "blosc": numcodecs.Blosc().encode(large),
        "lz4": (2**31 - 1).to_bytes(4, "little") + bytes(90), "pickle": pickle.dumps(Runs()),
    }  # fmt: skip


BOMBS = bombs()


def array(rng: Generator, path: Path) -> None:
    """The folder of a Zarr array, and its metadata or a chunk of it harmed."""
    two = rng.random() < 0.5
    codecs = ("blosc", "zlib", "gzip", "zstd", "lz4", "bz2", "lzma")
    coded = numcodecs.get_codec({"id": str(rng.choice(codecs))}) if two else None
    rows = rng.normal(size=(20, 4)) if rng.random() < 0.6 else rng.normal(size=20)
    inner = (5, 2)[: rows.ndim]
    how: dict[str, Any] = {"zarr_format": 2, "compressors": coded} if two else {}
    if not two and rng.random() < 0.4:
        how["shards"] = (10, 4)[: rows.ndim]
    zarr.create_array(str(path), data=rows, chunks=inner, **how)
    metadata = path / (".zarray" if two else "zarr.json")
    if rng.random() < 0.6:
        document = changed(rng, json.loads(metadata.read_bytes()))
        metadata.write_bytes(harmed(rng, json.dumps(document).encode()))
    files = sorted(p for p in path.rglob("*") if p.is_file() and p != metadata)
    chunk = files[rng.integers(len(files))]
    kind = rng.integers(6)
    if kind == 0:
        chunk.write_bytes(harmed(rng, chunk.read_bytes()))
    elif kind == 1:
        chunk.write_bytes(BOMBS[str(rng.choice(sorted(BOMBS)))])
    elif kind == 2:
        chunk.unlink()
        [chunk.mkdir, lambda: os.mkfifo(chunk), lambda: chunk.symlink_to("/dev/zero")][
            rng.integers(3)
        ]()


def png(width: int, height: int, body: bytes) -> bytes:
    def part(name: bytes, content: bytes) -> bytes:
        check = zlib.crc32(name + content).to_bytes(4, "big")
        return len(content).to_bytes(4, "big") + name + content + check

    size = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x02\x00\x00\x00"
    packed = zlib.compress(body, 1)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", size) + part(b"IDAT", packed) + part(b"IEND", b"")


@cache
def large_png() -> bytes:
    """A megabyte that is decoded to 243, and to thousands as numbers."""
    return png(9000, 9000, bytes(9000 * 27001))


def picture(rng: Generator) -> bytes:
    from PIL import Image

    kind = rng.integers(8)
    if kind == 0:
        side = int(rng.choice([1, 9000, 12000, 30000, 2**31 - 1]))
        return png(side, side, bytes(10**6))
    if kind == 1:
        return large_png()
    if kind == 2:
        text = f"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n({CANARY}) (w) file\n%%EOF\n"
        return [text.encode(), b"P6 99999 99999 255\n", b"<svg/>", pickle.dumps(Runs())][
            rng.integers(4)
        ]
    file = io.BytesIO()
    form = str(rng.choice(["PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM"]))
    mode = str(rng.choice(["L", "RGB"]))
    size = (12, 9) if mode == "L" else (12, 9, 3)
    Image.fromarray(rng.integers(256, size=size, dtype=np.uint8), mode).save(file, form)
    return harmed(rng, file.getvalue())


MADE: dict[str, Callable[[Generator], bytes]] = {
    ".npy": npy, ".npz": npz, ".png": picture, ".tif": picture, ".pt": checkpoint,
}  # fmt: skip


def made(count: int, folder: Path, seed: int = 0) -> None:
    """Write that many files, and folders of Zarr arrays, one after the other."""
    kinds = [".zarr", ".npy", ".npz", ".png", ".zarr", ".npy", ".tif", ".pt"]
    for k in range(count):
        rng, kind = np.random.default_rng([seed, k]), kinds[k % len(kinds)]
        path = folder / f"{k:03d}{kind}"
        if kind == ".zarr":
            array(rng, path)
        else:
            path.write_bytes(MADE[kind](rng))


def readers(path: Path) -> Iterator[Callable[[], Any]]:
    """Everything that reads files of a kind."""
    from hdica.inputs.filters import load_filters
    from hdica.inputs.images import load_images
    from hdica.inputs.samples import samples_input, vector_input

    if path.suffix in (".npy", ".zarr"):
        yield lambda: vector_input({"vector": path.name}, "prior")
        yield lambda: samples_input({"array": path.name})
    if path.suffix in (".npy", ".npz", ".pt"):
        yield lambda: load_filters(path)
    if path.suffix in (".png", ".tif"):
        yield lambda: load_images(path.name)


def wrong(path: Path) -> Iterator[str]:
    """What goes wrong when a file is read; whether it is refused does not matter."""
    from hdica.errors import HdicaError

    for read in readers(path):
        begun = time.process_time()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                read()
            except HdicaError as exc:
                if "memory" in str(exc):
                    yield f"{path.name} takes too much memory: {exc}"
            except BaseException as exc:
                yield f"{path.name} ends with {type(exc).__name__}: {exc}"
        yield from (f"{path.name} warns: {one.message}" for one in warned)
        if (spent := time.process_time() - begun) > SECONDS:
            yield f"{path.name} takes {spent:.1f} s"


def main(folder: Path) -> None:
    """Read all files of a folder, with little memory, and say what is wrong with them."""
    os.environ["HDICA_DATA"] = str(folder)
    os.chdir(folder)
    found: list[str] = []
    named = ""
    with (Path("/proc/self/statm")).open() as file:
        held = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (held + ROOM, held + ROOM))

    def spy(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & 3
        if event in SPIED or writes:
            found.append(f"{named}: {event} {arguments}"[:300])

    sys.addaudithook(spy)
    for path in sorted(folder.iterdir()):
        named = path.name
        found += wrong(path)
    if Path(CANARY).exists():
        found.append("code of a file has run")
    print("\n".join(found))


def read_apart(folder: Path) -> str:
    """What a process of its own says of all files of a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.inputs.test_campaign", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.stdout.strip() + done.stderr[-2000:]


@pytest.mark.deep
def test_no_file_of_data_runs_code_or_takes_long_or_much_memory(tmp_path: Path) -> None:
    made(64, tmp_path)
    assert read_apart(tmp_path) == ""


def test_the_campaign_sees_code_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.npy").write_bytes(pickle.dumps(Runs()))
    monkeypatch.chdir(tmp_path)
    np.load("a.npy", allow_pickle=True)
    assert (tmp_path / CANARY).is_dir()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        target = Path(sys.argv[2], "campaign").absolute()
        target.mkdir()
        made(int(sys.argv[1]), target)
        print(read_apart(target) or "nothing is wrong")
    else:
        main(Path(sys.argv[1]))
