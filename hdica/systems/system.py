"""What hdica has to know of a system: one record, read wherever no system is known by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hdica.systems.method import Method, P, Role
from hdica.systems.outputs import Array
from hdica.systems.paper import Paper as Paper
from hdica.systems.parameters import Parameters

if TYPE_CHECKING:
    from hdica.limits.mean_field.family import MeanField

S = TypeVar("S", bound=Parameters)
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Symbol:
    """How a name is written: as HTML for pages, as TeX for print, and in plain sentences."""

    html: str
    tex: str
    plain: str


def in_words(**names: str) -> dict[str, Symbol]:
    """Names that are written as plain words everywhere: methods, outputs, values of parameters."""
    return {name: Symbol(text, text, text) for name, text in names.items()}


@dataclass(frozen=True)
class Dimension:
    """A dimension that results of this system have beyond those that all systems share.

    Parameters
    ----------
    name
        In datasets.
    about
        What its entries are.
    entries
        Whether it numbers entries of a matrix, each of which is looked at like a point of its own.
    first
        The number of its first entry in datasets; sentences count from 1 either way.
    """

    name: str
    about: str
    entries: bool = False
    first: int = 0


@dataclass(frozen=True)
class OrderParameter:
    """A number, or a matrix of numbers, that the limit follows.

    Parameters
    ----------
    name
        In datasets.
    meaning
        What it is, with its formula.
    dims
        Dimensions beyond time: empty for one number.
    low, high
        Where its values lie as n -> infinity.
    even
        Whether a state and its mirror image, with the other sign, are the same state.
    nothing
        Its value where nothing is learned; None if no value says so.
    """

    name: str
    meaning: str
    dims: tuple[str, ...] = ()
    low: float = -1.0
    high: float = 1.0
    even: bool = False
    nothing: float | None = 0.0


@dataclass(frozen=True)
class Clock:
    """What one unit of time is.

    Parameters
    ----------
    long_name, units
        Of the dimension ``time``.
    counts
        Whether floor(t n) steps, or floor(t) without n, were made until time t.
    """

    long_name: str = "time t = k/n"
    units: str = "samples per dimension"
    counts: bool = True


@dataclass(frozen=True)
class Control:
    """A scalar parameter whose critical values are asked for.

    Parameters
    ----------
    name
        A field, an alias of one, or a constant of the formulas.
    low, high
        Where they are looked for unless the caller says otherwise.
    step
        Whether it is the step size.
    """

    name: str
    low: float = 1e-4
    high: float = 10.0
    step: bool = False


def joined(*notes: str) -> str:
    """Notes as one text, empty ones left out."""
    return "; ".join(note for note in notes if note)


def _silent(*arguments: object) -> str:
    return ""


@dataclass(frozen=True)
class Notes(Generic[P]):
    """Why results of a system show no learning, and what to change; each is empty for no reason.

    Parameters
    ----------
    limit
        ``limit(system, values, times) -> str`` of a trajectory, by name of variable.
    states
        ``states(system, overlap, stable, informative) -> str`` of steady states.
    transitions
        ``transitions(system, parameter, overlap, ends) -> str`` of critical values that were
        looked for between two ends, or are all that there can be (None).
    chosen
        ``chosen(system) -> str``: what the system chose of itself where it was left to it.
    data
        ``data(system) -> tuple of str``: what samples of one's own are not that the rule assumes,
        a sentence each.
    complete
        ``complete(system) -> bool``: whether the transitions in the step size are all there are.
    """

    limit: Callable[[P, Mapping[str, Array], Array], str] = _silent
    states: Callable[[P, Array, Mask, Mask], str] = _silent
    transitions: Callable[[P, str, Array, tuple[float, float] | None], str] = _silent
    chosen: Callable[[P], str] = _silent
    data: Callable[[P], tuple[str, ...]] = lambda system: ()
    complete: Callable[[P], bool] = lambda system: False


USUAL = {"convergence": {"simulation": Role.SIMULATION, "limit": Role.LIMIT}}
"""Analyses that suit every system with simulations and a limit."""


@dataclass(frozen=True)
class System(Generic[S]):
    """A learning rule with its limit: all that the rest of hdica has to know of it.

    Parameters
    ----------
    parameters
        The class of its parameters; its name is the name of the system.
    title
        What it is, in a few words.
    short
        The same in one or two words, as it stands within a sentence; the title if empty.
    papers
        Where it comes from.
    order_parameters
        What the limit follows; an analysis looks at the first that its methods have.
    methods
        The ways to compute a point, in the order in which they are listed.
    examples
        Parameters of small problems, to which taken together every method applies; contract
        tests, the fuzzer and first steps begin with them.
    controls
        Parameters with critical values, the one that is meant unless another is named first.
    symbols
        How names in its results are written, where the glossary of all systems does not say: of
        parameters, outputs and methods, and of values that are words.
    clock
        What one unit of time is.
    dimensions
        Dimensions of its own that results have.
    mean_field
        The limit as a mean field, for a system of that family.
    notes
        Why nothing is learned, where nothing is.
    functions
        Functions of its own that ``hdica`` offers: name, and the module that has it.
    analyses
        Analyses that suit it where a study names none: their names, and for each key that names a
        method the role that it must have.
    horizon
        Time by which its examples have mostly learned, in units of the clock: where a search for
        the time of an event begins.
    works
        Further works on which its methods rest, beside those that many systems share: each is
        cited for the methods whose ``equations`` name it.
    """

    parameters: type[S]
    title: str
    papers: tuple[Paper, ...]
    order_parameters: tuple[OrderParameter, ...]
    methods: tuple[Method[S], ...]
    examples: tuple[Mapping[str, Any], ...]
    controls: tuple[Control, ...] = ()
    symbols: Mapping[str, Symbol] = field(default_factory=dict)
    clock: Clock = Clock()
    dimensions: tuple[Dimension, ...] = ()
    mean_field: Callable[[S], MeanField] | None = None
    notes: Notes[S] = field(default_factory=Notes)
    functions: Mapping[str, str] = field(default_factory=dict)
    short: str = ""
    analyses: Mapping[str, Mapping[str, Role]] = field(default_factory=lambda: dict(USUAL))
    horizon: float = 20.0
    works: tuple[Paper, ...] = ()

    @property
    def name(self) -> str:
        """Name in studies and datasets."""
        return self.parameters.__name__

    @property
    def entries(self) -> frozenset[str]:
        """Dimensions that number entries of a matrix."""
        return frozenset(dim.name for dim in self.dimensions if dim.entries)

    def with_role(self, *roles: Role) -> list[Method[S]]:
        """Methods of some roles in the order in which to try them; unranked ones last."""
        methods = [method for method in self.methods if method.role in roles]
        return sorted(methods, key=lambda method: method.rank or len(self.methods) + 1)

    def control(self, name: str) -> Control:
        """How a scalar parameter is varied: as declared, or over the usual decades."""
        controls = {control.name: control for control in self.controls}
        return controls.get(name) or Control(name)
