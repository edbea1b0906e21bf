"""What the report of a study shows: the settings of every analysis that it asks for.

Which analyses there are is known once plug-ins are loaded, so that their settings are checked like
those that come with hdica: the model is made when the first study is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, create_model
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from hdica.analysis.registry import asked_for, at_hand
from hdica.analysis.settings import Gives, Settings
from hdica.systems.system import System


class Asked(Settings):
    """What the report of a study shows."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The class is made anew in each process, of the analyses that are known there.
        return _read, (self.model_dump(),)

    def asked(self) -> Iterator[tuple[str, Settings]]:
        """Every analysis that is asked for, as pairs of where and what."""
        for name in type(self).model_fields:
            settings: Settings | None = getattr(self, name)
            if settings is not None:
                yield f"analysis.{name}", settings

    def settled(self, system: System | None, given: Mapping[str, Gives]) -> Self:
        """The same with every method and every variable that was left open."""
        changed: dict[str, Settings] = {}
        for where, settings in self.asked():
            found = settings.settled(system, given)
            if found is not settings:
                changed[where.removeprefix("analysis.")] = found
        return self.model_copy(update=changed) if changed else self


@cache
def _made(known: tuple[tuple[str, type[Settings]], ...]) -> type[Asked]:
    fields: dict[str, Any] = {name: (settings | None, None) for name, settings in known}
    return create_model("Analysis", __base__=Asked, __doc__=Asked.__doc__, **fields)


def model() -> type[Asked]:
    """The model with one field for each analysis that is known now."""
    return _made(tuple(asked_for().items()))


def check_read(written: Mapping[str, Any]) -> None:
    """Refuse settings that are none of the analyses at hand; others are not looked at.

    A store is read by who needs no system, so that none is loaded for it.
    """
    if not written:
        return
    kinds = ((name, one.settings) for name, one in at_hand().items())
    known = {name: kind for name, kind in kinds if kind is not None and name in written}
    _made(tuple(known.items())).model_validate({name: written[name] for name in known})


def nothing() -> Asked:
    """No analysis."""
    return model()()


class Known:
    """Mark of a field that is read as :func:`model` says at that time."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read it by the model of the moment; mistakes keep their places."""
        return core_schema.no_info_plain_validator_function(_read)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The schema of the model of the moment."""
        return handler(model().__pydantic_core_schema__)


def _read(given: Any) -> Asked:
    return given if isinstance(given, Asked) else model().model_validate(given)
