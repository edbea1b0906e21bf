"""What rules of this family have in common: order parameters, symbols, and the step size."""

from __future__ import annotations

from collections.abc import Sequence

from hdica.finite import record as finite
from hdica.finite.record import Values
from hdica.systems.system import Control, Dimension, OrderParameter, Symbol, in_words

TAU = Control("tau", 1e-4, 10.0, step=True)
RHO = Control("rho", 1e-3, 1.0)
OVERLAP = OrderParameter("Q", "overlap Q = xi.x/n", even=True)
PENALTY = OrderParameter("R", "R, the mean of x phi(x)", low=float("-inf"), high=float("inf"))
NAMES = {finite.OVERLAP: OVERLAP.name, finite.PENALTY: PENALTY.name}


def named(found: Values) -> Values:
    """What an engine gives, with the order parameters by the names that users know."""
    values, diverged = found
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
