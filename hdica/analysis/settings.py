"""Settings of analyses: which methods and swept parameters a study names, and what they must be.

What a key names is declared next to its type, so that a study is checked before anything runs, and
what it leaves open is settled then: stores hold settings that leave nothing open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from hdica.systems.system import OrderParameter, System
from hdica.systems.values import check_keys

Dims = tuple[str, ...]
Outputs = Iterable[tuple[str, tuple[Dims, ...]]]
"""Outputs with the dimensions that they may have, or none where a key has them for all."""
Suiting = Mapping[str, object] | None
"""Settings, as plain data, that suit a store, empty if left open; None if the analysis does not."""


def names(given: object) -> Any:
    """One name as a tuple; what is none yet as it is."""
    return () if given is None else (given,) if isinstance(given, str) else given


class Swept:
    """Mark of a key that names a swept parameter, or several."""


@dataclass(frozen=True)
class Needs:
    """Mark of a key that names one method or several, and what each must be.

    Parameters
    ----------
    stochastic
        Whether it must have seeds; None if either will do.
    output
        Output that it must have: its name, what gives the name from the settings, or None if any
        will do.
    over
        Dimensions that this output may have beyond the grid, ``n`` and ``seed``, with blanks
        between them: "time", "snapshot feature x", "" for none, or a tuple of such alternatives.
        An order parameter may have its own too.
    entries
        Whether the output may in addition have dimensions of entries of matrices.
    first
        Whether a key that is left out means the first method of the study that is so.
    n
        Whether it must have a dimension n, as what is compared over n must; None if either will do.
    """

    stochastic: bool | None
    output: str | Callable[[Any], str] | None = None
    over: str | tuple[str, ...] = ()
    entries: bool = False
    first: bool = False
    n: bool | None = None

    @property
    def dims(self) -> tuple[Dims, ...]:
        """The alternatives of ``over``; none if any dimensions will do."""
        return tuple(tuple(one.split()) for one in names(self.over))


def looked_at(settings: Any) -> str:
    """The output that the settings name as their variable, for :attr:`Needs.output`."""
    return str(settings.variable)


@dataclass(frozen=True)
class Gives:
    """What a method has: seeds, by output its dimensions beyond grid, n and seed, and an n."""

    stochastic: bool
    outputs: Mapping[str, Dims]
    n: bool = False


@dataclass(frozen=True)
class Named:
    """A method that a key of an analysis names, and what it must be: see :class:`Needs`.

    The method is empty if it was left out and none was found, the output if any will do;
    ``entries`` are dimensions that the output may have beside ``dims``.
    """

    key: str
    method: str
    stochastic: bool | None
    output: str = ""
    dims: tuple[Dims, ...] = ()
    entries: frozenset[str] = frozenset()
    n: bool | None = None

    def accepts(self, given: Gives) -> bool:
        """Whether a method is what it must be."""
        kind = self.stochastic is None or given.stochastic == self.stochastic
        size = self.n is None or given.n == self.n
        return kind and size and self.fits(given.outputs.get(self.output))

    def fits(self, dims: Dims | None) -> bool:
        """Whether an output has the right dimensions; None for no output."""
        if not self.output:
            return True
        plain = None if dims is None else tuple(d for d in dims if d not in self.entries)
        return plain in self.dims


Names = Annotated[tuple[str, ...], BeforeValidator(names)]
"""Several names, or one without brackets."""
Methods = Names
SweptName = Annotated[str, Swept()]
Level = Annotated[
    float,
    Field(gt=0, lt=1, description="chance that a study with right limits shows any “differs”"),
]
Control = Annotated[
    float,
    Field(
        gt=0,
        lt=1,
        description="share by which the drift of the control is wrong: simulations agree with a "
        "limit only where they reject such a wrong one (default 0.02)",
    ),
]
Band = Annotated[float, Field(gt=0, description="standard deviations that are drawn")]
Variable = Annotated[
    str, Field(description="output (default: the first order parameter that a method named has)")
]

Baselines = Annotated[
    Names, Needs(None, looked_at, "time"), Field(description="methods to draw and not to judge")
]
Run = Annotated[str, Needs(True, looked_at, "time"), Field(description="stochastic method")]
Runs = Annotated[
    tuple[str, ...],
    Field(min_length=1, description="stochastic methods, at the last time"),
    BeforeValidator(names),
    Needs(True, looked_at, ("", "time")),
]
Predicting = Annotated[
    str | None,
    Needs(False, looked_at, ("", "time")),
    Field(description="method without seeds that predicts the variable"),
]
Horizontal = Annotated[SweptName, Field(description="swept parameter on the horizontal axis")]
Levels = Annotated[
    dict[str, FiniteFloat],
    Field(description="horizontal lines, a value by its label (default: none)"),
]


LATER = ("baselines",)


class Settings(BaseModel):
    """Settings of one analysis; its docstring is the question."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suits: ClassVar[Callable[[Any], Suiting]] = lambda tree: None
    """What suits a store whose study asks for no analysis."""
    sides: ClassVar[Callable[[Any, Any], Any] | None] = None
    """``sides(tree, settings)``: numbers of the cells, by which a refinement tells neighbours
    apart, as a DataArray over swept parameters and n; None if the analysis has none."""

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, given: object) -> object:
        return given if isinstance(given, cls) else check_keys(given, list(cls.model_fields))

    @model_serializer(mode="wrap")
    def _written(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without keys of later versions that have nothing: digests of studies stay."""
        content: dict[str, Any] = dump(self)
        return {key: value for key, value in content.items() if value or key not in LATER}

    def swept(self) -> Iterator[tuple[str, str]]:
        """Every swept parameter named here, as pairs of key and dimension."""
        for key, field in type(self).model_fields.items():
            marked = any(isinstance(mark, Swept) for mark in field.metadata)
            for name in names(getattr(self, key)) if marked else ():
                yield key, name

    def named(self, system: System | None) -> list[Named]:
        """Every method named here, once for each output that is taken of it.

        A method that is left open has no name until it is settled.
        """
        own, out = {p.name: p.dims for p in _parameters(system)}, []
        for key, needs in needs_of(type(self)):
            entries = system.entries if system is not None and needs.entries else frozenset()
            for method in dict.fromkeys(names(getattr(self, key))):
                for output, dims in (
                    self._outputs(key, method, needs) if method or needs.first else ()
                ):
                    ends = ((), own[output]) if output in own else ((),)
                    allowed = ((*axis, *more) for axis in needs.dims for more in ends)
                    fit = dims or tuple(dict.fromkeys(allowed))
                    out.append(Named(key, method, needs.stochastic, output, fit, entries, needs.n))
        return out

    def _outputs(self, key: str, method: str, needs: Needs) -> Outputs:
        """Outputs of a method that a key names; an empty one if any will do."""
        return ((needs.output(self) if callable(needs.output) else needs.output or "", ()),)

    def settled(self, system: System | None, given: Mapping[str, Gives]) -> Self:
        """The same with methods, the first that do, and the variable that were left open."""
        update: dict[str, str] = {}
        for named in self.named(system):
            if not named.method:
                fit = (name for name, gives in given.items() if named.accepts(gives))
                update[named.key] = next(fit, "")
        if getattr(self, "variable", None) == "":
            update["variable"] = self._variable(system, given)
        return self.model_copy(update=update) if update else self

    def _variable(self, system: System | None, given: Mapping[str, Gives]) -> str:
        """The first order parameter that a named method has, over time or of steady states."""
        methods = [
            method
            for key, needs in needs_of(type(self))
            if needs.output is looked_at
            for method in names(getattr(self, key))
        ]
        known = [given[method].outputs for method in methods if method in given]
        for p in _parameters(system):
            dims = [(axis, *p.dims) for axis in ("time", "fixed_point")]
            if any(outputs.get(p.name) in dims for outputs in known):
                return p.name
        return next((p.name for p in _parameters(system)), "")


def needs_of(settings: type[BaseModel]) -> Iterator[tuple[str, Needs]]:
    """Every key that names methods, and what they must be."""
    for key, field in settings.model_fields.items():
        for mark in field.metadata:
            if isinstance(mark, Needs):
                yield key, mark


def saved_for(over: Iterable[Dims]) -> str:
    """The key of a study's ``save`` behind an output over these dimensions, empty if none is."""
    dims = {dim for some in over for dim in some}
    return "thresholds" if "threshold" in dims else "x" if dims & {"x", "edge"} else ""


def _parameters(system: System | None) -> tuple[OrderParameter, ...]:
    return () if system is None else system.order_parameters
