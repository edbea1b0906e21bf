"""Any online rule with one estimate and one feature, as the rest of hdica knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field

from hdica.systems import fields
from hdica.systems.rules.methods import COSINE, ONE, PAPERS, TAU, changes, methods, stays
from hdica.systems.rules.system import Rule
from hdica.systems.system import OrderParameter, Symbol, System, in_words, system_named


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


SYSTEM = System(
    parameters=OnlineRule,
    title="Any online rule with one estimate and one feature",
    short="an online rule",
    papers=PAPERS,
    order_parameters=(
        OrderParameter("Q", "overlap Q = xi.x/n", low=-np.inf, high=np.inf),
        OrderParameter("P", "P = |x|^2/n", low=0.0, high=np.inf, nothing=None),
        OrderParameter("cosine", "cosine of estimate and feature"),
    ),
    controls=(TAU,),
    symbols={
        "Q": Symbol("<i>Q</i>", "$Q$", "Q"),
        "P": Symbol("<i>P</i>", "$P$", "P"),
        "cosine": COSINE,
        **in_words(ode="ODE"),
    },
    methods=methods(ONE),
    notes=stays("Q"),
    changes=changes,
    variant=variant,
    horizon=20.0,
    examples=(
        {
            "update": "tau*(label - u)",
            "label": "v + s*z",
            "noise": {"z": "gaussian"},
            "start": {"overlap": 0.1, "norm": 0.7},
            "constants": {"tau": 0.5, "s": 0.3},
        },
        {"update": "tau*sign(v)*(u*v < 0)", "constants": {"tau": 1.0}},
        {
            "update": "tau*tanh(v - u)",
            "entrywise": "-0.3*tau*sign(x)",
            "normalise": "norm",
            "prior": {"sparse": 0.25},
            "start": {"overlap": 0.5},
            "constants": {"tau": 0.6},
        },
    ),
)
