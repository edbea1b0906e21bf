"""Online sparse PCA as the rest of hdica knows it."""

from __future__ import annotations

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
from hdica.systems.sparse_pca.methods import METHODS, OMEGA
from hdica.systems.sparse_pca.notes import NOTES
from hdica.systems.sparse_pca.system import SparsePCA, mean_field
from hdica.systems.system import Paper, Symbol, System, in_words

__all__ = ["SYSTEM", "SparsePCA"]

SYSTEM = System(
    parameters=SparsePCA,
    title="Online sparse PCA of the spiked covariance model",
    short="online sparse PCA",
    papers=(
        Paper(
            "Wang and Lu 2016",
            "Online Learning for Sparse PCA in High Dimensions: Exact Dynamics and Phase "
            "Transitions",
            ("Wang, Chuang", "Lu, Yue M."),
            2016,
            "IEEE Information Theory Workshop (ITW)",
            "inproceedings",
            {"eprint": "1609.02191", "archiveprefix": "arXiv"},
        ),
    ),
    order_parameters=(OVERLAP, PENALTY),
    controls=(TAU, OMEGA, RHO),
    dimensions=(FEATURE, GROUP, FOLLOWED, COLUMN),
    symbols={
        **SYMBOLS,
        **in_words(
            sample_pca="sample PCA",
            sample_pca_limit="limit of sample PCA",
            penalised_pca="penalised PCA",
            objective="objective",
            residual="residual",
            nonzero="share not 0",
        ),
        "omega_c": Symbol("ω<sub>c</sub>", r"$\omega_\mathrm{c}$", "ω_c"),
    },
    works=(
        Paper(
            "Luss and Teboulle 2013",
            "Conditional Gradient Algorithms for Rank-One Matrix Approximations with a "
            "Sparsity Constraint",
            ("Luss, Ronny", "Teboulle, Marc"),
            2013,
            "SIAM Review",
            "article",
            {"volume": "55", "pages": "65-98"},
        ),
    ),
    methods=METHODS,
    mean_field=mean_field,
    functions={"best_step": "hdica.systems.projected.best_step"},
    notes=NOTES,
    examples=(
        {"tau": 0.5, "omega": 1.5, "start": {"overlap": 0.7}},
        {
            "tau": 0.5,
            "omega": 1.5,
            "regularizer": "0.1*sign(x)",
            "prior": {"sparse": 0.3},
            "start": {"overlap": 0.7},
        },
        {"tau": 0.5, **SAMPLES_TO_TRY},
        {
            "tau": 0.5,
            "omega": 1.5,
            "prior": "gaussian",
            "motion": {"exchange": 0.1},
            "start": {"overlap": 0.7},
        },
    ),
)
