"""A study of which nothing is left to do needs no place where anything could be written."""

from __future__ import annotations

from pathlib import Path

from hdica.errors import HdicaError, Unwritable
from hdica.sweep.files import store
from hdica.sweep.files.paths import work_path
from hdica.sweep.outcome.publish import is_current
from hdica.sweep.run import runner
from hdica.sweep.run.plan import place
from hdica.sweep.study.study import Study
from hdica.sweep.workers.settings import ClusterSettings


def is_finished(study: Study, out: str | Path, retry_failed: bool = False) -> bool:
    """Whether every point of a study is computed and published.

    Parameters
    ----------
    study
        A validated study.
    out
        Path of the published store.
    retry_failed
        Whether failed points count as pending.
    """
    if not is_current(study, out):
        return False
    open_ = {store.PENDING, store.FAILED} if retry_failed else {store.PENDING}
    try:
        # Where only the published store was copied, there is nothing else that could be pending.
        placed = place(study, out) if work_path(out).is_dir() else []
        return not any(open_ & {*one.statuses().tolist()} for one in placed)
    except HdicaError:
        return False


def run_or_finished(
    study: Study,
    out: str | Path,
    shard: tuple[int, int],
    cluster: ClusterSettings,
    progress: bool | None,
    retry_failed: bool,
    replace: bool,
    own: bool,
) -> runner.RunSummary:
    """Run a study; one that is finished needs no folder that can be written.

    Parameters
    ----------
    study, out, shard, cluster, progress, retry_failed, replace, own
        As for :func:`hdica.sweep.run.runner.run`.
    """
    try:
        return runner.run(
            study,
            out,
            shard=shard,
            cluster=cluster,
            progress=progress,
            retry_failed=retry_failed,
            replace=replace,
            own=own,
        )
    except Unwritable:
        if is_finished(study, out, retry_failed):
            return runner.RunSummary()
        raise
