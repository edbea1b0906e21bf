"""One kind of error for everything a user can get wrong, always one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError


class HdicaError(ValueError):
    """A request that cannot be met; the message is one sentence naming field, value and remedy."""


UNKNOWN = " is not a known key ("
_TAGS = {"float", "int", "str", "bool", "dict", "list", "none"}


def _field(location: tuple[int | str, ...]) -> str:
    """Dotted path of a field, without the tags that pydantic adds for unions."""
    first, *rest = location or ("",)
    parts = [str(p) for p in rest if not (str(p) in _TAGS or "[" in str(p))]
    return ".".join([str(first), *parts])


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Say that a key is not known, with the nearest known one or all of them."""
    names = list(known)
    close = difflib.get_close_matches(key, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"allowed: {', '.join(names)}"
    return f"{key}{UNKNOWN}{hint})" if names else f"{key} is not a known key"


def _prefixed(field: str, message: str) -> str:
    """A sentence of our own with the path of its field, which it may name already."""
    if not field:
        return message
    parent, _, last = field.rpartition(".")
    if UNKNOWN in message:
        return f"{field}.{message}"
    if message.startswith(last):
        return f"{parent}.{message}" if parent else message
    return f"{field}: {message}"


def one_sentence(exc: ValidationError, what: str, known: Iterable[str] = ()) -> str:
    """Say the first problem of a failed validation in one sentence.

    Parameters
    ----------
    exc
        What pydantic raised.
    what
        What was being read, for example ``"study 'tiny'"``.
    known
        Names to suggest where a top-level key is unknown.

    Returns
    -------
    str
        ``"<what>: <field> = <value> is not allowed (<what is>)"``.
    """
    # A misspelt key also shows up as a missing one: say the misspelling.
    errors = sorted(exc.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
    error = errors[0]
    field, kind = _field(error["loc"]), error["type"]
    message = error["msg"].removeprefix("Value error, ")
    if kind == "missing":
        return f"{what}: {field} is missing"
    if kind == "extra_forbidden":
        return f"{what}: {unknown_key(field, known if len(error['loc']) == 1 else ())}"
    if kind == "value_error":
        return f"{what}: {_prefixed(field, message)}"
    allowed = message[0].lower() + message[1:]
    return f"{what}: {field} = {_shown(error['input'])} is not allowed ({allowed})"


def from_validation(exc: ValidationError, what: str, known: Iterable[str] = ()) -> HdicaError:
    """The :class:`HdicaError` that says ``exc`` in one sentence."""
    return HdicaError(one_sentence(exc, what, known))
