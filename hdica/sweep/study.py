"""A study: one sweep of one system, validated before anything runs."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from hdica.errors import HdicaError, from_validation
from hdica.sweep import axes as ax
from hdica.sweep import grid as gr
from hdica.sweep.keys import canonical_json
from hdica.sweep.settings import Analysis, MethodSettings, Times, parse_times
from hdica.systems import registry

MAX_CHECKED = 2000
"""Values of one axis that are tried before anything runs; a longer axis is thinned."""


def _parse_parameters(given: Any) -> Any:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(isinstance(k, str) for k in given):
        raise HdicaError("parameters must be a mapping from names to values")
    return given


def _parse_methods(given: Any) -> Any:
    if not isinstance(given, dict) or not given:
        raise HdicaError("methods must name at least one method, for example chain or ode")
    return given


class Study(BaseModel):
    """One sweep of one system.

    Everything a study file says. Values are canonical: 12 significant digits, numbers sorted.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    study: str = Field(pattern=r"^[a-z][a-z0-9_]*$", description="name; equals the file's name")
    title: str = Field(min_length=1, description="one line")
    description: str = Field(default="", description="plain text for the report")
    system: str = Field(description="the problem, for example OnlineICA")
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
    analysis: Analysis = Field(default_factory=Analysis, description="what the report shows")
    max_points: int = Field(default=10_000_000, ge=1, description="refuse a study above this size")

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, given: Any) -> Any:
        return given if isinstance(given, cls) else ax.check_keys(given, list(cls.model_fields))

    @model_validator(mode="after")
    def _whole(self) -> Study:
        _check_methods(self)
        _check_size(self)
        _check_systems(self)
        _check_analysis(self)
        return self

    def axes(self) -> tuple[gr.Axis, ...]:
        """Swept parameters in the order of the study."""
        system = registry.system_class(self.system)
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
        system = registry.system_class(self.system)
        return {
            key: (gr.address(key, system, self.parameters, "parameters"), value)
            for key, value in self.parameters.items()
        }

    def content(self) -> dict[str, Any]:
        """Everything that the numbers depend on, grids expanded."""
        methods = registry.methods_of(self.system)
        return {
            "system": self.system,
            "parameters": self.parameters,
            "grid": {key: ax.expand(v, f"grid.{key}") for key, v in self.grid.items()},
            "times": self.times,
            "methods": {k: m.model_dump(mode="json") for k, m in self.methods.items()},
            "kernels": {k: methods[k].kernel for k in self.methods},
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
    system, methods = registry.system_class(study.system), registry.methods_of(study.system)
    tops = {key: gr.address(key, system, study.parameters, "grid")[0] for key in study.grid}
    count = 0
    for name, settings in study.methods.items():
        kept = [ax.size(v) for k, v in study.grid.items() if tops[k] not in methods[name].ignores]
        count += math.prod(kept) * len(settings.n_values) * settings.seed_count
    return count


def _check_size(study: Study) -> None:
    longest = max([ax.size(values) for values in study.grid.values()], default=1)
    # An axis that every method ignores is still expanded, so its length counts by itself.
    count = max(point_count(study), longest)
    if count > study.max_points:
        raise HdicaError(
            f"the grid has {count} points (max_points = {study.max_points} are allowed)"
        )


def _check_methods(study: Study) -> None:
    known = registry.methods_of(study.system)
    for name, settings in study.methods.items():
        if name not in known:
            hint = ax.suggestion(name, list(known))
            raise HdicaError(f"methods.{name} is not a method of {study.system} ({hint})")
        for key in ("n", "seeds"):
            given = getattr(settings, key) is not None
            if known[name].stochastic and not given:
                raise HdicaError(f"methods.{name}.{key} is missing (a stochastic method needs it)")
            if given and not known[name].stochastic:
                raise HdicaError(
                    f"methods.{name}.{key} is not allowed ({name} has no n and no seeds)"
                )
        largest = settings.n[-1] * study.times[-1] if settings.n else 0
        if largest > 2**53:
            raise HdicaError(
                f"methods.{name}.n = {settings.n_values[-1]} is not allowed with times up to "
                f"{study.times[-1]:g} (n * time <= 2**53)"
            )


def _check_systems(study: Study) -> None:
    """Try each value of each axis alone, on top of the first value of the others."""
    system = registry.system_class(study.system)
    axes, fixed = study.axes(), study.fixed()
    _check_names(study, axes)
    gr.check_conflicts(fixed, axes)
    base = list(fixed.values())
    first = [(axis.path, axis.values[0]) for axis in axes]
    _refusals(study, gr.build(system, gr.nested([*base, *first]), axes))
    for position, axis in enumerate(axes):
        step = -(-axis.size // MAX_CHECKED)
        for value in {*axis.values[1::step], axis.values[-1]}:
            chosen = [*first[:position], (axis.path, value), *first[position + 1 :]]
            built = gr.build(system, gr.nested([*base, *chosen]), blame=f"grid.{axis.key}")
            _refusals(study, built)


def _check_names(study: Study, axes: tuple[gr.Axis, ...]) -> None:
    """Refuse a swept parameter whose dimension would be mistaken for something else."""
    taken = {"n", "seed", "time", "step", "point", "status", "cpu_seconds", "reason"}
    for name in study.methods:
        for output in registry.methods_of(study.system)[name].outputs:
            taken |= {output.name, *output.dims}
    for axis in axes:
        if axis.dim in taken:
            raise HdicaError(f"grid.{axis.key} is not allowed (datasets use the name {axis.dim!r})")
        taken.add(axis.dim)


def _refusals(study: Study, system: Any) -> None:
    known = registry.methods_of(study.system)
    for name in study.methods:
        why = known[name].refuses(system)
        if why:
            raise HdicaError(f"methods.{name} does not apply: {why}")


def _check_analysis(study: Study) -> None:
    for where, name in study.analysis.methods():
        if name not in study.methods:
            hint = ax.suggestion(name, list(study.methods))
            raise HdicaError(f"{where} = {name!r} is not a method of this study ({hint})")
        method = registry.methods_of(study.system)[name]
        if method.stochastic != where.endswith(".simulation"):
            kind = "a stochastic method" if where.endswith(".simulation") else "one without seeds"
            raise HdicaError(f"{where} = {name!r} is not allowed ({kind} is needed)")
    for where, variable, names in study.analysis.variables():
        for name in names:
            outputs = [o.name for o in registry.methods_of(study.system)[name].outputs]
            if variable not in outputs:
                hint = ax.suggestion(variable, outputs)
                raise HdicaError(f"{where} = {variable!r} is no output of {name} ({hint})")
    if study.analysis.phase:
        dims = [key.replace(".", "_") for key in study.grid]
        for side in ("x", "y"):
            dim = getattr(study.analysis.phase, side)
            if dim not in dims:
                hint = ax.suggestion(dim, dims)
                raise HdicaError(f"analysis.phase.{side} = {dim!r} is not swept ({hint})")


def study_from(content: Any) -> Study:
    """Validate a study given as plain data.

    Raises
    ------
    HdicaError
        One sentence: field, value, what is allowed.
    """
    named = isinstance(content, dict) and isinstance(content.get("study"), str)
    what = f"study {content['study']!r}" if named else "study"
    try:
        return Study.model_validate(content)
    except ValidationError as exc:
        raise from_validation(exc, what) from exc


def read_yaml(path: Path) -> Any:
    """Plain data of a YAML 1.2 file; a key given twice is an error.

    Raises
    ------
    HdicaError
        If the file cannot be read or is not YAML; line and column are named.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except DuplicateKeyError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else "?"
        problem = str(exc.problem).split(" with value")[0].removeprefix("found duplicate key ")
        raise HdicaError(f"{path}: key {problem} is given twice (line {line})") from exc
    except MarkedYAMLError as exc:
        mark = exc.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise HdicaError(f"{path} is not valid YAML{where}: {exc.problem}") from exc
    except (YAMLError, RecursionError, ValueError) as exc:
        first = str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__
        raise HdicaError(f"{path} is not valid YAML: {first}") from exc
    except OSError as exc:
        raise HdicaError(f"cannot read {path} ({exc.strerror or exc})") from exc


def load_study(path: str | Path) -> Study:
    """Read and validate a study file.

    Raises
    ------
    HdicaError
        One sentence: file, field, value, what is allowed.
    """
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


__all__ = ["Study", "load_study", "parse_times", "point_count", "read_yaml", "study_from"]
