"""The analyses that come with hdica: a line each, in the order in which they are computed."""

# ruff: noqa: I001
from hdica.analysis.runs import RUNS as RUNS
from hdica.analysis.condensing import CONDENSING as CONDENSING
from hdica.analysis.learning import LEARNING as LEARNING
from hdica.analysis.choices import CHOICES as CHOICES
from hdica.analysis.slopes import SLOPES as SLOPES
from hdica.analysis.convergence import CONVERGENCE as CONVERGENCE
from hdica.analysis.phase import PHASE as PHASE
from hdica.analysis.success import SUCCESS as SUCCESS
from hdica.analysis.dependence import DEPENDENCE as DEPENDENCE
from hdica.analysis.exponents import EXPONENTS as EXPONENTS
from hdica.analysis.collapse import COLLAPSE as COLLAPSE
from hdica.analysis.flow import FLOW as FLOW
from hdica.analysis.densities import DENSITIES as DENSITIES
from hdica.analysis.distances import DISTANCES as DISTANCES
from hdica.analysis.support import SUPPORT as SUPPORT
from hdica.analysis.potential import POTENTIAL as POTENTIAL
from hdica.analysis.steady import STEADY as STEADY
from hdica.analysis.compare import COMPARE as COMPARE
from hdica.analysis.transition import TRANSITION as TRANSITION
from hdica.analysis.escape import ESCAPE as ESCAPE
from hdica.analysis.paths import PATHS as PATHS
from hdica.analysis.decay import DECAY as DECAY
from hdica.analysis.trapping import TRAPPING as TRAPPING
from hdica.analysis.ensemble import ENSEMBLE as ENSEMBLE
from hdica.analysis.sphere import SPHERE as SPHERE
from hdica.analysis.curves import CURVES as CURVES
from hdica.analysis.pictures import PICTURES as PICTURES
from hdica.analysis.printed import PRINTED as PRINTED
