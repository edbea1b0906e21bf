"""Which methods and parameters of a system an analysis can be asked for with.

Its settings say of each key what it names: a method with some output, a swept parameter. They are
looked for among the methods, controls and examples in the record of the system.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hdica.analysis.settings import Gives, Needs, Settings, Swept, needs_of
from hdica.ingredients.save import NOTHING, Save
from hdica.systems.method import Method, Role
from hdica.systems.system import System

ROLES = tuple(Role)
"""Of several methods that would do, the one whose role is named first is taken."""
SAVED = Save((1.0,), (0.0, 1.0), (0.5,))
"""Something of all that points keep of the entries on request."""
WIDE, NARROW = 4.0, 2.0
"""A control goes from its value over this to its value times this, or, beside, to its value."""
LEAST_PART = 0.2
"""The part of a start is swept from this share of its value to all of it."""


@dataclass(frozen=True)
class Span:
    """Values of a swept parameter from ``first`` to ``last``, evenly or by a constant ratio."""

    first: float
    last: float
    ratios: bool

    def axis(self, points: int) -> dict[str, Any]:
        """So many values, as a study has them."""
        ends = {"start": _short(self.first), "stop": _short(self.last), "num": points}
        return {**ends, "spacing": "log"} if self.ratios else ends


@dataclass(frozen=True)
class Asked:
    """How an analysis is asked for of a system.

    Parameters
    ----------
    analysis, settings
        Its name, and what a study says of it.
    fixed, axes
        Parameters that stay fixed, and those that are swept.
    methods
        What it needs to be computed.
    swept
        Whether it is about swept parameters.
    over_n
        Whether methods are compared over n.
    saves
        Whether it is about densities and support recovery, which points keep on request.
    """

    analysis: str
    settings: Mapping[str, str]
    fixed: Mapping[str, Any]
    axes: Mapping[str, Span]
    methods: tuple[Method, ...]
    swept: bool
    over_n: bool
    saves: bool


def asked(record: System, analysis: str, kind: type[Settings]) -> Iterator[Asked]:
    """Ways to ask for an analysis: with each example of the system, of each order parameter."""
    names = [key for key, field in kind.model_fields.items() if _names_swept(field)]
    wanted = [key for key in names if kind.model_fields[key].is_required()]
    for example in record.examples:
        spans = _spans(record, example, wide=bool(names))
        system = record.parameters(**example)
        for used in itertools.combinations(spans, min(len(spans), max(len(wanted), 1))):
            if len(used) < max(len(wanted), bool(names)):
                continue
            for parameter, save, outputs in itertools.product(
                record.order_parameters, (NOTHING, SAVED), _outputs(record, kind)
            ):
                named = {**outputs, "variable": parameter.name}
                found = _methods(record, analysis, kind, system, named, save)
                if found and _depend(record, found.values(), used if names else ()):
                    yield Asked(
                        analysis,
                        _settings(found, wanted, used) | outputs,
                        _without(example, [_path(record, key) for key in used]),
                        {key: spans[key] for key in used},
                        tuple(dict.fromkeys(found.values())),
                        bool(names),
                        any(needs.n for key, needs in needs_of(kind) if key in found),
                        save is SAVED,
                    )


def _open(kind: type[Settings]) -> list[str]:
    """Keys that a study has to set, and that name neither a method nor a swept parameter."""
    return [
        key
        for key, field in kind.model_fields.items()
        if field.is_required() and not any(isinstance(m, Swept | Needs) for m in field.metadata)
    ]


def unchosen(kind: type[Settings]) -> list[str]:
    """All of them, if one is no name of an output, so that nothing can be looked for."""
    keys = _open(kind)
    return keys if any(kind.model_fields[key].annotation is not str for key in keys) else []


def _outputs(record: System, kind: type[Settings]) -> list[dict[str, str]]:
    """Outputs that the keys may name which a study has to set and which name nothing else."""
    keys = _open(kind)
    if not keys or unchosen(kind):
        return [{}]
    names = dict.fromkeys(output.name for method in record.methods for output in method.outputs)
    some = (dict(zip(keys, one, strict=True)) for one in itertools.product(names, repeat=len(keys)))
    known = [(key, n) for key, n in needs_of(kind) if kind.model_fields[key].is_required()]
    every = list(record.methods)
    return [
        one
        for one in some
        if all(_fitting(record, kind, key, needs, every, one, SAVED) for key, needs in known)
    ]


def _settings(
    methods: Mapping[str, Method], wanted: Iterable[str], used: Iterable[str]
) -> dict[str, str]:
    """What a study says of an analysis: its methods, and the swept parameters it must name."""
    over = {key: name.replace(".", "_") for key, name in zip(wanted, used, strict=False)}
    return {key: method.name for key, method in methods.items()} | over


def _depend(record: System, methods: Iterable[Method], keys: Iterable[str]) -> bool:
    """Whether each swept parameter changes the results of some method."""
    some = list(methods)
    return all(any(_path(record, key)[0] not in m.ignores for m in some) for key in keys)


def _names_swept(field: Any) -> bool:
    return any(isinstance(mark, Swept) for mark in field.metadata)


def _methods(
    record: System,
    analysis: str,
    kind: type[Settings],
    system: Any,
    outputs: Mapping[str, str],
    save: Save,
) -> dict[str, Method]:
    """A method for each key that needs one; none at all if one that must be there is not."""
    able = [method for method in record.methods if not method.refuses(system)]
    roles = record.analyses.get(analysis, {})
    found: dict[str, Method] = {}
    for key, needs in needs_of(kind):
        some = [m for m in able if m.role == roles[key]] if key in roles else able
        fit = _fitting(record, kind, key, needs, some, outputs, save)
        if fit and (needs.output is not None or key in roles):
            found[key] = fit[0]
        elif needs.found or kind.model_fields[key].is_required():
            return {}
    return found


def _fitting(
    record: System,
    kind: type[Settings],
    key: str,
    needs: Needs,
    methods: list[Method],
    outputs: Mapping[str, str],
    save: Save,
) -> list[Method]:
    """Methods that a key may name, the best first: by dimensions, then by role and rank."""
    blank: dict[str, Any] = {k: "" for k, field in kind.model_fields.items() if field.is_required()}
    blank |= {key: name for key, name in outputs.items() if key in kind.model_fields}
    found: list[tuple[tuple[int, int, int], Method]] = []
    for method in methods:
        named = kind.model_construct(**{**blank, key: method.name}).named(record)
        gives = Gives(
            method.stochastic, {o.name: o.dims for o in method.outputs_of(save)}, method.takes_n
        )
        ours = [one for one in named if one.key == key and one.method == method.name]
        if ours and all(one.accepts(gives) for one in ours):
            dims = gives.outputs.get(ours[0].output)
            place = ours[0].dims.index(dims) if dims in ours[0].dims else len(ours[0].dims)
            found.append(((place, ROLES.index(method.role), method.rank or 99), method))
    return [method for _, method in sorted(found, key=lambda one: one[0])]


def _spans(record: System, example: Mapping[str, Any], wide: bool) -> dict[str, Span]:
    """What may be swept about an example, the controls first, then parts of its start."""
    found: dict[str, Span] = {}
    for control in record.controls:
        value = _at(example, _path(record, control.name))
        if value is not None and value > 0:
            first = max(control.low, value / (WIDE if wide else NARROW))
            last = min(control.high, value * WIDE) if wide else value
            found[control.name] = Span(first, last, True)
    start = example.get("start")
    for part in start if isinstance(start, Mapping) else ():
        value = _at(example, ("start", part))
        if value is not None:
            names = [k for k, p in record.parameters.aliases.items() if p == ("start", part)]
            found[names[0] if names else f"start.{part}"] = Span(LEAST_PART * value, value, False)
    return found


def _path(record: System, key: str) -> tuple[str, ...]:
    """Where a key of a grid goes in a system."""
    return tuple(record.parameters.aliases.get(key, tuple(key.split("."))))


def _at(content: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    """A number in the parameters of a system, None if there is none."""
    value: Any = content
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _without(content: Mapping[str, Any], paths: list[tuple[str, ...]]) -> dict[str, Any]:
    """Parameters of a system but for some."""
    found: dict[str, Any] = {}
    for key, value in content.items():
        inner = [path[1:] for path in paths if path[0] == key]
        if () in inner:
            continue
        kept = _without(value, inner) if inner and isinstance(value, Mapping) else value
        if kept != {} or not inner:
            found[key] = kept
    return found


def _short(value: float) -> float:
    """A number in three digits."""
    return float(f"{value:.3g}")
