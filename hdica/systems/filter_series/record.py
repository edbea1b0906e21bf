"""First-layer filters over training as the rest of hdica knows them."""

from __future__ import annotations

from hdica.systems.filter_series.methods import METHODS
from hdica.systems.filter_series.system import FilterSeries
from hdica.systems.method import Role
from hdica.systems.system import Clock, Dimension, OrderParameter, Symbol, System, in_words
from hdica.systems.works import REDUCE_AND_CONQUER

__all__ = ["SYSTEM", "FilterSeries"]

_HERE = "hdica.systems.filter_series"
_MEASURES = ("excess_kurtosis", "excess_overlap", "random_excess_overlap")
_TINY = {
    "filters": {"random": {"filters": 3, "width": 4}},
    "images": {"bundled": ["china", "flower"]},
    "patches": 60,
}

SYSTEM = System(
    parameters=FilterSeries,
    title="First-layer filters of a network: principal subspace and non-Gaussian directions",
    papers=(REDUCE_AND_CONQUER,),
    order_parameters=(
        OrderParameter(
            "excess_overlap",
            "share of a filter's squared length in the principal subspace, minus k/d",
        ),
    ),
    clock=Clock("time t = k", "steps"),
    dimensions=(
        Dimension("component", "number of the filter or principal component"),
        Dimension("row", "row of the picture"),
        Dimension("column", "column of the picture"),
        Dimension("channel", "0 for grey, or 0, 1, 2 for red, green and blue"),
        Dimension("fraction", "rank of the principal subspace over d"),
    ),
    symbols={
        "excess_overlap": Symbol("excess overlap", "excess overlap", "excess overlap"),
        "printed_overlap": Symbol(
            "excess overlap (as printed)",
            "excess overlap (as printed)",
            "excess overlap (as printed)",
        ),
        "kurtosis": Symbol("excess kurtosis", "excess kurtosis", "excess kurtosis"),
        "kurtosis_dcremoved": Symbol(*("excess kurtosis (patches without their mean)",) * 3),
        **in_words(
            filter_history="filters over training",
            rank_spectrum="last filters",
            random_directions="random directions",
            random_spectrum="random directions",
            explained="share of variance",
        ),
        "fraction": Symbol("<i>k</i>/<i>d</i>", "$k/d$", "k/d"),
        "k": Symbol("<i>k</i>/<i>d</i>", "$k/d$", "k/d"),
    },
    methods=METHODS,
    functions={
        **dict.fromkeys(_MEASURES, f"{_HERE}.measures"),
        "load_filters": "hdica.inputs.filters",
        "train_filters": f"{_HERE}.api",
    },
    analyses={"ensemble": {"simulation": Role.SIMULATION}},
    horizon=10.0,
    examples=(
        _TINY,
        {
            **_TINY,
            "filters": {"random": {"filters": 2, "width": 3, "seed": 1}},
            "colour": "rgb",
            "k": 5,
        },
    ),
)
