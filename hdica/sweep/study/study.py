"""A study: one sweep of one system, validated before anything runs."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from hdica.errors import HdicaError, from_validation
from hdica.ingredients.plain import plain
from hdica.ingredients.save import NOTHING, Save
from hdica.sweep.study import checks, kept
from hdica.sweep.study.asked import Asked, Known, nothing
from hdica.sweep.study.keys import canonical_json
from hdica.sweep.study.plain_yaml import read_yaml
from hdica.sweep.study.points import MethodSettings, Times
from hdica.systems import address as gr
from hdica.systems import axes as ax
from hdica.systems import registry
from hdica.systems.arguments import check_length
from hdica.systems.points import MAX_SEEDS


def _parse_parameters(given: Any) -> Any:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(k, str) for k in given):
        raise HdicaError("parameters must be a mapping from names to values")
    return plain(given)


def _parse_methods(given: Any) -> Any:
    if not isinstance(given, dict) or not given:
        raise HdicaError("methods must name at least one method")
    return given


SPACES = "\n\t\u00a0\u2002\u2003\u2009\u202f"
"""What a text may hold beside what is printed."""


def _plain_text(text: str) -> str:
    odd = next((c for c in text if not c.isprintable() and c not in SPACES), "")
    if odd:
        raise HdicaError(f"it holds the character U+{ord(odd):04X}, which is not allowed")
    return text


def _one_line(text: str) -> str:
    if "\n" in _plain_text(text.rstrip("\n")):
        raise HdicaError("it has a line break (one line is allowed)")
    return text.rstrip("\n")


class Study(BaseModel):
    """One sweep of one system.

    Everything a study file says. Values are canonical: 12 significant digits, numbers sorted.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    study: str = Field(
        pattern=r"^[a-z][a-z0-9_]*$", max_length=100, description="name; equals the file's name"
    )
    title: Annotated[str, AfterValidator(_one_line)] = Field(
        default="", min_length=1, max_length=300, description="one line; default: the name"
    )
    description: Annotated[str, AfterValidator(_plain_text)] = Field(
        default="", max_length=20_000, description="plain text for the report"
    )
    system: str = Field(description="name of the system")
    parameters: Annotated[dict[str, Any], BeforeValidator(_parse_parameters)] = Field(
        default_factory=dict, description="parameters of the system that stay fixed"
    )
    grid: ax.Grid = Field(
        default_factory=dict, description="swept parameters, in the order of the dimensions"
    )
    times: Times = Field(description="output times, in samples per dimension")
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
        return given if isinstance(given, cls) else ax.check_keys(given, list(cls.model_fields))

    @model_validator(mode="after")
    def _whole(self) -> Study:
        if not self.title:
            object.__setattr__(self, "title", self.study)
        checks.check_methods(self)
        checks.check_noise(self)
        _check_size(self)
        checks.check_systems(self)
        checks.check_save(self)
        # What an analysis leaves open depends on the methods.
        object.__setattr__(self, "analysis", checks.settled(self))
        checks.check_analysis(self)
        return self

    def axes(self) -> tuple[gr.Axis, ...]:
        """Swept parameters in the order of the study."""
        system = registry.system_named(self.system).parameters
        return tuple(
            gr.Axis(
                key,
                gr.address(key, system, self.parameters, "grid"),
                ax.expand(values, f"grid.{key}"),
            )
            for key, values in self.grid.items()
        )

    def fixed(self) -> dict[str, tuple[gr.Path, Any]]:
        """Path and value of every fixed parameter."""
        system = registry.system_named(self.system).parameters
        return {
            key: (gr.address(key, system, self.parameters, "parameters"), value)
            for key, value in self.parameters.items()
        }

    def save_spec(self) -> Save:
        """What points keep beyond their order parameters, as methods take it."""
        return NOTHING if self.save is None else self.save.spec()

    def content(self) -> dict[str, Any]:
        """Everything that the numbers depend on, grids expanded."""
        methods = registry.methods_of(self.system, self.noise)
        saved = kept.plain(self.save_spec())
        return {
            "system": self.system,
            "parameters": self.parameters,
            "grid": {key: ax.expand(v, f"grid.{key}") for key, v in self.grid.items()},
            "times": self.times,
            "methods": {k: m.model_dump(mode="json") for k, m in self.methods.items()},
            "kernels": {k: methods[k].kernel for k in self.methods},
            **({"save": saved} if saved else {}),
        }

    def content_hash(self) -> str:
        """Digest of everything that determines numbers; not of titles and reports."""
        return hashlib.sha256(canonical_json(self.content()).encode()).hexdigest()

    def full_hash(self) -> str:
        """Digest of everything the study says, its order, and its kernels."""
        order = [list(self.grid), list(self.methods)]
        whole = [self.content_hash(), order, self.model_dump(mode="json")]
        return hashlib.sha256(canonical_json(whole).encode()).hexdigest()


def point_count(study: Study) -> int:
    """Points of a study, from the sizes of its axes alone."""
    system, methods = (
        registry.system_named(study.system).parameters,
        registry.methods_of(study.system),
    )
    tops = {key: gr.address(key, system, study.parameters, "grid")[0] for key in study.grid}
    count = 0
    for name, settings in study.methods.items():
        kept = [ax.size(v) for k, v in study.grid.items() if tops[k] not in methods[name].ignores]
        count += math.prod(kept) * len(settings.n_values) * settings.seed_count
    return count


def kept_in(study: Study) -> str:
    """Which methods of a study keep what beyond the order parameters, in words."""
    known = registry.methods_of(study.system)
    return kept.described(study.save_spec(), [known[name] for name in study.methods])


def _check_size(study: Study) -> None:
    sizes = {f"grid.{key}": ax.size(values) for key, values in study.grid.items()}
    seeds = {f"methods.{key}.seeds": m.seed_count for key, m in study.methods.items()}
    longest = max(sizes.values(), default=1)
    # An axis that every method ignores is still expanded, so its length counts by itself.
    count = max(point_count(study), longest)
    if count > study.max_points:
        raise HdicaError(
            f"the grid has {count} points (max_points = {study.max_points} are allowed)"
        )
    for where, size in (sizes | seeds).items():
        check_length(size, where, MAX_SEEDS)


def study_from(content: Any) -> Study:
    """Validate a study given as plain data."""
    named = isinstance(content, dict) and isinstance(content.get("study"), str)
    what = f"study {content['study']!r}" if named else "study"
    try:
        return Study.model_validate(content)
    except ValidationError as exc:
        raise from_validation(exc, what) from exc


def load_study(path: str | Path) -> Study:
    """Read and validate a study file."""
    path = Path(path)
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise HdicaError(f"{path} is not a study (a mapping with study, system, times, methods)")
    if isinstance(content.get("study"), str) and content["study"] != path.stem:
        raise HdicaError(
            f"{path}: study = {content['study']!r} is not allowed "
            f"(it must equal the file's name, {path.stem!r})"
        )
    return study_from(content)
