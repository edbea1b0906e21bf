"""One system as another: where two of them are the same in the limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hdica.errors import HdicaError
from hdica.systems.fields import formula, resting_refusal
from hdica.systems.hebbian_ica.fields import signs, start_overlap, unit, unplain
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.online_ica.system import OnlineICA, learned_text
from hdica.systems.parameters import Parameters


def online_of(system: HebbianICA) -> OnlineICA:
    """Hebbian ICA of one projection and one source as online ICA without a regularizer."""
    shape = (system.projections, len(system.sources))
    if shape != (1, 1):
        raise HdicaError(
            f"projections = {shape[0]} with {shape[1]} sources is not allowed for OnlineICA "
            "(one of each: it has a single feature)"
        )
    if unit(system) != "mu":
        raise HdicaError(
            f"{unit(system)} is not allowed for OnlineICA (give mu = n eta, which is its tau)"
        )
    given = unplain(system)
    if given:
        raise HdicaError(
            f"{given} is not allowed for OnlineICA (fixed signs, single samples and sources that "
            "stay are)"
        )
    sigma = int(signs(system)[0])
    r0 = start_overlap(system)
    # A random start of online ICA is one whose overlap fluctuates about 0 by O(n^-1/2).
    begin = {"overlap": 0.0} if r0 is None else {"overlap": float(r0[0, 0]), "exact": True}
    return OnlineICA(
        tau=system.mu,
        source=system.sources[0],
        nonlinearity=system.nonlinearity if sigma < 0 else f"-({system.nonlinearity})",
        start=begin,
        threshold=system.threshold,
        constants=dict(system.constants),
    )


def hebbian_of(system: OnlineICA) -> HebbianICA:
    """Online ICA without a regularizer as Hebbian ICA of one projection and one source."""
    if not formula(system, "regularizer").is_zero:
        raise HdicaError(
            f"regularizer = {system.regularizer!r} is not allowed for HebbianICA (0: its overlap "
            "alone closes the limit)"
        )
    if system.batch != 1:
        raise HdicaError(
            f"batch = {system.batch} is not allowed for HebbianICA (1; in the limit a batch of m "
            "is as single samples of step size tau/m at the time m t)"
        )
    moving = resting_refusal(system, "HebbianICA")
    if moving:
        raise HdicaError(moving, ["motion"])
    if "overlap" not in system.start:
        raise HdicaError(
            f"start = {system.start} is not allowed for HebbianICA ({{overlap: Q0}} is)"
        )
    q0 = float(system.start["overlap"])
    random = q0 == 0.0 and not system.start.get("exact")
    return HebbianICA(
        sources=[system.source],
        nonlinearity=learned_text(system),
        sigma=[-1],
        mu=system.tau,
        nu=system.nu,
        start="random" if random else {"overlap": q0},
        threshold=system.threshold,
        constants=dict(system.constants),
    )


_KNOWN: dict[tuple[type[Any], type[Any]], Callable[[Any], Any]] = {
    (HebbianICA, OnlineICA): online_of,
    (OnlineICA, HebbianICA): hebbian_of,
}


def convert(system: HebbianICA, to: type[Any]) -> Any:
    """The same problem as another system, where the two coincide as n -> infinity.

    Hebbian ICA with K = M = 1 and online ICA without a regularizer have one limit: R is Q, mu is
    tau, and sigma = -1 stands for f = +phi. Both keep the estimate on the sphere, one by a
    projection after every step, the other by the term in alpha, which leaves
    |W|^2 - 1 of order 1/n; at finite n they are different rules.

    Parameters
    ----------
    system
        A system.
    to
        The class of another: :class:`hdica.HebbianICA` or :class:`hdica.OnlineICA`.

    Raises
    ------
    HdicaError
        If the two do not coincide for this system, or are not known to.

    Examples
    --------
    >>> import hdica
    >>> heb = hdica.HebbianICA(mu=0.05, sigma=[-1], start={"overlap": 0.7})
    >>> ica = hdica.convert(heb, to=hdica.OnlineICA)
    >>> heb_end = hdica.limit(heb, times=[0, 40])["R"].values[1, 0, 0]
    >>> ica_end = hdica.limit(ica, times=[0, 40])["Q"].values[1]
    >>> bool(abs(heb_end - ica_end) < 1e-9)
    True
    """
    if type(system) is to and isinstance(system, Parameters):
        return system
    found = _KNOWN.get((type(system), to)) if isinstance(to, type) else None
    if found is None:
        known = ", ".join(f"{a.__name__} to {b.__name__}" for a, b in _KNOWN)
        name = to.__name__ if isinstance(to, type) else repr(to)
        raise HdicaError(f"to = {name} is not known for {type(system).__name__} (allowed: {known})")
    return found(system)
