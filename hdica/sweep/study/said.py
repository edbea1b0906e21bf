"""What a study says, field by field, and what follows from it without any check of the whole."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from hdica.errors import HdicaError
from hdica.ingredients.functions import refuse_in_files
from hdica.ingredients.plain import plain
from hdica.ingredients.save import NOTHING, Save
from hdica.inputs.data_input import digests_in, fields_of_data
from hdica.sweep.study import kept
from hdica.sweep.study.asked import Asked, Known, nothing
from hdica.sweep.study.keys import canonical_json
from hdica.sweep.study.points import MethodSettings, Times
from hdica.sweep.study.question import Asking
from hdica.sweep.study.words import one_line, plain_text
from hdica.systems import axes as ax
from hdica.systems import registry
from hdica.systems.address import in_one_spelling
from hdica.systems.space import Space, space_of


def _parse_parameters(given: Any) -> Any:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(k, str) for k in given):
        raise HdicaError("parameters must be a mapping from names to values")
    refuse_in_files("parameters", given)
    return plain(given)


def _without_functions(given: Any) -> Any:
    refuse_in_files("grid", given)
    return given


def _parse_methods(given: Any) -> Any:
    if isinstance(given, str | list) and given:
        raise HdicaError(
            f"methods = {given!r} is not allowed (a mapping from methods to their settings, as in "
            "{ode: {}, chain: {n: 100, seeds: 8}})"
        )
    if not isinstance(given, dict) or not given:
        raise HdicaError("methods must name at least one method")
    return given


def _one_spelling(content: dict[str, Any]) -> dict[str, Any]:
    """A study whose swept constants have one spelling, in the grid and in its analyses."""
    grid, record = content.get("grid"), registry.lookup(content.get("system"))
    if not isinstance(grid, dict) or record is None or not all(isinstance(k, str) for k in grid):
        return content
    fixed = content.get("parameters")
    texts = {**grid, **(fixed if isinstance(fixed, dict) else {})}
    own = {key: in_one_spelling(key, record.parameters, texts) for key in grid}
    if len(set(own.values())) < len(own):
        return content  # set twice, which is refused with the keys as they are written
    other = {
        f"constants{sign}{name}": name
        for key, name in own.items()
        if name not in record.parameters.model_fields
        for sign in "._"
    }
    if "analysis" in content:
        content = {**content, "analysis": _respelled(content["analysis"], other)}
    return {**content, "grid": {own[key]: value for key, value in grid.items()}}


def _respelled(value: Any, other: dict[str, str], depth: int = 4) -> Any:
    if isinstance(value, dict) and depth:
        return {other.get(k, k): _respelled(v, other, depth - 1) for k, v in value.items()}
    if isinstance(value, list) and depth:
        return [_respelled(one, other, depth - 1) for one in value]
    return other.get(value, value) if isinstance(value, str) else value


class Said(BaseModel):
    """Everything a study file says. Values are canonical: 12 significant digits, numbers sorted."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    study: str = Field(
        pattern=r"^[a-z][a-z0-9_]*$", max_length=100, description="name; equals the file's name"
    )
    title: Annotated[str, AfterValidator(one_line)] = Field(
        default="", min_length=1, max_length=300, description="one line; default: the name"
    )
    description: Annotated[str, AfterValidator(plain_text)] = Field(
        default="", max_length=20_000, description="plain text for the report"
    )
    question: Asking | None = Field(
        default=None, description="what it asks: plain text, or {text, analysis}"
    )
    system: str = Field(description="name of the system")
    parameters: Annotated[dict[str, Any], BeforeValidator(_parse_parameters)] = Field(
        default_factory=dict, description="parameters of the system that stay fixed"
    )
    grid: Annotated[ax.Grid, BeforeValidator(_without_functions)] = Field(
        default_factory=dict, description="swept parameters, in the order of the dimensions"
    )
    times: Times = Field(
        default=(0.0,),
        description=(
            "output times, in the system's unit (mostly samples per dimension); may be left out "
            "where no method has any"
        ),
    )
    methods: Annotated[dict[str, MethodSettings], BeforeValidator(_parse_methods)] = Field(
        description="how each point is computed"
    )
    save: kept.Saved | None = Field(
        default=None, description="what points keep beyond their order parameters"
    )
    noise: Literal["own", "shared"] = Field(
        default="own",
        description="shared: points that differ only in parameters share the noise of n and seed",
    )
    analysis: Annotated[Asked, Known] = Field(
        default_factory=nothing, description="what the report shows"
    )
    max_points: int = Field(default=10_000_000, ge=1, description="refuse a study above this size")

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, given: Any) -> Any:
        keys = list(cls.model_fields)
        return given if isinstance(given, cls) else _one_spelling(ax.check_keys(given, keys))

    @model_serializer(mode="wrap")
    def _without_nothing(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without a question that is not asked: such studies keep the digests that they had."""
        found: dict[str, Any] = dump(self)
        if found.get("question") is None:
            found.pop("question", None)
        return found

    @cached_property
    def space(self) -> Space:
        """The systems that the study is about."""
        system = registry.system_named(self.system).parameters
        return space_of(system, self.parameters, self.grid)

    def save_spec(self) -> Save:
        """What points keep beyond their order parameters, as methods take it."""
        return NOTHING if self.save is None else self.save.spec()

    def data_read(self) -> list[dict[str, str]]:
        """Digests of what the systems of the study read: a path does not say what is there.

        By field, of the first system and of each swept value of a field that names data; empty
        where none does.
        """
        fields = fields_of_data(self.space.system)
        built = self._readers(fields)
        found = [digests_in(system.model_dump(mode="json", include=fields)) for system in built]
        return found if any(found) else []

    def notes(self) -> list[str]:
        """What samples of one's own are not that the rule assumes, a sentence each."""
        notes = registry.system_named(self.system).notes
        built = self._readers(fields_of_data(self.space.system))
        return list(dict.fromkeys(text for system in built for text in notes.data(system)))

    def _readers(self, fields: frozenset[str]) -> list[Any]:
        """The first system, and one for each swept value of a field that names data."""
        if not fields:
            return []
        swept = [axis for axis in self.space.axes if axis.path[0] in fields]
        chosen = [{axis.path: value} for axis in swept for value in axis.values]
        return [self.space.at(), *map(self.space.at, chosen)]

    def content(self) -> dict[str, Any]:
        """Everything that the numbers depend on, grids expanded."""
        methods = registry.methods_of(self.system, self.noise)
        saved, data = kept.plain(self.save_spec()), self.data_read()
        return {
            "system": self.system,
            "parameters": self.parameters,
            "grid": {axis.key: axis.values for axis in self.space.axes},
            "times": self.times,
            "methods": {k: m.model_dump(mode="json") for k, m in self.methods.items()},
            "kernels": {k: methods[k].kernel for k in self.methods},
            **({"save": saved} if saved else {}),
            **({"data": data} if data else {}),
        }

    def content_hash(self) -> str:
        """Digest of everything that determines numbers; not of titles and reports."""
        return hashlib.sha256(canonical_json(self.content()).encode()).hexdigest()

    def full_hash(self) -> str:
        """Digest of everything the study says, its order, and its kernels."""
        order = [list(self.grid), list(self.methods)]
        whole = [self.content_hash(), order, self.model_dump(mode="json")]
        return hashlib.sha256(canonical_json(whole).encode()).hexdigest()
