"""Any online rule with one estimate and one feature, as the rest of hdica knows it."""

from __future__ import annotations

import numpy as np

from hdica.systems.online_rule.descent import special
from hdica.systems.online_rule.projected import METHODS, changes
from hdica.systems.online_rule.system import OnlineRule, variant
from hdica.systems.projected import family
from hdica.systems.rules.methods import COSINE, PAPERS, TAU, stays
from hdica.systems.system import OrderParameter, Symbol, System, in_words

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
    dimensions=(family.FEATURE, family.GROUP, family.FOLLOWED),
    symbols={
        **family.SYMBOLS,
        "Q": Symbol("<i>Q</i>", "$Q$", "Q"),
        "P": Symbol("<i>P</i>", "$P$", "P"),
        "cosine": COSINE,
        "spike": Symbol("ω", r"$\omega$", "ω"),
        **in_words(ode="ODE"),
    },
    methods=METHODS,
    notes=stays("Q"),
    changes=changes,
    variant=variant,
    special=special,
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
            "update": "-tau*u**3",
            "source": "uniform",
            "entrywise": "-tau*sign(x)/10",
            "normalise": "norm",
            "prior": {"sparse": 0.25},
            "start": {"overlap": 0.7},
            "constants": {"tau": 0.05},
        },
    ),
)
