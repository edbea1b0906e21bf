"""Damage metadata and small files of a study's stores: named, mended in one call, bits equal.

``python -m tests.sweep.small_files --damages 300 --seed 1`` makes a small study and damages one
file of a fresh copy at a time: another one's content in its place, both exchanged, cut short,
emptied, a folder or a link in its place, gone, one byte changed. ``verify`` has to name what was
damaged, readers have to refuse it or to be right, one ``repair`` has to leave nothing damaged, and
after a run the results have to be what they were. It prints a table and exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import traceback
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hdica.errors import HdicaError
from hdica.run.runner import run
from hdica.status import STATUS_NAMES
from hdica.store.files import SYNC
from hdica.store.paths import work_path
from hdica.store.publish import publish
from hdica.store.results import status
from hdica.store.verify import repair, verify
from hdica.study.study import Study, study_from
from tests.sweep import flips, toy
from tests.sweep.conftest import values
from tests.sweep.harm import cut, empty, flip, remove

CONTENT = toy.study(
    grid={"tau": [0.1, 0.17], "Q0": [0.5]},
    methods={"walk": {"n": [10, 30], "seeds": 2}},
    save={"functionals": {"mse": "(x - xi)**2"}},
)
"""A study of 8 points; Q and mse have the same shape, and so have the two sizes."""


def copied(file: Path, other: Path) -> None:
    file.write_bytes(other.read_bytes())


def swapped(file: Path, other: Path) -> None:
    one, two = file.read_bytes(), other.read_bytes()
    file.write_bytes(two)
    other.write_bytes(one)


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "mine.txt").write_text("of somebody")


def link(file: Path) -> None:
    """A link to the very content, elsewhere."""
    elsewhere = file.parents[len(file.parts) - 3] / "elsewhere.json"
    shutil.move(file, elsewhere)
    file.symlink_to(elsewhere)


ALONE: dict[str, Callable[[Path], None]] = {
    "cut": cut, "emptied": empty, "folder": folder, "link": link, "removed": remove,
    "changed": flip,
}  # fmt: skip
PAIRS: dict[str, Callable[[Path, Path], None]] = {"copied": copied, "swapped": swapped}
REFUSED = {("manifest", "link")}
"""Links that stand for a part of the results are refused by every command, and followed by none.

Somebody may have put the results elsewhere. The sentence names the link, which he has to remove.
"""
NOBODY_KNOWS = {("record of a shard", "removed")}
"""What nobody can miss."""


@dataclass(frozen=True)
class Damaged:
    """One damage; files are relative to the folder of the results."""

    kind: str
    harm: str
    file: Path
    other: Path | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.harm}: {self.file}" + (f", {self.other}" if self.other else "")


def small(out: Path) -> dict[str, list[Path]]:
    """Every file of the results that is no chunk and no block, by kind."""
    return {k: f for k, f in flips.files(out).items() if "chunk" not in k and k != "block"}


def draw(out: Path, count: int, seed: int) -> list[Damaged]:
    """Kinds of files and of damages in turn, each with files at random."""
    random, found = np.random.default_rng(seed), small(out)
    every = [file for files in found.values() for file in files]
    each = [(kind, harm) for kind in found for harm in (*ALONE, *PAIRS)]
    each = [one for one in each if one not in NOBODY_KNOWS]
    drawn: list[Damaged] = []
    while len(drawn) < count:
        for place in random.permutation(len(each)).tolist():
            kind, harm = each[place]
            file = found[kind][random.integers(len(found[kind]))]
            own, other = file.relative_to(out.parent), None
            if harm in PAIRS:
                # Most metadata that are taken for each other are of one kind.
                among = found[kind] if random.random() < 0.6 else every
                among = [f for f in among if f.read_bytes() != file.read_bytes()]
                among = among or [f for f in every if f.read_bytes() != file.read_bytes()]
                other = among[random.integers(len(among))].relative_to(out.parent)
            drawn.append(Damaged(kind, harm, own, other))
    return drawn[:count]


class Trials:
    """A study that is computed and published, of which every trial gets a copy."""

    def __init__(self, folder: Path) -> None:
        self.template, self.study = folder / "template", study_from(CONTENT)
        self.out = self.template / "toy.zarr"
        self.template.mkdir()
        made(self.study, self.out)
        self.right = values(self.out)
        self.counts = counts(self.out)

    def trial(self, damaged: Damaged, folder: Path) -> None:
        """One damage, from its making to its mending."""
        shutil.copytree(self.template, folder / "results")
        out = folder / "results/toy.zarr"
        files = [folder / "results" / f for f in (damaged.file, damaged.other) if f]
        if damaged.harm in PAIRS:
            PAIRS[damaged.harm](*files)
        else:
            ALONE[damaged.harm](*files)
        wrong = files[:1] if damaged.harm == "copied" else files
        if (damaged.kind, damaged.harm) in REFUSED:
            self.asked_for(out, *wrong)
        else:
            self.named(out, wrong)
        self.refused(out, wrong)
        repair(out)
        after = verify(out)
        assert not after.damaged, f"left by one repair: {after.damaged}"
        if after.code:
            run(self.study, out, progress=False)
            publish(self.study, out)
            after = verify(out)
            assert after.code == 0, f"after a run: {after.damaged or after.incomplete}"
        assert values(out) == self.right, "other bits"

    def asked_for(self, out: Path, file: Path) -> None:
        for command in (verify, repair):
            said = ""
            try:
                command(out)
            except HdicaError as exc:
                said = str(exc)
            assert f"{file} is a link" in said, f"not refused: {said}"
        assert file.is_symlink(), "the link is gone"
        file.unlink()

    def named(self, out: Path, wrong: list[Path]) -> None:
        verdict = verify(out)
        if not any(file.exists() for file in wrong) and not verdict.damaged:
            assert any("is missing" in text for text in verdict.incomplete), "not missed"
            return
        assert verdict.code == 3, f"not found: {verdict.incomplete}"
        # Without the digests of all published files, nothing can be said of the others.
        for file in [f for f in wrong if f in (out / "digests.json", out / "zarr.json")] or wrong:
            assert any(str(file) in text for text in verdict.damaged), (
                f"{file} is not named: {verdict.damaged}"
            )

    def refused(self, out: Path, wrong: list[Path]) -> None:
        """Every reader is right, or says which file is wrong."""
        for read in (values, counts):
            try:
                assert read(out) == (self.right if read is values else self.counts), "read as data"
            except HdicaError as exc:
                said = str(exc)
                assert any(str(file) in said for file in wrong), f"names no such file: {said}"


def counts(out: Path) -> list[int]:
    """Points by status; of whichever store says them."""
    found = status(out)
    return [found.total(name) for name in ("points", *STATUS_NAMES)]


def made(study: Study, out: Path) -> None:
    flips.record_of_a_shard(out)
    run(study, out, progress=False, block=2)
    publish(study, out)
    assert work_path(out).is_dir()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--damages", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trace", action="store_true")
    asked = parser.parse_args()
    os.environ.setdefault(SYNC, "off")  # what lasts is no matter of this
    toy.register()
    table: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    with tempfile.TemporaryDirectory() as name:
        trials = Trials(Path(name))
        for number, damaged in enumerate(draw(trials.out, asked.damages, asked.seed)):
            row, folder = table[damaged.kind], Path(name) / str(number)
            row[0] += 1
            try:
                trials.trial(damaged, folder)
                row[1] += 1
            except Exception as exc:
                what = str(exc).replace(name, "").splitlines()[0][:400]
                print(f"{number} {damaged}\n    {type(exc).__name__}: {what}", file=sys.stderr)
                if asked.trace:
                    traceback.print_exc()
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{'kind of file':32} {'damages':>8} {'mended':>7}")
    for kind, (count, well) in sorted(table.items()):
        print(f"{kind:32} {count:8} {well:7}")
    print(f"{'all':32} {sum(r[0] for r in table.values()):8}", end="")
    print(f" {sum(r[1] for r in table.values()):7}")
    return int(any(count != well for count, well in table.values()))


if __name__ == "__main__":
    sys.exit(main())
