"""What hdica has to know of a system: one record, of hdica, of a plug-in or of this process."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from importlib import import_module
from importlib.metadata import entry_points
from importlib.resources import files
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, suggestion
from hdica.systems.method import Array, Method, P, Role, shared_twin
from hdica.systems.parameters import DESCRIBED, Described, Parameters

if TYPE_CHECKING:
    from hdica.limits.mean_field.family import MeanField
    from hdica.limits.overlap.fastest import Moments
    from hdica.limits.passage.samples import Leaving
    from hdica.limits.rules.transitions import Changes

S = TypeVar("S", bound=Parameters)
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Paper:
    """What a system or a method comes from."""

    cite: str
    """Authors and year, as ``"Wang and Lu 2017"``: so ``equations`` of methods cite it."""
    title: str
    entry: str = ""
    """Its entry of BibTeX, in ASCII, without a line break at its end; else made of the title."""
    named: tuple[str, ...] = ()
    """What else ``equations`` call it, such as the names of an algorithm."""

    @property
    def bibtex(self) -> str:
        """Its entry, in ASCII, without a line break at its end."""
        key = re.sub(r"[^a-z0-9]", "", self.cite.lower())
        return self.entry or f"@misc{{{key},\n  title = {{{{{self.title}}}}}\n}}"

    @property
    def key(self) -> str:
        """Key of its entry."""
        return self.bibtex[self.bibtex.index("{") + 1 : self.bibtex.index(",")]

    def named_in(self, equations: str) -> bool:
        """Whether the ``equations`` of a method say that it rests on this."""
        return any(name in equations for name in (self.cite, *self.named))


@cache
def works() -> dict[str, Paper]:
    """The papers of ``works.bib`` by the name that cites them, in the order of the file."""
    text = files("hdica.systems").joinpath("works.bib").read_text(encoding="ascii")
    papers = {}
    for names, entry in re.findall(r"^% ([^\n]+)\n(@\w+\{.*?\n\})$", text, re.M | re.S):
        cite, *named = names.split("; ")
        title = re.search(r"^  title = \{\{(.*)\}\}", entry, re.M)
        papers[cite] = Paper(cite, title[1] if title else "", entry, tuple(named))
    return papers


def work(cite: str) -> Paper:
    """A paper of ``works.bib`` by the name that cites it."""
    return works()[cite]


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
    """A dimension that results of this system have beyond those that all systems share."""

    name: str
    about: str
    """What its entries are."""
    entries: bool = False
    """Whether it numbers entries of a matrix, each of which is like a point of its own."""
    first: int = 0
    """The number of its first entry in datasets; sentences count from 1 either way."""


@dataclass(frozen=True)
class OrderParameter:
    """A number, or a matrix of numbers, that the limit follows."""

    name: str
    meaning: str
    """What it is, with its formula."""
    dims: tuple[str, ...] = ()
    """Dimensions beyond time: empty for one number."""
    low: float = -1.0
    high: float = 1.0
    """Where its values lie as n -> infinity."""
    even: bool = False
    """Whether a state and its mirror image, with the other sign, are the same state."""
    nothing: float | None = 0.0
    """Its value where nothing is learned; None if no value says so."""


@dataclass(frozen=True)
class Clock:
    """What one unit of time is."""

    long_name: str = "time t = k/n"
    units: str = "samples per dimension"
    """Of the dimension ``time``."""
    counts: bool = True
    """Whether floor(t n) steps, or floor(t) without n, were made until time t."""


@dataclass(frozen=True)
class Control:
    """A scalar parameter whose critical values are asked for."""

    name: str
    """A field, an alias of one, or a constant of the formulas."""
    low: float = 1e-4
    high: float = 10.0
    """Where they are looked for unless the caller says otherwise."""
    step: bool = False
    """Whether it is the step size."""


def joined(*notes: str) -> str:
    """Notes as one text, empty ones left out."""
    return "; ".join(note for note in notes if note)


def _silent(*arguments: object) -> str:
    return ""


@dataclass(frozen=True)
class Notes(Generic[P]):
    """Why results of a system show no learning, and what to change; each is empty for no reason."""

    limit: Callable[[P, Mapping[str, Array], Array], str] = _silent
    """``limit(system, values, times)`` of a trajectory, by name of variable."""
    states: Callable[[P, Array, Mask, Mask], str] = _silent
    """``states(system, overlap, stable, informative)`` of steady states."""
    transitions: Callable[[P, str, Array, tuple[float, float] | None], str] = _silent
    """``transitions(system, parameter, overlap, ends)`` of critical values between two ends, or of
    all that there can be (None)."""
    chosen: Callable[[P], str] = _silent
    """What the system chose by itself."""
    data: Callable[[P], tuple[str, ...]] = lambda system: ()
    """Which assumptions of the rule samples violate, a sentence each."""
    complete: Callable[[P], bool] = lambda system: False
    """Whether the transitions in the step size are all there are."""


USUAL = {"convergence": {"simulation": Role.SIMULATION, "limit": Role.LIMIT}}
"""Analyses that suit every system with simulations and a limit."""


@dataclass(frozen=True)
class System(Generic[S]):
    """A learning rule with its limit: all that the rest of hdica has to know of it."""

    parameters: type[S]
    """The class of its parameters; its name is the name of the system."""
    title: str
    """What it is, in a few words."""
    papers: tuple[Paper, ...]
    """Where it comes from."""
    order_parameters: tuple[OrderParameter, ...]
    """What the limit follows; an analysis looks at the first that its methods have."""
    methods: tuple[Method[S], ...]
    """The ways to compute a point, in the order in which they are listed."""
    examples: tuple[Mapping[str, Any], ...]
    """Parameters of small problems: each method applies to one; contract tests begin with them."""
    controls: tuple[Control, ...] = ()
    """Parameters with critical values, the default first."""
    symbols: Mapping[str, Symbol] = field(default_factory=dict)
    """How names in its results are written, beyond the glossary of all systems: of parameters,
    outputs, methods, and values that are words."""
    clock: Clock = Clock()
    dimensions: tuple[Dimension, ...] = ()
    """Dimensions of its own that results have."""
    mean_field: Callable[[S], MeanField] | None = None
    """The limit as a mean field, for a system of that family."""
    overlap: Callable[[S], Moments] | None = None
    """Drift of the overlap, and what n leaves of it, where it alone closes the limit, for any step
    size; refuses elsewhere."""
    leaving: Callable[[S], Leaving] | None = None
    """The chain near Q = 0, which a random start has to leave; refuses what does not leave it."""
    changes: Callable[[S, str, tuple[float, float]], Changes] | None = None
    """``changes(system, parameter, ends)``: where steady states change as any scalar parameter
    varies, for a system that is no mean field."""
    notes: Notes[S] = field(default_factory=Notes)
    """Why nothing is learned, where nothing is."""
    functions: Mapping[str, str] = field(default_factory=dict)
    """Functions of its own that ``hdica`` offers: name, and the module that has it."""
    short: str = ""
    """The title in one or two words, as it stands within a sentence; the title if empty."""
    analyses: Mapping[str, Mapping[str, Role]] = field(default_factory=lambda: dict(USUAL))
    """Analyses where a study names none, with the role of each key that is a method."""
    horizon: float = 20.0
    """Time by which its examples have mostly learned, in units of the clock."""
    variant: Callable[[Mapping[str, Any]], str] | None = None
    """``variant(parameters)``: name of the system with these parameters, where one has several."""
    special: Callable[[S], Parameters | None] | None = None
    """``special(system)``: the same problem as one of a system with more methods, if it is one."""
    works: tuple[Paper, ...] = ()
    """Further works on which its methods rest, each cited where ``equations`` name it."""

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


GROUP = "hdica.systems"  # entry points of packages that bring systems of their own
_SYSTEMS: dict[str, System[Any]] = {}
_LIST = import_module("hdica.systems.built_in")
BUILT_IN: dict[str, str] = _LIST.BUILT_IN
"""Modules of the records that come with hdica, by name; what it imports is for type checkers."""
DESCENT: str = _LIST.DESCENT
_INSTALLED = set(BUILT_IN)
"""Names of those that every process has, because they come with a package."""


def register(system: object) -> System:
    """Add a system, a record, by its name, and return it."""
    if not isinstance(system, System):
        kind = type(system).__name__
        raise HdicaError(f"register: a {kind} is not allowed (a record: hdica.System)")
    if not issubclass(system.parameters, Parameters):
        name = system.parameters.__name__
        raise HdicaError(f"register: parameters = {name} is not allowed (a kind of Parameters)")
    other = _SYSTEMS.get(system.name) or _built_in(system.name)
    if other is not None and other.parameters.__module__ != system.parameters.__module__:
        raise HdicaError(
            f"register: the name {system.name} is taken (by {other.parameters.__module__})"
        )
    _SYSTEMS[system.name] = _described(system)
    return system


def _described(system: System[S]) -> System[S]:
    """The same, whose parameters show its title, papers and letters from now on."""
    papers = tuple((paper.cite, paper.title) for paper in system.papers)
    letters = {name: (one.html, one.plain) for name, one in system.symbols.items()}
    DESCRIBED[system.parameters] = Described(system.title, papers, letters)
    return system


def snake(name: str) -> str:
    """``TwoWords`` as ``two_words``, and ``AnICA`` as ``an_ica``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def load_entry_points(group: str, what: str, kind: type, register: Callable[[Any], object]) -> None:
    """Register the records (of class ``kind``) among entry points; warn of those that fail."""
    for point in entry_points(group=group):
        try:
            record = point.load()
            if isinstance(record, kind):
                register(record)
        except Exception as exc:  # another's package: say which, and go on without it
            text = f"the {what} {point.name} of {point.value} cannot be loaded ({exc})"
            warnings.warn(text, stacklevel=3)


@cache
def load_plugins() -> None:
    """Load the systems of other packages, which may register analyses, too."""
    before = set(_SYSTEMS)
    load_entry_points(GROUP, "system", System, register)
    _INSTALLED.update(set(_SYSTEMS) - before)


@cache
def _load() -> None:
    """Load the records that come with hdica, in the order of their list, and of other packages."""
    for name in BUILT_IN:
        _SYSTEMS[name] = _SYSTEMS.pop(name) if name in _SYSTEMS else _built_in(name)
    load_plugins()


@cache
def _built_in(name: str) -> Any:
    """A record that comes with hdica, None for another name: to import all takes twice as long."""
    return _described(import_module(BUILT_IN[name]).SYSTEM) if name in BUILT_IN else None


def check_installed(name: str) -> None:
    """Refuse a system that other processes would not have."""
    if name in systems() and name not in _INSTALLED:
        raise HdicaError(
            f"system {name} is registered in this process alone (allowed elsewhere: what comes "
            f"with an installed package, by an entry point of the group {GROUP})"
        )


def systems() -> dict[str, System[Any]]:
    """Every system by name: those of hdica, those of plug-ins, those registered here."""
    _load()
    return _SYSTEMS


def offered() -> dict[str, Callable[[], Any]]:
    """What ``hdica`` offers of its systems, by name: their classes, and their own functions."""
    names: dict[str, Callable[[], Any]] = {}
    for record in systems().values():
        names[record.name] = partial(getattr, record, "parameters")
        for name, module in record.functions.items():
            names.setdefault(name, partial(resolve_name, f"{module}:{name}"))
    return names


def lookup(name: object) -> System | None:
    """The record of the system of that name, if there is one."""
    key = str(name)
    return _SYSTEMS.get(key) or _built_in(key) or systems().get(key)


def system_named(name: str) -> System:
    """The record of a system."""
    record = lookup(name)
    if record is None:
        raise HdicaError(f"system = {name!r} is not known ({suggestion(name, list(systems()))})")
    return record


def built(name: str, text: str) -> Parameters:
    """The parameters of the system ``name`` that JSON says; a process builds them once."""
    parameters: type[Parameters] = system_named(name).parameters
    return _built(parameters, text)


@lru_cache(maxsize=4096)
def _built(parameters: type[Parameters], text: str) -> Parameters:
    # By its own name: what is refused here, such as data that went, gives one sentence.
    return parameters(**json.loads(text))


def record_of(parameters: S) -> System[S]:
    """The record behind the parameters of a problem."""
    name = type(parameters).__name__
    record: System[Any] | None = lookup(name)
    if record is None or not isinstance(parameters, record.parameters):
        raise HdicaError(f"system: a {name} is not allowed (allowed: {', '.join(systems())})")
    return record


def methods_of(name: str, noise: str = "own") -> dict[str, Method]:
    """The methods of a system, by name; ``noise = "shared"``: with shared noise where they can."""
    methods = {method.name: method for method in system_named(name).methods}
    if noise == "own":
        return methods
    return {key: shared_twin(method) or method for key, method in methods.items()}
