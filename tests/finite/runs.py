"""One trial of a projected rule by the engines, its order parameters named as in datasets."""

from hdica.finite.projected.chain import run_together
from hdica.finite.projected.vector import run_shared
from hdica.ingredients.save import NOTHING
from hdica.systems.projected.family import named


def run_vector(rule, times, n, stream, save=NOTHING):
    """All n coordinates."""
    return named(run_shared([rule.vector], times, n, stream, [save])[0])


def run_chain(rule, times, n, stream):
    """The overlap alone."""
    return named(run_together([rule.chain], times, n, [stream])[0])
