"""The family of rules x <- x + n^-1/2 tau G(u, c) y - (tau/n) phi(x), |x|^2 = n, by their push G.

G is any smooth formula of u = x.y/sqrt(n) and of c, the sample's component along the feature, whose
law is the source's; a rule of another paper is an instance with a G of its own. All have order
parameters, symbols and the step size in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.finite import record as finite
from hdica.finite.projected.chain import ChainRule
from hdica.finite.projected.vector import GivenRule, VectorRule
from hdica.finite.record import Values, contiguous
from hdica.ingredients.contrasts import Push
from hdica.ingredients.formula import Formula
from hdica.ingredients.plain import Array
from hdica.ingredients.priors import Prior
from hdica.ingredients.schedules import STILL, Motion, Schedule
from hdica.ingredients.sources import Source
from hdica.ingredients.starts import Start
from hdica.systems.system import Control, Dimension, OrderParameter, Symbol, in_words

TAU = Control("tau", 1e-4, 10.0, step=True)
RHO = Control("rho", 1e-3, 1.0)
OVERLAP = OrderParameter("Q", "overlap Q = xi.x/n", even=True)
PENALTY = OrderParameter("R", "R, the mean of x phi(x)", low=float("-inf"), high=float("inf"))
NAMES = {finite.OVERLAP: OVERLAP.name, finite.PENALTY: PENALTY.name}


def named(run: Values) -> Values:
    """What an engine gives, with the order parameters by the names that users have for them."""
    values, diverged = run
    return {NAMES.get(name, name): value for name, value in values.items()}, diverged


COLUMN = Dimension("column", "column of the data")
FEATURE = Dimension("feature", "value of xi in the group")
GROUP = Dimension("group", "value of xi in the group of an entry that is followed", entries=True)
FOLLOWED = Dimension("walker", "number of an entry that is followed in its group", entries=True)


def own_dims(values: Sequence[float]) -> dict[str, tuple[float, ...]]:
    """Own dimensions of a system of the family, by the values of xi in the groups of entries."""
    return {FEATURE.name: tuple(values), GROUP.name: tuple(values)}


SYMBOLS = {
    "Q": Symbol("<i>Q</i>", "$Q$", "Q"),
    "|Q|": Symbol("|<i>Q</i>|", "$|Q|$", "|Q|"),
    "q": Symbol("<i>q</i> = <i>Q</i>²", "$q = Q^2$", "q = Q²"),
    "Q_u": Symbol("<i>Q</i><sub>u</sub>", r"$Q_\mathrm{u}$", "Q_u"),
    "tau_c": Symbol("τ<sub>c</sub>", r"$\tau_\mathrm{c}$", "τ_c"),
    "exchange": Symbol("δ", r"$\delta$", "δ"),
    "best_tau": Symbol("best τ", r"best $\tau$", "best τ"),
    "R": Symbol("<i>R</i>", "$R$", "R"),
    "batch": Symbol("<i>m</i>", "$m$", "m"),
    "second": Symbol("⟨<i>u</i>²⟩", r"$\langle u^2\rangle$", "mean u²"),
    "fourth": Symbol("⟨<i>u</i>⁴⟩", r"$\langle u^4\rangle$", "mean u⁴"),
    **in_words(
        ode="ODE",
        pde="PDE",
        stream="stream",
        blind="blind",
        samples="samples",
        loading="loading",
        best_step="best step size",
    ),
}


def acting(phi: Formula) -> tuple[int, tuple[float, float, float]]:
    """How a regularizer times tau/n acts on x, and its numbers, as the kernels take them."""
    from hdica.finite.projected.passes import PHI_OF_X, PLAIN, SIGN_OF_X

    slope, net = phi.slope_if_linear, phi.elastic_net
    if slope is not None:
        return PLAIN, (0.0, 1.0, slope)
    if net is not None:
        return SIGN_OF_X, (net[0], 1.0, net[1])
    return PHI_OF_X, (1.0, 1.0, 0.0)


@dataclass(frozen=True)
class ProjectedRule:
    """A rule as the engines at finite n take it."""

    source: Source  # law of c
    prior: Prior
    start: Start
    schedule: Schedule  # tau(k/n)
    push: Push | Formula  # G(u, c), or f(u), which is descended along: G = -f(u)
    regularizer: Formula  # phi
    batch: int = 1  # samples over which G y is averaged in one update, all at the same x
    motion: Motion = STILL  # of the feature
    noise: Source | None = None  # law of the entries of z; None for the normal one

    def sources(self, rng: np.random.Generator) -> Callable[[int], Array]:
        """A function that continues the stream of c."""
        return lambda size: contiguous(self.source.sample(rng, size))

    @property
    def sign(self) -> float:
        """-1 for a rule that descends along f, G = -f(u)."""
        return -1.0 if isinstance(self.push, Formula) else 1.0

    @property
    def vector(self) -> VectorRule:
        """The rule as the kernels on all coordinates take it."""
        from hdica.finite.projected.vector_kernels import NONLINEAR

        kind, numbers = acting(self.regularizer)
        return VectorRule(
            model=NONLINEAR,
            sources=self.sources,
            prior=self.prior,
            start=self.start,
            schedule=self.schedule,
            phi=self.regularizer,
            kind=kind,
            numbers=lambda n: (*numbers, self.sign),
            nonlinearity=self.push,
            batch=self.batch,
            motion=self.motion,
            noise=self.noise,
        )

    @property
    def on_data(self) -> GivenRule:
        """The rule as it acts on given samples, for a push G = -f(u)."""
        f, phi = self.push, self.regularizer
        if not isinstance(f, Formula):
            raise TypeError("a push of u and c cannot act on samples whose c is not known")

        def shrink(x: Array, moved: Array, tau: float) -> Array:
            return moved - tau / x.size * phi.value(x)

        return GivenRule(lambda u: np.asarray(-f.value(u)), shrink, self.schedule, phi, self.batch)

    @property
    def chain(self) -> ChainRule:
        """The rule as the kernel of chains takes it, exact in law for a linear phi."""
        refusal = chain_refusal(self.regularizer) or moving_chain_refusal(self.motion)
        if refusal:
            raise HdicaError(refusal)
        beta = self.regularizer.slope_if_linear or 0.0
        return ChainRule(
            sources=self.sources,
            prior=self.prior,
            start=self.start,
            schedule=self.schedule,
            nonlinearity=self.push,
            parameters=lambda n: (self.sign / n, 1.0, beta / n),
            r=beta,
            batch=self.batch,
        )


def chain_refusal(phi: Formula) -> str:
    """Empty if the overlap alone is a chain, else the sentence that says why not."""
    if phi.slope_if_linear is None:
        return (
            f"method 'chain' is exact only for the regularizers 0 and beta*x, "
            f"not for {phi.text!r} (use method 'vector')"
        )
    return ""


def moving_chain_refusal(motion: Motion) -> str:
    """Empty if the feature stays, else why the overlap alone is no chain."""
    if motion.moves:
        return (
            "method 'chain' is exact only for a feature that stays: where entries change places "
            "the overlap alone is no chain (use method 'vector')"
        )
    return ""
