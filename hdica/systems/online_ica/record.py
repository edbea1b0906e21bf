"""Online ICA as the rest of hdica knows it."""

from __future__ import annotations

from hdica.systems.online_ica.methods import METHODS
from hdica.systems.online_ica.notes import NOTES
from hdica.systems.online_ica.system import OnlineICA, mean_field
from hdica.systems.paper import work
from hdica.systems.projected.controls import (
    COLUMN,
    FEATURE,
    FOLLOWED,
    GROUP,
    OVERLAP,
    PENALTY,
    RHO,
    SYMBOLS,
    TAU,
)
from hdica.systems.projected.stream import SAMPLES_TO_TRY
from hdica.systems.system import Dimension, Symbol, System, in_words

AGE = Dimension("age", "time over the mean time of the escape")
__all__ = ["SYSTEM", "OnlineICA"]

SYSTEM = System(
    parameters=OnlineICA,
    title="Online ICA with one feature",
    short="online ICA",
    papers=(work("Wang and Lu 2017"),),
    order_parameters=(OVERLAP, PENALTY),
    controls=(TAU, RHO),
    dimensions=(FEATURE, GROUP, FOLLOWED, COLUMN, AGE),
    symbols={
        **SYMBOLS,
        "g": Symbol(
            "<i>g</i>(<i>q</i>) = τ<sup>−1</sup> d<i>q</i>/d<i>t</i>",
            r"$g(q) = \tau^{-1}\,\mathrm{d}q/\mathrm{d}t$",
            "g(q) = (1/τ) dq/dt",
        ),
        "escape_wkb": Symbol(
            "<i>n</i> <i>C</i> e<sup><i>nS</i></sup> steps",
            r"$n\,C\,e^{nS}$ steps",
            "n C exp(n S) steps",
        ),
        **in_words(
            first="time of the first passage",
            escape="diffusion in the limit",
            escape_exact="exact chain at n",
            escape_diffusion="diffusion at n",
            escape_ode="ODE",
            escape_times="chains",
        ),
    },
    methods=METHODS,
    mean_field=mean_field,
    functions={
        "best_step": "hdica.systems.projected.best_step",
        "escape_exponent": "hdica.systems.online_ica.escape",
    },
    notes=NOTES,
    horizon=40.0,
    examples=(
        {"tau": 0.05, "start": {"overlap": 0.7}},
        {
            "tau": 0.05,
            "regularizer": "0.1*sign(x)",
            "prior": {"sparse": 0.3},
            "start": {"overlap": 0.7},
        },
        {"tau": 0.05, **SAMPLES_TO_TRY},
        {"nu": 1.0, "source": "rademacher", "start": {"overlap": 0.0}},
        {"tau": 0.17, "source": "rademacher", "start": {"overlap": 0.95, "exact": True}},
        {"tau": 0.01, "source": "rademacher", "start": {"overlap": 0.3, "exact": True}},
        {
            "tau": 0.02,
            "prior": "gaussian",
            "motion": {"exchange": 0.001},
            "start": {"overlap": 0.7},
        },
    ),
)
