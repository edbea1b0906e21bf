"""The points of a study by its methods alone: plain processes, each with its part of the seeds.

Nothing is stored, scheduled or sent but the sum of the last overlaps. Processes have started,
imported and computed one point of each method before the clock runs.
"""

from __future__ import annotations

import json
import multiprocessing
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from hdica.study.segment import Segment, segments_of
from hdica.study.study import study_from
from hdica.systems.system import system_named


def overlap_sum(segment: Segment, seeds: tuple[int, ...], cells: int | None = None) -> float:
    """Sum of the last overlaps over cells (all if None) and some seeds of one segment."""
    system, times = system_named(segment.system).parameters, np.array(segment.times)
    total = 0.0
    for cell in range(segment.cells.size if cells is None else cells):
        built = system.model_validate(json.loads(segment.cells.systems(np.array([cell]))[0]))
        trials = [(built, seed) for seed in seeds]
        for result in segment.method.run_all(trials, times, segment.n, segment.save):
            total += float(result.values["Q"][-1])
    return total


def _part(content: dict[str, Any], part: int, parts: int, driver: Connection) -> None:
    """What one process does: get ready, say so, and compute its part each time it is told to."""
    segments = segments_of(study_from(content))
    for segment in segments:
        overlap_sum(segment, segment.seeds[:1], cells=1)
    driver.send(0.0)
    while driver.recv():
        driver.send(sum(overlap_sum(one, one.seeds[part::parts]) for one in segments))


class Bare:
    """Processes that wait for the word to compute the points of a study.

    Parameters
    ----------
    content
        A study of stochastic methods, as plain data.
    workers
        Processes; each computes every ``workers``-th seed.
    """

    def __init__(self, content: dict[str, Any], workers: int) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._ends = []
        for part in range(workers):
            ours, theirs = spawning.Pipe()
            arguments = (content, part, workers, theirs)
            spawning.Process(target=_part, args=arguments, daemon=True).start()
            self._ends.append(ours)
        self._answers()

    def _answers(self) -> float:
        return float(sum(end.recv() for end in self._ends))

    def __call__(self) -> float:
        """Compute every point; the sum of the last overlaps."""
        for end in self._ends:
            end.send(True)
        return self._answers()

    def close(self) -> None:
        """Let the processes end."""
        for end in self._ends:
            end.send(False)
