"""What all systems share: how they are built, copied and refused."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from hdica.errors import from_validation
from hdica.ingredients.plain import plain


class Parameters(BaseModel):
    """A problem: immutable, every field checked, refused in one sentence.

    A class says of its fields what else hdica has to know: ``aliases``, short names of what lies
    inside fields; ``formulas``, the variable of each field that is a formula; and ``sized_by``,
    the field that sets the number of entries of a dimension of its own.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    formulas: ClassVar[Mapping[str, str]] = {}
    sized_by: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as exc:
            raise from_validation(exc, type(self).__name__, type(self).model_fields) from None

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Dimensions of its own that results may have, with their coordinates."""
        return {}

    @model_validator(mode="before")
    @classmethod
    def _without_numpy(cls, given: Any) -> Any:
        # Before any field is read, so that keys, JSON and equality see the same as for lists.
        return plain(given) if isinstance(given, Mapping) else given

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """The same problem with other fields, checked as if it were built anew.

        Parameters
        ----------
        update
            New values by field.
        deep
            Whether fields that are lists or mappings are copied, too.

        Raises
        ------
        HdicaError
            If there is no such field or its value is not allowed.
        """
        if not update:
            return super().model_copy(deep=deep)
        given = {name: getattr(self, name) for name in self.model_fields_set}
        changed = given | dict(update)
        return type(self)(**(deepcopy(changed) if deep else changed))
