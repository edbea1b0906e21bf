"""Which analyses there are, those of plug-ins among them, and the model of all their settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, create_model
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from hdica.analysis.record import Analysis
from hdica.analysis.settings import Gives, Settings
from hdica.errors import HdicaError
from hdica.systems.system import System, load_entry_points, load_plugins

OWN = {
    "runs": "account", "condensing": "account", "learning": "account", "choices": "account",
    "slopes": "dependence", "convergence": "convergence", "phase": "phase", "success": "phase",
    "dependence": "dependence", "exponents": "powers", "collapse": "powers", "flow": "landscapes",
    "densities": "laws", "distances": "laws", "support": "laws", "potential": "landscapes",
    "steady": "steady", "compare": "trajectories", "transition": "steady", "escape": "escape",
    "samples": "escape",
    "paths": "trajectories", "decay": "trajectories", "trapping": "landscapes",
    "ensemble": "ensemble", "sphere": "pictures", "curves": "trajectories",
    "pictures": "pictures", "printed": "printed",
}  # fmt: skip
"""Analyses that come with hdica and their folders, in the order in which they are computed."""
GROUP = "hdica.analyses"
"""Entry points of packages that bring analyses of their own."""
_ANALYSES: dict[str, Analysis] = {}


def register(analysis: object) -> Analysis:
    """Make an analysis known by the name in its record, and return it."""
    if not isinstance(analysis, Analysis):
        kind = type(analysis).__name__
        raise HdicaError(f"register: a {kind} is not allowed (a record: hdica.analysis.record)")
    known = _ANALYSES.get(analysis.name)
    if known is not None and known.settings is not analysis.settings:
        raise HdicaError(f"register: the name {analysis.name} is taken (by another analysis)")
    _ANALYSES[analysis.name] = analysis
    return analysis


@cache
def _load_own() -> None:
    for name, folder in OWN.items():
        register(getattr(import_module(f"hdica.analysis.{folder}"), name.upper()))


@cache
def _load() -> None:
    _load_own()
    load_plugins()  # a package that brings a system may bring analyses of it
    load_entry_points(GROUP, "analysis", Analysis, register)


def analyses() -> dict[str, Analysis]:
    """Every analysis by name, in the order in which they are computed."""
    _load()
    return _ANALYSES


def at_hand() -> dict[str, Analysis]:
    """Those that are known without any system: what comes with hdica, and what is loaded."""
    _load_own()
    return _ANALYSES


def settings_classes() -> dict[str, type[Settings]]:
    """Settings of those that a study has to ask for."""
    return {name: one.settings for name, one in analyses().items() if one.settings is not None}


class Analyses(Settings):
    """What the report of a study shows."""

    def __reduce__(self) -> tuple[object, ...]:
        # The class is made anew in each process, of the analyses that are registered there.
        return _read, (self.model_dump(),)

    def items(self) -> Iterator[tuple[str, Settings]]:
        """Every analysis of the study: its name and its settings."""
        for name in type(self).model_fields:
            settings: Settings | None = getattr(self, name)
            if settings is not None:
                yield name, settings

    def settled(self, system: System | None, given: Mapping[str, Gives]) -> Self:
        """The same with every method and every variable that was left open."""
        return self.model_copy(update={k: s.settled(system, given) for k, s in self.items()})


@cache
def _model(settings: tuple[tuple[str, type[Settings]], ...]) -> type[Analyses]:
    fields: dict[str, Any] = {name: (kind | None, None) for name, kind in settings}
    return create_model("Analysis", __base__=Analyses, __doc__=Analyses.__doc__, **fields)


def analyses_model() -> type[Analyses]:
    """The model with one field for each analysis that is registered now."""
    return _model(tuple(settings_classes().items()))


def no_analyses() -> Analyses:
    """Settings of no analysis."""
    return analyses_model()()


def check_read(written: Mapping[str, object]) -> None:
    """Refuse settings that are none of the analyses at hand, without loading any system."""
    if not written:
        return
    kinds = ((name, one.settings) for name, one in at_hand().items())
    known = {name: kind for name, kind in kinds if kind is not None and name in written}
    _model(tuple(known.items())).model_validate({name: written[name] for name in known})


class Registered:
    """Annotation of a field that :func:`analyses_model` reads.

    Plug-ins are loaded when the first study is read, so that their settings are checked like those
    of the analyses that come with hdica: the model cannot be made earlier.
    """

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Read it by the model of the moment; mistakes keep their places."""
        return core_schema.no_info_plain_validator_function(_read)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The schema of the model of the moment."""
        return handler(analyses_model().__pydantic_core_schema__)


def _read(given: object) -> Analyses:
    return given if isinstance(given, Analyses) else analyses_model().model_validate(given)
