"""A system as a person reads it: in one line, printed, in a notebook, in ``help`` and on Tab."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from html import escape
from inspect import Parameter, Signature
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hdica.systems.system import System

METHODS = ("dims", "model_copy")
"""What of its methods a person uses; the rest is pydantic's machinery."""

PALE = ' style="opacity:.6"'
"""Of rows of defaults."""


def ordered(system: Any) -> list[tuple[str, Any, bool]]:
    """Name, value and whether it is the default of each parameter; what differs comes first."""
    fields = type(system).model_fields
    found = [
        (
            name,
            getattr(system, name),
            not one.is_required() and getattr(system, name) == one.default,
        )
        for name, one in fields.items()
    ]
    return sorted(found, key=lambda one: one[2])


def letter(name: str, record: System | None) -> str:
    """How a parameter is written: as its system says, as the Greek letter of its name, or empty."""
    known = None if record is None else record.symbols.get(name)
    if known is not None:
        return known.plain
    try:
        return unicodedata.lookup(f"GREEK SMALL LETTER {name.upper()}")
    except KeyError:
        return ""


def _record(system: Any) -> System | None:
    from hdica.systems.registry import lookup

    found = lookup(type(system).__name__)
    return found if found is not None and isinstance(system, found.parameters) else None


def _papers(record: System | None) -> str:
    return "" if record is None else ", ".join(paper.cite for paper in record.papers)


def as_text(system: Any) -> str:
    """What is printed: title and paper, then a line a parameter, defaults last."""
    record = _record(system)
    title = type(system).__name__
    if record is not None:
        title += f": {record.title}" + (f" ({_papers(record)})" if record.papers else "")
    rows = [
        (letter(name, record), name, repr(value), "  (default)" if usual else "")
        for name, value, usual in ordered(system)
    ]
    wide = max(len(name) for _, name, _, _ in rows)
    lines = [f"  {mark or ' '} {name:{wide}} = {value}{end}" for mark, name, value, end in rows]
    return "\n".join([title, *lines])


def as_html(system: Any) -> str:
    """The same as a table for a notebook, with the full titles of the papers."""
    record = _record(system)
    head = escape(type(system).__name__)
    about = "" if record is None else escape(record.title)
    rows = "".join(
        f"<tr{PALE if usual else ''}>"
        f"<td>{_marked(name, record)}</td><td><code>{escape(name)}</code></td>"
        f"<td><code>{escape(repr(value))}</code></td><td>{'default' if usual else ''}</td></tr>"
        for name, value, usual in ordered(system)
    )
    papers = () if record is None else record.papers
    cited = "".join(f"<br>{escape(one.cite)}: {escape(one.title)}" for one in papers)
    columns = "<tr><th></th><th>parameter</th><th>value</th><th></th></tr>"
    return (
        f"<div><b>{head}</b> {about}<small>{cited}</small>"
        f"<table><thead>{columns}</thead><tbody>{rows}</tbody></table></div>"
    )


def _marked(name: str, record: System | None) -> str:
    known = None if record is None else record.symbols.get(name)
    return known.html if known is not None else letter(name, record)


def signature_of(fields: Mapping[str, Any]) -> Signature:
    """Parameters with their defaults; what values they take is said in the docstring."""
    found = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if one.is_required() else one.default,
        )
        for name, one in fields.items()
    ]
    return Signature(found)


def methods_of(kind: type, base: type) -> list[str]:
    """The methods and properties that a person uses: those of its own, and a few of all systems."""
    own = kind.__mro__[: kind.__mro__.index(base)]
    found = (
        name
        for one in own
        for name, value in vars(one).items()
        if not name.startswith(("_", "model_")) and isinstance(value, FunctionType | property)
    )
    return sorted({*found, *METHODS})
