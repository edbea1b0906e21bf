"""What all systems share: how they are built, copied and refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from hdica.errors import HdicaError, from_validation
from hdica.ingredients.plain import plain, with_numbers
from hdica.inputs.data_input import fields_of_data
from hdica.systems import shown
from hdica.systems.address import is_text

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass

    from hdica.ingredients.schedules import Schedule
else:
    ModelMetaclass = type(BaseModel)  # pydantic has no public name for it


class _Listed(ModelMetaclass):
    """A class that shows people its own methods, and not those of what it is made with."""

    def __dir__(cls) -> list[str]:
        return shown.methods_of(cls, Parameters)


class Parameters(BaseModel, metaclass=_Listed):
    """A problem: immutable, every field checked, refused in one sentence.

    A class says of its fields what else hdica has to know: ``aliases``, short names of what lies
    inside fields, each with the field and its part; ``formulas``, the variable of each field that
    is a formula; and ``sized_by``, the field that sets the number of entries of a dimension of its
    own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    formulas: ClassVar[Mapping[str, str]] = {}
    sized_by: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as exc:
            known = [*type(self).model_fields, *type(self).aliases]
            raise from_validation(exc, type(self).__name__, known) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        cls.__signature__ = shown.signature_of(cls.model_fields)

    def __dir__(self) -> list[str]:
        return [*type(self).model_fields, *dir(type(self))]

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        # What differs from the defaults first: of a long line people read the beginning.
        return ((name, value) for name, value, _ in shown.ordered(self))

    def __str__(self) -> str:
        return shown.as_text(self)

    def _repr_html_(self) -> str:
        return shown.as_html(self)

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
    def _written_out(cls, given: Any) -> Any:
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
        """The same fields without short names: ``Q0 = 0.3`` is ``start = {"overlap": 0.3}``.

        ``within`` are fields as they are now: a short name changes its part of one that has this
        part, and replaces any other.
        """
        found = {name: value for name, value in given.items() if name not in cls.aliases}
        made: dict[str, Any] = {}
        for name in given:
            if name not in cls.aliases:
                continue
            top, part = cls.aliases[name]
            if top in found:
                raise HdicaError(
                    f"{name} = {given[name]!r} and {top} = {found[top]!r} are not allowed "
                    f"together ({name} is short for {top}: give one of them)",
                    [top],
                )
            now = made.get(top, (within or {}).get(top))
            kept = now if isinstance(now, Mapping) and (top in made or part in now) else {}
            made[top] = {**kept, part: given[name]}
        return found | made

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """The same problem with other fields, checked as if it were built anew.

        Parameters
        ----------
        update
            New values by field, or by its short name.
        deep
            Whether fields that are lists or mappings are copied, too.
        """
        if not update:
            return super().model_copy(deep=deep)
        given = {name: getattr(self, name) for name in self.model_fields_set}
        changed = given | self.written_out(update, dict(self))
        return type(self)(**(deepcopy(changed) if deep else changed))
