"""The table of analyses and their settings, as the manual has it."""

from __future__ import annotations

from pydantic.fields import FieldInfo

from hdica.analysis.registry import asked_for
from hdica.analysis.settings import Needs, Settings, needs_of, saved_for

HEAD = ("| analysis | question | keys |", "|---|---|---|")


def analyses_table() -> str:
    """Every analysis that a study may ask for, with its keys, in Markdown."""
    return "\n".join([*HEAD, *(_row(name, settings) for name, settings in asked_for().items())])


def _row(name: str, settings: type[Settings]) -> str:
    needs = dict(needs_of(settings))
    keys = "; ".join(
        f"`{key}`: {_said(field, needs.get(key))}" for key, field in settings.model_fields.items()
    )
    saved = {saved_for(need.over) for need in needs.values()} - {""}
    more = " and ".join(f"`save.{key}`" for key in sorted(saved))
    keys += f"; needs {more}" if more else ""
    cells = (f"`{name}`", (settings.__doc__ or "").rstrip("."), keys)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _said(field: FieldInfo, needs: Needs | None) -> str:
    """What a key means, and what it is where it is left out."""
    text = str(field.description)
    if field.is_required() or "default" in text:
        return text
    if needs is not None and needs.found:
        return f"{text} (default: the first of the study that does)"
    if field.default in (None, (), {}):
        return f"{text} (optional)"
    value = field.default if isinstance(field.default, str) else f"{field.default:g}"
    return f"{text} (default {value})"
