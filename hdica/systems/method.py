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
from hdica.systems.outputs import DENSITIES, HISTOGRAM, Array, Output, PointResult, saved_outputs

P = TypeVar("P", contravariant=True)
"""Class of the parameters that a method takes; of any system where none is named."""

BASE = 4
"""Version that every folder had when it got one of its own; keys leave it out."""
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
    """Version of a folder of code, such as ``"hdica.finite.projected"`` or a plug-in's package.

    It is raised with any change in the folder that can change a number; only points of methods that
    use the folder are then computed anew.
    """
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


def home_of(function: Callable[..., Any]) -> str:
    """The package that a function belongs to; of a module outside any package itself."""
    name: str = function.__module__
    return name.rpartition(".")[0] or name


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


Trial = tuple[P, int | None]
"""A system and the seed of one point."""
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
    """What the number n of a point is."""

    DIMENSION = "dimension"
    PARTICLES = "number of particles"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class About:
    """What a method computes, how well, and by which code.

    Parameters
    ----------
    text
        What it computes, in a few words: for the tables of methods.
    accuracy
        ``"exact"``, ``"exact in law"``, ``"converged"`` (to a stated tolerance) or
        ``"approximate"``.
    equations
        What is computed, with paper and equation numbers.
    bits
        Whether a point has the same bits on every kind of processor, whatever loops NumPy and
        kernels BLAS choose, or on one kind alone.
    engines
        Packages whose code can change its numbers: see :func:`kernel_of`.
    version
        Version of that code; made of the versions of ``engines`` if empty.
    noise
        ``"own"``, or ``"shared"`` where points of the same n and seed share their noise.
    """

    text: str = ""
    accuracy: str
    equations: str = ""
    bits: Bits = Bits.ONE_KIND
    engines: tuple[str, ...] = ()
    version: str = ""
    noise: str = "own"

    @cached_property
    def kernel(self) -> str:
        """Version of the code, part of every point's key."""
        shared = ", shared noise" if self.noise == "shared" else ""
        return (self.version or kernel_of(self.engines)) + shared


@dataclass(frozen=True)
class Outputs:
    """What a method returns.

    Parameters
    ----------
    always
        The variables of every point.
    extras
        Variables that it returns on request, where their names are in the ``extra`` of what is
        saved.
    bands, bias
        What a limit adds on request: sqrt(n) times the standard deviation of its order parameters
        in runs of a finite n, and n times what their mean is beyond it.
    keeps
        What it can save beyond these if a study asks for it: some of ``"densities"``,
        ``"steady densities"``, ``"support"``, ``"functionals"``, ``"potential"``, ``"estimate"``
        and ``"controls"`` (solver errors and negative controls of what is saved).
    coords
        ``coords(times) -> {dim: values}`` for every dimension of the variables; by default the
        output times.
    """

    always: tuple[Output, ...]
    extras: tuple[Output, ...] = ()
    bands: tuple[Output, ...] = ()
    bias: tuple[Output, ...] = ()
    keeps: frozenset[str] = frozenset()
    coords: Callable[[Array], dict[str, NDArray[Any]]] = over_time


def no_memory(system: object, n: int | None) -> int:
    """A point takes no memory to speak of."""
    return 0


@dataclass(frozen=True, kw_only=True)
class Cost(Generic[P]):
    """What a point takes.

    Parameters
    ----------
    seconds
        ``seconds(system, n, last_time)``: the cost model of one point on one core.
    prepares
        ``prepares(system)``: seconds that a process needs once, by what it prepares, such as the
        averages of a nonlinearity over a source, which serve every step size.
    memory
        ``memory(system, n)``: how many numbers a point has in memory at least while it is computed.
    fused
        Whether fused kernels of numbers take its time, which do not get faster as interpreted code
        does on another processor: see :mod:`hdica.process.machine`.
    """

    seconds: Callable[[P, int | None, float], float]
    prepares: Callable[[P], Mapping[Hashable, float]] = lambda system: {}
    memory: Callable[[P, int | None], int] = no_memory
    fused: bool = False


@dataclass(frozen=True, kw_only=True)
class Scope(Generic[P]):
    """To which systems a method applies, and what of them matters.

    Parameters
    ----------
    refuses
        Empty if the method applies to this system, else the sentence that says why not; a check of
        a study waits for it, so it solves nothing.
    ignores
        Fields of the system on which the result does not depend.
    beyond
        ``beyond(system, last_time)``: empty, or why the samples of the system are not enough until
        then. Such a method returns how many samples it saw. None for samples without an end.
    n
        What the number n of a point is; by default a dimension of what is simulated, and of all
        else there is none. ``Size.NONE`` where the dimension is a field of the system,
        ``Size.PARTICLES`` where no vector of the system fixes n.
    """

    refuses: Refuses[P] = always
    ignores: frozenset[str] = frozenset()
    beyond: Callable[[P, float], str] | None = None
    n: Size | None = None


@dataclass(frozen=True, kw_only=True)
class Method(Generic[P]):
    """A way to compute a point of a system; :class:`Simulation`, :class:`Limit`, :class:`States`.

    Parameters
    ----------
    name
        Name in studies and datasets.
    role
        What it is asked for.
    rank
        Place in the order in which ``auto`` tries methods of its role; None to be named only.
    about
        What it computes, how well, and by which code.
    outputs
        The variables it returns.
    cost
        What a point takes.
    scope
        To which systems it applies.
    run
        ``run(system, times, n, seed, save)``: the result of one point.
    """

    stochastic: ClassVar[bool] = False

    name: str
    role: Role
    rank: int | None = None
    about: About
    outputs: Outputs
    cost: Cost[P]
    scope: Scope[P] = field(default_factory=Scope)
    run: Run[P]

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
        return 1

    def run_all(
        self, trials: Sequence[Trial[P]], times: Array, n: int | None, save: Save = NOTHING
    ) -> list[PointResult]:
        """Every point, together where that is cheaper: the same bits as one by one."""
        return [self.run(system, times, n, seed, save) for system, seed in trials]

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
        """Values of every dimension of :meth:`outputs_of`.

        ``own`` are dimensions of the system's own, as its ``dims()`` has them.
        """
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


@dataclass(frozen=True)
class Together(Generic[P]):
    """Several points for less than one by one, with the same bits.

    Parameters
    ----------
    compute
        ``compute(trials, times, n, save) -> [PointResult, ...]``.
    lanes
        How many points one call computes for little more than one.
    """

    compute: RunAll[P]
    lanes: int = 1


@dataclass(frozen=True, kw_only=True)
class Simulation(Method[P]):
    """A method that draws random numbers: a point has a seed.

    Parameters
    ----------
    together
        How it computes several points at once; None if nothing is gained.
    shared
        The same method with noise that points of the same n and seed share, whatever their
        parameters: each point keeps its law. None if there is no noise to share.
    """

    stochastic: ClassVar[bool] = True

    together: Together[P] | None = None
    shared: Simulation[P] | None = None

    @property
    def lanes(self) -> int:
        """How many points one call computes for little more than one: a block has as many."""
        return 1 if self.together is None else self.together.lanes

    def run_all(
        self, trials: Sequence[Trial[P]], times: Array, n: int | None, save: Save = NOTHING
    ) -> list[PointResult]:
        """Every point, together where that is cheaper: the same bits as one by one."""
        if self.together is None:
            return super().run_all(trials, times, n, save)
        return self.together.compute(trials, times, n, save)


@dataclass(frozen=True)
class Densities(Generic[P]):
    """How a limit that is a density gives several points, or chooses where it shows itself.

    Parameters
    ----------
    picture
        ``picture(system, times, save)``: what is saved and the result, where the points of the
        densities are chosen only once it is solved.
    many
        ``many(systems, times, save, threads, guard)``: the points of a grid, each with the bits
        that it has alone, an error in the place of one that has no result. None for one by one.
    """

    picture: Callable[[P, Array, Save], tuple[Save, PointResult]]
    many: (
        Callable[[Sequence[P], Array, Save, int, Guard], list[PointResult | HdicaError]] | None
    ) = None


@dataclass(frozen=True, kw_only=True)
class Limit(Method[P]):
    """A method that draws nothing: a limit, or a prediction at finite n.

    Parameters
    ----------
    closed
        Whether the order parameters alone evolve, so that an unstable state divides the starts.
    densities
        More of a limit that is a density; None of any other.
    """

    closed: bool = False
    densities: Densities[P] | None = None


@dataclass(frozen=True, kw_only=True)
class States(Method[P]):
    """A method that finds steady states, branches of them, or their transitions.

    Parameters
    ----------
    varies
        The control parameter whose critical values, or whose branches, it finds.
    """

    varies: str = ""


def varied(method: Method) -> str:
    """The parameter whose critical values or branches a method finds; empty of any other."""
    return method.varies if isinstance(method, States) else ""


def shared_twin(method: Method) -> Method | None:
    """The method with noise that points of the same n and seed share, if there is one."""
    return method.shared if isinstance(method, Simulation) else None
