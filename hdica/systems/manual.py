"""The tables of systems, their parameters and their methods, as the manuals have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hdica.systems.registry import systems
from hdica.systems.system import System

HEAD = ("system", "method", "what it computes", "accuracy", "same bits on")
OVERVIEW = ("system", "what it is", "simulations", "theory")


def systems_table() -> str:
    """A row for every system: what it is, its paper, and the names of its methods."""
    lines = [_line(OVERVIEW), _line(("---",) * len(OVERVIEW)).replace(" ", "")]
    for record in systems().values():
        drawn, solved = (
            ", ".join(f"`{m.name}`" for m in record.methods if m.stochastic == random)
            for random in (True, False)
        )
        papers = "; ".join(paper.cite for paper in record.papers)
        lines.append(_line((f"`{record.name}`", f"{record.title} ({papers})", drawn, solved)))
    return "\n".join(lines)


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
    lines = [_line(HEAD), _line(("---",) * len(HEAD)).replace(" ", "")]
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
    if value is None:
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


def _line(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")
