"""Write the tables that are made of the code into the manuals: ``python docs/tables.py``.

Each stands between two lines that say what it is made of; a test holds them to the code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

from hdica.analysis.registry import settings_classes
from hdica.analysis.settings import Needs, Settings, needs_of, saved_for
from hdica.cli import app
from hdica.systems.system import System, systems

ROOT = Path(__file__).parents[1]
METHODS_HEAD = ("system", "method", "what it computes", "accuracy", "same bits on")
ANALYSES_HEAD = ("| analysis | question | keys |", "|---|---|---|")


def methods_table() -> str:
    """Every method of every system as a table in Markdown; what systems share stands once."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for record in systems().values():
        for method in record.methods:
            about = method.about
            cells = (f"`{method.name}`", about.text, about.accuracy, about.bits.value)
            rows.setdefault(cells, []).append(record.name)
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for row, having in rows.items():
        groups.setdefault(tuple(having), []).append(row)
    lines = [_line(METHODS_HEAD), _line(("---",) * len(METHODS_HEAD)).replace(" ", "")]
    for names, some in groups.items():
        lead = _named(names)
        for row in some:
            lines.append(_line((lead, *row)))
            lead = ""
    return "\n".join(lines)


def parameters_tables() -> str:
    """The parameters of every system, a table each."""
    return "\n\n".join(_parameters(record) for record in systems().values())


def _parameters(record: System) -> str:
    lines = [_line((f"parameter of `{record.name}`", "default", "values")), "|---|---|---|"]
    for name, field in record.parameters.model_fields.items():
        default = "required" if field.is_required() else f"`{_written(field.default)}`"
        lines.append(_line((f"`{name}`", default, str(field.description))))
    return "\n".join(lines)


def _written(value: Any) -> str:
    """A default as a study has it."""
    if value is None or value == "":
        return "none"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value)) + "]"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _named(names: tuple[str, ...]) -> str:
    """Systems with their papers; of several the names alone."""
    if len(names) > 1:
        return ", ".join(f"`{name}`" for name in names)
    papers = "; ".join(paper.cite for paper in systems()[names[0]].papers)
    return f"`{names[0]}` ({papers})"


def analyses_table() -> str:
    """Every analysis that a study may ask for, with its keys, in Markdown."""
    rows = [_analysis(name, settings) for name, settings in settings_classes().items()]
    return "\n".join([*ANALYSES_HEAD, *rows])


def _analysis(name: str, settings: type[Settings]) -> str:
    needs = dict(needs_of(settings))
    keys = "; ".join(
        f"`{key}`: {_key(field, needs.get(key))}" for key, field in settings.model_fields.items()
    )
    saved = {saved_for(need.dims) for need in needs.values()} - {""}
    more = " and ".join(f"`save.{key}`" for key in sorted(saved))
    keys += f"; needs {more}" if more else ""
    cells = (f"`{name}`", (settings.__doc__ or "").rstrip("."), keys)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _key(field: FieldInfo, needs: Needs | None) -> str:
    """What a key means, and what it is where it is left out."""
    text = str(field.description)
    if field.is_required() or "default" in text:
        return text
    if needs is not None and needs.first:
        return f"{text} (default: the first of the study that does)"
    if field.default in (None, (), {}):
        return f"{text} (optional)"
    value = field.default if isinstance(field.default, str) else f"{field.default:g}"
    return f"{text} (default {value})"


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def commands() -> str:
    """Every command with its arguments and options, as Typer documents them."""
    command = get_command(app)
    text = get_docs_for_click(obj=command, ctx=Context(command, info_name="hdica"), name="hdica")
    return text.split("\n", 1)[1].strip()


TABLES = {
    "systems and methods": ("docs/reference/methods.md", methods_table),
    "parameters of systems": ("config/README.md", parameters_tables),
    "analyses": ("config/README.md", analyses_table),
    "commands": ("docs/reference/command-line.md", commands),
}


def block(name: str) -> re.Pattern[str]:
    """A table with the lines around it."""
    return re.compile(rf"(<!-- made by docs/tables.py: {name} -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str, name: str, table: str) -> str:
    """The text of a manual with one of its tables."""
    found = block(name)
    if not found.search(text):
        raise SystemExit(f"no place for the table of {name}")
    return found.sub(lambda m: f"{m[1]}{table}\n{m[2]}", text)


if __name__ == "__main__":
    for name, (file, table) in TABLES.items():
        path = ROOT / file
        path.write_text(filled(path.read_text(), name, table()))
