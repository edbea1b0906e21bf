"""What must hold after a power loss: before anything is done about it, and after the next run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.power import system
from tests.power.disk import Image
from tests.power.forks import forked
from tests.power.owed import Owed
from tests.power.phases import RESULTS, SERIAL, Phase
from tests.power.place import put
from tests.power.reading import Stored, computed, named, noting, published, stored

POINTS, PUBLICATION, RUN = "points", "publication", "run"
ENDS = "the next run ends with"


@dataclass(frozen=True)
class Wrong:
    """One thing that is wrong.

    Parameters
    ----------
    what
        With committed points, with a publication, or with the next run.
    sentence
        What it is.
    """

    what: str
    sentence: str


@dataclass(frozen=True)
class Reference:
    """What one undisturbed command on an empty folder makes.

    Parameters
    ----------
    code, verify
        Exit status of the command, and of ``hdica verify`` after it.
    published
        Digest of the published values.
    points
        Every point of the working store.
    names
        Keys of points, by the line that computing them leaves.
    """

    code: int
    verify: int
    published: str
    points: Stored
    names: dict[str, str]


@dataclass(frozen=True)
class Bench:
    """Phases, and what each of them makes."""

    phases: tuple[Phase, ...]
    references: tuple[Reference, ...]


def again(phase: Phase, out: Path, files: Path) -> int:
    """Give the command of a phase, in this process alone; its exit status.

    What workers do is the same, and what a worker of its own would do anew takes seconds.
    """
    from hdica.cli import call

    with system.luck(phase.unlucky):
        return call(replace(phase, cluster=dict(SERIAL)).arguments(out, files))


def reference(phase: Phase, folder: Path) -> Reference:
    """Make one, in a fork."""

    def undisturbed() -> dict[str, Any]:
        from hdica.store.verify import verify
        from hdica.study.study import study_from

        calls, out = folder / "calls.txt", folder / RESULTS
        noting(calls)
        code, study = again(phase, out, folder), study_from(phase.study)
        names = named(study, out)
        assert sorted(names) == sorted(computed(calls))
        found = Reference(code, verify(out).code, published(out), stored(study, out), names)
        return asdict(found)

    folder.mkdir(parents=True)
    code, found = forked(undisturbed)
    assert code == 0, code
    shutil.rmtree(folder)
    found["points"] = {key: tuple(value) for key, value in found["points"].items()}
    return Reference(**found)


def sentence(error: BaseException) -> str:
    """An error, in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def committed(bench: Bench, owed: Owed, out: Path) -> Iterator[Wrong]:
    """What is wrong with committed points, before anything is done about it."""
    from hdica.study.study import study_from

    if not owed.points:
        return
    expected = bench.references[owed.phase].points
    try:
        found = stored(study_from(bench.phases[owed.phase].study), out)
    except Exception as exc:
        yield Wrong(POINTS, f"committed points cannot be read: {sentence(exc)}")
        return
    lost = [key for key, status in owed.points.items() if found.get(key, ("",))[0] != status]
    if lost:
        yield Wrong(POINTS, f"{len(lost)} committed points are lost")
    changed = [key for key in set(owed.points).difference(lost) if found[key] != expected[key]]
    if changed:
        yield Wrong(POINTS, f"{len(changed)} committed points have other values")


def publication(bench: Bench, owed: Owed, out: Path) -> Iterator[Wrong]:
    """What is wrong with the published store, before anything is done about it."""
    if owed.published is None:
        return
    allowed = {bench.references[owed.published].published}
    if owed.publishing:
        allowed.add(bench.references[owed.phase].published)
    try:
        if published(out) not in allowed:
            yield Wrong(PUBLICATION, "published values are not those that were published")
    except Exception as exc:
        yield Wrong(PUBLICATION, f"what was published cannot be opened: {sentence(exc)}")


def rerun(bench: Bench, owed: Owed, out: Path, files: Path) -> Iterator[Wrong]:
    """What is wrong after the same command again.

    Parameters
    ----------
    bench
        What should be there.
    owed
        What was promised.
    out
        Path of the published store.
    files
        Folder for what the command reads.
    """
    from hdica.store.verify import verify

    phase, expected = bench.phases[owed.phase], bench.references[owed.phase]
    calls = files / "calls.txt"
    noting(calls)
    code = again(phase, out, files)
    twice = {expected.names[line] for line in computed(calls)}.intersection(owed.points)
    if twice:
        yield Wrong(POINTS, f"the next run computes {len(twice)} committed points again")
    if code != expected.code:
        yield Wrong(RUN, f"{ENDS} {code}")
        return
    try:
        if published(out) != expected.published:
            yield Wrong(RUN, "after the next run the published values are others")
    except Exception as exc:
        yield Wrong(RUN, f"after the next run what it published cannot be read: {sentence(exc)}")
    verdict = verify(out)
    if verdict.code != expected.verify:
        what = " ".join((*verdict.damaged, *verdict.incomplete)[:1])
        yield Wrong(RUN, f"after the next run hdica verify says {verdict.code}: {what}")
    left = sorted(path.name for path in out.parent.rglob("*.partial"))
    if left:
        yield Wrong(RUN, f"after the next run there is {left[0]}")


def checked(
    bench: Bench, owed: Owed, image: Image, folder: Path, before: bool = True
) -> list[Wrong]:
    """All that is wrong with what a power loss has left, found in a fork.

    Parameters
    ----------
    bench
        What should be there.
    owed
        What was promised.
    image
        What the power loss has left.
    folder
        Where to put it; it is removed.
    before
        Whether to look at it before the next run, too.
    """
    disk, said = folder / "disk", folder / "said.txt"
    out = disk / RESULTS
    folder.mkdir(parents=True)
    put(image, disk)

    def check() -> list[tuple[str, str]]:
        looks = [*committed(bench, owed, out), *publication(bench, owed, out)] if before else []
        return [(one.what, one.sentence) for one in (*looks, *rerun(bench, owed, out, folder))]

    code, answer = forked(check, said)
    last = (said.read_text().strip().splitlines() or [""])[-1]
    if code:
        answer = [(RUN, f"{ENDS} a traceback, a signal or not at all ({code})")]
    shutil.rmtree(folder)
    return [
        Wrong(what, f"{text}: {last}" if text.startswith(ENDS) else text) for what, text in answer
    ]


def kind(wrong: str) -> str:
    """A sentence about what is wrong, without what tells one case from another."""
    wrong = re.sub(r"\S*/disk/", "", wrong)
    wrong = re.sub(r"\b(walk|line|profile|steady)(-n\d+)?-[0-9a-f]{8}", "SEGMENT", wrong)
    wrong = re.sub(r"\b[0-9a-f]{8,}\b", "HEX", wrong)
    wrong = re.sub(r"\(\d+ points?: [^()]*\)", "(POINTS)", wrong)
    return re.sub(r"\d+", "N", wrong)
