"""The analyses that come with hdica: a line each, in the order in which they are computed."""

# ruff: noqa: I001
from hdica.analysis.runs.record import RUNS as RUNS
from hdica.analysis.condensing.record import CONDENSING as CONDENSING
from hdica.analysis.learning.record import LEARNING as LEARNING
from hdica.analysis.choices.record import CHOICES as CHOICES
from hdica.analysis.slopes.record import SLOPES as SLOPES
from hdica.analysis.convergence.record import CONVERGENCE as CONVERGENCE
from hdica.analysis.phase.record import PHASE as PHASE
from hdica.analysis.success.record import SUCCESS as SUCCESS
from hdica.analysis.dependence.record import DEPENDENCE as DEPENDENCE
from hdica.analysis.exponents.record import EXPONENTS as EXPONENTS
from hdica.analysis.collapse.record import COLLAPSE as COLLAPSE
from hdica.analysis.flow.record import FLOW as FLOW
from hdica.analysis.densities.record import DENSITIES as DENSITIES
from hdica.analysis.distances.record import DISTANCES as DISTANCES
from hdica.analysis.support.record import SUPPORT as SUPPORT
from hdica.analysis.potential.record import POTENTIAL as POTENTIAL
from hdica.analysis.steady.record import STEADY as STEADY
from hdica.analysis.compare.record import COMPARE as COMPARE
from hdica.analysis.transition.record import TRANSITION as TRANSITION
from hdica.analysis.escape.record import ESCAPE as ESCAPE
from hdica.analysis.paths.record import PATHS as PATHS
from hdica.analysis.decay.record import DECAY as DECAY
from hdica.analysis.trapping.record import TRAPPING as TRAPPING
from hdica.analysis.ensemble.record import ENSEMBLE as ENSEMBLE
from hdica.analysis.sphere.record import SPHERE as SPHERE
from hdica.analysis.curves.record import CURVES as CURVES
from hdica.analysis.pictures.record import PICTURES as PICTURES
from hdica.analysis.printed.record import PRINTED as PRINTED
