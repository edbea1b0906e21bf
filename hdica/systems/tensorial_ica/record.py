"""Online tensorial ICA as the rest of hdica knows it."""

from __future__ import annotations

import math

from hdica.systems import system as registry
from hdica.systems.method import Role
from hdica.systems.system import Dimension, Symbol, System, in_words, work
from hdica.systems.tensorial_ica import (
    bounds,
    fluctuation,
    offline,
    simulations,
    transient,
    traverse,
)
from hdica.systems.tensorial_ica.system import TensorialICA

__all__ = ["SYSTEM", "TensorialICA"]

_API = "hdica.systems.tensorial_ica.api"
_FUNCTIONS = ("bounds", "landscape", "stationary_error", "traverse_times")
_ETA = {"dimension": 5, "source": "rademacher", "eta": 1e-3}


SYSTEM = System(
    parameters=TensorialICA,
    title="Online tensorial ICA: all sources non-Gaussian, one found at a time",
    short="tensorial ICA",
    papers=(work("Li and Jordan 2021"),),
    order_parameters=(
        registry.OrderParameter(
            "tan2",
            "squared tangent of the angle to the nearest axis",
            low=0.0,
            high=math.inf,
            nothing=None,
        ),
        registry.OrderParameter(
            "v", "overlap v = A'u with a component", ("component",), even=True, nothing=None
        ),
    ),
    controls=(registry.Control("eta", low=1e-8, high=1.0, step=True),),
    clock=registry.Clock("time t = k", "steps"),
    dimensions=(
        Dimension("component", "number of the component"),
        Dimension("quantile", "probability of the quantile"),
        Dimension("polar", "angle of v to the third axis"),
        Dimension("azimuth", "angle of v in the plane of the first two axes"),
    ),
    symbols={
        "tan2": Symbol("tan<sup>2</sup> ∠", r"$\tan^2\angle$", "tan² ∠"),
        "half": Symbol(
            "tan<sup>2</sup> ∠ at <i>T</i>/2", r"$\tan^2\angle$ at $T/2$", "tan² ∠ at T/2"
        ),
        "v": Symbol("<i>v</i>", "$v$", "v"),
        "dimension": Symbol("<i>d</i>", "$d$", "d"),
        "eta": Symbol("η", r"$\eta$", "η"),
        "T": Symbol("<i>T</i>", "$T$", "T"),
        "kappa": Symbol("κ", r"$\kappa$", "κ"),
        "c1": Symbol("<i>c</i><sub>1</sub>", "$c_1$", "c₁"),
        "c2": Symbol("<i>c</i><sub>2</sub>", "$c_2$", "c₂"),
        "angle": Symbol("∠<sub>0</sub>", r"$\angle_0$", "∠₀"),
        "sup": Symbol("sup |Δ<i>U<sub>k</sub></i>|", r"$\sup|\Delta U_k|$", "sup |ΔU_k|"),
        "N1_median": Symbol("median <i>N</i><sub>1</sub>", "median $N_1$", "median N₁"),
        "N2_median": Symbol("median <i>N</i><sub>2</sub>", "median $N_2$", "median N₂"),
        **in_words(
            lemma_3="Lemma 3",
            lemma_5="Lemma 5",
            lemma_6="Lemma 6",
            theorem_4="Theorem 4",
            theorem_7="Theorem 7",
            corollary_8="Corollary 8",
            vector="online rule",
            ode="ODE",
            settled="settled runs",
            vessel="paths in the vessel",
            batch_fastica="offline FastICA",
            batch_gradient="offline gradient ascent",
            batch_level="offline level",
            repeats="number of trainings",
            coupons="coupon collector",
            stationary="stationary level",
            approach="mean approach",
            two_phase="level with one logarithm",
            lemma_5_predicted="Brownian motion",
        ),
        "polar": Symbol("θ", r"$\theta$", "θ"),
        "azimuth": Symbol("ϕ", r"$\phi$", "ϕ"),
    },
    methods=(
        *simulations.PATHS,
        *offline.METHODS,
        *simulations.RECOVERY,
        transient.ODE,
        *fluctuation.METHODS,
        *traverse.METHODS,
        *transient.STATES,
        *bounds.METHODS,
        *transient.PICTURES,
    ),
    functions=dict.fromkeys(_FUNCTIONS, _API),
    analyses={"ensemble": {"simulation": Role.SIMULATION}},
    horizon=10_000.0,
    examples=(
        {**_ETA, "dimension": 2, "start": {"angle": 0.3}},
        {**_ETA, "start": {"angle": 0.5}},
        {**_ETA, "dimension": 3, "source": "uniform", "mixing": "random", "sign": "estimated"},
        {**_ETA, "start": "maximiser"},
        {"dimension": 4, "source": "laplace", "schedule": {"T": 4000, "c1": 0.2, "c2": 1.0}},
    ),
)
