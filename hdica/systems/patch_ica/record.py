"""Independent component analysis of patches as the rest of hdica knows it."""

from __future__ import annotations

import math

from hdica.systems.method import Role
from hdica.systems.patch_ica.methods import filter_bank, held_out
from hdica.systems.patch_ica.system import PatchICA
from hdica.systems.system import Clock, Dimension, OrderParameter, Symbol, System, in_words
from hdica.systems.works import FASTICA, REDUCE_AND_CONQUER

__all__ = ["SYSTEM", "PatchICA"]

_TINY = {
    "images": {"bundled": ["china", "flower"]}, "width": 6, "test": 200, "directions": 5,
    "iterations": 30, "kept": 1,
}  # fmt: skip

SYSTEM = System(
    parameters=PatchICA,
    title="ICA of patches of natural images, in all pixels or in principal components",
    papers=(REDUCE_AND_CONQUER,),
    works=(FASTICA,),
    order_parameters=(
        OrderParameter(
            "test_loss",
            "mean of G(w.y) over held-out patches less that along random directions",
            low=-math.inf,
            high=math.inf,
        ),
    ),
    clock=Clock("iteration t of FastICA", "iterations"),
    dimensions=(
        Dimension("component", "number of the component"),
        Dimension("row", "row of a patch"),
        Dimension("column", "column of a patch"),
        Dimension("channel", "red, green and blue, or grey"),
    ),
    symbols={
        "test_loss": Symbol(
            "held-out loss Δ<i>L</i>", r"held-out loss $\Delta L$", "held-out loss ΔL"
        ),
        "raw_loss": Symbol(
            "held-out loss Δ<i>L</i>, not standardised",
            r"held-out loss $\Delta L$, not standardised",
            "held-out loss ΔL, not standardised",
        ),
        "test_loss_ambient": Symbol(
            "held-out loss Δ<i>L</i>, less all of R<sup>D</sup>",
            r"held-out loss $\Delta L$, less all of $R^D$",
            "held-out loss ΔL, less all of Rᴰ",
        ),
        "raw_loss_ambient": Symbol(
            "held-out loss Δ<i>L</i>, less all of R<sup>D</sup>, not standardised",
            r"held-out loss $\Delta L$, less all of $R^D$, not standardised",
            "held-out loss ΔL, less all of Rᴰ, not standardised",
        ),
        "excess_kurtosis": Symbol(*("excess kurtosis",) * 3),
        **in_words(
            held_out="FastICA",
            filter_bank="symmetric FastICA",
            ambient="all pixels",
            principal="principal components",
            logcosh="log cosh",
        ),
        "d": Symbol("<i>d</i>", "$d$", "d"),
        "width": Symbol("width <i>w</i>", "width $w$", "width w"),
        "gabor_residual": Symbol("residual", "residual", "residual"),
        "feature_residual": Symbol("residual", "residual", "residual"),
    },
    methods=(*held_out.METHODS, *filter_bank.METHODS),
    analyses={"paths": {"simulation": Role.SIMULATION}},
    examples=(
        {**_TINY, "space": {"principal": 3}, "restarts": 2},
        {**_TINY, "width": 3, "contrast": "exp", "samples": 60},
        {**_TINY, "width": 2, "colour": "rgb", "space": {"principal": 2}, "kept": 3},
    ),
)
