"""A study: one sweep of one system, validated before anything runs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pydantic import (
    ValidationError,
    model_validator,
)

from hdica.errors import HdicaError, from_validation, path_of
from hdica.inputs.plain_yaml import read_yaml
from hdica.sweep.study import checks, kept
from hdica.sweep.study.said import Said
from hdica.systems import address as gr
from hdica.systems import axes as ax
from hdica.systems import registry
from hdica.systems.arguments import check_length
from hdica.systems.points import MAX_AXIS, MAX_SEEDS


class Study(Said):
    """One sweep of one system, checked as a whole."""

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
        checks.check_question(self)
        return self


def point_count(study: Study) -> int:
    """Points of a study, from the sizes of its axes alone."""
    system, methods = (
        registry.system_named(study.system).parameters,
        registry.methods_of(study.system),
    )
    tops = {
        key: gr.address(key, system, {**study.grid, **study.parameters}, "grid")[0]
        for key in study.grid
    }
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
    for where, size in sizes.items():
        check_length(size, where, MAX_AXIS)
    for where, size in seeds.items():
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
    path = path_of(path, "path", "config/studies/tiny.yaml")
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise HdicaError(f"{path} is not a study (a mapping with study, system, times, methods)")
    if isinstance(content.get("study"), str) and content["study"] != path.stem:
        raise HdicaError(
            f"{path}: study = {content['study']!r} is not allowed "
            f"(it must equal the file's name, {path.stem!r})"
        )
    return study_from(content)
