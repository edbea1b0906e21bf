"""Online ICA with several features as the rest of hdica knows it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hdica.systems.outputs import ZERO
from hdica.systems.several_ica.methods import METHODS
from hdica.systems.several_ica.system import SeveralICA
from hdica.systems.system import (
    Control,
    Dimension,
    Notes,
    OrderParameter,
    Symbol,
    System,
    in_words,
)
from hdica.systems.works import WANG_LU_2017

__all__ = ["SYSTEM", "SeveralICA"]


def _stays(
    system: SeveralICA, values: Mapping[str, NDArray[np.float64]], times: NDArray[np.float64]
) -> str:
    """Why nothing is learned from overlaps of 0."""
    if np.abs(values["Q"]).max() > ZERO:
        return ""
    return (
        "the start has overlap 0 with every feature, and the limit stays there for ever on this "
        "scale of time (t = k/n): begin with an overlap"
    )


SYSTEM = System(
    parameters=SeveralICA,
    title="Online ICA with several features",
    short="online ICA with several features",
    papers=(WANG_LU_2017,),
    order_parameters=(
        OrderParameter(
            "Q", "overlap Q = xi.x/n with the feature of a source", ("source",), even=True
        ),
    ),
    controls=(Control("tau", 1e-4, 10.0, step=True),),
    dimensions=(Dimension("source", "source j, and its feature", entries=True, first=1),),
    symbols={
        "Q": Symbol("<i>Q</i>", "$Q$", "Q"),
        "tau_c": Symbol("τ<sub>c</sub>", r"$\tau_\mathrm{c}$", "τ_c"),
        **in_words(ode="ODE"),
    },
    methods=METHODS,
    notes=Notes(_stays),
    horizon=40.0,
    examples=(
        {"tau": 0.05, "sources": ["uniform", "rademacher"], "start": {"Q1": 0.5, "Q2": 0.4}},
        {
            "tau": 0.03,
            "sources": ["rademacher", "laplace", {"chi2": 4}],
            "start": {"overlap": [0.5, 0.3, -0.2]},
        },
    ),
)
