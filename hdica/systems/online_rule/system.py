"""Any online rule with one estimate and one feature: its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from hdica.ingredients.starts import Start, overlap_start
from hdica.systems import fields
from hdica.systems.projected.family import own_dims
from hdica.systems.rules.system import Rule, start_of
from hdica.systems.system import system_named


class OnlineRule(Rule):
    """Any online rule x <- x + n^-1/2 F(u, v, ...) y + n^-1 psi(x) of one estimate and one feature.

    u = y.x/sqrt(n) and v = y.xi/sqrt(n), |xi|^2 = n; y is standard normal across the feature, and
    v = c, or with a ``spike`` omega v = sqrt(omega) c + a. With a list of updates, or of sources,
    it is the rule of several estimates and features, a :class:`hdica.SeveralRule`. Time is t = k/n.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    prior: fields.PriorSpec = Field("dense", description=fields.PRIORS)

    sized_by: ClassVar[Mapping[str, str]] = {"feature": "prior", "group": "prior"}

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of densities: the value of xi in each group of entries."""
        return own_dims(fields.prior(self).group_values.tolist())

    @property
    def regularizer(self) -> str:
        """Phi = -psi, as rules of the projected family have it."""
        return f"-({self.entrywise})"

    @property
    def law_of_start(self) -> Start:
        """The start, as densities take it."""
        r, p = start_of(self)
        return overlap_start(float(r[0, 0]), True, float(p[0, 0]))

    def __new__(cls, **given: Any) -> Any:
        """A rule of several estimates or features where there are several."""
        name = variant(given)
        if name != cls.__name__:
            return system_named(name).parameters(**given)
        return super().__new__(cls)


def variant(given: Mapping[str, Any]) -> str:
    """Name of the system that has these fields: with a list of anything it is one of several."""
    start = given.get("start")
    overlap = start.get("overlap") if isinstance(start, Mapping) else None
    fields_of_several = (overlap, *(given.get(name) for name in ("update", "source", "spike")))
    many = any(isinstance(value, list | tuple) for value in fields_of_several)
    return "SeveralRule" if many else "OnlineRule"
