"""A study: one sweep of one system, checked as a whole before anything runs, and how it prints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path

from pydantic import ValidationError, model_validator

from hdica.analysis.settings import Gives, Named, Settings, saved_for
from hdica.errors import HdicaError, from_validation, path_of, suggestion
from hdica.inputs.plain_yaml import read_yaml
from hdica.process.compile_cache import refuse_threads
from hdica.study.refine import check_refine
from hdica.study.schema import StudySchema
from hdica.study.segment import can_keep, check_where, parts, segments_of
from hdica.systems import arguments
from hdica.systems import system as registry
from hdica.systems.method import Role, shared_twin
from hdica.systems.parameters import Parameters
from hdica.systems.space import Axis, address, check_conflicts
from hdica.systems.values import LABEL, Range, Value, Values, shown, size

MAX_CHECKED = 2000  # values of an axis that are tried before anything runs
MAX_READ = 100  # the same of an axis that enters formulas, which take long to read
MAX_ASKED = 100  # values of an axis for which methods say whether they apply


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
        system, used = registry.system_named(self.system), self.methods_used()
        gives = {m.name: _gives(self, m.name) for m in system.methods if m.name in used}
        object.__setattr__(self, "analysis", self.analysis.settled(system, gives))
        _check_analysis(self)
        check_refine(self)
        _check_question(self)
        return self


def study_from(content: object) -> Study:
    """Validate a study that is plain data."""
    refuse_threads()  # here it is no fault of the study
    name = content.get("study") if isinstance(content, dict) else None
    what = f"study {name!r}" if isinstance(name, str) else "study"
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
    texts = {**_sampled(study), **study.cases, **study.grid, **study.parameters}
    tops = {key: address(key, system, texts, "grid")[0] for key in study.grid}
    together = {address(k, system, texts, "cases")[0] for k in study.cases if k != LABEL}
    drawn = {address(k, system, texts, "sample.over")[0] for k in _sampled(study)}
    count = 0
    for name, settings in study.methods.items():
        ignores = methods[name].scope.ignores
        cells = math.prod(size(v) for k, v in study.finest.items() if tops[k] not in ignores)
        if not together <= ignores:
            cells *= size(next(iter(study.cases.values())))
        if study.sample is not None and not drawn <= ignores:
            cells *= study.sample.points
        count += cells * len(settings.n_values) * settings.seed_count
    return count


def _sampled(study: Study) -> Mapping[str, object]:
    return study.sample.over if study.sample else {}


def saved_in(study: Study) -> str:
    """Who keeps what beyond the order parameters: ``densities (one, other), functionals (one)``."""
    methods, texts = study.methods_used(), []
    for _, what, part in parts(study.save_spec()):
        names = (name for name, method in methods.items() if can_keep(method, part))
        texts.append(f"{what} ({', '.join(names)})")
    return ", ".join(texts)


def _rows(spec: Study) -> list[tuple[str, str, str]]:
    """A study in rows: what kind of thing, its name, and its values."""
    return [
        ("system", spec.system, ""),
        *(("parameter", key, repr(value)) for key, value in spec.parameters.items()),
        *(
            ("sample", key, f"{one.low:g} … {one.high:g}{', log' * one.log}")
            for key, one in (spec.sample.over.items() if spec.sample else ())
        ),
        *(("cases", key, _axis(axis)) for key, axis in spec.cases.items()),
        *(("grid", key, _axis(axis)) for key, axis in spec.grid.items()),
        *([("where", spec.where, "")] if spec.where else []),
        *(
            ("refine", ", ".join(one.over), f"{one.levels} times, where {one.analysis} changes")
            for one in ([spec.refine] if spec.refine else [])
        ),
        *(
            ("method", name, ", ".join(f"{k} = {v}" for k, v in settings if v is not None))
            for name, settings in spec.methods.items()
        ),
        ("points", f"at most {point_count(spec)}", ""),
    ]


def _axis(axis: Values) -> str:
    """Values of a swept parameter: all of a few, else the ends and how many."""
    if isinstance(axis, Range):
        spacing = "" if axis.spacing == "linear" else f", {axis.spacing}"
        return f"{shown(axis.start)} … {shown(axis.stop)} ({axis.num} values{spacing})"
    if size(axis) <= 6:
        return ", ".join(shown(value) for value in axis)
    return f"{shown(axis[0])} … {shown(axis[-1])} ({size(axis)} values)"


def as_text(spec: Study) -> str:
    """Name and title, then a line for each part."""
    rows = _rows(spec)
    kinds, names = (max(len(row[k]) for row in rows) for k in (0, 1))
    lines = [f"  {kind:{kinds}}  {name:{names}}  {text}".rstrip() for kind, name, text in rows]
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
    methods = registry.methods_of(study.system)
    for name, settings in study.methods.items():
        if (method := methods.get(name)) is None:
            hint = suggestion(name, list(methods))
            raise HdicaError(f"methods.{name} is not a method of {study.system} ({hint})")
        needs = {"n": method.takes_n, "seeds": method.stochastic}
        for key, needed in needs.items():
            is_set = getattr(settings, key) is not None
            if needed and not is_set:
                kind = "a stochastic method" if method.stochastic else "this method"
                raise HdicaError(f"methods.{name}.{key} is missing ({kind} needs it)")
            if is_set and not needed:
                none = " and ".join(f"no {k}" for k, v in needs.items() if not v)
                raise HdicaError(f"methods.{name}.{key} is not allowed ({name} has {none})")
        if "times" not in study.model_fields_set:
            arguments.times_for(method, None, study.save_spec().extra)
        if settings.n:
            arguments.check_steps(settings.n[-1], study.times[-1], f"methods.{name}.n")


def _check_noise(study: StudySchema) -> None:
    """Refuse noise to share where no method has any."""
    own = all(method.about.noise == "own" for method in study.methods_used().values())
    if study.noise == "shared" and own:
        able = [k for k, m in registry.methods_of(study.system).items() if shared_twin(m)]
        others = f"; these have: {', '.join(able)}" if able else f", nor has any of {study.system}"
        raise HdicaError(
            f"noise = 'shared' is not allowed (none of {', '.join(study.methods)} has noise to "
            f"share{others})"
        )


def _check_points(study: Study) -> None:
    sizes = {f"grid.{key}": size(values) for key, values in study.finest.items()}
    sizes |= {f"cases.{key}": size(values) for key, values in study.cases.items()}
    if study.sample is not None:
        sizes["sample.points"] = study.sample.points
    seeds = {f"methods.{key}.seeds": m.seed_count for key, m in study.methods.items()}
    longest = max(sizes.values(), default=1)
    # An axis that every method ignores is still expanded, so its length counts by itself.
    count = max(point_count(study), longest)
    if count > study.max_points:
        raise HdicaError(
            f"the grid has {count} points{' at its finest' if study.refine else ''} (max_points = "
            f"{study.max_points} are allowed)"
        )
    for lengths, most in ((sizes, arguments.MAX_AXIS), (seeds, arguments.MAX_SEEDS)):
        for where, length in lengths.items():
            arguments.check_length(length, where, most)


def _check_systems(study: StudySchema) -> None:
    """Try each value of each axis alone, on top of the first value of the others."""
    space = study.space
    check_conflicts(space.fixed, space.axes)
    _check_names(study, space.axes)
    check_where(study.where, space.axes)
    _refusals(study, space.at())
    for axis in space.axes:
        judged = _some(axis, MAX_ASKED)
        words = any(isinstance(value, str) for one in axis.each for value in one.values)
        formulas = words and axis.fields & {*getattr(space.system, "formulas", {})}
        read = "constants" in axis.fields or formulas
        for value in judged | _some(axis, MAX_READ if read else MAX_CHECKED):
            built = space.at({axis.path: value}, blame=axis.where)
            if value in judged:
                _refusals(study, built)


def _some(axis: Axis, most: int) -> set[Value]:
    """Values of an axis, spread evenly over it if there are many; the last among them."""
    return {*axis.values[1 :: -(-axis.size // most)], axis.values[-1]}


def _refusals(study: StudySchema, system: Parameters) -> None:
    """Refuse methods that do not apply to a system."""
    arguments.check_until(system, study.times)
    for name, method in study.methods_used().items():
        beyond = method.scope.beyond
        why = method.scope.refuses(system) or (beyond(system, study.times[-1]) if beyond else "")
        if why:
            raise HdicaError(f"methods.{name} does not apply: {why}")
        for n in () if method.counts else study.methods[name].n or ():
            if why := system.refuses_n(n):
                raise HdicaError(f"methods.{name}.n is not allowed: {why}")


def _check_names(study: StudySchema, axes: tuple[Axis, ...]) -> None:
    """Refuse a functional or a swept parameter that would be mistaken for something else."""
    save = study.save_spec()
    plain = replace(save, functionals={})
    outputs = [one for method in study.methods_used().values() for one in method.outputs_of(plain)]
    arguments.check_functionals(save.functionals, outputs, "save.functionals")
    taken = {*arguments.taken_names(outputs), *save.functionals}
    for axis in axes:
        for name in dict.fromkeys([axis.dim, *(one.dim for one in axis.parts)]):
            if name in taken:
                raise HdicaError(f"{axis.where} is not allowed (datasets use the name {name!r})")
            taken.add(name)


def _check_save(study: StudySchema) -> None:
    """Refuse what no method can keep, at other times than those of the study, or too much."""
    save, methods = study.save_spec(), study.methods_used()
    if not save.anything:
        return
    for time in save.snapshots:
        if time not in study.times:
            raise HdicaError(f"save.snapshots: {time:g} is not one of times")
    allowed = (output.name for method in methods.values() for output in method.outputs.extras)
    arguments.check_extra(save.extra, allowed, "save.extra", "a method of this study")
    for key, what, part in parts(save):
        if not any(can_keep(method, part) for method in methods.values()):
            every = registry.methods_of(study.system)
            able = [name for name, method in every.items() if can_keep(method, part)]
            raise HdicaError(
                f"save.{key}: no method of this study can keep {what} "
                f"(methods that can: {', '.join(able) or 'none'})"
            )
    from hdica.ingredients.formula import parse_functional

    constants = getattr(study.space.at(), "constants", {})
    for name, formula in save.functionals.items():
        try:
            parse_functional(formula, constants)
        except HdicaError as exc:
            raise HdicaError(f"save.functionals.{name}: {exc}") from None
    for segment in segments_of(study):
        if segment.save.anything:
            arguments.check_size(segment.bytes_per_point, segment.method.name)


def _gives(study: StudySchema, name: str) -> Gives:
    """What a method of a study gives to analyses."""
    method = study.methods_used()[name]
    outputs = {output.name: output.dims for output in method.outputs_of(study.save_spec())}
    return Gives(method.stochastic, outputs, method.takes_n)


def _check_analysis(study: StudySchema) -> None:
    """Refuse analyses of methods, variables or parameters that the study lacks."""
    fields = {axis.dim: axis.fields for axis in study.space.axes}
    dims = [*fields]
    used = study.methods_used()
    for name, settings in study.analysis.items():
        where = f"analysis.{name}"
        named = settings.named(registry.system_named(study.system))
        for place in named:
            _check_method(study, where, place)
        for place in named:
            _check_output(study, where, settings, place)
        methods = [used[place.method] for place in named]
        # Branches are curves over a parameter on which nothing else need depend.
        free = any(method.role is Role.BRANCHES for method in methods) or not methods
        for key, dim in settings.swept():
            if dim not in dims:
                raise HdicaError(f"{where}.{key} = {dim!r} is not swept ({suggestion(dim, dims)})")
            if not free and all(fields[dim] <= method.scope.ignores for method in methods):
                never = " and ".join(dict.fromkeys(method.name for method in methods))
                raise HdicaError(
                    f"{where}.{key} = {dim!r} is not allowed (a parameter on which {never} depends)"
                )


def _check_question(study: StudySchema) -> None:
    """Refuse a question to an analysis that the study does not ask for."""
    named = study.question.analysis if study.question is not None else ""
    own = [name for name, _ in study.analysis.items()]
    names = own or list(type(study.analysis).model_fields)
    if named and named not in names:
        what = "is not an analysis of this study" if own else "is not an analysis"
        raise HdicaError(f"question.analysis = {named!r} {what} ({suggestion(named, names)})")


def _check_method(study: StudySchema, where: str, named: Named) -> None:
    """Refuse an analysis of a method that the study lacks, or of the wrong kind."""
    place, name = f"{where}.{named.key}", named.method
    if not name:
        _check_saved(study, where, named)
        raise HdicaError(
            f"{place} is missing (no method of this study has {named.output!r} over {_over(named)})"
        )
    if name not in study.methods:
        hint = suggestion(name, list(study.methods))
        raise HdicaError(f"{place} = {name!r} is not a method of this study ({hint})")
    method = study.methods_used()[name]
    for is_so, wanted, kinds in (
        (method.stochastic, named.stochastic, ("one without seeds", "a stochastic method")),
        (method.takes_n, named.n, ("one without n", "one with n")),
    ):
        if wanted is not None and is_so != wanted:
            raise HdicaError(f"{place} = {name!r} is not allowed ({kinds[wanted]} is needed)")


def _check_output(study: StudySchema, where: str, settings: Settings, named: Named) -> None:
    """Refuse a method without the output that an analysis needs."""
    if not named.output:
        return
    outputs = _gives(study, named.method).outputs
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
