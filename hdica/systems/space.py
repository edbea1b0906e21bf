"""The systems that a study is about: fixed parameters, and swept ones with their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hdica.systems.address import Axis, Path, address, axis_of, build, nested
from hdica.systems.axes import Range, Value, expanded

KEPT = 4096
"""Systems that stay built."""
Place = tuple[tuple[Path, Value], ...]
"""A value of every axis, each with its path."""


@dataclass(frozen=True)
class Space:
    """The parameter space of a study; whoever asks for a system of it asks here.

    Parameters
    ----------
    system
        Class of the parameters.
    fixed
        Path and value of every fixed parameter, by the key that the study uses.
    axes
        Swept parameters in the order of the study.
    """

    system: Any
    fixed: Mapping[str, tuple[Path, Any]]
    axes: tuple[Axis, ...]
    _built: dict[Place, Any] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # A study that travels, or is copied, does not take along what was built of it.
        return Space, (self.system, self.fixed, self.axes)

    @property
    def first(self) -> dict[Path, Value]:
        """The first value of every axis."""
        return {axis.path: axis.values[0] for axis in self.axes}

    def at(self, chosen: Mapping[Path, Value] | None = None, blame: str = "") -> Any:
        """The system with the chosen values, and with the first ones of all other axes.

        To build one takes milliseconds where it has formulas, so it is built once.

        Parameters
        ----------
        chosen
            Values of some axes, by path.
        blame
            The key of the study to name if the system is refused, where only one can be wrong.
        """
        values = self.first | dict(chosen or {})
        key = tuple(values.items())
        found = self._built.get(key)
        if found is None:
            content = nested([*self.fixed.values(), *values.items()])
            found = build(self.system, content, self.axes, blame)
            if len(self._built) < KEPT:
                self._built[key] = found
        return found


def space_of(
    system: Any, parameters: dict[str, Any], grid: Mapping[str, tuple[Value, ...] | Range]
) -> Space:
    """The space that ``parameters`` and ``grid`` of a study span."""
    axes = tuple(
        axis_of(
            key,
            address(key, system, {**grid, **parameters}, "grid"),
            expanded(values),
            system,
            f"grid.{key}",
        )
        for key, values in grid.items()
    )
    fixed = {
        key: (address(key, system, parameters, "parameters"), value)
        for key, value in parameters.items()
    }
    return Space(system, fixed, axes)
