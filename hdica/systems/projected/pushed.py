"""All the ways to compute a rule of the family that is given by its push."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hdica.ingredients.contrasts import Push
from hdica.ingredients.formula import Formula
from hdica.limits.averages.expectations import Averages, ProductsAt, products_of
from hdica.limits.bands.bias import Rule
from hdica.limits.mean_field.family import MeanField, field_of
from hdica.limits.mean_field.moving import moving_of
from hdica.limits.overlap.drift import Drift
from hdica.limits.overlap.nonlinear import pushed_averages, pushed_drift
from hdica.systems import fields
from hdica.systems.fields import G
from hdica.systems.method import AVERAGES, OVERLAP, Method, Refuses, home_of, refusal
from hdica.systems.projected.density import pde
from hdica.systems.projected.density_values import noise_of, second_of
from hdica.systems.projected.entries import particles
from hdica.systems.projected.family import ProjectedRule, chain_refusal, moving_chain_refusal
from hdica.systems.projected.overlap import Second, ode
from hdica.systems.projected.simulation import chain, vector

PushOf = Callable[[G], Push]


def pushed_rule(system: fields.Pushed, push: Push | Formula) -> ProjectedRule:
    """A system with the fields of the family, as the engines at finite n take it."""
    phi = fields.formula(system, "regularizer")
    laws = fields.source(system), fields.prior(system), fields.start(system)
    batch, moved, noise = fields.batch(system), fields.motion(system), fields.noise_law(system)
    return ProjectedRule(*laws, fields.schedule(system), push, phi, batch, moved, noise)


def pushed_products(system: fields.Pushed, push: Push | Formula) -> ProductsAt:
    """Averages of products of the push of a system, solved when the first is needed."""
    return lambda q: products_of(push, fields.source(system))(q)


def pushed_second(system: fields.Pushed, push: Push | Formula, drift: Drift) -> Second:
    """D1 of a system with the fields of the family: what n leaves of its drift."""
    beta = fields.formula(system, "regularizer").slope_if_linear or 0.0
    return second_of(pushed_products(system, push), fields.batch(system), drift, beta)


def pushed_beyond(system: fields.Pushed, push: Push | Formula) -> Rule:
    """What bands and bias take of such a rule: phi acts on the estimate before the sample does."""
    products, m = pushed_products(system, push), fields.batch(system)
    return Rule(products, noise_of(products, m), moved=False, batch=m)


def pushed_field(system: fields.Pushed, means: Averages) -> MeanField:
    """The limit of a system with the fields of the family, of the averages of its push."""
    phi = fields.formula(system, "regularizer")
    means = means.of_batch(fields.batch(system))
    laws, moved = (fields.prior(system), fields.start(system)), fields.motion(system)
    field = field_of(means, *laws, fields.schedule(system), phi)
    return replace(field, motion=moved) if moved.moves else field


def chained_refusal(system: fields.Pushed) -> str:
    """Empty if the overlap alone is a chain, else why not."""
    still = chain_refusal(fields.formula(system, "regularizer"))
    return still or moving_chain_refusal(fields.motion(system))


def pushed_methods(push_of: PushOf[G], rule: str, paper: str) -> tuple[Method, ...]:
    """Simulations and limits of a rule with one overlap.

    The system has the fields ``tau``, ``source``, ``prior``, ``start``, ``regularizer`` and
    ``constants``, as :class:`hdica.OnlineICA` has them, and may have its ``batch`` and ``motion``.
    ``push_of`` is G of a system, ``rule`` and ``paper`` what is computed, and where it comes from.
    """

    def field(system: G) -> MeanField:
        return pushed_field(system, pushed_averages(push_of(system), fields.source(system)))

    def drift(system: G) -> Drift:
        return pushed_drift(push_of(system), fields.source(system)).of_batch(fields.batch(system))

    def beyond(system: G) -> Rule:
        return pushed_beyond(system, push_of(system))

    def second(system: G) -> Second:
        return pushed_second(system, push_of(system), drift(system))

    without_limit: Refuses[G] = refusal(
        lambda system: pushed_averages(push_of(system), fields.source(system))
    )
    text, home = f"{paper}: {rule}", home_of(push_of)
    means = (AVERAGES, OVERLAP, home)
    return (
        vector(lambda system: pushed_rule(system, push_of(system)).vector, text, (home,)),
        chain(
            lambda system: pushed_rule(system, push_of(system)).chain,
            chained_refusal,
            text,
            (home,),
        ),
        ode(
            drift,
            lambda system: fields.closed_refusal(system) or without_limit(system),
            f"{text}, its overlap as n -> infinity",
            uses=means,
            moving=lambda system: (
                moving_of(field(system), drift(system)) if fields.motion(system).moves else None
            ),
            second=second,
        ),
        pde(field, f"{text}, its density as n -> infinity", without_limit, means, beyond),
        particles(field, f"{text}, the process of its limit", without_limit, means),
    )
