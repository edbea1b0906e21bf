"""What the report of a study shows: the settings of its analyses.

Each analysis says which methods and swept parameters it names and what they must be, so that a
study is checked before anything runs (:mod:`hdica.sweep.study.checks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from hdica.errors import HdicaError
from hdica.systems.axes import check_keys

Dims = tuple[str, ...]


@dataclass(frozen=True)
class Named:
    """A method that an analysis names, and what it must be.

    Parameters
    ----------
    key
        Key of the analysis that names it.
    method
        The method.
    stochastic
        Whether it must have seeds; None if either will do.
    variable
        Output that it must have, empty if any will do.
    dims
        Dimensions that this output may have beyond the grid, ``n`` and ``seed``.
    """

    key: str
    method: str
    stochastic: bool | None
    variable: str = ""
    dims: tuple[Dims, ...] = ()


def _names(given: Any) -> Any:
    return (given,) if isinstance(given, str) else given


Methods = Annotated[tuple[str, ...], BeforeValidator(_names)]
Level = Annotated[float, Field(gt=0, lt=1, description="level of the verdict")]
Band = Annotated[float, Field(gt=0, description="standard deviations that are drawn")]
TIME, FIXED_POINT, TRANSITION = ("time",), ("fixed_point",), ("transition",)
ALONE: Dims = ()
BY_PAIR, POINTS_BY_PAIR = (
    ("time", "projection", "source"),
    ("fixed_point", "projection", "source"),
)
BY_X, BY_EDGE = ("snapshot", "feature", "x"), ("snapshot", "feature", "edge")
BY_THRESHOLD = ("snapshot", "threshold")


USUAL, OTHERWISE = "Q", "R"
"""The output that is looked at unless told otherwise; and where no method has it over time."""
UNSET = "Q unless the methods named have none over time, then R"


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    swept_keys: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, given: Any) -> Any:
        return given if isinstance(given, cls) else check_keys(given, list(cls.model_fields))

    def swept(self) -> Iterator[tuple[str, str]]:
        """Every swept parameter named here, as pairs of key and dimension."""
        for key in self.swept_keys:
            if getattr(self, key) is not None:
                yield key, getattr(self, key)

    def _each(
        self, key: str, stochastic: bool | None, variable: str = "", *dims: Dims
    ) -> list[Named]:
        """What each method of one key must be."""
        given = getattr(self, key)
        methods = () if given is None else (given,) if isinstance(given, str) else given
        return [Named(key, method, stochastic, variable, dims) for method in methods]


def _trajectory(variable: str) -> tuple[Dims, ...]:
    """Dimensions of a trajectory: Q is one number a time, another may be one a matrix entry."""
    return (TIME,) if variable == USUAL else (TIME, BY_PAIR)


def _fixed(variable: str) -> tuple[Dims, ...]:
    """Dimensions of a fixed point, likewise."""
    return (FIXED_POINT,) if variable == USUAL else (FIXED_POINT, POINTS_BY_PAIR)


class Convergence(_Settings):
    """Simulation against limit as n grows."""

    simulation: Methods = Field(min_length=1, description="stochastic methods to compare")
    limit: str = Field(description="method that gives the limit")
    variable: str = Field(default=USUAL, description=f"output that both methods have ({UNSET})")
    level: Level = 0.01
    band: Band = 1.0

    def named(self) -> list[Named]:
        """Methods named here."""
        dims = _trajectory(self.variable)
        simulation = self._each("simulation", True, self.variable, *dims)
        return simulation + self._each("limit", False, self.variable, *dims)


class Phase(_Settings):
    """Where learning stops, over two swept parameters."""

    swept_keys: ClassVar[tuple[str, ...]] = ("x", "y")

    simulation: str = Field(description="stochastic method")
    x: str = Field(description="swept parameter on the horizontal axis")
    y: str = Field(description="swept parameter on the vertical axis")
    variable: str = Field(default=USUAL, description=f"output that measures success ({UNSET})")
    limit: str | None = Field(default=None, description="method that gives the limit")
    success: float = Field(default=0.5, gt=0, description="threshold on |variable| at the end")

    def named(self) -> list[Named]:
        """Methods named here."""
        dims = _trajectory(self.variable)
        simulation = self._each("simulation", True, self.variable, *dims)
        return simulation + self._each("limit", False, self.variable, *dims)


class Flow(_Settings):
    """Drift of the limit and its fixed points."""

    method: str = Field(default="drift", description="method that gives the drift")
    fixed_points: str | None = Field(default=None, description="method that gives fixed points")

    def named(self) -> list[Named]:
        """Methods named here."""
        return self._each("method", False) + self._each("fixed_points", False)


class Distances(_Settings):
    """Distance between the empirical density of the estimate and its limit as n grows."""

    simulation: Methods = Field(min_length=1, description="stochastic methods that keep densities")
    limit: str = Field(default="pde", description="method that gives the limiting density")
    level: Level = 0.01

    def named(self) -> list[Named]:
        """Methods named here."""
        simulation = self._each("simulation", True, "cdf", BY_EDGE)
        return simulation + self._each("limit", False, "cdf", BY_EDGE)


class Densities(_Settings):
    """Densities of the estimate given the feature, at the snapshots."""

    simulation: str | None = Field(default=None, description="stochastic method, if any")
    limit: str = Field(default="pde", description="method that gives the limiting density")

    def named(self) -> list[Named]:
        """Methods named here."""
        simulation = self._each("simulation", True, "density", BY_X)
        return simulation + self._each("limit", False, "density", BY_X)


class Support(_Settings):
    """Recovery of the feature's support by thresholding the estimate."""

    simulation: Methods | None = Field(default=None, description="stochastic methods, if any")
    limit: str = Field(default="pde", description="method that gives the limiting rates")
    level: Level = 0.01

    def named(self) -> list[Named]:
        """Methods named here."""
        simulation = self._each("simulation", True, "tpr", BY_THRESHOLD)
        return simulation + self._each("limit", False, "tpr", BY_THRESHOLD)


class Potential(_Settings):
    """The effective potential of one entry, at the snapshots."""

    limit: str = Field(default="pde", description="method that gives the potential")

    def named(self) -> list[Named]:
        """Methods named here."""
        return self._each("limit", False, "potential", BY_X)


class Steady(_Settings):
    """Steady states of the limit and of simulations over one swept parameter."""

    swept_keys: ClassVar[tuple[str, ...]] = ("x", "series")

    x: str = Field(description="swept parameter on the horizontal axis")
    limits: Methods = Field(default=(), description="methods that give steady states")
    branches: str | None = Field(default=None, description="method that gives whole branches")
    critical: str | None = Field(default=None, description="method that gives transitions")
    simulation: Methods = Field(default=(), description="stochastic methods, at the last time")
    variable: str = Field(default=USUAL, description=f"output that all methods have ({UNSET})")
    series: str | None = Field(
        default=None, description="swept parameter that separates the simulation's series"
    )

    @model_validator(mode="after")
    def _something(self) -> Steady:
        if not (self.limits or self.branches or self.simulation):
            raise HdicaError("it needs limits, branches or simulation (something to draw)")
        if self.series == self.x:
            raise HdicaError(f"series = {self.series!r} is not allowed (it is x already)")
        return self

    def named(self) -> list[Named]:
        """Methods named here."""
        over_time = _trajectory(self.variable)
        return [
            *self._each("limits", False, self.variable, *_fixed(self.variable), *over_time),
            *self._each("branches", False, self.variable, ("branch_point",)),
            *self._each("critical", False, "value", TRANSITION),
            *self._each("simulation", True, self.variable, *over_time),
        ]


class Transition(_Settings):
    """Where steady states appear or vanish, over one swept parameter."""

    swept_keys: ClassVar[tuple[str, ...]] = ("x",)

    x: str = Field(description="swept parameter on the horizontal axis")
    critical: str = Field(default="critical", description="method that gives transitions")

    def named(self) -> list[Named]:
        """Methods named here."""
        return self._each("critical", False, "value", TRANSITION)


class Compare(_Settings):
    """Trajectories of several methods in one panel: simulations with bands, limits as lines."""

    curves: Methods = Field(min_length=1, description="methods, stochastic or not")
    variable: str = Field(default=USUAL, description=f"output that all of them have ({UNSET})")
    band: Band = 1.0
    steady: str | None = Field(default=None, description="method that gives steady states")

    def named(self) -> list[Named]:
        """Methods named here."""
        dims, fixed = _trajectory(self.variable), _fixed(self.variable)
        curves = self._each("curves", None, self.variable, *dims, *fixed)
        return curves + self._each("steady", False, self.variable, *fixed)


class Escape(_Settings):
    """Escape times from R = 0: simulations with the runs that end too early, against theory."""

    swept_keys: ClassVar[tuple[str, ...]] = ("x",)

    x: str = Field(description="swept parameter on the horizontal axis, its values numbers")
    simulation: Methods = Field(default=(), description="stochastic methods that give escapes")
    limits: Methods = Field(default=(), description="methods that give mean escape times")
    event: Literal["first", "last"] = Field(
        default="first", description="escape of the first projection, or of the last"
    )
    level: Level = 0.01

    @model_validator(mode="after")
    def _something(self) -> Escape:
        if not (self.simulation or self.limits):
            raise HdicaError("it needs simulation or limits (something to draw)")
        return self

    def named(self) -> list[Named]:
        """Methods named here."""
        mean = "mean" if self.event == "first" else "mean_last"
        return [
            *self._each("simulation", True, self.event, ALONE),
            *self._each("limits", False, mean, ALONE),
        ]


class Paths(_Settings):
    """Single runs of a simulation."""

    simulation: str = Field(description="stochastic method")
    variable: str = Field(default=OTHERWISE, description="output that is drawn")
    runs: int = Field(default=4, ge=1, le=12, description="runs that are drawn")
    threshold: float | None = Field(
        default=None, gt=0, description="lines at this value of either sign, if any"
    )

    def named(self) -> list[Named]:
        """Methods named here."""
        return self._each("simulation", True, self.variable, TIME, BY_PAIR)


class Decay(_Settings):
    """Learning curves on doubly logarithmic axes: distance to a target against time."""

    curves: Methods = Field(min_length=1, description="methods, stochastic or not")
    variable: str = Field(default=OTHERWISE, description="output; of a matrix the diagonal")
    target: float = Field(default=1.0, description="value that it tends to")

    def named(self) -> list[Named]:
        """Methods named here."""
        return self._each("curves", None, self.variable, TIME, BY_PAIR)


class Trapping(_Settings):
    """The potential that holds an overlap near zero, and its barrier."""

    limit: str = Field(default="trapping", description="method that gives the potential")

    def named(self) -> list[Named]:
        """Methods named here."""
        return self._each("limit", False, "U", ("projection", "source", "r"))


Analyses = (
    Convergence
    | Phase
    | Flow
    | Distances
    | Densities
    | Support
    | Potential
    | Steady
    | Transition
    | Compare
    | Escape
    | Paths
    | Decay
    | Trapping
)


class Analysis(_Settings):
    """What the report of a study shows."""

    convergence: Convergence | None = None
    phase: Phase | None = None
    flow: Flow | None = None
    distances: Distances | None = None
    densities: Densities | None = None
    support: Support | None = None
    potential: Potential | None = None
    steady: Steady | None = None
    transition: Transition | None = None
    compare: Compare | None = None
    escape: Escape | None = None
    paths: Paths | None = None
    decay: Decay | None = None
    trapping: Trapping | None = None

    def asked(self) -> Iterator[tuple[str, Analyses]]:
        """Every analysis that is asked for, as pairs of where and what."""
        for name in type(self).model_fields:
            settings: Analyses | None = getattr(self, name)
            if settings is not None:
                yield f"analysis.{name}", settings

    def settled(self, outputs: Mapping[str, Mapping[str, Dims]]) -> Analysis:
        """The same with every variable that was left open: R where no method has Q over time.

        Parameters
        ----------
        outputs
            Dimensions by name of output, by method.
        """
        changed: dict[str, Analyses] = {}
        for where, settings in self.asked():
            if "variable" in settings.model_fields_set or not hasattr(settings, "variable"):
                continue
            methods = {named.method for named in settings.named() if named.variable == USUAL}
            known = [outputs[method] for method in methods if method in outputs]
            usual = any(dims.get(USUAL) in (TIME, FIXED_POINT) for dims in known)
            other = (*_trajectory(OTHERWISE), *_fixed(OTHERWISE))
            if not usual and any(dims.get(OTHERWISE) in other for dims in known):
                name = where.removeprefix("analysis.")
                changed[name] = settings.model_copy(update={"variable": OTHERWISE})
        return self.model_copy(update=changed) if changed else self
