"""Hebbian ICA as the rest of hdica knows it."""

from __future__ import annotations

from hdica.systems.hebbian_ica import diffusion, escapes, optimum, passage, skewed, trajectories
from hdica.systems.hebbian_ica.notes import NOTES
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.paper import work
from hdica.systems.system import Control, Dimension, OrderParameter, Symbol, System, in_words

__all__ = ["SYSTEM", "HebbianICA"]

_HERE = "hdica.systems.hebbian_ica"
_ANNEALED = {"mu": "1/(t + 10)", "sigma": [-1], "start": {"overlap": 0.9}}

SYSTEM = System(
    parameters=HebbianICA,
    title="Hebbian ICA with several projections and sources",
    short="Hebbian ICA",
    papers=(work("Rattray 2002"),),
    order_parameters=(
        OrderParameter(
            "R",
            "overlap R = W'A_s of projection and source",
            ("projection", "source"),
            even=True,
        ),
        OrderParameter("Q", "overlap Q = W'W of two projections", ("projection", "other")),
    ),
    controls=(Control("mu", step=True),),
    dimensions=(
        Dimension("projection", "projection i, a column of W", entries=True),
        Dimension("other", "another projection", entries=True),
        Dimension("source", "source j", entries=True),
        Dimension("row", "row i of an eigenmatrix: a projection", entries=True),
        Dimension("column", "column j of an eigenmatrix: a source", entries=True),
        Dimension("age", "time over the mean time of the first escape, or of the last"),
        Dimension("r", "r = sqrt(n) R"),
    ),
    symbols={
        "R": Symbol("<i>R</i>", "$R$", "R"),
        "Q": Symbol("<i>Q</i>", "$Q$", "Q"),
        "R_ij": Symbol("<i>R<sub>ij</sub></i>", "$R_{ij}$", "R_ij"),
        "R0": Symbol("<i>R</i><sub>0</sub>", "$R_0$", "R₀"),
        "r": Symbol("<i>r</i> = √<i>n</i> <i>R</i>", r"$r = \sqrt{n}\,R$", "r = √n R"),
        "U": Symbol("<i>U</i>(<i>r</i>)/<i>D</i>", "$U(r)/D$", "U(r)/D"),
        "mu_c": Symbol("μ<sub>c</sub>", r"$\mu_\mathrm{c}$", "μ_c"),
        "mu0": Symbol("μ<sub>0</sub>", r"$\mu_0$", "μ₀"),
        **in_words(
            first="time of the first passage",
            last="time of the last passage",
            ode="ODE",
            clt="ODE with fluctuations",
            escape="diffusion in the limit",
            escape_exact="exact chain at n",
            escape_diffusion="diffusion at n",
            escape_times="chains",
            skewed_escape="diffusion in the limit",
            skewed_escape_times="chains",
            annealed="asymptotic formula",
            fokker_planck="Fokker–Planck equation",
        ),
    },
    methods=(
        *trajectories.METHODS,
        *escapes.METHODS[:1],
        passage.ESCAPE_TIMES,
        *escapes.METHODS[1:],
        *skewed.METHODS,
        *diffusion.METHODS,
        *optimum.METHODS,
    ),
    notes=NOTES,
    functions={
        **dict.fromkeys(("convert", "tracking"), f"{_HERE}.as_online"),
        **dict.fromkeys(("asymptotics", "conflict_region", "escape_signs"), f"{_HERE}.api"),
    },
    horizon=100.0,
    examples=(
        {"mu": 0.05, "sigma": [-1], "start": {"overlap": 0.7}},
        {"nu": 1.0, "sigma": [-1]},
        {
            "nu2": 2.0,
            "sources": [{"discrete": {"values": [2, -0.5], "weights": [0.2, 0.8]}}],
            "nonlinearity": "x**2 - 1",
        },
        {
            "mu": 0.1,
            "sources": ["uniform", "laplace"],
            "projections": 2,
            "sigma": [-1, 1],
            "start": {"overlap": [[0.6, 0.1], [0.0, 0.5]]},
        },
        _ANNEALED,
    ),
)
