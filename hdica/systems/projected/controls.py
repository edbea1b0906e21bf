"""What rules of this family have in common: order parameters, symbols, and the step size."""

from __future__ import annotations

from hdica.finite import observe
from hdica.finite.record import Values
from hdica.systems.system import Control, Dimension, OrderParameter, Symbol, in_words

TAU = Control("tau", 1e-4, 10.0, step=True)
RHO = Control("rho", 1e-3, 1.0)
OVERLAP = OrderParameter("Q", "overlap Q = xi.x/n", even=True)
PENALTY = OrderParameter("R", "R, the mean of x phi(x)", low=float("-inf"), high=float("inf"))
NAMES = {observe.OVERLAP: OVERLAP.name, observe.PENALTY: PENALTY.name}


def named(found: Values) -> Values:
    """What an engine gives, with the order parameters by the names that users know."""
    values, diverged = found
    return {NAMES.get(name, name): value for name, value in values.items()}, diverged


FEATURE = Dimension("feature", "value of xi in the group")
SYMBOLS = {
    "Q": Symbol("<i>Q</i>", "$Q$", "Q"),
    "|Q|": Symbol("|<i>Q</i>|", "$|Q|$", "|Q|"),
    "q": Symbol("<i>q</i> = <i>Q</i>²", "$q = Q^2$", "q = Q²"),
    "Q_u": Symbol("Q<sub>u</sub>", r"$Q_\mathrm{u}$", "Q_u"),
    "tau_c": Symbol("τ<sub>c</sub>", r"$\tau_\mathrm{c}$", "τ_c"),
    "exchange": Symbol("δ", r"$\delta$", "δ"),
    "best_tau": Symbol("best τ", r"best $\tau$", "best τ"),
    "R": Symbol("<i>R</i>", "$R$", "R"),
    "batch": Symbol("<i>m</i>", "$m$", "m"),
    **in_words(ode="ODE", pde="PDE", best_step="best step size"),
}
