"""Datasets in, datasets out: convergence, phase diagrams, flow curves."""

from hdica.analysis.aggregate import aggregate
from hdica.analysis.convergence import convergence
from hdica.analysis.flow import flow
from hdica.analysis.phase import phase

__all__ = ["aggregate", "convergence", "flow", "phase"]
