"""Any online rule with several estimates and features, as the rest of hdica knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from hdica.systems.rules.methods import COSINE, PAPERS, SEVERAL, TAU, methods, stays
from hdica.systems.rules.system import STARTS, Rule, start_of
from hdica.systems.system import Dimension, OrderParameter, Symbol, System, in_words


class SeveralRule(Rule):
    """Any online rule of several estimates and features: see :class:`hdica.OnlineRule`.

    x_k <- x_k + n^-1/2 F_k(u_1, ..., v_1, ...) y + n^-1 psi(x_k), and a normalisation; features
    are orthogonal, in uniform directions. Where all updates are one formula, ``u`` and ``norm`` in
    it are those of its own estimate.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    start: dict[str, Any] = Field(description=f"exact at every n: `{STARTS}`")

    sized_by: ClassVar[Mapping[str, str]] = dict.fromkeys(("estimate", "other", "feature"), "start")

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Numbers of the estimates and of the features, from 1."""
        r, _ = start_of(self)
        estimates, features = (tuple(range(1, size + 1)) for size in r.shape)
        return {"estimate": estimates, "other": estimates, "feature": features}


_TEACHER = "erf(v1/sqrt(2)) + erf(v2/sqrt(2))"
_STUDENT = "erf(u1/sqrt(2)) + erf(u2/sqrt(2))"
SYSTEM = System(
    parameters=SeveralRule,
    title="Any online rule with several estimates and features",
    short="an online rule of several estimates",
    papers=PAPERS,
    order_parameters=(
        OrderParameter(
            "R", "overlap R_km = xi_m.x_k/n", ("estimate", "feature"), low=-np.inf, high=np.inf
        ),
        OrderParameter(
            "P", "product P_kl = x_k.x_l/n", ("estimate", "other"), -np.inf, np.inf, nothing=None
        ),
    ),
    controls=(TAU,),
    dimensions=(
        Dimension("estimate", "number of the estimate", entries=True, first=1),
        Dimension("other", "number of the other estimate", entries=True, first=1),
        Dimension("feature", "number of the feature", entries=True, first=1),
    ),
    symbols={
        "R": Symbol("<i>R</i>", "$R$", "R"),
        "P": Symbol("<i>P</i>", "$P$", "P"),
        "cosine": COSINE,
        **in_words(ode="ODE", learned="number of learned features"),
    },
    methods=methods(SEVERAL),
    notes=stays("R"),
    horizon=20.0,
    examples=(
        {
            "update": "-tau*u**3",
            "normalise": "symmetric",
            "source": ["uniform", "rademacher"],
            "start": {"overlap": [[0.6, 0.3], [0.2, 0.5]]},
            "constants": {"tau": 0.04},
        },
        {
            "update": [f"tau*({_TEACHER} - ({_STUDENT}))*sqrt(2/pi)*exp(-u**2/2)"] * 2,
            "source": ["gaussian", "gaussian"],
            "start": {
                "overlap": [[0.1, 0.0], [0.0, 0.15]],
                "products": [[0.3, 0.05], [0.05, 0.25]],
            },
            "constants": {"tau": 0.5},
        },
    ),
)
