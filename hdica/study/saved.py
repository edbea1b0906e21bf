"""What points keep beyond their order parameters: the block ``save`` of a study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from hdica.errors import HdicaError
from hdica.ingredients.save import ALL, Save
from hdica.systems import arguments
from hdica.systems.method import Method
from hdica.systems.space import check_keys

_Numbers = tuple[float, ...] | None


class Section(BaseModel):
    """A section of a file, in which an unknown key is refused by its name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, content: object) -> object:
        if isinstance(content, cls):
            return content
        return check_keys(cls.in_full(content), list(cls.model_fields))

    @classmethod
    def in_full(cls, content: object) -> object:
        """The mapping that a short form in a file stands for; nothing at all is an empty one."""
        return {} if content is None else content


def _increasing(field: str, what: str) -> BeforeValidator:
    def read(content: object) -> _Numbers:
        if content is None:
            return None
        numbers = arguments.spaced(content, field, arguments.MAX_VALUES)
        arguments.check_increasing(
            numbers, field, what, arguments.MAX_VALUES, positive=field != "x"
        )
        if field == "x":
            arguments.check_points(numbers)
        return numbers

    return BeforeValidator(read)


class Saved(Section):
    """What a study keeps beyond the order parameters of its points."""

    snapshots: Annotated[_Numbers, _increasing("snapshots", "time")] = Field(
        default=None, description="times at which densities and support recovery are kept"
    )
    x: Annotated[_Numbers, _increasing("x", "point")] = Field(
        default=None, description="points of the densities, increasing"
    )
    thresholds: Annotated[_Numbers, _increasing("thresholds", "threshold")] = Field(
        default=None, description="thresholds on abs(x) for support recovery"
    )
    functionals: Annotated[dict[str, str], BeforeValidator(arguments.formulas)] = Field(
        default_factory=dict, description="name and formula in x and xi of means kept at all times"
    )
    extra: Annotated[tuple[str, ...], BeforeValidator(arguments.extra_names)] = Field(
        default=(), description="names of further variables that methods give on request"
    )
    estimate: Annotated[int, BeforeValidator(arguments.how_many_entries)] = Field(
        default=0,
        description=(
            "entries of the estimate itself, and of xi, that are kept at the snapshots: the first "
            "ones, or `true` for all of the largest n"
        ),
    )
    bands: bool = Field(
        default=False,
        description="whether limits keep sqrt(n) times the standard deviation of what they give",
    )
    bias: bool = Field(
        default=False, description="whether limits keep n times what the mean of runs is beyond"
    )

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Stores of before know no such keys: without them the digest of a study is what it was.
        content: dict[str, Any] = handler(self)
        if self.estimate == ALL:
            content["estimate"] = True
        later = ("extra", "estimate", "bands", "bias")
        return {k: v for k, v in content.items() if v or k not in later}

    @model_validator(mode="after")
    def _whole(self) -> Saved:
        if self.snapshots and not (self.x or self.thresholds or self.estimate):
            raise HdicaError(
                "snapshots need x, thresholds or estimate (points of the densities, thresholds on "
                "abs(x), or how many entries of the estimate)"
            )
        for name in ("x", "thresholds", "estimate"):
            if getattr(self, name) and not self.snapshots:
                raise HdicaError(f"{name} needs snapshots (times at which it is kept)")
        return self

    def spec(self) -> Save:
        """The same as methods take it."""
        return Save(**{name: value for name, value in self if value})


PARTS = {
    "x": "densities",
    "thresholds": "support recovery",
    "estimate": "estimates",
    "functionals": "functionals",
    "extra": "",
    "bands": "bands",
    "bias": "biases",
}
"""What each key of ``save`` brings; ``extra`` brings the variables that it names."""
AT_SNAPSHOTS = ("x", "thresholds", "estimate")
"""Keys whose values are kept at the snapshots, the others at all times."""


def parts(save: Save) -> Iterator[tuple[str, str, Save]]:
    """The parts of what is kept: the key of ``save``, what it brings, and that part alone."""
    for key, what in PARTS.items():
        value = getattr(save, key)
        if key == "extra":
            yield from ((key, name, Save(extra=(name,))) for name in value)
        elif value:
            times = save.snapshots if key in AT_SNAPSHOTS else ()
            yield key, what, Save(**{"snapshots": times, key: value})


def can_keep(method: Method, part: Save) -> bool:
    """Whether a method keeps anything of a part."""
    return len(method.outputs_of(part)) > len(method.outputs.always)


def saved_by(method: Method, save: Save) -> Save:
    """What a method can keep of what a study asks for: nothing else is in its keys."""
    content: dict[str, Any] = {}
    for key, name, part in parts(save):
        if can_keep(method, part):
            value = (*content.get(key, ()), name) if key == "extra" else getattr(part, key)
            content |= {key: value} | ({"snapshots": part.snapshots} if part.snapshots else {})
    return Save(**content)


def sized(save: Save, sizes: Iterable[int | None]) -> Save:
    """The same where as many entries of the estimate are kept as the largest n has.

    Points of all n keep as many, because they stand in one array: NaN where there are no more.
    """
    most = max((n for n in sizes if n is not None), default=0)
    if save.estimate > most:
        raise HdicaError(
            f"save.estimate = {save.estimate} is not allowed (at most n = {most} entries)"
        )
    return replace(save, estimate=most) if save.estimate == ALL else save


def plain(save: Save) -> dict[str, Any]:
    """What is kept as plain data, without what is empty: ``{}`` if nothing is."""
    content = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(save).items()}
    return {name: value for name, value in content.items() if value and name != "constants"}
