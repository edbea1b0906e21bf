"""A study as a person reads it: printed, and in a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

from hdica.sweep.study.study import Study, point_count
from hdica.systems.axes import Range, shown, size


def rows(spec: Study) -> list[tuple[str, str, str]]:
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
    listed = rows(spec)
    kinds, names = (max(len(one[k]) for one in listed) for k in (0, 1))
    lines = [f"  {kind:{kinds}}  {name:{names}}  {text}".rstrip() for kind, name, text in listed]
    return "\n".join([f"{spec.study}: {spec.title}", *lines])


def as_html(spec: Study) -> str:
    """The same as a table."""
    cells = "".join(
        f"<tr><td>{escape(kind)}</td><td><code>{escape(name)}</code></td>"
        f"<td>{escape(text)}</td></tr>"
        for kind, name, text in rows(spec)
    )
    head = f"<b>{escape(spec.study)}</b> {escape(spec.title)}"
    about = f"<br><small>{escape(spec.description)}</small>" if spec.description else ""
    return f"<div>{head}{about}<table><tbody>{cells}</tbody></table></div>"
