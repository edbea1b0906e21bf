"""One kind of error for everything a user can get wrong, always one sentence."""

from __future__ import annotations

import difflib
import errno
import os
import re
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

MOST_LETTERS = 600
"""Longest sentence: of a longer one the middle, a value that somebody wrote, is left out."""


def printable(text: str, spaces: str = " ") -> str:
    """A text in which nothing can move the cursor of a terminal or turn its line around.

    ``spaces`` may stay as they are though they are not printed.
    """
    if text.isprintable():
        return text
    letters = (c if c.isprintable() or c in spaces else repr(c)[1:-1] for c in text)
    return "".join(letters)


class HdicaError(ValueError):
    """A request that cannot be met; the message is one sentence naming field, value and remedy.

    Parameters
    ----------
    message
        The sentence.
    fields
        Paths of the fields that it names, for a caller that has other names: ``"tau"``.
    """

    fields: tuple[str, ...] = ()

    def __init__(self, message: str = "", fields: Iterable[str] = ()) -> None:
        self.fields = tuple(fields)
        if len(message) > MOST_LETTERS:
            message = f"{message[: MOST_LETTERS - 205]} ... {message[-200:]}"
        if "\n" in message:
            message = " ".join(message.split())
        super().__init__(printable(message))


def shown(value: object) -> str:
    """A value for a sentence, not too long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def refused(name: str, value: object, allowed: str) -> HdicaError:
    """That a value of an argument is not allowed, and what is."""
    return HdicaError(f"{name} = {shown(value)} is not allowed ({allowed})")


def no_room(what: str) -> HdicaError:
    """That something needs more memory than there is: than the machine has, or than is allowed."""
    return HdicaError(f"{what} needs more memory than there is, or than ulimit -v allows")


EXTRAS = {
    **dict.fromkeys(
        ("cryptography", "dask", "distributed", "h5netcdf", "h5py", "numcodecs", "ruamel",
         "snakemake", "tornado", "typer", "zarr"),
        "sweep",
    ),
    **dict.fromkeys(("jinja2", "matplotlib", "plotly"), "report"),
    **dict.fromkeys(("PIL", "skimage"), "images"),
    "sklearn": "whiten",
    "pyarrow": "tables",
    "torch": "networks",
}  # fmt: skip
"""Packages that hdica does not need for simulations and limits, and the extra that brings each."""


@contextmanager
def extras() -> Iterator[None]:
    """Say in one sentence which extra brings a package that the body needs and that is missing."""
    try:
        yield
    except ModuleNotFoundError as exc:
        package = (exc.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise HdicaError(
            f"{package} is not installed (pip install 'hdica[{EXTRAS[package]}]')"
        ) from None


class OutOfTime(HdicaError):
    """A call that has taken longer than its ``timeout``; it ends between two steps of a loop."""


class Incomplete(HdicaError):
    """Something is missing that a rerun can bring."""


class OutOfMemory(Incomplete):
    """A process that computes had too little memory; with more of it a rerun may succeed."""


class DataGone(HdicaError):
    """Data that a problem names are missing here, or changed: elsewhere it has its result."""


class Unwritable(Incomplete):
    """Files that cannot be written, for want of space or of permission; it says which and why."""


class Removed(Unwritable):
    """What a run writes to was removed by somebody else meanwhile; the sentence names it."""


class Stopped(KeyboardInterrupt):
    """A signal has stopped a run; no ordinary exception, so that no point is blamed for it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.status = 128 + number


UNKNOWN = " is not a known key ("
SYMBOLS: dict[str, tuple[str, ...]] = {
    "f": ("nonlinearity",),
    "phi": ("regularizer", "nonlinearity"),
    "partition": ("queue",),
    "mem": ("memory",),
    "time": ("walltime", "times"),
    "cpus": ("cores",),
}
SYMBOLS["φ"] = SYMBOLS["phi"]
"""Keys that symbols of the papers, and options of Slurm, stand for: the first that there is."""
_TAGS = {"float", "int", "str", "bool", "dict", "list", "none"}


def _field(location: tuple[int | str, ...]) -> str:
    """Dotted path of a field, without the tags that pydantic adds for unions."""
    first, *rest = location or ("",)
    parts = [str(p) for p in rest if not (str(p) in _TAGS or "[" in str(p))]
    return ".".join([str(first), *parts])


def closest(word: str, names: Iterable[str]) -> str:
    """The name that a word is most like, upper and lower case and ``_`` apart; empty if none is."""

    def bare(text: str) -> str:
        return text.lower().replace("_", "").replace("-", "")

    listed = {bare(name): name for name in names}
    close = difflib.get_close_matches(bare(word), list(listed), n=1)
    return listed[close[0]] if close else ""


def suggestion(spec: object, names: Iterable[str], listed: str = "", what: str = "allowed") -> str:
    """What to write in the place of a name: the nearest one, and the list of all.

    Of a mapping its first key that is none of the names is looked at. ``listed`` stands in the
    place of the names where more than names is allowed, ``what`` says what the list is.
    """
    known = list(names)
    word = (
        next((key for key in spec if key not in known), "") if isinstance(spec, Mapping) else spec
    )
    close = closest(word, known) if isinstance(word, str) else ""
    hint = f"did you mean {close!r}? " if close and close != word else ""
    return f"{hint}{what}: {listed or ', '.join(known) or 'none'}"


def unknown_word(field: str, spec: object, names: Iterable[str], allowed: str) -> HdicaError:
    """That a word, or a key of a mapping, is not known, with the nearest one that is."""
    return HdicaError(f"{field}: {spec!r} is not known ({suggestion(spec, names, allowed)})")


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Say that a key is not known, with the nearest known one or all of them."""
    names = list(known)
    meant = (name for name in SYMBOLS.get(key, ()) if name in names)
    close = next(meant, "") or closest(key, names)
    hint = f"did you mean {close!r}?" if close else f"allowed: {', '.join(names)}"
    return f"{key}{UNKNOWN}{hint})" if names else f"{key} is not a known key"


def _prefixed(field: str, message: str) -> str:
    """A sentence of our own with the path of its field, which it may name already."""
    if not field:
        return message
    parent, _, last = field.rpartition(".")
    if message.startswith(f"{field}."):
        return message
    if UNKNOWN in message:
        return f"{field}.{message}"
    if message.startswith(last):
        return f"{parent}.{message}" if parent else message
    return f"{field}: {message}"


_KINDS = {
    "string": "a text",
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "dict": "a mapping",
    "model": "a mapping",
    "mapping": "a mapping",
    "list": "a list",
    "tuple": "a list",
}
_BOUNDS = {
    "greater_than": ("> {}", "gt"),
    "greater_than_equal": (">= {}", "ge"),
    "less_than": ("< {}", "lt"),
    "less_than_equal": ("<= {}", "le"),
    "string_too_short": ("a text of at least {} letters", "min_length"),
    "string_too_long": ("a text of at most {} letters", "max_length"),
    "too_short": ("at least {} entries", "min_length"),
    "too_long": ("at most {} entries", "max_length"),
    "string_pattern_mismatch": ("a text of the pattern {}", "pattern"),
}
"""What is allowed where pydantic refuses a value, by its kind of error."""


def _allowed(kind: str, context: Mapping[str, Any], message: str, given: object) -> str:
    """What is allowed in the place of a value that pydantic refuses."""
    if kind in ("literal_error", "enum"):
        return suggestion(given, re.findall("'([^']*)'", str(context.get("expected"))))
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        value = context.get(key, "")
        return words.format(f"{value:g}" if isinstance(value, float) else value)
    return _KINDS.get(kind.partition("_")[0], message[0].lower() + message[1:])


def _first(exc: ValidationError) -> ErrorDetails:
    """The problem to speak of: a misspelt key also shows up as a missing one."""
    errors = exc.errors(include_url=False)
    return min(errors, key=lambda error: error["type"] != "extra_forbidden")


def one_sentence(exc: ValidationError, what: str, known: Iterable[str] = ()) -> str:
    """The first problem of a failed validation in one sentence.

    ``"<what>: <field> = <value> is not allowed (<what is>)"``, where ``what`` was being read, for
    example ``"study 'tiny'"``; ``known`` are names to suggest where a top-level key is unknown.
    """
    error = _first(exc)
    field, kind = _field(error["loc"]), error["type"]
    message = error["msg"].removeprefix("Value error, ")
    if kind == "missing":
        return f"{what}: {field} is missing"
    if kind == "extra_forbidden":
        return f"{what}: {unknown_key(field, known if len(error['loc']) == 1 else ())}"
    if kind == "value_error":
        return f"{what}: {_prefixed(field, message)}"
    allowed = _allowed(kind, error.get("ctx", {}), message, error["input"])
    return f"{what}: {field} = {shown(error['input'])} is not allowed ({allowed})"


def from_validation(exc: ValidationError, what: str, known: Iterable[str] = ()) -> HdicaError:
    """The :class:`HdicaError` that says ``exc`` in one sentence."""
    first = _first(exc)
    inner = first.get("ctx", {}).get("error")
    fields = inner.fields if isinstance(inner, HdicaError) else ()
    if first["loc"]:
        fields = (_field(first["loc"]),)
    kind = DataGone if isinstance(inner, DataGone) else HdicaError
    return kind(one_sentence(exc, what, known), fields)


@contextmanager
def speaking_of(*fields: str) -> Iterator[None]:
    """Let errors of the body carry these fields, if they carry none of their own."""
    try:
        yield
    except HdicaError as exc:
        exc.fields = exc.fields or fields
        raise


def path_of(given: object, name: str, example: str) -> Path:
    """A path that somebody gives, or a sentence why it is none."""
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str) or not path or "\0" in path:
        raise HdicaError(f"{name} = {given!r} is not allowed (a path such as {example})")
    try:
        os.lstat(path)
    except OSError as exc:
        if exc.errno == errno.ENAMETOOLONG:
            raise refused(name, path, f"a shorter path: it has {len(path)} letters") from exc
    return Path(path)
