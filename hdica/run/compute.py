"""A study from its plan to its published store; files that are cut short are mended on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from hdica.errors import HdicaError, Unwritable
from hdica.run.runner import WHOLE, RunSummary, points_in_words, run
from hdica.run.settings import ClusterSettings
from hdica.status import FAILED, PENDING
from hdica.store import files
from hdica.store.paths import work_path
from hdica.store.publish import check_target, is_current, publish_new
from hdica.store.results import stable
from hdica.store.working import place, unfinished
from hdica.study.study import Study

Result = TypeVar("Result")
ATTEMPTS = 3  # how often work is begun anew after files that were cut short are removed


class Published(NamedTuple):
    """What a published store holds."""

    out: Path
    counts: Counter[str]  # points by status
    is_new: bool  # whether it has just been published, rather than found as it should be
    note: str = ""  # that a refinement goes on

    @property
    def sentence(self) -> str:
        """That it is there."""
        what = "is published" if self.is_new else "is up to date"
        return f"{self.out} {what}: {sum(self.counts.values())} points"

    @property
    def diverged(self) -> str:
        """That points diverged, empty if none did."""
        count = self.counts["diverged"]
        return (
            f"{points_in_words(count)} diverged; when and why is in the variable 'reason'"
            * bool(count)
        )


class Computed(NamedTuple):
    """What became of a study."""

    summary: RunSummary  # what was computed now
    published: Published | None  # None for a part of a study

    def missing(self, where: str, again: str) -> str:
        """What is missing of the results ``where``, which ``again`` computes; empty for nothing."""
        if self.summary.lost:
            why = self.summary.lost[0]
            verb = "is" if self.summary.pending == 1 else "are"
            open_ = f"{points_in_words(self.summary.pending)} {verb} pending"
            return f"{open_}; a rerun computes what is missing ({why})"
        counts = self.summary.counts if self.published is None else self.published.counts
        text = f"the reasons are in the variable 'reason' of {where} ({again} computes them again)"
        return f"{points_in_words(counts['failed'])} failed; {text}" if counts["failed"] else ""


def published(study: Study, out: Path, replace: bool = False) -> Published:
    """Publish a study if there is anything new."""
    manifest, is_new = publish_new(study, out, replace)
    counts = sum(map(Counter, manifest["counts"].values()), Counter[str]())
    return Published(out, counts, is_new, unfinished(study, out))


def mending(
    out: str | Path,
    attempt: Callable[[], Result],
    tell: Callable[[str], None],
    again: Callable[[], object] = lambda: None,
) -> Result:
    """Result of some work on a store, which is begun anew after torn files are removed.

    Anything else that is wrong is left to ``hdica repair``. ``tell`` gets a sentence for each file
    that was removed; ``again()`` comes before the work is begun anew.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except files.TornError:
            from hdica.store.verify import mend

            if not (done := mend(out)):
                raise
            for sentence in done:
                tell(sentence)
            again()
    return attempt()


def compute(
    study: Study,
    out: Path,
    cluster: ClusterSettings,
    *,
    shard: tuple[int, int] = WHOLE,
    progress: bool | None = None,
    retry_failed: bool = False,
    replace: bool = False,
    tell: Callable[[str], None],
    done: Callable[[Published], None] = lambda published: None,
) -> Computed:
    """Compute what is pending and publish it; it may be killed at any moment.

    ``tell`` gets a sentence for each file that is mended, ``done`` what is published; the others
    are as for :func:`run`.
    """
    # Before anything is computed that could not be published; another run may be publishing.
    stable(out, lambda: check_target(out), whole=True)

    def attempt() -> Computed:
        try:
            how = {"retry_failed": retry_failed, "replace": replace}
            summary = run(study, out, shard=shard, cluster=cluster, progress=progress, **how)
        except Unwritable:
            # One of which nothing is left to do needs no folder that can be written.
            open_, finished = {PENDING, FAILED} if retry_failed else {PENDING}, False
            with suppress(HdicaError):
                if is_current(study, out):
                    # Where only the published store was copied, nothing else is pending.
                    placed = place(study, out) if work_path(out).is_dir() else []
                    finished = not any(open_ & {*each.statuses.tolist()} for each in placed)
            if not finished:
                raise
            summary = RunSummary()
        if summary.note:
            tell(summary.note)
        if shard != WHOLE:
            return Computed(summary, None)
        found = published(study, out, replace)
        done(found)
        return Computed(summary, found)

    return mending(out, attempt, tell)
