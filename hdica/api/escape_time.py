"""How long a system stays where it knows nothing: escape times by theory, as labelled data."""

from __future__ import annotations

import xarray as xr

from hdica.errors import HdicaError, suggestion
from hdica.process.progress import USUAL, limited, shown
from hdica.systems.arguments import whole
from hdica.systems.labelled import candidates, computed, first_of
from hdica.systems.method import Method, Role
from hdica.systems.parameters import Parameters
from hdica.systems.system import System, record_of


def _theory(record: System) -> list[Method]:
    """Methods that give the law of an escape."""
    return [one for one in record.with_role(Role.ESCAPE) if not one.stochastic]


def _trapped(system: Parameters) -> Parameters:
    """The system, or the same problem as one of a system that has theory of the escape."""
    record = record_of(system)
    if _theory(record) or record.special is None:
        return system
    return record.special(system) or system


def _kind(method: Method) -> str:
    """What a user calls it: the end of its name, or the limit where n is none of its own."""
    return method.name.rpartition("_")[2] if method.takes_n else "limit"


def _methods(record: System, n: int | None, method: str) -> list[Method]:
    """Methods to try, in order."""
    known = [one for one in _theory(record) if one.takes_n == (n is not None)]
    kinds = [_kind(one) for one in known]
    if method == "auto":
        return known
    if method not in kinds:
        where = "n -> infinity" if n is None else "a given n"
        raise HdicaError(
            f"method = {method!r} is not allowed for escape times of {record.name} at {where} "
            f"({suggestion(method, dict.fromkeys(['auto', *kinds]))})"
        )
    return [one for one, kind in zip(known, kinds, strict=True) if kind == method]


@shown
@limited
def escape_time(
    system: Parameters,
    n: int | None = None,
    *,
    method: str = "auto",
    start: object = None,
    threshold: float | None = None,
    timeout: float | None = USUAL,
    progress: bool | None = None,
) -> xr.Dataset:
    """How long a rule is trapped where it knows nothing, in units of n^3 steps.

    Near zero overlap noise of order n^-1/2 is all there is, and at step sizes of order 1/n (nu =
    n tau of online ICA, nu = n^2 eta of Hebbian ICA) it leads away from there within n^3 steps
    (Rattray 2002, section 4.2). As n -> infinity at fixed nu the law of that time is a first
    passage of the diffusion (24)-(25) to infinity, by quadrature. At finite n it is longer, and
    for high barriers much longer.

    For skewed sources that an f sees Hebbian ICA takes nu2 = n^(3/2) eta: the trap is then left in
    units of n^2 steps, on one side of R = 0 (``side``), with either sigma. Several projections are
    independent there only if <phi(z)> = 0.

    Parameters
    ----------
    system
        Online ICA with phi = 0, or Hebbian ICA, with a constant step size: nu (or nu2), or any
        unit if n is given; a rule of one's own that is online ICA, -tau f(u) with constant norm.
    n
        Dimension; None for n -> infinity, where sqrt(n) times the overlap escapes to infinity.
    method
        ``"limit"`` without n. With n ``"exact"``: the linear equation for first passages of the
        chain that is exact in law, by collocation, for online ICA and for Hebbian ICA with one
        projection, one source and alpha < 1; ``"diffusion"``: the diffusion with the moments of
        one step at that n, an approximation, wrong for high barriers (a uniform source, x^3, n =
        100 and nu = 4: 2086 n^3 steps in place of 1295 of online ICA, 585 in place of 1227 of
        Hebbian ICA). Of online ICA also ``"wkb"``: n C exp(n S) steps, the leading order in 1/n at
        that tau, for passages too long for the exact equation; ``"ode"``: when the limit in t =
        k/n reaches the threshold, infinite if it does not. ``"auto"``: the exact one if the
        system has it for these parameters.
    start
        In place of the system's. Online ICA: ``{"overlap": 0}``, a random estimate, or
        ``{"overlap": 0, "exact": True}``, Q = 0. Hebbian ICA: ``"zero"``, ``"random"`` or, for
        K = M = 1 at finite n, ``{"overlap": R0}``.
    threshold
        In place of the system's (0.8): size of the overlap at which a source is found; it does not
        matter as n -> infinity.
    timeout, progress
        As in :func:`hdica.limit`; None for no limit.

    Returns
    -------
    xarray.Dataset
        ``mean`` (of matrices: of the first escape of any entry), ``survival(age)``: probability of
        no escape until ``age`` times ``mean``, and ``error``: relative error of the mean, that of
        averages over f and the sources included. Online ICA: ``sd`` and, for diffusions alone,
        ``median``, ``kramers`` (Kramers' formula with the exponent of (27) corrected) and its
        ``exponent``; Hebbian ICA: ``mean_last`` and ``survival_last`` of the last escape, where
        every escape takes its projection and its source out of a race of independent entries, and
        ``pair_mean``, ``pair_sd``, ``pair_median``, ``kramers`` and ``exponent`` over
        ``(projection, source)`` for an entry alone, infinite where sigma does not let it escape;
        the exact one of one entry has ``sd`` and neither median nor Kramers' formula.
        Without n: ``nu_optimal`` and ``mean_optimal``, the nu with the least mean, and that mean.
        With nu2 all times are in n^2 steps, ``nu_optimal`` is of nu2, and ``side`` is the sign of
        the R that an entry escapes to.

    Raises
    ------
    HdicaError
        If nothing escapes, an average does not exist, an argument is not allowed, or the exact
        equation has lost its precision, as for passages of about 1e16 steps.

    Examples
    --------
    >>> import hdica
    >>> ica = hdica.OnlineICA(nu=2.0, source="rademacher", start={"overlap": 0})
    >>> float(hdica.escape_time(ica, n=50)["mean"].round(4))
    1.1122
    >>> float(hdica.escape_time(ica)["mean"].round(4))
    0.5379
    >>> hebbian = hdica.HebbianICA(sources=["rademacher"], sigma=[-1], nu=2.0)
    >>> float(hdica.escape_time(hebbian, n=50)["mean"].round(2))
    1.1
    """
    system = _trapped(system)
    candidates(system, "auto", "escape_time", _theory, _theory)
    given = {"start": start, "threshold": threshold}
    changed = system.model_copy(update={k: v for k, v in given.items() if v is not None})
    n = None if n is None else whole(n, "n", "a whole number, or None for n -> infinity")
    chosen = first_of(_methods(record_of(system), n, method), changed)
    return computed(changed, chosen, n=n)
