"""What a method of computing a point is: its outputs, its cost and its one function."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING, Save
from hdica.systems.kernel import kernel_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Output:
    """One variable that a method returns.

    Parameters
    ----------
    name
        Name in datasets.
    dims
        Dimensions beyond the grid, ``n`` and ``seed``: ``("time",)`` for a trajectory.
    long_name, units
        CF attributes of the variable.
    """

    name: str
    dims: tuple[str, ...]
    long_name: str
    units: str = "1"


@dataclass(frozen=True)
class PointResult:
    """What one point gave.

    Parameters
    ----------
    values
        By output name, float64, shaped like the output's dims; NaN where not reached.
    diverged
        Empty, or one sentence that says why, at which step and time the point diverged.
    """

    values: dict[str, Array]
    diverged: str = ""


Refuses = Callable[[Any], str]
"""Empty if something applies to a system, else the sentence that says why not."""


def always(system: Any) -> str:
    """Empty: it applies to every system."""
    return ""


def refusal(function: Callable[[Any], object]) -> Refuses:
    """A method's ``refuses``: the sentence with which a function refuses a system, if it does."""

    def refuses(system: Any) -> str:
        try:
            function(system)
        except HdicaError as exc:
            return str(exc)
        return ""

    return refuses


Trial = tuple[Any, int | None]
"""A system and the seed of one point."""


def over_time(times: Array) -> dict[str, NDArray[Any]]:
    """Coordinates of trajectories: the output times."""
    return {"time": times}


def untimed(system: Any, compute: Callable[[], PointResult]) -> PointResult:
    """What ``compute`` gives for a point, with no time limit."""
    return compute()


class Role(StrEnum):
    """What a method is asked for; ``auto`` tries methods of one role in the order of rank."""

    SIMULATION = "simulation"
    LIMIT = "limit"
    STEADY_STATES = "steady states"
    BRANCHES = "branches"
    TRANSITIONS = "transitions"
    ESCAPE = "escape"
    BASELINE = "baseline"
    OTHER = "other"


class Bits(StrEnum):
    """On which processors a point of a method has the same bits."""

    ONE_KIND = "one kind"
    EVERY_KIND = "every kind"


Guard = Callable[[Any, Callable[[], PointResult]], PointResult]
"""``guard(system, compute)``: what ``compute()`` gives for a point, or an error."""
Many = Callable[[Sequence[Any], Array, Save, int, Guard], list[PointResult | HdicaError]]
Picture = Callable[[Any, Array, Save], tuple[Save, PointResult]]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to compute a point of a system, and what it promises.

    Parameters
    ----------
    name
        Name in studies and datasets.
    role
        What it is asked for.
    about
        What it computes, in a few words: for the tables of methods.
    accuracy
        ``"exact"``, ``"exact in law"``, ``"converged"`` (to a stated tolerance) or
        ``"approximate"``.
    outputs
        The variables it returns.
    run
        ``run(system, times, n, seed, save) -> PointResult`` for one point.
    seconds
        ``seconds(system, n, last_time)``: the cost model of one point on one core.
    prepares
        ``prepares(system)``: seconds that a process needs once, by what it prepares, such as the
        averages of a nonlinearity over a source, which serve every step size.
    fused
        Whether fused kernels of numbers take its time, which do not get faster as interpreted code
        does on another processor: see :mod:`hdica.process.machine`.
    rank
        Place in the order in which ``auto`` tries methods of its role; None to be named only.
    stochastic
        Whether a point needs a ``seed``.
    coords
        ``coords(times) -> {dim: values}`` for every dimension named by ``outputs``; by default
        the output times.
    refuses
        Empty if the method applies to this system, else the sentence that says why not; whoever
        checks a study waits for it, so it solves nothing.
    ignores
        Fields of the system on which the result does not depend.
    equations
        What is computed, with paper and equation numbers.
    engines
        Packages whose code can change its numbers: see :mod:`hdica.systems.kernel`.
    kernel
        Version of that code, part of every point's key; put together if not given.
    keeps
        What the method can keep beyond ``outputs`` if a study asks for it: some of
        ``"densities"``, ``"steady densities"``, ``"support"``, ``"functionals"``,
        ``"potential"``, ``"estimate"`` and ``"controls"`` (solver errors and negative controls of
        what is kept).
    extras
        Variables that it returns on request beside ``outputs``: if their names are in the
        ``extra`` of what is kept.
    together
        ``together(trials, times, n, save) -> [PointResult, ...]``: several points for less than
        one by one, with the same bits; None if nothing is gained.
    lanes
        How many points one call computes for little more than one: a block has as many.
    shared
        The same method with noise that points of the same n and seed share, whatever their
        parameters: each point keeps its law. None if there is no noise to share.
    noise
        ``"own"`` or ``"shared"``.
    finite
        Whether a point needs a dimension ``n``; None if exactly stochastic methods do. Where the
        dimension is a field of the system, even a stochastic method has none.
    held
        ``held(system, n)``: how many numbers a point has in memory at least while it is computed.
    counts
        Whether n is a number of particles, which no vector of the system's own fixes.
    varies
        The control parameter whose critical values, or whose branches, it finds.
    closed
        Whether the order parameters alone evolve, so that an unstable state divides the starts.
    many
        ``many(systems, times, save, threads, guard)``: the points of a grid, each with the bits
        that it has alone, an error in the place of one that has no result. None for one by one.
    picture
        ``picture(system, times, save)``: what is kept and the result, for a method that chooses
        the points of its densities only once it is solved.
    beyond
        ``beyond(system, last_time)``: empty, or why given samples are not enough until then. Such
        a method says itself how many samples it saw. None for samples without an end.
    bits
        Whether a point has the same bits on every kind of processor, whatever loops NumPy and
        kernels BLAS choose, or on one kind alone.
    bands, bias
        What a limit adds on request: sqrt(n) times the standard deviation of its order parameters
        in runs of a finite n, and n times what their mean is beyond it.
    """

    name: str
    role: Role
    accuracy: str
    outputs: tuple[Output, ...]
    run: Callable[[Any, Array, int | None, int | None, Save], PointResult]
    seconds: Callable[[Any, int | None, float], float]
    about: str = ""
    fused: bool = False
    rank: int | None = None
    stochastic: bool = False
    coords: Callable[[Array], dict[str, NDArray[Any]]] = over_time
    refuses: Refuses = always
    ignores: frozenset[str] = field(default_factory=frozenset)
    equations: str = ""
    engines: tuple[str, ...] = ()
    kernel: str = ""
    keeps: frozenset[str] = field(default_factory=frozenset)
    extras: tuple[Output, ...] = ()
    together: Callable[[Sequence[Trial], Array, int | None, Save], list[PointResult]] | None = None
    lanes: int = 1
    shared: Method | None = None
    noise: str = "own"
    finite: bool | None = None
    held: Callable[[Any, int | None], int] = lambda system, n: 0
    counts: bool = False
    varies: str = ""
    closed: bool = False
    many: Many | None = None
    picture: Picture | None = None
    beyond: Callable[[Any, float], str] | None = None
    bits: Bits = Bits.ONE_KIND
    bands: tuple[Output, ...] = ()
    bias: tuple[Output, ...] = ()
    prepares: Callable[[Any], Mapping[Hashable, float]] = lambda system: {}

    def __post_init__(self) -> None:
        if not self.kernel:
            object.__setattr__(self, "kernel", kernel_of(self.engines))

    @property
    def takes_n(self) -> bool:
        """Whether a point has a dimension n."""
        return self.stochastic if self.finite is None else self.finite

    def run_all(
        self, trials: Sequence[Trial], times: Array, n: int | None, save: Save = NOTHING
    ) -> list[PointResult]:
        """Every point, together where that is cheaper: the same bits as one by one."""
        if self.together is not None:
            return self.together(trials, times, n, save)
        return [self.run(system, times, n, seed, save) for system, seed in trials]

    def outputs_of(self, save: Save = NOTHING) -> tuple[Output, ...]:
        """Every variable it returns for what a study keeps."""
        extra = tuple(output for output in self.extras if output.name in save.extra)
        if save.bands:
            extra += self.bands
        if save.bias:
            extra += self.bias
        first = HISTOGRAM if self.stochastic else DENSITIES[0]
        saved = (first if o is DENSITIES[0] else o for k, o in _kept(save) if k in self.keeps)
        return self.outputs + extra + tuple(saved)

    def coords_of(
        self, times: Array, save: Save, own: Mapping[str, Sequence[float]]
    ) -> dict[str, NDArray[Any]]:
        """Values of every dimension of :meth:`outputs_of`.

        ``own`` are dimensions of the system's own, as its ``dims()`` has them.
        """
        found = {dim: np.asarray(values) for dim, values in own.items()} | self.coords(times)
        if any(k in self.keeps for k, _ in _kept(save)):
            found["entry"] = np.arange(max(save.estimate, 0))
            found["snapshot"] = np.asarray(save.snapshots, dtype=float)
            found["threshold"] = np.asarray(save.thresholds, dtype=float)
            if save.x:
                found |= {"x": np.asarray(save.x, dtype=float), "edge": save.edges}
        named = {dim for output in self.outputs_of(save) for dim in output.dims}
        return {dim: values for dim, values in found.items() if dim in named}

    def blank(
        self, times: Array, save: Save, own: Mapping[str, Sequence[float]], why: str
    ) -> PointResult:
        """A point without a result, and why it has none; parameters as of :meth:`coords_of`."""
        shapes = self._shapes(times, save, own)
        return PointResult({name: np.full(shape, np.nan) for name, shape in shapes.items()}, why)

    def bytes_of(self, times: Array, save: Save, own: Mapping[str, Sequence[float]]) -> int:
        """Bytes of the results of one point; parameters as of :meth:`coords_of`."""
        return 8 * sum(math.prod(shape) for shape in self._shapes(times, save, own).values())

    def _shapes(
        self, times: Array, save: Save, own: Mapping[str, Sequence[float]]
    ) -> dict[str, list[int]]:
        sizes = {dim: len(values) for dim, values in self.coords_of(times, save, own).items()}
        return {o.name: [sizes[dim] for dim in o.dims] for o in self.outputs_of(save)}


_BY_X = ("snapshot", "feature", "x")
_BY_THRESHOLD = ("snapshot", "threshold")
DENSITIES = (
    Output("density", _BY_X, "density of the estimate given the feature, at x"),
    Output(
        "cdf",
        ("snapshot", "feature", "edge"),
        "distribution function of the estimate x given the feature",
    ),
    Output("xi", ("feature",), "mean of xi over a group of the feature's entries"),
    Output("weight", ("feature",), "share of the feature's entries in a group"),
)
BY_STATE = ("fixed_point", "feature", "x")
STEADY_DENSITIES = (
    Output(
        "density",
        BY_STATE,
        "steady density of the estimate given the feature, at x; of a condensed state that of all "
        "but o(n) entries, whose E[x^2] is bulk < 1",
    ),
    Output(
        "cdf",
        (*BY_STATE[:2], "edge"),
        "steady distribution function of the estimate given the feature; of a condensed state that "
        "of all but o(n) entries",
    ),
    *DENSITIES[2:],
)
HISTOGRAM = Output(
    "density", _BY_X, "density of the estimate given the feature, mean over the bin around x"
)
"""What entries give in place of a density at x; over the same bins a limit has the differences of
its ``cdf`` at their edges."""
SUPPORT = (
    Output("tpr", _BY_THRESHOLD, "true positive rate: share of xi != 0 with abs(x) above"),
    Output("fpr", _BY_THRESHOLD, "false positive rate: share of xi = 0 with abs(x) above"),
    Output("misclassified", _BY_THRESHOLD, "share of entries on the wrong side of the threshold"),
)
ESTIMATE = (
    Output("estimate", ("snapshot", "entry"), "entry of the estimate x, with |x|^2 = n"),
    Output("xi_entry", ("entry",), "entry of the feature xi, with |xi|^2 = n"),
)
CONTROL = "with the pull b towards the feature wrong by 2 % (negative control)"
DENSITY_CONTROLS = (
    Output("cdf_control", ("snapshot", "feature", "edge"), f"distribution function {CONTROL}"),
)
SUPPORT_CONTROLS = (
    Output("tpr_control", _BY_THRESHOLD, f"true positive rate {CONTROL}"),
    Output("fpr_control", _BY_THRESHOLD, f"false positive rate {CONTROL}"),
)
POTENTIAL = Output("potential", _BY_X, "effective potential E_t(x, xi) of one entry")


def band_of(output: Output) -> Output:
    """How far runs of a finite n are from a variable of a limit."""
    words = f"limit of sqrt(n) times the standard deviation of: {output.long_name}"
    return Output(f"{output.name}_sd", output.dims, words)


def bias_of(output: Output) -> Output:
    """What n leaves of the mean of runs beyond a variable of a limit."""
    words = f"limit of n times (mean of runs - limit) of: {output.long_name}"
    return Output(f"{output.name}_bias", output.dims, words)


def _kept(save: Save) -> list[tuple[str, Output]]:
    """What a study keeps, as pairs of what a method must be able to keep and the variable."""
    kept: list[tuple[str, Output]] = []
    if save.x:
        kept += [("steady densities", o) for o in STEADY_DENSITIES]
    if save.snapshots and save.x:
        kept += [("densities", o) for o in DENSITIES]
        kept += [("controls", o) for o in DENSITY_CONTROLS]
        kept.append(("potential", POTENTIAL))
        if save.bands:
            kept += [("bands", band_of(o)) for o in (HISTOGRAM, DENSITIES[1])]
    if save.snapshots and save.thresholds:
        kept += [("support", o) for o in SUPPORT]
        kept += [("controls", o) for o in SUPPORT_CONTROLS]
        if save.bands:
            kept += [("bands", band_of(o)) for o in SUPPORT]
        if save.bias:
            kept += [("bias", bias_of(o)) for o in SUPPORT]
    if save.snapshots and save.estimate:
        kept += [("estimate", o) for o in ESTIMATE]
    for name, formula in save.functionals.items():
        mean = Output(name, ("time",), f"mean of {formula}")
        kept.append(("functionals", mean))
        if save.bands:
            kept.append(("bands", band_of(mean)))
        if save.bias:
            kept.append(("bias", bias_of(mean)))
        error = Output(f"{name}_error", ("time",), f"error of the mean of {formula}")
        wrong = Output(f"{name}_control", ("time",), f"mean of {formula} {CONTROL}")
        kept += [("controls", error), ("controls", wrong)]
    return kept
