"""What is checked of a study as a whole before anything runs; each refusal is one sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hdica.analysis.settings import Gives, Named, Settings, saved_for
from hdica.errors import HdicaError, suggestion
from hdica.ingredients.save import Save
from hdica.sweep.study import kept
from hdica.sweep.study.asked import Asked
from hdica.sweep.study.said import Said
from hdica.sweep.study.segment import segments_of
from hdica.systems import address as gr
from hdica.systems import axes as ax
from hdica.systems import registry
from hdica.systems.method import Method
from hdica.systems.points import (
    check_extra,
    check_functionals,
    check_size,
    check_steps,
    check_until,
    refused_n,
    taken_names,
    times_for,
)

MAX_CHECKED = 2000
"""Values of one axis that are tried before anything runs; a longer axis is thinned."""
MAX_READ = 100
"""The same of an axis that enters formulas, which take long to read."""
MAX_ASKED = 100
"""Values of one axis for which the methods say whether they apply, which may take them long."""


def methods_of(study: Said) -> dict[str, Method]:
    """The methods of a study, by name."""
    known = registry.methods_of(study.system, study.noise)
    return {name: known[name] for name in study.methods}


def check_methods(study: Said) -> None:
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


def check_noise(study: Said) -> None:
    """Refuse noise to share where no method has any."""
    if study.noise == "shared" and all(m.noise == "own" for m in methods_of(study).values()):
        able = [k for k, m in registry.methods_of(study.system).items() if m.shared]
        others = f"; these have: {', '.join(able)}" if able else f", nor has any of {study.system}"
        raise HdicaError(
            f"noise = 'shared' is not allowed (none of {', '.join(study.methods)} has noise to "
            f"share{others})"
        )


def check_systems(study: Said) -> None:
    """Try each value of each axis alone, on top of the first value of the others."""
    space = study.space
    _check_names(study, space.axes)
    gr.check_conflicts(space.fixed, space.axes)
    _refusals(study, space.at())
    for axis in space.axes:
        asked, read = _some(axis, MAX_ASKED), {"constants", *getattr(space.system, "formulas", {})}
        formula = axis.path[0] in read and (axis.path[0] == "constants" or _has_words(axis))
        for value in asked | _some(axis, MAX_READ if formula else MAX_CHECKED):
            built = space.at({axis.path: value}, blame=f"grid.{axis.key}")
            if value in asked:
                _refusals(study, built)


def _some(axis: gr.Axis, most: int) -> set[ax.Value]:
    """Values of an axis, spread evenly over it if there are many; the last among them."""
    return {*axis.values[1 :: -(-axis.size // most)], axis.values[-1]}


def _has_words(axis: gr.Axis) -> bool:
    return any(isinstance(value, str) for value in axis.values)


def _refusals(study: Said, system: Any) -> None:
    check_until(system, study.times)
    for name, method in methods_of(study).items():
        why = method.refuses(system)
        if why:
            raise HdicaError(f"methods.{name} does not apply: {why}")
        why = method.beyond(system, study.times[-1]) if method.beyond else ""
        if why:
            raise HdicaError(f"methods.{name} does not apply: {why}")
        for n in () if method.counts else study.methods[name].n or ():
            why = refused_n(system, n)
            if why:
                raise HdicaError(f"methods.{name}.n is not allowed: {why}")


def _check_names(study: Said, axes: tuple[gr.Axis, ...]) -> None:
    """Refuse a functional or a swept parameter that would be mistaken for something else."""
    save = study.save_spec()
    plain = replace(save, functionals={})
    outputs = [one for method in methods_of(study).values() for one in method.outputs_of(plain)]
    check_functionals(save.functionals, outputs, "save.functionals")
    taken = {*taken_names(outputs), *save.functionals}
    for axis in axes:
        if axis.dim in taken:
            raise HdicaError(f"grid.{axis.key} is not allowed (datasets use the name {axis.dim!r})")
        taken.add(axis.dim)


def check_save(study: Said) -> None:
    """Refuse what no method can keep, at other times than those of the study, or too much."""
    save, methods = study.save_spec(), methods_of(study)
    if not save.anything:
        return
    for time in save.snapshots:
        if time not in study.times:
            raise HdicaError(f"save.snapshots: {time:g} is not one of times")
    allowed = (output.name for method in methods.values() for output in method.extras)
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


def _check_functionals(study: Said) -> None:
    """Read every functional with the constants of the systems."""
    from hdica.ingredients.functionals import parse_functional

    constants = getattr(study.space.at(), "constants", {})
    for name, formula in study.save_spec().functionals.items():
        try:
            parse_functional(formula, constants)
        except HdicaError as exc:
            raise HdicaError(f"save.functionals.{name}: {exc}") from None


def settled(study: Said) -> Asked:
    """The analyses of a study with every method and every variable that it left open."""
    save, asked = study.save_spec(), methods_of(study)
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


def check_analysis(study: Said) -> None:
    """Refuse analyses of methods, variables or parameters that the study lacks."""
    dims = [key.replace(".", "_") for key in study.grid]
    for where, settings in study.analysis.asked():
        named = settings.named(registry.system_named(study.system))
        for one in named:
            _check_method(study, where, one)
        for one in named:
            _check_output(study, where, settings, one)
        for key, dim in settings.swept():
            if dim not in dims:
                raise HdicaError(f"{where}.{key} = {dim!r} is not swept ({suggestion(dim, dims)})")


def check_question(study: Said) -> None:
    """Refuse a question to an analysis that the study does not ask for."""
    named = study.question.analysis if study.question is not None else ""
    asked = [where.removeprefix("analysis.") for where, _ in study.analysis.asked()]
    known = asked or list(type(study.analysis).model_fields)
    if named and named not in known:
        what = "is not an analysis of this study" if asked else "is not an analysis"
        raise HdicaError(f"question.analysis = {named!r} {what} ({suggestion(named, known)})")


def _check_method(study: Said, where: str, named: Named) -> None:
    place, name = f"{where}.{named.key}", named.method
    if not name:
        _check_saved(study, where, named)
        raise HdicaError(
            f"{place} is missing (no method of this study has {named.output!r} over {_over(named)})"
        )
    if name not in study.methods:
        hint = suggestion(name, list(study.methods))
        raise HdicaError(f"{place} = {name!r} is not a method of this study ({hint})")
    if named.stochastic is not None and methods_of(study)[name].stochastic != named.stochastic:
        kind = "a stochastic method" if named.stochastic else "one without seeds"
        raise HdicaError(f"{place} = {name!r} is not allowed ({kind} is needed)")
    if named.n is not None and methods_of(study)[name].takes_n != named.n:
        kind = "one with n" if named.n else "one without n"
        raise HdicaError(f"{place} = {name!r} is not allowed ({kind} is needed)")


def _check_output(study: Said, where: str, settings: Settings, named: Named) -> None:
    """Refuse a method without the output that an analysis needs."""
    if not named.output:
        return
    outputs = _gives(methods_of(study)[named.method], study.save_spec()).outputs
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


def _check_saved(study: Said, where: str, named: Named) -> None:
    """Refuse an analysis of what the study does not keep."""
    needed = saved_for(named.dims)
    if needed and not getattr(study.save_spec(), needed):
        raise HdicaError(f"{where} needs save.snapshots and save.{needed}")
