"""Results of another study are not replaced by accident: the refusal names what differs.

A study goes on as long as its name and its system stay and its old and its new points could be the
same: grids grow, shrink and move on, fixed parameters become swept ones, methods and times change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hdica.errors import HdicaError
from hdica.store.files import DamageError, read_regular
from hdica.store.paths import METADATA, STUDY, results_path, work_path
from hdica.store.sealed import read_sealed, unsealed
from hdica.study.cells import canonical_json
from hdica.study.study import Study
from hdica.systems import registry
from hdica.systems import space as ax
from hdica.systems import space as gr
from hdica.systems.space import space_of

SHOWN = 3
"""Differences that a sentence names, and values of a parameter."""
UNKNOWN = (HdicaError, KeyError, TypeError, ValueError, AttributeError)
"""What a study of an earlier version may raise: then its name and its system are compared."""


def refuse_another(study: Study, out: str | Path) -> None:
    """Refuse results that belong to another study than the one to be computed or published."""
    there = _published(out) or _planned(out)
    here = study.model_dump(mode="json")
    if there is None or there == here:
        return
    found = list(_differences(there, here))
    if found:
        differences = "; ".join(found[:SHOWN])
        raise HdicaError(
            f"{results_path(out)} belongs to another study: {differences} (take another path, or "
            "--replace, in Python replace=True, puts the new study in its place)"
        )


def _published(out: str | Path) -> dict[str, Any] | None:
    """What the published store says of its study, None if it says nothing that can be read."""
    path = results_path(out) / METADATA
    try:
        attributes = unsealed(read_regular(path) or b"", path)["attributes"]
        content = json.loads(attributes["study_yaml"])
    except (DamageError, KeyError, TypeError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _planned(out: str | Path) -> dict[str, Any] | None:
    try:
        return read_sealed(work_path(out) / STUDY)
    except DamageError:
        return None


def _differences(there: dict[str, Any], here: dict[str, Any]) -> Iterator[str]:
    """What makes another study of one, a clause each."""
    for name in ("study", "system"):
        if there.get(name) != here[name]:
            yield f"{name} is {there.get(name)!r} there and {here[name]!r} here"
    if there.get("system") != here["system"]:
        return  # their parameters have nothing to do with each other
    try:
        old, new = _space(there), _space(here)
    except UNKNOWN:
        return
    for path in dict.fromkeys([*new.keys, *old.keys]):
        before, now = old.values(path), new.values(path)
        if {*map(_comparable, before)}.isdisjoint(map(_comparable, now)):
            name = new.keys.get(path) or old.keys[path]
            yield f"{name} is {_shown(before)} there and {_shown(now)} here"


def _comparable(value: Any) -> Any:
    return value if isinstance(value, float | int | str) else canonical_json(value)


def _shown(values: tuple[Any, ...]) -> str:
    """Some values, for a person."""
    texts = [ax.shown(v) if isinstance(v, float) else str(v)[:40] for v in values[:SHOWN]]
    if len(values) > SHOWN:
        texts.append(f"... ({len(values)} values)")
    return ", ".join(texts) or "not set"


@dataclass(frozen=True)
class _Space:
    """Points of the parameter space that a study has: a product of values, by path."""

    keys: dict[gr.Path, str]  # how the study calls each path that it sets
    known: dict[gr.Path, tuple[Any, ...]]
    base: dict[str, Any]  # the whole of one system, for what the study leaves at its default

    def values(self, path: gr.Path) -> tuple[Any, ...]:
        """Values of a path; none where the system has no such field at all."""
        if path in self.known:
            return self.known[path]
        level: Any = self.base
        for part in path:
            if not isinstance(level, dict) or part not in level:
                return ()
            level = level[part]
        return (level,)


def _space(content: dict[str, Any]) -> _Space:
    system = registry.system_named(content["system"]).parameters
    grid = {key: ax.parse_axis(values, key) for key, values in (content.get("grid") or {}).items()}
    space = space_of(system, content.get("parameters") or {}, grid)
    keys: dict[gr.Path, str] = {}
    known: dict[gr.Path, tuple[Any, ...]] = {}
    for key, (path, value) in space.fixed.items():
        for leaf, one in _leaves(path, value):
            keys[leaf], known[leaf] = ".".join((key, *leaf[len(path) :])), (one,)
    for axis in space.axes:
        keys[axis.path], known[axis.path] = axis.key, axis.values
    return _Space(keys, known, space.at().model_dump(mode="json"))


def _leaves(path: gr.Path, value: Any) -> Iterator[tuple[gr.Path, Any]]:
    """Everything that a fixed parameter sets, with its path."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves((*path, str(key)), inner)
    else:
        yield path, value
