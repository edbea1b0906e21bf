"""Compute what is pending of a study and publish it, for the command line and for Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hdica.errors import HdicaError, Unwritable
from hdica.run import runner
from hdica.run.settings import ClusterSettings
from hdica.status import FAILED, PENDING
from hdica.store.paths import work_path
from hdica.store.publish import check_target, is_current, publish_new
from hdica.store.repair import mending
from hdica.store.results import stable
from hdica.store.working import place
from hdica.study.study import Study

WHOLE = (0, 1)
"""The shard that is all of a study."""


@dataclass(frozen=True)
class Published:
    """What a published store holds."""

    out: Path
    counts: Counter[str]  # points by status
    is_new: bool  # whether it has just been published, rather than found as it should be

    @property
    def sentence(self) -> str:
        """That it is there."""
        what = "is published" if self.is_new else "is up to date"
        return f"{self.out} {what}: {sum(self.counts.values())} points"

    @property
    def diverged(self) -> str:
        """That points diverged, empty if none did."""
        count = self.counts["diverged"]
        return f"{count} points diverged; when and why is in the variable 'reason'" * bool(count)


@dataclass(frozen=True)
class Computed:
    """What became of a study."""

    summary: runner.RunSummary  # what was computed now
    published: Published | None  # None for a part of a study

    def missing(self, where: str, again: str) -> str:
        """What is missing of the results ``where``, empty if nothing is.

        ``again`` is what computes failed points again.
        """
        if self.summary.lost:
            why = self.summary.lost[0]
            return f"{self.summary.pending} points are pending; a rerun computes them ({why})"
        counts = self.summary.counts if self.published is None else self.published.counts
        if counts["failed"]:
            return (
                f"{counts['failed']} points failed; their reasons are in the variable 'reason' of "
                f"{where} ({again} computes them again)"
            )
        return ""


def published(study: Study, out: Path, replace: bool = False) -> Published:
    """Publish a study if there is anything new."""
    manifest, is_new = publish_new(study, out, replace)
    counts: Counter[str] = Counter()
    for some in manifest["counts"].values():
        counts.update(some)
    return Published(out, counts, is_new)


def _is_finished(study: Study, out: Path, retry_failed: bool) -> bool:
    """Whether every point of a study is computed and published."""
    if not is_current(study, out):
        return False
    open_ = {PENDING, FAILED} if retry_failed else {PENDING}
    try:
        # Where only the published store was copied, there is nothing else that could be pending.
        placed = place(study, out) if work_path(out).is_dir() else []
        return not any(open_ & {*one.statuses.tolist()} for one in placed)
    except HdicaError:
        return False


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

    ``tell`` is given a sentence for each file that was cut short and is mended, ``done`` what is
    published; the others are as for :func:`hdica.run.runner.run`.
    """
    # Before anything is computed that could not be published; another run may be publishing.
    stable(out, lambda: check_target(out), whole=True)

    def attempt() -> Computed:
        try:
            summary = runner.run(
                study,
                out,
                shard=shard,
                cluster=cluster,
                progress=progress,
                retry_failed=retry_failed,
                replace=replace,
            )
        except Unwritable:
            # One of which nothing is left to do needs no folder that can be written.
            if not _is_finished(study, out, retry_failed):
                raise
            summary = runner.RunSummary()
        if shard != WHOLE:
            return Computed(summary, None)
        found = published(study, out, replace)
        done(found)
        return Computed(summary, found)

    return mending(out, attempt, tell)
