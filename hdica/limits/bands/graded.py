"""Steps that are short just before the times asked for, where a function may still jump.

Backwards from its time a jump smooths out over the distance that noise leads in a step: steps grow
from there on by a factor, and on the other side, forwards, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.density.march import Plan

Array = NDArray[np.float64]
_SHARE, _LEAST, _GROWTH = 0.5, 2e-4, 2.0
"""Length of a step relative to what is left before a time; relative to that time, at least; and
relative to the step before it, at most."""


def _cut(start: float, ends: Array, times: Array, before: float) -> Iterator[float]:
    """Ends of steps as before, and more of them where they are too long."""
    t, last = start, before
    for end in ends.tolist():
        later = times[times >= end - 1e-12 * max(1.0, end)]
        while later.size:
            mark = float(later[0])
            most = max(_SHARE * (mark - t), _LEAST * max(1.0, mark))
            most = min(most, _GROWTH * last)
            if end - t <= most:
                break
            # Half of what is left rather than a step with next to nothing behind it.
            step = most if end - t > 1.5 * most else (end - t) / 2
            t, last = t + step, step
            yield t
        t, last = end, end - t
        yield end


def graded(plan: Plan, times: Array) -> Plan:
    """The plan with steps cut before the times, each of which is the end of a step."""
    runs, last = [], np.inf
    for run in plan.runs:
        ends = np.array(list(_cut(run.start, run.ends, times, last)))
        last = float(np.diff(np.concatenate([[run.start], ends]))[-1])
        runs.append(replace(run, ends=ends))
    return replace(plan, runs=tuple(runs))
