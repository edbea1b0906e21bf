"""The schema of a study file: its fields with their validators, and what follows from them."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import asdict
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
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

from hdica.analysis.registry import Analyses, Registered, no_analyses
from hdica.errors import HdicaError
from hdica.ingredients.functions import refuse_in_files
from hdica.ingredients.plain import plain
from hdica.ingredients.save import ALL, NOTHING, Save
from hdica.inputs.data_input import digests_in, fields_of_data
from hdica.systems import arguments
from hdica.systems import system as registry
from hdica.systems.method import Method
from hdica.systems.parameters import Parameters
from hdica.systems.space import Space, in_one_spelling, space_of
from hdica.systems.values import (
    ZIP,
    Cases,
    Grid,
    Refine,
    Sample,
    Values,
    check_keys,
    columns,
    parse_refine,
    parse_sample,
)

_Numbers = tuple[float, ...] | None
SPACES = "\n\t\u00a0\u2002\u2003\u2009\u202f"  # what a text may hold beside what is printed


canonical_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""JSON with sorted keys and without spaces: one text for one content."""


def json_digest(value: object) -> str:
    """sha256 of the canonical JSON of plain data."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


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


def _plain_text(text: str) -> str:
    """The text, if everything in it is printed or a space."""
    odd = next((c for c in text if not c.isprintable() and c not in SPACES), "")
    if odd:
        raise HdicaError(f"it holds the character U+{ord(odd):04X}, which is not allowed")
    return text


def _one_line(text: str) -> str:
    """The same on one line."""
    if "\n" in _plain_text(text.rstrip("\n")):
        raise HdicaError("it has a line break (one line is allowed)")
    return text.rstrip("\n")


class Question(Section):
    """The question of a study; a text alone is its ``text``."""

    text: Annotated[str, AfterValidator(_plain_text)] = Field(
        default="", max_length=2_000, description="in words, for the head of the report"
    )
    analysis: str = Field(default="", description="the analysis whose answer is the headline")

    @classmethod
    def in_full(cls, content: object) -> object:
        """A text alone is its ``text``."""
        return {"text": content} if isinstance(content, str) else content

    @model_validator(mode="after")
    def _something(self) -> Question:
        if not self.text.strip() and not self.analysis:
            raise HdicaError("it needs text or analysis (something to ask)")
        return self

    @model_serializer
    def _plain(self) -> str | dict[str, str]:
        if not self.analysis:
            return self.text
        return ({"text": self.text} if self.text else {}) | {"analysis": self.analysis}


def _parse_n(content: Any) -> tuple[int, ...]:
    several = isinstance(content, list | tuple | range | np.ndarray)
    values = sorted(arguments.check_n(n) for n in (content if several else [content]))
    if not values:
        raise HdicaError("n is an empty list (at least one whole number is needed)")
    for before, after in itertools.pairwise(values):
        if before == after:
            raise HdicaError(f"n: value {after} appears twice (each value only once)")
    return tuple(values)


def _parse_seeds(content: object) -> int | tuple[int, ...]:
    if (count := arguments.seed_count(content)) is not None:
        return count
    values = sorted(arguments.check_seeds(content))
    return len(values) if values == [*range(len(values))] else tuple(values)


def _increasing(field: str, what: str) -> BeforeValidator:
    def read(content: object) -> _Numbers:
        if content is None:
            return None
        numbers = arguments.spaced(content, field, arguments.MAX_VALUES)
        arguments.check_increasing(numbers, field, what, positive=field != "x")
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


def plain_save(save: Save) -> dict[str, Any]:
    """What is kept as plain data, without what is empty: ``{}`` if nothing is."""
    content = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(save).items()}
    return {name: value for name, value in content.items() if value and name != "constants"}


class MethodSettings(Section):
    """Where a method is computed; each key is for the methods that need it alone."""

    n: Annotated[tuple[int, ...], BeforeValidator(_parse_n)] | None = Field(
        default=None, description="dimensions of the data, each a whole number >= 3"
    )
    seeds: Annotated[int | tuple[int, ...], BeforeValidator(_parse_seeds)] | None = Field(
        default=None, description="16 means 0 to 15; or a list of whole numbers >= 0"
    )

    @property
    def n_values(self) -> tuple[int | None, ...]:
        """Dimensions, or ``(None,)`` for a method without."""
        return (None,) if self.n is None else self.n

    @property
    def seed_count(self) -> int:
        """Number of seeds; 1 for a method without."""
        if self.seeds is None:
            return 1
        return self.seeds if isinstance(self.seeds, int) else len(self.seeds)

    def seed_values(self) -> tuple[int, ...]:
        """All seeds; empty for a method without."""
        if self.seeds is None:
            return ()
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds


def _parse_times(content: object) -> tuple[float, ...]:
    """Output times: canonical, not negative, increasing."""
    times = arguments.spaced(content, "times", arguments.MAX_TIMES)
    arguments.check_time_axis(times)
    return times


def _parse_parameters(content: object) -> object:
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(k, str) for k in content):
        raise HdicaError("parameters must be a mapping from names to values")
    refuse_in_files("parameters", content)
    return plain(content)


def _without_functions(content: object) -> object:
    refuse_in_files("grid", content)
    return content


def _parse_methods(content: object) -> object:
    if isinstance(content, str | list) and content:
        raise HdicaError(
            f"methods = {content!r} is not allowed (a mapping from methods to their settings, as "
            "in {ode: {}, chain: {n: 100, seeds: 8}})"
        )
    if not isinstance(content, dict) or not content:
        raise HdicaError("methods must name at least one method")
    return content


def _variant(content: dict[str, Any]) -> dict[str, Any]:
    """A study of the system that has its parameters, where one name stands for several systems."""
    record, fixed = registry.lookup(content.get("system")), content.get("parameters")
    if record is None or record.variant is None or not isinstance(fixed, dict):
        return content
    return {**content, "system": record.variant(fixed)}


def _zipped(content: dict[str, Any]) -> dict[str, Any]:
    """A study whose ``grid.zip`` is what it is short for, ``cases``."""
    grid = content.get("grid")
    if not isinstance(grid, dict) or ZIP not in grid:
        return content
    if content.get("cases"):
        raise HdicaError("grid.zip and cases are not allowed together (one dimension of cases)")
    if not isinstance(grid[ZIP], dict):
        raise HdicaError("grid.zip must be a mapping from parameters to lists of the same length")
    columns(grid[ZIP], "grid.zip")  # which an empty one is not
    rest = {key: value for key, value in grid.items() if key != ZIP}
    return {**content, "grid": rest, "cases": grid[ZIP]}


def _one_spelling(content: dict[str, Any]) -> dict[str, Any]:
    """A study whose swept constants have one spelling, wherever they are swept or analysed."""
    record, fixed = registry.lookup(content.get("system")), content.get("parameters")
    grid, cases, over = _swept(content)
    keys = [*grid, *cases, *over]
    if record is None or not all(isinstance(k, str) for k in keys):
        return content
    texts = {**over, **cases, **grid, **(fixed if isinstance(fixed, dict) else {})}
    own = {key: in_one_spelling(key, record.parameters, texts) for key in keys}
    if len(set(own.values())) < len(own):
        return content  # set twice, which is refused with the keys as they are written
    other = {
        f"constants{sign}{name}": name
        for key, name in own.items()
        if name not in record.parameters.model_fields
        for sign in "._"
    }
    every = ("grid", "cases", "sample", "analysis")
    return {**content, **{k: _respelled(content[k], other) for k in every if k in content}}


def _swept(content: dict[str, Any]) -> list[dict[str, Any]]:
    """What the grid, the cases and the sample of a study sweep, by key; empty for what is none."""
    cases, sample = content.get("cases"), content.get("sample")
    if isinstance(cases, list | tuple):
        cases = {k: v for row in cases if isinstance(row, dict) for k, v in row.items()}
    over = sample.get("over") if isinstance(sample, dict) else None
    return [one if isinstance(one, dict) else {} for one in (content.get("grid"), cases, over)]


def _respelled(value: object, other: dict[str, str], depth: int = 4) -> object:
    if isinstance(value, dict) and depth:
        return {other.get(k, k): _respelled(v, other, depth - 1) for k, v in value.items()}
    if isinstance(value, list) and depth:
        return [_respelled(one, other, depth - 1) for one in value]
    return other.get(value, value) if isinstance(value, str) else value


def _refined(content: dict[str, Any]) -> dict[str, Any]:
    """A study whose refinement names the dimensions that it refines: those of its analysis."""
    refine, every = content.get("refine"), content.get("analysis")
    if not isinstance(refine, dict) or "over" in refine or not isinstance(every, dict):
        return content
    settings = every.get(refine.get("analysis"))
    own = [settings.get(key) for key in ("x", "y")] if isinstance(settings, dict) else []
    over = [name for name in own if isinstance(name, str)]
    return {**content, "refine": {**refine, "over": over}}


LATER = ("question", "cases", "sample", "where", "refine")
"""Keys that a study does not write where it has nothing under them, so that digests stay."""


class StudySchema(Section):
    """The schema of a study file. Values are canonical: 12 significant digits, numbers sorted."""

    study: str = Field(
        pattern=r"^[a-z][a-z0-9_]*$", max_length=100, description="name; equals the file's name"
    )
    title: Annotated[str, AfterValidator(_one_line)] = Field(
        default="", min_length=1, max_length=300, description="one line; default: the name"
    )
    description: Annotated[str, AfterValidator(_plain_text)] = Field(
        default="", max_length=20_000, description="plain text for the report"
    )
    question: Question | None = Field(
        default=None, description="what it asks: plain text, or {text, analysis}"
    )
    system: str = Field(description="name of the system")
    parameters: Annotated[dict[str, Any], BeforeValidator(_parse_parameters)] = Field(
        default_factory=dict, description="parameters of the system that stay fixed"
    )
    grid: Annotated[Grid, BeforeValidator(_without_functions)] = Field(
        default_factory=dict, description="swept parameters, in the order of the dimensions"
    )
    cases: Annotated[Cases, BeforeValidator(_without_functions)] = Field(
        default_factory=dict,
        description=(
            "parameters that go together along one dimension: lists by their names, or a list of "
            "mappings, each with a label if it has one"
        ),
    )
    sample: Annotated[Sample | None, BeforeValidator(parse_sample)] = Field(
        default=None,
        description="points spread over ranges of parameters: {points, seed, over}",
    )
    where: Annotated[str, AfterValidator(_one_line)] = Field(
        default="",
        max_length=1_000,
        description="condition on swept numbers, such as tau*omega < 2; other points are left out",
    )
    refine: Annotated[Refine | None, BeforeValidator(parse_refine)] = Field(
        default=None,
        description=(
            "where to add points: {analysis, levels}; steps of the grid are halved that many times "
            "between neighbours that the analysis sees differ"
        ),
    )
    times: Annotated[tuple[float, ...], BeforeValidator(_parse_times)] = Field(
        default=(0.0,),
        description=(
            "output times, in the system's unit (mostly samples per dimension); may be left out "
            "where no method has any"
        ),
    )
    methods: Annotated[dict[str, MethodSettings], BeforeValidator(_parse_methods)] = Field(
        description="how each point is computed"
    )
    save: Saved | None = Field(
        default=None, description="what points keep beyond their order parameters"
    )
    noise: Literal["own", "shared"] = Field(
        default="own",
        description="shared: points that differ only in parameters share the noise of n and seed",
    )
    analysis: Annotated[Analyses, Registered] = Field(
        default_factory=no_analyses, description="what the report shows"
    )
    max_points: int = Field(default=10_000_000, ge=1, description="refuse a study above this size")

    @classmethod
    def in_full(cls, content: object) -> object:
        """The system that has the parameters, and swept constants in one spelling."""
        content = _zipped(check_keys(content, list(cls.model_fields)))
        return _refined(_one_spelling(_variant(content)))

    @model_serializer(mode="wrap")
    def _without_nothing(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without a question that is not asked: such studies keep the digests that they had."""
        content: dict[str, Any] = dump(self)
        return {k: v for k, v in content.items() if v or k not in LATER}

    @cached_property
    def space(self) -> Space:
        """The systems that the study is about."""
        system = registry.system_named(self.system).parameters
        return space_of(system, self.parameters, self.finest, self.cases, self.sample)

    @property
    def finest(self) -> dict[str, Values]:
        """The grid with all values that a refinement may add."""
        return self.grid if self.refine is None else self.refine.finest(self.grid)

    def methods_used(self) -> dict[str, Method]:
        """The methods of the study, by name."""
        methods = registry.methods_of(self.system, self.noise)
        return {name: methods[name] for name in self.methods}

    def save_spec(self) -> Save:
        """What points keep beyond their order parameters, as methods take it."""
        return NOTHING if self.save is None else self.save.spec()

    def data_read(self) -> list[dict[str, str]]:
        """Digests of what the systems of the study read: a path does not say what is there.

        By field, of the first system and of each swept value of a field that names data; empty
        where none does.
        """
        include = {*fields_of_data(self.space.system)}
        read = (one.model_dump(mode="json", include=include) for one in self._readers())
        digests = [digests_in(content) for content in read]
        return digests if any(digests) else []

    def notes(self) -> list[str]:
        """What samples of one's own are not that the rule assumes, a sentence each."""
        notes = registry.system_named(self.system).notes
        return list(dict.fromkeys(text for one in self._readers() for text in notes.data(one)))

    def _readers(self) -> list[Parameters]:
        """The first system, and one for each swept value of a field that names data."""
        if not (fields := fields_of_data(self.space.system)):
            return []
        swept = [
            axis
            for axis in self.space.axes
            for one in axis.each
            # A number among others that go with it names no data.
            if one.path[0] in fields and not (axis.parts and isinstance(one.values[0], float))
        ]
        chosen = [{axis.path: value} for axis in swept for value in axis.values]
        return [self.space.at(), *map(self.space.at, chosen)]

    def content(self) -> dict[str, Any]:
        """Everything that the numbers depend on, grids expanded."""
        save, data = plain_save(self.save_spec()), self.data_read()
        return {
            "system": self.system,
            "parameters": self.parameters,
            "grid": {axis.key: axis.written for axis in self.space.axes},
            "times": self.times,
            "methods": {k: m.model_dump(mode="json") for k, m in self.methods.items()},
            "kernels": {name: method.about.kernel for name, method in self.methods_used().items()},
            **({"save": save} if save else {}),
            **({"where": self.where} if self.where else {}),
            **({"refine": self.refine.model_dump()} if self.refine else {}),
            **({"data": data} if data else {}),
        }

    def content_hash(self) -> str:
        """Digest of everything that determines numbers; not of titles and reports."""
        return json_digest(self.content())

    def full_hash(self) -> str:
        """Digest of everything the study says, its order, and its kernels."""
        order = [list(self.grid), list(self.methods)]
        return json_digest([self.content_hash(), order, self.model_dump(mode="json")])
