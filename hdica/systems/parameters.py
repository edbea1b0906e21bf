"""What all systems share: how they are built, copied, refused, described and shown."""

from __future__ import annotations

import inspect
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping
from copy import deepcopy
from html import escape
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo

from hdica.errors import HdicaError, from_validation
from hdica.ingredients.plain import plain, with_numbers
from hdica.inputs.data_input import fields_of_data

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass

    from hdica.ingredients.schedules import Schedule
else:
    ModelMetaclass = type(BaseModel)  # pydantic has no public name for it

METHODS = ("dims", "model_copy")
"""What of its methods a person uses; the rest is pydantic's machinery."""
PALE = ' style="opacity:.6"'  # of rows of defaults
WIDTH = 100  # letters of a line of the docstring


class Described(NamedTuple):
    """What the record of a system says of it to a reader."""

    title: str
    papers: tuple[tuple[str, str], ...]
    """Authors and year, and the title, of each."""
    letters: Mapping[str, tuple[str, str]]
    """How parameters are written: as HTML, and plain."""


UNKNOWN = Described("", (), {})
DESCRIBED: dict[type, Described] = {}
"""Of the systems that this process has loaded, by the class of their parameters."""


class _Listed(ModelMetaclass):
    """A class that shows people its own methods, and not those of what it is made with."""

    def __dir__(cls) -> list[str]:
        names = (
            name
            for one in cls.__mro__[: cls.__mro__.index(Parameters)]
            for name, value in vars(one).items()
            if not name.startswith(("_", "model_")) and isinstance(value, FunctionType | property)
        )
        return sorted({*names, *METHODS})


class Parameters(BaseModel, metaclass=_Listed):
    """A problem: immutable, every field checked, refused in one sentence.

    ``aliases`` are short names of parts of fields, each with the field and its part; ``formulas``
    the variable of each field that is a formula; ``sized_by`` the field that sets the number of
    entries of a dimension of its own; and ``n_in_steps`` whether a step size may be a formula in n.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    formulas: ClassVar[Mapping[str, str]] = {}
    sized_by: ClassVar[Mapping[str, str]] = {}
    n_in_steps: ClassVar[bool] = False

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as exc:
            names = [*type(self).model_fields, *type(self).aliases]
            raise from_validation(exc, type(self).__name__, names) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        kind, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
        cls.__signature__ = inspect.Signature(
            [
                inspect.Parameter(name, kind, default=empty if one.is_required() else one.default)
                for name, one in cls.model_fields.items()
            ]
        )
        cls.__doc__ = _documented(inspect.cleandoc(cls.__doc__ or ""), cls.model_fields)

    def __dir__(self) -> list[str]:
        return [*type(self).model_fields, *dir(type(self))]

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        # What differs from the defaults first: of a long line people read the beginning.
        return ((name, value) for name, value, _ in ordered(self))

    def __str__(self) -> str:
        """What is printed: title and paper, then a line a parameter, defaults last."""
        record, title = DESCRIBED.get(type(self), UNKNOWN), type(self).__name__
        title += f": {record.title}" if record.title else ""
        title += f" ({', '.join(cite for cite, _ in record.papers)})" if record.papers else ""
        rows = [
            (_letter(name, record), name, repr(value), "  (default)" if usual else "")
            for name, value, usual in ordered(self)
        ]
        wide = max(len(name) for _, name, _, _ in rows)
        lines = [f"  {mark or ' '} {name:{wide}} = {value}{end}" for mark, name, value, end in rows]
        return "\n".join([title, *lines])

    def _repr_html_(self) -> str:
        """The same as a table for a notebook, with the full titles of the papers."""
        record = DESCRIBED.get(type(self), UNKNOWN)
        rows = "".join(
            f"<tr{PALE if usual else ''}>"
            f"<td>{_letter(name, record, html=True)}</td><td><code>{escape(name)}</code></td>"
            f"<td><code>{escape(repr(value))}</code></td><td>{'default' if usual else ''}</td></tr>"
            for name, value, usual in ordered(self)
        )
        cited = "".join(f"<br>{escape(cite)}: {escape(title)}" for cite, title in record.papers)
        columns = "<tr><th></th><th>parameter</th><th>value</th><th></th></tr>"
        return (
            f"<div><b>{escape(type(self).__name__)}</b> {escape(record.title)}"
            f"<small>{cited}</small>"
            f"<table><thead>{columns}</thead><tbody>{rows}</tbody></table></div>"
        )

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Dimensions of its own that results may have, with their coordinates."""
        return {}

    def refuses_n(self, n: int) -> str:
        """Empty if it can be simulated in n dimensions, else the sentence that says why not."""
        return ""

    def schedules(self) -> tuple[Schedule, ...]:
        """What follows the time, as step sizes do."""
        return ()

    def refuses_until(self, last: float) -> str:
        """Empty if its schedules are allowed until the time ``last``, else the sentence."""
        return next((why for one in self.schedules() if (why := one.refuses(last))), "")

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, given: object) -> object:
        # Before any field is read, so that keys, JSON and equality see the same as for lists.
        if not isinstance(given, Mapping):
            return given
        content = cls.written_out(plain(given))
        # "0.05" is a number wherever it is no formula, no path or another text.
        paths = {k for k in fields_of_data(cls) if isinstance(content.get(k), str)}
        texts = {k for k in content if is_text(cls, k)} | paths
        return {k: v if k in texts else with_numbers(v) for k, v in content.items()}

    @classmethod
    def written_out(cls, given: Mapping[str, Any], within: Mapping[str, Any] | None = None) -> Any:
        """``Q0 = 0.3`` as ``start = {"overlap": 0.3}``; other parts of ``within`` stay."""
        content = {name: value for name, value in given.items() if name not in cls.aliases}
        made: dict[str, Any] = {}
        for name in given:
            if name not in cls.aliases:
                continue
            top, part = cls.aliases[name]
            if top in content:
                raise HdicaError(
                    f"{name} = {given[name]!r} and {top} = {content[top]!r} are not allowed "
                    f"together ({name} is short for {top}: give one of them)",
                    [top],
                )
            now = made.get(top, (within or {}).get(top))
            rest = now if isinstance(now, Mapping) and (top in made or part in now) else {}
            made[top] = {**rest, part: given[name]}
        return content | made

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """The same problem with new values of fields or short names, checked as if built anew."""
        if not update:
            return super().model_copy(deep=deep)
        given = {name: getattr(self, name) for name in self.model_fields_set}
        changed = given | self.written_out(update, dict(self))
        return type(self)(**(deepcopy(changed) if deep else changed))


def constants_of(system: object) -> dict[str, float]:
    """Numbers by name in the formulas of a system, none where it has no such field."""
    return getattr(system, "constants", {})


def is_text(cls: type[BaseModel], name: str) -> bool:
    """Whether a field is a text, which stays one though it may write a number."""
    field = cls.model_fields.get(name)
    return field is None or field.annotation is str


def ordered(system: BaseModel) -> list[tuple[str, Any, bool]]:
    """Name, value and whether it is the default of each parameter; what differs comes first."""
    rows = []
    for name, field in type(system).model_fields.items():
        value = getattr(system, name)
        rows.append((name, value, not field.is_required() and value == field.default))
    return sorted(rows, key=lambda row: row[2])


def _letter(name: str, record: Described, html: bool = False) -> str:
    """How a parameter is written: as its system says, as the Greek letter of its name, or empty."""
    if name in record.letters:
        return record.letters[name][0 if html else 1]
    try:
        return unicodedata.lookup(f"GREEK SMALL LETTER {name.upper()}")
    except KeyError:
        return ""


def _documented(text: str, fields: Mapping[str, FieldInfo]) -> str:
    """A docstring with the fields as its parameters, before its other sections."""
    lines = ["Parameters", "----------"]
    for name, field in fields.items():
        meaning = textwrap.wrap(field.description or "", WIDTH, break_on_hyphens=False)
        lines += [name, *(f"    {line}" for line in meaning)]
    head, raises, rest = text.partition("\nRaises\n------\n")
    return "\n".join([head.rstrip(), "", *lines, *(["", raises.strip(), rest] if raises else [])])
