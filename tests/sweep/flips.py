"""Flip bits in every kind of file of a study's results.

``python -m tests.sweep.flips --flips 2000 --seed 1`` makes a small study, flips one bit of one file
at a time, asks ``verify`` and every reader, and puts the bit back. It prints a table by kind of
file and exits with 1 if a flip was not found, or was read as data.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hdica.errors import HdicaError
from hdica.run.runner import run
from hdica.store.paths import STUDY, manifest_path, work_path
from hdica.store.publish import grouped, publish
from hdica.store.published import DIGESTS, array_of
from hdica.store.results import status
from hdica.store.sealed import write_sealed
from hdica.store.verify import verify
from hdica.store.working import place
from hdica.study.study import Study, study_from
from tests.sweep import toy
from tests.sweep.conftest import values

CONTENT = toy.study(
    grid={"tau": [0.1, 0.17, 0.2], "Q0": [0.25, 0.5]},
    methods={"walk": {"n": [10, 30], "seeds": 4}, "line": {}, "steady": {}},
    save={"snapshots": [0.5], "thresholds": [0.1], "functionals": {"mse": "(x - xi)**2"}},
)
"""A study of 55 points, some of which diverge: only then a store has reasons."""
BLOCK = 5


def made(out: Path) -> Study:
    """Compute and publish the study, and leave a record of a shard as a workflow does."""
    study = study_from(CONTENT)
    run(study, out, progress=False, block=BLOCK)
    publish(study, out)
    record_of_a_shard(out)
    return study


def record_of_a_shard(out: Path) -> None:
    """Leave the record of a finished shard beside a store."""
    record = out.with_suffix(".shards") / "0-of-1.json"
    record.parent.mkdir()
    write_sealed(record, {"study": "toy", "shard": [0, 1], "computed": 55})


def kind(out: Path, file: Path) -> str:
    """What kind of file one of the results is."""
    if file == manifest_path(out):
        return "manifest"
    if file.parent == out.with_suffix(".shards"):
        return "record of a shard"
    if file.suffix == ".block":
        return "block"
    if file == work_path(out) / STUDY:
        return "record of the study"
    name = file.relative_to(out).as_posix()
    if array_of(name):
        return f"published chunk of {array_of(name).split('/')[-1]}"
    if name == DIGESTS:
        return "published digests"
    return f"published {('root', 'group', 'array')[name.count('/')]} metadata"


def files(out: Path) -> dict[str, list[Path]]:
    """Every file of the results, by kind."""
    found: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(out.parent.rglob("*")):
        ours = file.is_file() and not file.name.startswith(".") and file.stat().st_size
        ours = ours and not any(part.startswith(".") for part in file.relative_to(out.parent).parts)
        if ours and file.suffix not in (".yaml", ".txt"):
            found[kind(out, file)].append(file)
    return dict(sorted(found.items()))


def computed(study: Study, out: Path) -> dict[str, bytes]:
    """Every number of the working store, as a publication gathers it."""
    found = {}
    for source in grouped(place(study, out)):
        name = source.method.name
        found[f"{name}/status"] = source.status.tobytes()
        outputs = [o.name for o in source.placed[0].segment.outputs]
        points = np.arange(source.status.size)
        found[f"{name}/cpu_seconds"] = source.cpu_seconds.tobytes()
        for output in outputs:
            found[f"{name}/{output}"] = source.at(output, points, np.nan, "f8").tobytes()
        reasons = source.at("reason", points, "", object)
        found[f"{name}/reason"] = repr(reasons.tolist()).encode()
    return found


@contextmanager
def flipped(file: Path, bit: int) -> Iterator[None]:
    """One bit of a file changed."""
    whole = file.read_bytes()
    damaged = bytearray(whole)
    damaged[bit // 8] ^= 1 << bit % 8
    file.write_bytes(damaged)
    try:
        yield
    finally:
        file.write_bytes(whole)


class Readers:
    """Everything that reads results, and what each of them finds when nothing is wrong."""

    def __init__(self, study: Study, out: Path) -> None:
        self.study, self.out = study, out
        self.right = {name: read() for name, read in self._all().items()}

    def _all(self) -> dict[str, Any]:
        return {
            "open_results": lambda: values(self.out),
            "status": lambda: status(self.out).as_dict(),
            "publish": lambda: computed(self.study, self.out),
        }

    def _of(self, file: Path) -> dict[str, Any]:
        """Those that read such a file."""
        working = file.is_relative_to(work_path(self.out))
        return {k: read for k, read in self._all().items() if working == (k != "open_results")}

    def refusals(self, file: Path) -> list[str]:
        """What the readers say; each is right, or refuses in a sentence that names the file.

        Raises
        ------
        AssertionError
            If one reads wrong numbers, or says anything else.
        """
        said = []
        for name, read in self._of(file).items():
            try:
                found = read()
            except HdicaError as exc:
                text = str(exc)
                assert str(file) in text, f"{name} does not name {file}: {text}"
                assert "\n" not in text
                said.append(text)
                continue
            assert found == self.right[name], f"{name} read wrong data with a flip in {file}"
        return said


def trial(readers: Readers, file: Path, bit: int) -> bool:
    """Flip one bit: whether a reader refused.

    Raises
    ------
    AssertionError
        If ``verify`` does not find it, or a reader reads it as data.
    """
    with flipped(file, bit):
        verdict = verify(readers.out)
        named = [text for text in verdict.damaged if str(file) in text]
        assert verdict.code == 3, f"bit {bit} of {file} was not found"
        assert named, f"bit {bit} of {file}: {verdict.damaged}"
        return bool(readers.refusals(file))


def draw(out: Path, flips: int, seed: int) -> Iterator[tuple[str, Path, int]]:
    """Kinds of files in turn, then a file of the kind and a bit of the file at random."""
    random, found = np.random.default_rng(seed), files(out)
    kinds = list(found)
    for number in range(flips):
        name = kinds[number % len(kinds)]
        file = found[name][random.integers(len(found[name]))]
        yield name, file, int(random.integers(8 * file.stat().st_size))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    toy.register()
    table: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results" / "toy.zarr"
        out.parent.mkdir()
        readers = Readers(made(out), out)
        for name, file, bit in draw(out, asked.flips, asked.seed):
            row = table[name]
            row[0] += 1
            try:
                row[1] += trial(readers, file, bit)
            except AssertionError as exc:
                row[2] += 1
                print(f"{name}, {exc}", file=sys.stderr)
    print(f"{'kind of file':32} {'flips':>6} {'refused':>8} {'missed':>7}")
    for name, (flips, refused, missed) in sorted(table.items()):
        print(f"{name:32} {flips:6} {refused:8} {missed:7}")
    print(f"{'all':32} {sum(r[0] for r in table.values()):6}", end="")
    print(f" {sum(r[1] for r in table.values()):8} {sum(r[2] for r in table.values()):7}")
    return int(any(row[2] for row in table.values()))


if __name__ == "__main__":
    sys.exit(main())
