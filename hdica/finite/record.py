"""The one recording loop at finite n: begin a state, advance it from time to time and observe it.

Observed are order parameters and the measure of the entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdica.errors import HdicaError
from hdica.finite.random.streams import Stream, run_length
from hdica.ingredients.formula import Formula, parse_functional
from hdica.ingredients.priors import Prior
from hdica.ingredients.quadrature import dot
from hdica.ingredients.save import NOTHING, Save
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.starts import Start
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
OVERLAP, PENALTY, PRODUCT = "xi.x/n", "x.phi(x)/n", "x.x/n"
"""Names of order parameters here: systems call them as their users do."""


@dataclass(frozen=True, eq=False)
class Observation:
    """What to read off a state that is updated in place, each by output name.

    ``at_times`` gives the numbers of every output time, ``at_snapshots`` the arrays of every
    snapshot (``snapshots``, each one of the output times), ``once`` holds what does not change.
    """

    at_times: Callable[[], Mapping[str, float | Array]]
    at_snapshots: Callable[[], dict[str, Array]] = dict
    snapshots: tuple[float, ...] = ()
    once: dict[str, Array] = field(default_factory=dict)


def order_parameters(xi: Array, x: Array, phi: Formula) -> dict[str, float]:
    """Order parameters of a state: feature and estimate of shape (n,), |xi|^2 = |x|^2 = n.

    Beside :data:`OVERLAP` and :data:`PENALTY`, ``largest`` = max x_i^2/n is the share of |x|^2 on
    its largest entry: of order log(n)/n, unless the estimate condenses.
    """
    n = xi.size
    return {
        OVERLAP: dot(xi, x) / n,
        PENALTY: float(np.mean(x * phi.value(x))),
        "largest": float(np.max(x * x)) / n,
    }


def observe(xi: Array, x: Array, prior: Prior, phi: Formula, save: Save = NOTHING) -> Observation:
    """Order parameters, and what a study keeps of the measure of (xi_i, x_i).

    That measure is eq. (2) of Wang and Lu 2016; the prior says the groups of the entries. The
    estimate, of shape (n,) as the feature, is read anew at every call.
    """
    functionals = {
        name: parse_functional(text, save.constants) for name, text in save.functionals.items()
    }
    for name in sorted(functionals.keys() & order_parameters(xi, x, phi).keys()):
        raise HdicaError(f"functional {name!r} is not allowed (the order parameter has this name)")

    def at_times() -> dict[str, float]:
        means = {name: f.mean(xi, x) for name, f in functionals.items()}
        return order_parameters(xi, x, phi) | means

    if not save.snapshots or not (save.x or save.thresholds or save.estimate):
        return Observation(at_times)
    labels, groups = prior.classify(xi), prior.group_values.size

    def at_snapshots() -> dict[str, Array]:
        # Entries of a feature that moves have changed places since.
        labels = prior.classify(xi)
        densities = by_group(x, labels, groups, save.edges) if save.x else {}
        thresholds = np.asarray(save.thresholds, dtype=float)
        estimate = {"estimate": first_entries(x, save.estimate)} if save.estimate else {}
        return estimate | densities | (support(xi, x, thresholds) if save.thresholds else {})

    once = realised_groups(xi, labels, groups) if save.x else {}
    if save.estimate:
        once["xi_entry"] = first_entries(xi, save.estimate)
    return Observation(at_times, at_snapshots, save.snapshots, once)


def first_entries(x: Array, count: int) -> Array:
    """The first entries of a vector, NaN where it has no more; shape (count,)."""
    entries = np.full(count, np.nan)
    entries[: x.size] = x[:count]
    return entries


def realised_groups(xi: Array, labels: NDArray[np.int64], groups: int) -> dict[str, Array]:
    """Mean ``xi`` (NaN in an empty group) and share ``weight`` of each group, shape (groups,)."""
    sizes = np.bincount(labels, minlength=groups)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(labels, xi, minlength=groups) / sizes
    return {"xi": mean, "weight": sizes / xi.size}


def by_group(x: Array, labels: NDArray[np.int64], groups: int, edges: Array) -> dict[str, Array]:
    """Histogram and distribution function of the estimate's entries in each group.

    ``density`` of shape (groups, edges - 1) integrates to the share of the group inside the edges;
    ``cdf`` is of shape (groups, edges); both are NaN in an empty group. Bins are closed on the
    right as the distribution function is, so that an entry on an edge (soft thresholding makes many
    that are exactly 0) is in the same bin for both.
    """
    cells = edges.size + 1
    cell = labels * cells + np.searchsorted(edges, x, side="left")
    counts = np.bincount(cell, minlength=groups * cells).reshape(groups, cells)
    with np.errstate(invalid="ignore"):
        share = counts / counts.sum(axis=1, keepdims=True)
        below = np.cumsum(counts, axis=1) / counts.sum(axis=1, keepdims=True)
    return {"density": share[:, 1:-1] / np.diff(edges), "cdf": below[:, :-1]}


def support(xi: Array, x: Array, thresholds: Array) -> dict[str, Array]:
    """Recovery of the support {xi != 0} by abs(x) > threshold, each of shape (thresholds,).

    ``tpr`` is the share of the support above the threshold, ``fpr`` that of the other entries (NaN
    if there are none), ``misclassified`` the share of all entries on the wrong side.
    """
    inside = xi != 0
    above = np.abs(x) > thresholds[:, None]
    hits, alarms = np.sum(above & inside, axis=1), np.sum(above & ~inside, axis=1)
    positives = np.count_nonzero(inside)
    negatives = xi.size - positives
    return {
        "tpr": hits / positives,
        "fpr": alarms / negatives if negatives else np.full(thresholds.size, np.nan),
        "misclassified": (positives - hits + alarms) / xi.size,
    }


_LINE = 64


def aligned_zeros(*shape: int) -> NDArray[np.float64]:
    """Zeros that begin with a cache line, so that no vector straddles two."""
    raw = np.zeros(8 * math.prod(shape) + _LINE - 1, dtype=np.uint8)
    first = -raw.__array_interface__["data"][0] % _LINE
    return raw[first : raw.size - _LINE + 1 + first].view(np.float64).reshape(shape)


Advance = Callable[[Array, Array], NDArray[np.int64]]
Values = tuple[dict[str, Array], str]


def steps_of(times: Array, n: int) -> NDArray[np.int64]:
    """Step k = floor(t n) of each time, forgiving the rounding of decimal times."""
    return np.floor(times * n * (1 + 1e-12) + 1e-9).astype(np.int64)


def begin(prior: Prior, start: Start, n: int, stream: Stream) -> tuple[Array, Array]:
    """Feature xi and first estimate x, each of shape (n,), from the stream ``"start"``."""
    rng = stream("start")
    xi = prior.feature(rng, n)
    check_deadline()
    return contiguous(xi), contiguous(start.estimate(rng, xi))


def orthonormal(rng: np.random.Generator, count: int, n: int, first: Array | None = None) -> Array:
    """Random orthonormal rows, shape (count, n), by Gram and Schmidt twice: no threads of BLAS.

    If there is a ``first``, of shape (n,) and length 1, it is the first of them.
    """
    rows = rng.standard_normal((count, n))
    if first is not None:
        rows[0] = first
    for i, row in enumerate(rows):
        for other in (*rows[:i], *rows[:i]):
            row -= dot(other, row) * other
        row /= math.sqrt(dot(row, row))
    return rows


def snapshot_rows(snapshots: tuple[float, ...], times: Array) -> dict[int, list[int]]:
    """Which snapshots are taken at each output time, forgiving the rounding of decimal times."""
    rows: dict[int, list[int]] = {}
    for row, snapshot in enumerate(snapshots):
        nearest = int(np.argmin(np.abs(times - snapshot)))
        if abs(times[nearest] - snapshot) > 1e-12 * abs(snapshot) + 1e-9:
            raise HdicaError(
                f"snapshots: t = {snapshot:g} is not allowed (a snapshot is one of the output "
                f"times; the nearest is {times[nearest]:g})"
            )
        rows.setdefault(nearest, []).append(row)
    return rows


def not_finite() -> str:
    """Why a kernel stops, unless it can stop for another reason."""
    return "the update was not finite"


@dataclass(eq=False)
class Track:
    """One point while it runs: what it draws, what is seen of it, and how it ended.

    ``draw_source(size)`` continues the stream of sources, None for a kernel that draws for itself:
    an array of shape (size,), or (size, width) for steps that take ``width`` numbers each;
    step k uses the step size tau(k/n) of the schedule, which is computed once for all points that
    share it; ``why()`` says what happened, after a step that did not succeed. ``diverged`` is
    empty, or the sentence that says at which step and time the point stopped.
    """

    observation: Observation
    draw_source: Callable[[int], Array] | None
    schedule: Schedule
    why: Callable[[], str] = not_finite
    diverged: str = ""
    recorded: dict[str, Array] = field(default_factory=dict)
    _rows: dict[int, list[int]] = field(default_factory=dict)

    def open(self, times: Array) -> None:
        """Make room for what will be seen, NaN where it is not reached."""
        check_deadline()
        seen = self.observation
        self._rows = snapshot_rows(seen.snapshots, times)
        self.recorded = {
            name: np.full((times.size, *np.shape(value)), np.nan)
            for name, value in seen.at_times().items()
        }
        for name, value in seen.at_snapshots().items():
            self.recorded[name] = np.full((len(seen.snapshots), *value.shape), np.nan)
        self.recorded |= seen.once

    def see(self, index: int) -> None:
        """Record the present state at an output time."""
        for name, value in self.observation.at_times().items():
            self.recorded[name][index] = value
        if index in self._rows:
            for name, array in self.observation.at_snapshots().items():
                self.recorded[name][self._rows[index]] = array

    def stop(self, step: int, n: int) -> None:
        """Note that a step did not succeed."""
        self.diverged = f"{self.why()} at step {step} (t = {step / n:.6g})"


def fill_step_sizes(columns: Array, schedules: Sequence[Schedule], when: Array) -> None:
    """Step sizes at times of shape (steps,), a column a schedule: each is computed once."""
    sizes: dict[Schedule, Array | float] = {}
    for column, schedule in enumerate(schedules):
        if schedule not in sizes:
            fixed = schedule.constant
            sizes[schedule] = schedule.value(when) if fixed is None else fixed
        columns[:, column] = sizes[schedule]


AT_ONCE = 20_000_000
"""Numbers that kernels pass over between two checks of the deadline: a tenth of a second."""


class _Run:
    """Sources and step sizes of a run of steps, one column a point and zeros in the others."""

    def __init__(self, tracks: Sequence[Track], n: int, columns: int, width: int) -> None:
        self.tracks, self.n, self.columns, self.width = tracks, n, columns, width
        self.first, self.last = 0, 0
        self.source = self.tau = np.zeros((0, columns))

    def reach(self, step: int) -> None:
        """Draw the next run if this step lies behind the present one."""
        if step < self.last:
            return
        # The wider a step, the fewer a run: the room that they need stays what it is.
        size = max(1, run_length(step) // self.width)
        self.first, self.last = step, step + size
        shape = (size, self.columns)
        new = self.tau.shape != shape
        if new:
            within = shape if self.width == 1 else (size, self.width, self.columns)
            self.source, self.tau = np.zeros(within), np.zeros(shape)
        if new or any(t.schedule.constant is None for t in self.tracks):
            when = (step + np.arange(size)) / self.n
            fill_step_sizes(self.tau, [track.schedule for track in self.tracks], when)
        for column, track in enumerate(self.tracks):
            if track.draw_source is not None:
                self.source[..., column] = track.draw_source(size)


def record(
    advance: Advance,
    tracks: Sequence[Track],
    times: Array,
    n: int,
    columns: int | None = None,
    width: int = 1,
    numbers: int = 1,
) -> list[Values]:
    """Run points side by side and observe them at the given times.

    ``advance(source, tau)`` makes as many steps as the arrays, of shape (steps, columns), have
    rows, in place, and returns how many succeeded, one number a column. If there are more
    ``columns`` than points, those left over are zero. Where a step takes ``width`` > 1 numbers, the
    source is of shape (steps, width, columns). The more ``numbers`` a step passes over, the fewer
    steps are made between two checks of the deadline, which changes no result.

    Returned are for every point the values and why it diverged. Values are one array of shape (T,
    ...) per number or array read at every time and of shape (snapshots, ...) per one at the
    snapshots, NaN after a divergence; and what does not change.
    """
    for track in tracks:
        track.open(times)
    run = _Run(tracks, n, columns or len(tracks), width)
    done, alive, most = 0, list(enumerate(tracks)), max(1, AT_ONCE // numbers)
    for index, target in enumerate(steps_of(times, n).tolist()):
        while done < target and alive:
            check_deadline()
            run.reach(done)
            stop = min(target, run.last, done + most)
            part = slice(done - run.first, stop - run.first)
            made = advance(run.source[part], run.tau[part])
            for place, track in alive:
                if made[place] < stop - done:
                    track.stop(done + int(made[place]), n)
            alive = [(place, track) for place, track in alive if not track.diverged]
            done = stop
        for _, track in alive:
            track.see(index)
    return [(track.recorded, track.diverged) for track in tracks]


def contiguous(values: ArrayLike) -> Array:
    """Writable float64 array in C order, as the compiled kernels take it."""
    return np.require(values, dtype=float, requirements=["C", "W"])
