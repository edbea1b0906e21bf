"""What a method of computing a point is: what it computes, its outputs, its cost, its function."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING, Save

Array = NDArray[np.float64]
P = TypeVar("P", contravariant=True)
"""Class of the parameters that a method takes; of any system where none is named."""

BASE = 4  # version that every folder had when it got one of its own; keys leave it out
KERNEL_VERSION = str(BASE)
PREFIX = "hdica."
COMMON = ("hdica.ingredients", "hdica.systems")
FINITE = (*COMMON, "hdica.finite", "hdica.finite.random")
PROJECTED = (*FINITE, "hdica.finite.projected")
AVERAGES = "hdica.limits.averages"
NUMERICS = "hdica.limits.numerics"
OVERLAP = "hdica.limits.overlap"
PASSAGES = "hdica.limits.passage"
COLLAPSE = "hdica.limits.collapse"
NEAR_ZERO = "hdica.limits.escape"
MEAN_FIELD = "hdica.limits.mean_field"
BANDS = "hdica.limits.bands"


def version_of(folder: str) -> int:
    """Version of a folder of code, raised with any change in it that can change a number."""
    return int(getattr(import_module(folder), "VERSION", 1))


def kernel_of(folders: Iterable[str]) -> str:
    """Version of all code that a method uses, in packages with a ``VERSION``."""
    versions = {folder: version_of(folder) for folder in sorted(set(folders))}
    raised = [
        f"{folder.removeprefix(PREFIX)} {version}"
        for folder, version in versions.items()
        if version != BASE or not folder.startswith(PREFIX)
    ]
    return ", ".join([KERNEL_VERSION, *raised])


def home_of(function: Callable[..., object]) -> str:
    """The package that a function belongs to; of a module outside any package itself."""
    name: str = function.__module__
    return name.rpartition(".")[0] or name


@dataclass(frozen=True)
class Output:
    """One variable that a method returns."""

    name: str
    """Name in datasets."""
    dims: tuple[str, ...]
    """Dimensions beyond the grid, ``n`` and ``seed``: ``("time",)`` for a trajectory."""
    long_name: str
    units: str = "1"
    """CF attributes of the variable."""


@dataclass(frozen=True)
class PointResult:
    """What one point gave."""

    values: dict[str, Array]
    """By output name, float64, shaped like the output's dims; NaN where not reached."""
    diverged: str = ""
    """Empty, or one sentence that says why, at which step and time the point diverged."""


def arrays(**values: object) -> dict[str, Array]:
    """Numbers and arrays of a point as arrays of floats, by output name."""
    return {name: np.asarray(value, dtype=float) for name, value in values.items()}


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
"""What entries give in place of a density at x: a limit has differences of its ``cdf``."""
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


def saved_outputs(save: Save) -> list[tuple[str, Output]]:
    """What a study saves: pairs of what a method must be able to keep, and the variable."""
    kept: list[tuple[str, Output]] = []

    def keep(what: str, outputs: Iterable[Output]) -> None:
        kept.extend((what, output) for output in outputs)

    if save.x:
        keep("steady densities", STEADY_DENSITIES)
    if save.snapshots and save.x:
        keep("densities", DENSITIES)
        keep("controls", DENSITY_CONTROLS)
        keep("potential", [POTENTIAL])
        if save.bands:
            keep("bands", map(band_of, (HISTOGRAM, DENSITIES[1])))
    if save.snapshots and save.thresholds:
        keep("support", SUPPORT)
        keep("controls", SUPPORT_CONTROLS)
        keep("bands", map(band_of, SUPPORT if save.bands else ()))
        keep("bias", map(bias_of, SUPPORT if save.bias else ()))
    if save.snapshots and save.estimate:
        keep("estimate", ESTIMATE)
    for name, formula in save.functionals.items():
        means = [Output(name, ("time",), f"mean of {formula}")]
        error = Output(f"{name}_error", ("time",), f"error of the mean of {formula}")
        wrong = Output(f"{name}_control", ("time",), f"mean of {formula} {CONTROL}")
        keep("functionals", means)
        keep("bands", map(band_of, means if save.bands else ()))
        keep("bias", map(bias_of, means if save.bias else ()))
        keep("controls", [error, wrong])
    return kept


STATE_KINDS = ("informative", "uninformative", "condensed")
TRANSITION_KINDS = ("fold", "transcritical", "junction", "divergence", "hopf")
INFORMATIVE, FOLD = 0, 0  # codes of the first of each
ZERO = 1e-9
"""An overlap closer to 0 than this is 0 with rounding; such a steady state is uninformative."""


def codes(kinds: Iterable[object], names: tuple[str, ...]) -> Array:
    """Position of each kind among its names, as numbers that a store holds."""
    return np.array([names.index(str(kind)) for kind in kinds], dtype=float)


def words(values: Array, names: Sequence[str]) -> NDArray[np.object_]:
    """Kinds by their codes."""
    return np.array([names[int(code)] for code in values], dtype=object)


def padded(columns: Mapping[str, Array], size: int, what: str) -> dict[str, Array]:
    """Columns of a list of states, with NaN up to ``size``."""
    count = max(column.size for column in columns.values())
    if count > size:
        raise HdicaError(f"{count} {what} were found, more than the {size} a store holds")
    rest = np.full(size - count, np.nan)
    return {name: np.concatenate([column, rest]) for name, column in columns.items()}


Refuses = Callable[[P], str]
"""Empty if something applies to a system, else the sentence that says why not."""


def always(system: object) -> str:
    """Empty: it applies to every system."""
    return ""


def refusal(function: Callable[[P], object]) -> Refuses[P]:
    """A method's ``refuses``: the sentence with which a function refuses a system, if it does."""

    def refuses(system: P) -> str:
        try:
            function(system)
        except HdicaError as exc:
            return str(exc)
        return ""

    return refuses


Trial = tuple[P, int | None]  # a system and the seed of one point
Run = Callable[[P, Array, int | None, int | None, Save], PointResult]
"""``run(system, times, n, seed, save)``: one point; n and seed are None for a method without."""
RunAll = Callable[[Sequence[Trial[P]], Array, int | None, Save], list[PointResult]]
"""``compute(trials, times, n, save)``: several points, each with the bits that it has alone."""
Guard = Callable[[Any, Callable[[], PointResult]], PointResult]
"""``guard(system, compute)``: what ``compute()`` gives for a point, or an error."""


def untimed(system: object, compute: Callable[[], PointResult]) -> PointResult:
    """What ``compute`` gives for a point, with no time limit."""
    return compute()


def over_time(times: Array) -> dict[str, NDArray[Any]]:
    """Coordinates of trajectories: the output times."""
    return {"time": times}


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


class Size(StrEnum):
    """What the number n of a point is: none where the dimension is a field of the system."""

    DIMENSION = "dimension"
    PARTICLES = "number of particles"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class About:
    """What a method computes, how well, and by which code."""

    text: str = ""
    """What it computes, in a few words: for the tables of methods."""
    accuracy: str
    """``"exact"``, ``"exact in law"``, ``"converged"`` (as stated) or ``"approximate"``."""
    equations: str = ""
    """What is computed, with paper and equation numbers."""
    bits: Bits = Bits.ONE_KIND
    """Whether a point has the same bits on every kind of processor, or on one kind alone."""
    engines: tuple[str, ...] = ()
    """Packages whose code can change its numbers: see :func:`kernel_of`."""
    version: str = ""
    """Version of that code; made of the versions of ``engines`` if empty."""
    remark: str = ""
    """What a caption says of its curve: what it is, and what it is not."""
    noise: str = "own"
    """``"own"``, or ``"shared"`` where points of the same n and seed share their noise."""

    @cached_property
    def kernel(self) -> str:
        """Version of the code, part of every point's key."""
        shared = ", shared noise" if self.noise == "shared" else ""
        return (self.version or kernel_of(self.engines)) + shared


@dataclass(frozen=True)
class Outputs:
    """What a method returns."""

    always: tuple[Output, ...]
    """The variables of every point."""
    extras: tuple[Output, ...] = ()
    """Variables that it returns where ``extra`` names them."""
    bands: tuple[Output, ...] = ()
    bias: tuple[Output, ...] = ()
    """What a limit adds on request: sqrt(n) times the standard deviation of its order parameters in
    runs of a finite n, and n times what their mean is beyond it."""
    keeps: frozenset[str] = frozenset()
    """What a study can save beyond these: some of ``"densities"``, ``"steady densities"``,
    ``"support"``, ``"functionals"``, ``"potential"``, ``"estimate"`` and ``"controls"`` (solver
    errors and negative controls of what is saved)."""
    coords: Callable[[Array], dict[str, NDArray[Any]]] = over_time
    """``coords(times) -> {dim: values}`` for every dimension of the variables."""


def no_memory(system: object, n: int | None, last: float) -> int:
    """A point takes no memory to speak of."""
    return 0


@dataclass(frozen=True, kw_only=True)
class Cost(Generic[P]):
    """What a point takes."""

    seconds: Callable[[P, int | None, float], float]
    """``seconds(system, n, last_time)``: the cost model of one point on one core."""
    prepares: Callable[[P], Mapping[Hashable, float]] = lambda system: {}
    """Seconds that a process needs once, by what it prepares, such as averages over a source."""
    memory: Callable[[P, int | None, float], int] = no_memory
    """``memory(system, n, last_time)``: numbers that a computation of a point holds at least."""
    fused: bool = False
    """Whether fused kernels take its time, not interpreted code: :mod:`hdica.process.machine`."""


@dataclass(frozen=True, kw_only=True)
class Scope(Generic[P]):
    """To which systems a method applies, and what of them matters."""

    refuses: Refuses[P] = always
    """Empty, or why the method does not apply; it solves nothing, since a check waits for it."""
    ignores: frozenset[str] = frozenset()
    """Fields of the system on which the result does not depend."""
    beyond: Callable[[P, float], str] | None = None
    """``beyond(system, last_time)``: empty, or why samples do not last until then; such a method
    returns how many samples it saw. None for samples without an end.
    """
    n: Size | None = None
    """What the number n of a point is: by default the dimension of a simulation, and none else."""


@dataclass(frozen=True)
class Together(Generic[P]):
    """Several points for less than one by one, with the same bits."""

    compute: RunAll[P]
    lanes: int = 1
    """How many points one call computes for little more than one."""


@dataclass(frozen=True, kw_only=True)
class Method(Generic[P]):
    """A way to compute a point: a :class:`Simulation`, a :class:`Limit` or :class:`States`."""

    stochastic: ClassVar[bool] = False

    name: str
    """Name in studies and datasets."""
    role: Role
    rank: int | None = None
    """Place in the order in which ``auto`` tries methods of its role; None to be named only."""
    about: About
    outputs: Outputs
    cost: Cost[P]
    scope: Scope[P] = field(default_factory=Scope)
    run: Run[P]
    together: Together[P] | None = None
    """How it computes several points at once; None if nothing is gained."""

    @property
    def takes_n(self) -> bool:
        """Whether a point has a number n."""
        return self.stochastic if self.scope.n is None else self.scope.n is not Size.NONE

    @property
    def counts(self) -> bool:
        """Whether n is a number of particles, which no vector of the system's own fixes."""
        return self.scope.n is Size.PARTICLES

    @property
    def lanes(self) -> int:
        """How many points one call computes for little more than one: a block has as many."""
        return 1 if self.together is None else self.together.lanes

    def run_all(
        self, trials: Sequence[Trial[P]], times: Array, n: int | None, save: Save = NOTHING
    ) -> list[PointResult]:
        """Every point, together where that is cheaper: the same bits as one by one."""
        if self.together is None:
            return [self.run(system, times, n, seed, save) for system, seed in trials]
        return self.together.compute(trials, times, n, save)

    def outputs_of(self, save: Save = NOTHING) -> tuple[Output, ...]:
        """Every variable it returns for what a study saves."""
        returns = self.outputs
        extra = tuple(output for output in returns.extras if output.name in save.extra)
        if save.bands:
            extra += returns.bands
        if save.bias:
            extra += returns.bias
        first = HISTOGRAM if self.stochastic else DENSITIES[0]
        saved = (
            first if output is DENSITIES[0] else output
            for what, output in saved_outputs(save)
            if what in returns.keeps
        )
        return returns.always + extra + tuple(saved)

    def coords_of(
        self, times: Array, save: Save, own: Mapping[str, Sequence[float]]
    ) -> dict[str, NDArray[Any]]:
        """Values of every dimension of :meth:`outputs_of`; ``own`` are the system's ``dims()``."""
        coords = {dim: np.asarray(values) for dim, values in own.items()}
        coords |= self.outputs.coords(times)
        if any(what in self.outputs.keeps for what, _ in saved_outputs(save)):
            coords["entry"] = np.arange(max(save.estimate, 0))
            coords["snapshot"] = np.asarray(save.snapshots, dtype=float)
            coords["threshold"] = np.asarray(save.thresholds, dtype=float)
            if save.x:
                coords |= {"x": np.asarray(save.x, dtype=float), "edge": save.edges}
        named = {dim for output in self.outputs_of(save) for dim in output.dims}
        return {dim: values for dim, values in coords.items() if dim in named}

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


@dataclass(frozen=True, kw_only=True)
class Simulation(Method[P]):
    """A method that draws random numbers: a point has a seed."""

    stochastic: ClassVar[bool] = True

    shared: Simulation[P] | None = None
    """The same method with noise that points of the same n and seed share: each keeps its law."""


@dataclass(frozen=True)
class Densities(Generic[P]):
    """How a limit that is a density gives several points, or chooses where it shows itself."""

    picture: Callable[[P, Array, Save], tuple[Save, PointResult]]
    """``picture(system, times, save)``: what is saved and the result, where the points of the
    densities are chosen only once it is solved."""
    many: (
        Callable[[Sequence[P], Array, Save, int, Guard], list[PointResult | HdicaError]] | None
    ) = None
    """``many(systems, times, save, threads, guard)``: the points of a grid, each with the bits that
    it has alone, an error in the place of one that has no result. None for one by one."""


@dataclass(frozen=True, kw_only=True)
class Limit(Method[P]):
    """A method that draws nothing: a limit, or a prediction at finite n."""

    closed: bool = False
    """Whether the order parameters alone evolve, so that an unstable state divides the starts."""
    densities: Densities[P] | None = None
    """More of a limit that is a density; None of any other."""


@dataclass(frozen=True, kw_only=True)
class States(Method[P]):
    """A method that finds steady states, branches of them, or their transitions."""

    varies: str = ""
    """The control parameter whose critical values, or whose branches, it finds."""


def varied(method: Method) -> str:
    """The parameter whose critical values or branches a method finds; empty of any other."""
    return method.varies if isinstance(method, States) else ""


def densities_of(method: Method) -> Densities | None:
    """More of a limit that is a density; None of any other method."""
    return method.densities if isinstance(method, Limit) else None


def shared_twin(method: Method) -> Method | None:
    """The method with noise that points of the same n and seed share, if there is one."""
    return method.shared if isinstance(method, Simulation) else None
