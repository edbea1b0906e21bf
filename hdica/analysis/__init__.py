"""Datasets in, datasets out: what a study's numbers say about its limit."""

from hdica.analysis.aggregate import aggregate
from hdica.analysis.compare import compare
from hdica.analysis.condensing import condensing
from hdica.analysis.convergence import convergence
from hdica.analysis.densities import densities
from hdica.analysis.distances import distances
from hdica.analysis.flow import flow
from hdica.analysis.learning import learning
from hdica.analysis.phase import phase
from hdica.analysis.potential import potential
from hdica.analysis.slopes import slopes
from hdica.analysis.steady import steady
from hdica.analysis.support import support
from hdica.analysis.transition import transition

__all__ = [
    "aggregate",
    "compare",
    "condensing",
    "convergence",
    "densities",
    "distances",
    "flow",
    "learning",
    "phase",
    "potential",
    "slopes",
    "steady",
    "support",
    "transition",
]
