"""The text of a study file that says what it is: a comment for whatever one may want to change."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from hdica.analysis.registry import asked_for
from hdica.sweep.study.sketch import Content
from hdica.systems.method import Method
from hdica.systems.system import System

WIDTH = 100
WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
"""What needs no quotes, but for these."""
NO_WORDS = ("null", "true", "false", "yes", "no", "on", "off", "nan", "inf")


def commented(record: System, content: Content, file: str) -> str:
    """Text of a study file, its comments told by the records of the system and the analyses.

    Parameters
    ----------
    record
        The system of the study.
    content
        The study.
    file
        Its path, for the commands in the first lines.
    """
    name = content["study"]
    parts = [
        _said(
            f"hdica validate {file} checks this file, hdica plan {file} says what it costs, "
            f"hdica run {file} computes it, and hdica report results/{name}.zarr draws the answer."
        ),
        _entry("study", name) + _entry("title", content["title"]),
        _said(f"{record.title} ({'; '.join(paper.cite for paper in record.papers)}).")
        + _entry("system", content["system"]),
        "\n".join(_parameters(record, content)),
        *([_grid(content)] if "grid" in content else []),
        *([_times(record, content)] if "times" in content else []),
        "\n".join(_methods(record, content)),
        *([_save(content)] if "save" in content else []),
        "\n".join(_analysis(content)),
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _said(text: str, indent: str = "", more: str = "") -> str:
    """A comment of as many lines as it takes; ``more`` goes before the later ones."""
    lead = f"{indent}# "
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=lead,
        subsequent_indent=f"{lead}{more}",
        break_long_words=False,
        break_on_hyphens=False,
    ) + "\n"  # fmt: skip


def _entry(key: str, value: Any, indent: str = "") -> str:
    """A key and its value on a line."""
    return f"{indent}{key}: {_flow(value)}\n"


def _flow(value: Any) -> str:
    """Plain data on one line of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str) and WORD.fullmatch(value) and value.lower() not in NO_WORDS:
        return value
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    text = json.dumps(value, ensure_ascii=False)
    # YAML of before 1.2 takes 1e-05 for a word.
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text


def _parameters(record: System, content: Content) -> Iterator[str]:
    """Fixed parameters, and the others as comments with their defaults."""
    yield _said("Parameters that stay fixed.").rstrip("\n")
    given = content["parameters"]
    yield "parameters:" if given else "parameters: {}"
    for key, value in given.items():
        yield _entry(key, value, "  ").rstrip("\n")
    grid = content.get("grid", {})
    swept = {key.split(".")[0] for key in grid}
    swept |= {top for key, (top, *_) in record.parameters.aliases.items() if key in grid}
    others = {
        name: field
        for name, field in record.parameters.model_fields.items()
        if name not in given and name not in swept and not field.is_required()
    }
    if others:
        yield _said("Others, with their defaults:", "  ").rstrip("\n")
    for name, field in others.items():
        default = _entry(name, field.default).strip()
        yield _said(f"{default} ({field.description})", "  ", "  ").rstrip("\n")


def _grid(content: Content) -> str:
    text = "Swept parameters, in the order of the dimensions: a list, or start, stop and num."
    lines = [_entry(key, axis, "  ") for key, axis in content["grid"].items()]
    return "".join([_said(text), "grid:\n", *lines])


def _times(record: System, content: Content) -> str:
    clock = record.clock
    return _said(f"Output times: {clock.long_name}, in {clock.units}.") + _entry(
        "times", content["times"]
    )


def _save(content: Content) -> str:
    text = "What points keep beyond their order parameters, at the snapshots."
    return _said(text) + _entry("save", content["save"])


def _methods(record: System, content: Content) -> Iterator[str]:
    """Methods of the study, and the others as comments."""
    used: Mapping[str, Any] = content["methods"]
    known = {method.name: method for method in record.methods}
    yield _said("How each point is computed: n are dimensions of the data, seeds repeats.").rstrip()
    yield "methods:"
    for name, settings in used.items():
        yield _said(_about(known[name]), "  ", "  ").rstrip("\n")
        yield _entry(name, settings, "  ").rstrip("\n")
    others = [method for name, method in known.items() if name not in used]
    if others:
        yield _said("Others:", "  ").rstrip("\n")
    for method in others:
        yield _said(f"{method.name}: {_about(method)}", "  ", "  ").rstrip("\n")


def _about(method: Method) -> str:
    return f"{method.about} ({method.accuracy})"


def _analysis(content: Content) -> Iterator[str]:
    """What the report shows, with what each key means."""
    yield _said("What the report shows.").rstrip("\n")
    yield "analysis:"
    for name, settings in content["analysis"].items():
        kind = asked_for()[name]
        yield _said(str(kind.__doc__).split("\n\n")[0], "  ").rstrip("\n")
        yield f"  {name}:"
        for key, field in kind.model_fields.items():
            about = f"{key}: {field.description}"
            if key in settings:
                yield f"{_entry(key, settings[key], '    ').rstrip()}  # {field.description}"
            else:
                yield _said(about, "    ", "  ").rstrip("\n")
