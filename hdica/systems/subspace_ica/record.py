"""ICA of the subspace model as the rest of hdica knows it."""

from __future__ import annotations

from hdica.systems import system as registry
from hdica.systems.method import Role
from hdica.systems.subspace_ica import fastica, gradient, limits
from hdica.systems.subspace_ica.system import HOME, SubspaceICA
from hdica.systems.system import Dimension, Symbol, System, in_words, work

__all__ = ["SYSTEM", "SubspaceICA"]

_FUNCTIONS = ("gradient_flow", "population_loss", "reduced_model")
_SMALL = {"dimension": 24, "rank": 2, "beta": 1.0}
_FEW = {**_SMALL, "restarts": 2}
_STEPS = {"algorithm": "sgd", "eta": 0.125}


SYSTEM = System(
    parameters=SubspaceICA,
    title="ICA in the principal subspace: a non-Gaussian direction among leading components",
    short="ICA in the principal subspace",
    papers=(work("Reduce and Conquer 2025"),),
    order_parameters=(
        registry.OrderParameter(
            "overlap",
            "overlap of the whitened estimate with the non-Gaussian direction",
            low=0.0,
            high=1.0,
            even=True,
            nothing=None,
        ),
    ),
    controls=(
        registry.Control("beta", low=0.05, high=50.0),
        registry.Control("samples_per_dimension", low=0.1, high=1000.0),
        registry.Control("eta", low=1e-4, high=10.0, step=True),
    ),
    clock=registry.Clock("time t = eta k", "steps of size one", counts=False),
    dimensions=(
        Dimension("component", "number of the spike or principal component"),
        Dimension("restart", "number of the start"),
    ),
    symbols={
        "overlap": Symbol("<i>a</i>", "$a$", "a"),
        "dimension": Symbol("<i>D</i>", "$D$", "D"),
        "rank": Symbol("<i>r</i>", "$r$", "r"),
        "beta": Symbol("β", r"$\beta$", "β"),
        "alpha": Symbol("α", r"$\alpha$", "α"),
        "gamma": Symbol("γ", r"$\gamma$", "γ"),
        "samples_per_dimension": Symbol("<i>n</i>/<i>D</i>", "$n/D$", "n/D"),
        "samples": Symbol("<i>n</i>", "$n$", "n"),
        "gamma_c": Symbol("γ<sub><i>c</i></sub>", r"$\gamma_c$", "γ_c"),
        "pca_overlap": Symbol("|<i>Pv</i>|", "$|Pv|$", "|Pv|"),
        "batch": Symbol("<i>B</i>", "$B$", "B"),
        "lower_bound": Symbol("<i>f</i>(<i>t</i>)", "$f(t)$", "f(t)"),
        **in_words(
            fastica="FastICA",
            fastica_scores="FastICA",
            projected_sgd="projected gradient steps",
            overlap_flow="gradient flow",
            batch_flow="gradient flow of n samples",
            prediction="asymptotic formula",
            latent="latent law",
            ambient="all dimensions",
            principal="principal components",
            known="known subspace",
        ),
        "a0": Symbol("<i>a</i><sub>0</sub>", "$a_0$", "a₀"),
    },
    methods=(*fastica.METHODS, *gradient.METHODS, *limits.METHODS),
    functions={"SubspaceModel": f"{HOME}.system", **dict.fromkeys(_FUNCTIONS, f"{HOME}.api")},
    analyses={
        "ensemble": {"simulation": Role.SIMULATION},
        "dependence": {"simulation": Role.SIMULATION},
    },
    examples=(
        {**_FEW, "samples_per_dimension": 32},
        {**_FEW, "samples": 200, "space": "ambient", "beta": [3, 1], "alpha": [0.6, 0.8]},
        {**_FEW, "samples": 200, "space": "known", "batch": "fresh", "iterations": 5},
        {**_SMALL, **_STEPS, "batch": 8, "start": {"overlap": 0.5}},
        {**_SMALL, **_STEPS, "samples_per_dimension": 16, "batch": 8},
        {**_SMALL, "algorithm": "flow", "samples_per_dimension": 16, "start": {"overlap": 0.5}},
    ),
)
