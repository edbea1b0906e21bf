"""A study: one sweep of one system, checked as a whole before anything runs, and how it prints.

Each refusal is one sentence.
"""

from __future__ import annotations

import math
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from pydantic import ValidationError, model_validator

from hdica.analysis.registry import Analyses
from hdica.analysis.settings import Gives, Named, Settings, saved_for
from hdica.errors import HdicaError, from_validation, path_of, suggestion
from hdica.ingredients.save import Save
from hdica.inputs.plain_yaml import read_yaml
from hdica.process.compile_cache import refuse_threads
from hdica.study import kept
from hdica.study.schema import StudySchema
from hdica.study.segment import segments_of
from hdica.systems import registry
from hdica.systems import space as address
from hdica.systems.arguments import (
    MAX_AXIS,
    MAX_SEEDS,
    check_extra,
    check_functionals,
    check_length,
    check_size,
    check_steps,
    check_until,
    refused_n,
    taken_names,
    times_for,
)
from hdica.systems.method import Method, shared_twin
from hdica.systems.space import Range, Value, shown, size

MAX_CHECKED = 2000
"""Values of one axis that are tried before anything runs; a longer axis is thinned."""
MAX_READ = 100
"""The same of an axis that enters formulas, which take long to read."""
MAX_ASKED = 100
"""Values of one axis for which the methods say whether they apply, which may take them long."""


class Study(StudySchema):
    """One sweep of one system, checked as a whole."""

    @model_validator(mode="after")
    def _whole(self) -> Study:
        if not self.title:
            object.__setattr__(self, "title", self.study)
        _check_methods(self)
        _check_noise(self)
        _check_points(self)
        _check_systems(self)
        _check_save(self)
        # What an analysis leaves open depends on the methods.
        object.__setattr__(self, "analysis", _settled(self))
        _check_analysis(self)
        _check_question(self)
        return self


def study_from(content: Any) -> Study:
    """Validate a study given as plain data."""
    refuse_threads()  # here it is no fault of the study
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


def point_count(study: Study) -> int:
    """Points of a study, from the sizes of its axes alone."""
    system = registry.system_named(study.system).parameters
    methods = registry.methods_of(study.system)
    tops = {
        key: address.address(key, system, {**study.grid, **study.parameters}, "grid")[0]
        for key in study.grid
    }
    count = 0
    for name, settings in study.methods.items():
        sizes = [
            size(v) for k, v in study.grid.items() if tops[k] not in methods[name].scope.ignores
        ]
        count += math.prod(sizes) * len(settings.n_values) * settings.seed_count
    return count


def kept_in(study: Study) -> str:
    """Which methods of a study keep what beyond the order parameters, in words."""
    return kept.described(study.save_spec(), study.methods_used().values())


def _rows(spec: Study) -> list[tuple[str, str, str]]:
    """What a study says in rows: what kind of thing, its name, and its values."""
    found = [("system", spec.system, "")]
    found += [("parameter", key, repr(value)) for key, value in spec.parameters.items()]
    found += [("grid", key, _axis(axis)) for key, axis in spec.grid.items()]
    found += [("method", name, _method(given)) for name, given in spec.methods.items()]
    found.append(("points", f"at most {point_count(spec)}", ""))
    return found


def _axis(axis: Any) -> str:
    """Values of a swept parameter: all of a few, else the ends and how many."""
    if isinstance(axis, Range):
        spacing = "" if axis.spacing == "linear" else f", {axis.spacing}"
        return f"{shown(axis.start)} … {shown(axis.stop)} ({axis.num} values{spacing})"
    if size(axis) <= 6:
        return ", ".join(shown(value) for value in axis)
    return f"{shown(axis[0])} … {shown(axis[-1])} ({size(axis)} values)"


def _method(given: Any) -> str:
    """Settings of a method that were given."""
    content = given if isinstance(given, dict) else given.model_dump(exclude_defaults=True)
    return ", ".join(f"{key} = {value}" for key, value in content.items())


def as_text(spec: Study) -> str:
    """Name and title, then a line for everything it asks for."""
    listed = _rows(spec)
    kinds, names = (max(len(one[k]) for one in listed) for k in (0, 1))
    lines = [f"  {kind:{kinds}}  {name:{names}}  {text}".rstrip() for kind, name, text in listed]
    return "\n".join([f"{spec.study}: {spec.title}", *lines])


def as_html(spec: Study) -> str:
    """The same as a table."""
    cells = "".join(
        f"<tr><td>{escape(kind)}</td><td><code>{escape(name)}</code></td>"
        f"<td>{escape(text)}</td></tr>"
        for kind, name, text in _rows(spec)
    )
    head = f"<b>{escape(spec.study)}</b> {escape(spec.title)}"
    about = f"<br><small>{escape(spec.description)}</small>" if spec.description else ""
    return f"<div>{head}{about}<table><tbody>{cells}</tbody></table></div>"


def _check_methods(study: StudySchema) -> None:
    """Refuse methods that the system lacks, and those with keys missing or in excess."""
    known = registry.methods_of(study.system)
    for name, settings in study.methods.items():
        if name not in known:
            hint = suggestion(name, list(known))
            raise HdicaError(f"methods.{name} is not a method of {study.system} ({hint})")
        needs = {"n": known[name].takes_n, "seeds": known[name].stochastic}
        for key, needed in needs.items():
            given = getattr(settings, key) is not None
            if needed and not given:
                kind = "a stochastic method" if known[name].stochastic else "this method"
                raise HdicaError(f"methods.{name}.{key} is missing ({kind} needs it)")
            if given and not needed:
                none = " and ".join(f"no {k}" for k, v in needs.items() if not v)
                raise HdicaError(f"methods.{name}.{key} is not allowed ({name} has {none})")
        if "times" not in study.model_fields_set:
            times_for(known[name], None, study.save_spec().extra)
        if settings.n:
            check_steps(settings.n[-1], study.times[-1], f"methods.{name}.n")


def _check_noise(study: StudySchema) -> None:
    """Refuse noise to share where no method has any."""
    if study.noise == "shared" and all(
        m.about.noise == "own" for m in study.methods_used().values()
    ):
        able = [k for k, m in registry.methods_of(study.system).items() if shared_twin(m)]
        others = f"; these have: {', '.join(able)}" if able else f", nor has any of {study.system}"
        raise HdicaError(
            f"noise = 'shared' is not allowed (none of {', '.join(study.methods)} has noise to "
            f"share{others})"
        )


def _check_points(study: Study) -> None:
    sizes = {f"grid.{key}": size(values) for key, values in study.grid.items()}
    seeds = {f"methods.{key}.seeds": m.seed_count for key, m in study.methods.items()}
    longest = max(sizes.values(), default=1)
    # An axis that every method ignores is still expanded, so its length counts by itself.
    count = max(point_count(study), longest)
    if count > study.max_points:
        raise HdicaError(
            f"the grid has {count} points (max_points = {study.max_points} are allowed)"
        )
    for where, length in sizes.items():
        check_length(length, where, MAX_AXIS)
    for where, length in seeds.items():
        check_length(length, where, MAX_SEEDS)


def _check_systems(study: StudySchema) -> None:
    """Try each value of each axis alone, on top of the first value of the others."""
    space = study.space
    _check_names(study, space.axes)
    address.check_conflicts(space.fixed, space.axes)
    _refusals(study, space.at())
    for axis in space.axes:
        asked, read = _some(axis, MAX_ASKED), {"constants", *getattr(space.system, "formulas", {})}
        formula = axis.path[0] in read and (axis.path[0] == "constants" or _has_words(axis))
        for value in asked | _some(axis, MAX_READ if formula else MAX_CHECKED):
            built = space.at({axis.path: value}, blame=f"grid.{axis.key}")
            if value in asked:
                _refusals(study, built)


def _some(axis: address.Axis, most: int) -> set[Value]:
    """Values of an axis, spread evenly over it if there are many; the last among them."""
    return {*axis.values[1 :: -(-axis.size // most)], axis.values[-1]}


def _has_words(axis: address.Axis) -> bool:
    return any(isinstance(value, str) for value in axis.values)


def _refusals(study: StudySchema, system: Any) -> None:
    check_until(system, study.times)
    for name, method in study.methods_used().items():
        why = method.scope.refuses(system)
        if why:
            raise HdicaError(f"methods.{name} does not apply: {why}")
        why = method.scope.beyond(system, study.times[-1]) if method.scope.beyond else ""
        if why:
            raise HdicaError(f"methods.{name} does not apply: {why}")
        for n in () if method.counts else study.methods[name].n or ():
            why = refused_n(system, n)
            if why:
                raise HdicaError(f"methods.{name}.n is not allowed: {why}")


def _check_names(study: StudySchema, axes: tuple[address.Axis, ...]) -> None:
    """Refuse a functional or a swept parameter that would be mistaken for something else."""
    save = study.save_spec()
    plain = replace(save, functionals={})
    outputs = [one for method in study.methods_used().values() for one in method.outputs_of(plain)]
    check_functionals(save.functionals, outputs, "save.functionals")
    taken = {*taken_names(outputs), *save.functionals}
    for axis in axes:
        if axis.dim in taken:
            raise HdicaError(f"grid.{axis.key} is not allowed (datasets use the name {axis.dim!r})")
        taken.add(axis.dim)


def _check_save(study: StudySchema) -> None:
    """Refuse what no method can keep, at other times than those of the study, or too much."""
    save, methods = study.save_spec(), study.methods_used()
    if not save.anything:
        return
    for time in save.snapshots:
        if time not in study.times:
            raise HdicaError(f"save.snapshots: {time:g} is not one of times")
    allowed = (output.name for method in methods.values() for output in method.outputs.extras)
    check_extra(save.extra, allowed, "save.extra", "a method of this study")
    for key, what, part in kept.parts(save):
        if not any(kept.can_keep(method, part) for method in methods.values()):
            known = registry.methods_of(study.system)
            able = [name for name, method in known.items() if kept.can_keep(method, part)]
            raise HdicaError(
                f"save.{key}: no method of this study can keep {what} "
                f"(methods that can: {', '.join(able) or 'none'})"
            )
    _check_functionals(study)
    for segment in segments_of(study):
        if segment.save.anything:
            check_size(segment.bytes_per_point, segment.method.name)


def _check_functionals(study: StudySchema) -> None:
    """Read every functional with the constants of the systems."""
    from hdica.ingredients.formula import parse_functional

    constants = getattr(study.space.at(), "constants", {})
    for name, formula in study.save_spec().functionals.items():
        try:
            parse_functional(formula, constants)
        except HdicaError as exc:
            raise HdicaError(f"save.functionals.{name}: {exc}") from None


def _settled(study: StudySchema) -> Analyses:
    """The analyses of a study with every method and every variable that it left open."""
    save, asked = study.save_spec(), study.methods_used()
    system = registry.system_named(study.system)
    given = {
        method.name: _gives(asked[method.name], save)
        for method in system.methods
        if method.name in asked
    }
    return study.analysis.settled(system, given)


def _gives(method: Method, save: Save) -> Gives:
    outputs = {output.name: output.dims for output in method.outputs_of(save)}
    return Gives(method.stochastic, outputs, method.takes_n)


def _check_analysis(study: StudySchema) -> None:
    """Refuse analyses of methods, variables or parameters that the study lacks."""
    dims = [key.replace(".", "_") for key in study.grid]
    for name, settings in study.analysis.items():
        where = f"analysis.{name}"
        named = settings.named(registry.system_named(study.system))
        for one in named:
            _check_method(study, where, one)
        for one in named:
            _check_output(study, where, settings, one)
        for key, dim in settings.swept():
            if dim not in dims:
                raise HdicaError(f"{where}.{key} = {dim!r} is not swept ({suggestion(dim, dims)})")


def _check_question(study: StudySchema) -> None:
    """Refuse a question to an analysis that the study does not ask for."""
    named = study.question.analysis if study.question is not None else ""
    asked = [name for name, _ in study.analysis.items()]
    known = asked or list(type(study.analysis).model_fields)
    if named and named not in known:
        what = "is not an analysis of this study" if asked else "is not an analysis"
        raise HdicaError(f"question.analysis = {named!r} {what} ({suggestion(named, known)})")


def _check_method(study: StudySchema, where: str, named: Named) -> None:
    place, name = f"{where}.{named.key}", named.method
    if not name:
        _check_saved(study, where, named)
        raise HdicaError(
            f"{place} is missing (no method of this study has {named.output!r} over {_over(named)})"
        )
    if name not in study.methods:
        hint = suggestion(name, list(study.methods))
        raise HdicaError(f"{place} = {name!r} is not a method of this study ({hint})")
    if named.stochastic is not None and study.methods_used()[name].stochastic != named.stochastic:
        kind = "a stochastic method" if named.stochastic else "one without seeds"
        raise HdicaError(f"{place} = {name!r} is not allowed ({kind} is needed)")
    if named.n is not None and study.methods_used()[name].takes_n != named.n:
        kind = "one with n" if named.n else "one without n"
        raise HdicaError(f"{place} = {name!r} is not allowed ({kind} is needed)")


def _check_output(study: StudySchema, where: str, settings: Settings, named: Named) -> None:
    """Refuse a method without the output that an analysis needs."""
    if not named.output:
        return
    outputs = _gives(study.methods_used()[named.method], study.save_spec()).outputs
    if named.output not in outputs and getattr(settings, "variable", None) == named.output:
        hint = suggestion(named.output, list(outputs))
        raise HdicaError(
            f"{where}.variable = {named.output!r} is no output of {named.method} ({hint})"
        )
    _check_saved(study, where, named)
    if not named.fits(outputs.get(named.output)):
        raise HdicaError(
            f"{where}.{named.key} = {named.method!r} is not allowed "
            f"(it has no {named.output!r} over {_over(named)})"
        )


def _over(named: Named) -> str:
    return " or ".join(", ".join(dims) or "no dimension" for dims in named.dims)


def _check_saved(study: StudySchema, where: str, named: Named) -> None:
    """Refuse an analysis of what the study does not keep."""
    needed = saved_for(named.dims)
    if needed and not getattr(study.save_spec(), needed):
        raise HdicaError(f"{where} needs save.snapshots and save.{needed}")
