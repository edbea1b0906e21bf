"""What varies with the time t = k/n: step sizes, signals, and features whose entries move."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.formula import Constants, parse_formula
from hdica.ingredients.grammar import NO_NUMBERS
from hdica.ingredients.plain import Array, Function, Mask, is_number, plain
from hdica.ingredients.quadrature import increasing, numbers

ALLOWED = (
    "a number > 0, a formula in t such as '0.1/(1 + t/50)', or "
    "{steps: {times: [t1, ...], values: [tau0, tau1, ...]}}"
)

ALLOWED_SIGNAL = ALLOWED.replace("a number > 0", "a number >= 0")
LARGEST = 1e200
"""Of a step size or signal. Before it a simulation diverges, which is recorded, and a limit is
refused where its rates begin beyond what can be followed; 1e308 is no number once it is doubled."""
PROBE, EVEN = np.geomspace(1e-3, 1e6, 200), 1001
"""Times at which a formula is tried, and how many more between 0 and the last of a run."""
_HALVINGS = 60


class Observed(NamedTuple):
    """A step size that follows what the samples of a run show of the overlap.

    u = x.y/sqrt(n) has the moment E u^p = E z^p + scale abs(Q)^p, with z normal and p = 2 or 4, so
    that s <- s + (rate/n) ((u^p - E z^p)/scale - s), from s = 0 on, estimates abs(Q)^p. The step
    size is linear between ``sizes``, at evenly spaced Q^2, which are equal below ``least``^2.
    """

    rate: float
    least: float
    power: int = 4
    scale: float = 1.0
    sizes: tuple[float, ...] = ()


class Schedule(NamedTuple):
    """A step size as a function of time, of which the values of one that is ``observed`` are NaN.

    ``value(t)`` takes times of any shape; ``constant`` is the step size if it never changes, else
    None; ``breaks`` are the times at which it jumps. ``refuses(last)`` is empty if its values are
    allowed until that time, else the sentence that says which is not: what falls below zero after
    the end of a run is no fault of it.
    """

    value: Function
    constant: float | None
    breaks: tuple[float, ...] = ()
    refuses: Callable[[float], str] = lambda last: ""
    observed: Observed | None = None

    def at(self, t: float) -> float:
        """The step size at one time."""
        return self.constant or float(self.value(np.array(t)))

    def after(self, low: float) -> Schedule:
        """The schedule from a time on, which is its t = 0."""
        later = tuple(b - low for b in self.breaks if b > low)
        return Schedule(lambda t: self.value(low + np.asarray(t)), self.constant, later)


def _check_largest(values: ArrayLike, name: str) -> None:
    """Refuse what overflows in whatever is computed with it."""
    if (most := float(np.max(values))) > LARGEST:
        raise HdicaError(f"{name} = {most:g} is not allowed (at most {LARGEST:g})")


def _number(tau: float, name: str, zero: bool) -> Schedule:
    if not zero and not (math.isfinite(tau) and tau > 0):
        raise HdicaError(f"{name} = {tau} is not allowed (a step size is a finite number > 0)")
    _check_largest(tau, name)
    return Schedule(lambda t: np.full(np.shape(t), tau), tau)


def _steps(spec: object, name: str, zero: bool) -> Schedule:
    rows = spec if isinstance(spec, Mapping) and set(spec) == {"times", "values"} else {}
    times, values = (numbers(rows.get(key)) for key in ("times", "values"))
    if times is None or values is None:
        raise HdicaError(f"{name} = {{steps: {spec!r}}} is not allowed (allowed: {ALLOWED})")
    if values.size != times.size + 1 or not increasing(times):
        raise HdicaError(
            f"{name}: steps with times {times.tolist()} and {values.size} values is not allowed "
            "(increasing times > 0 and one value more than times)"
        )
    finite, least, floor = bool(np.all(np.isfinite(values))), ">= 0" if zero else "> 0", ""
    if not finite or np.any(values < 0 if zero else values <= 0):
        if finite and values[0] > 0 and not zero:
            floor = f"; for one that ends take a small one, such as {_floor(values):g}"
        raise HdicaError(
            f"{name}: step values {values.tolist()} are not allowed (all {least}{floor})"
        )
    _check_largest(values, name)
    return Schedule(
        lambda t: values[np.searchsorted(times, t, side="right")], None, tuple(times.tolist())
    )


def _floor(tau: Array) -> float:
    """A power of ten below a thousandth of the first of some step sizes."""
    return float(10.0 ** math.floor(math.log10(float(tau[0]) * 1e-3)))


def _not_allowed(name: str, spec: object, zero: bool) -> HdicaError:
    allowed = ALLOWED_SIGNAL if zero else ALLOWED
    return HdicaError(f"{name} = {spec!r} is not allowed (allowed: {allowed})")


def _of_formula(spec: str, constants: Constants, name: str, zero: bool) -> Schedule:
    """A schedule whose values at the times of a run are > 0, or >= 0 with ``zero``."""
    if spec.strip().lower().lstrip("+-") in NO_NUMBERS:
        raise _not_allowed(name, spec, zero)
    try:
        formula = parse_formula(spec, "t", constants)
    except HdicaError as exc:
        raise HdicaError(f"{name}: {exc}", exc.fields) from exc
    # What is positive at every time and underflows late, as exp(-t/10) does, is a step size.
    least = zero or formula.is_positive
    what = "a number >= 0" if zero else "positive"

    def allowed(t: Array) -> Mask:
        value = formula.value(t)
        return np.isfinite(value) & (value >= 0 if least else value > 0)

    def refuses(last: float) -> str:
        t = np.unique([*np.linspace(0.0, last, EVEN), *(one for one in PROBE if one < last)])
        tau, fine = formula.value(t), allowed(t)
        large = tau > LARGEST
        if fine.all() and not large.any():
            return ""
        k = np.argmin(fine & ~large)
        if large[k]:
            return (
                f"{name} = {spec!r} is {tau[k]:.4g} at t = {t[k]:.6g}, which is not allowed (at "
                f"most {LARGEST:g})"
            )
        low, high = float(t[k - 1]), float(t[k])
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if allowed(np.array(middle)) else (low, middle)
        far = float(t[~fine][-1])
        value, floor = float(formula.value(np.array(far))), ""
        # At a step size of zero the noise of the limit vanishes, and its density has no width.
        if not zero and np.all(np.isfinite(tau)):
            floor = f"; a step size that falls to zero needs a floor: max({spec}, {_floor(tau):g})"
        return (
            f"{name} = {spec!r} is not allowed with times up to {last:.6g} (it stops being {what} "
            f"at t = {high:.6g} and is {'no number' if math.isnan(value) else f'{value:.4g}'} at "
            f"t = {far:.6g}"
            f"{floor})"
        )

    series = formula.coefficients
    constant = series is not None and series.size == 1
    if series is not None and constant and not zero:
        return _number(float(series[0]), name, zero)
    begin = float(formula.value(np.array(0.0)))
    if not (math.isfinite(begin) and (begin >= 0 if zero else begin > 0)):
        raise HdicaError(f"{name} = {spec!r} is not allowed (it is not {what} at t = 0)")
    _check_largest(begin, name)
    if constant:
        return Schedule(formula.value, begin)
    return Schedule(formula.value, None, formula.kinks, refuses)


def clock_of(*schedules: Schedule) -> Schedule:
    """The time 1 + t itself, which jumps of any of the schedules interrupt.

    In place of a step size in limits whose coefficients depend on more than one schedule. It is
    positive, as step sizes are.
    """
    breaks = sorted({b for schedule in schedules for b in schedule.breaks})
    return Schedule(lambda t: 1.0 + np.asarray(t, dtype=float), None, tuple(breaks))


def is_observed(spec: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a step size is one that follows what is observed."""
    return isinstance(spec, Mapping) and set(spec) == {"observed"}


def make_schedule(
    spec: object, constants: Constants = None, name: str = "tau", zero: bool = False
) -> Schedule:
    """The schedule that a study names: a number, a formula in ``t``, or ``{"steps": ...}``.

    ``constants`` are numbers for names in the formula, ``name`` is what the system calls its step
    size; values must be > 0, or >= 0 with ``zero``.
    """
    spec = plain(spec)
    if is_number(spec):
        if zero and not 0 <= spec < math.inf:
            raise HdicaError(f"{name} = {spec!r} is not allowed (a finite number >= 0)")
        return _number(float(spec), name, zero)
    if isinstance(spec, Mapping) and set(spec) == {"steps"}:
        return _steps(spec["steps"], name, zero)
    if not isinstance(spec, str):
        raise _not_allowed(name, spec, zero)
    return _of_formula(spec, constants, name, zero)


def make_observed(spec: object, constants: Constants = None, name: str = "tau") -> Schedule:
    """As :func:`make_schedule`, or ``{"observed": {"rate", "least"}}``, still without sizes."""
    spec = plain(spec)
    if not is_observed(spec):
        return make_schedule(spec, constants, name)
    rows = spec["observed"]
    given = {"least": 0.0, **rows} if isinstance(rows, Mapping) else {}
    numbers = set(given) == {"rate", "least"} and all(map(is_number, given.values()))
    if not numbers or not (0 < given["rate"] <= LARGEST and 0 <= given["least"] < 1):
        allowed = "{rate: r} or {rate: r, least: q} with r > 0 and 0 <= q < 1"
        near = suggestion(rows, ("rate", "least"), allowed)
        raise HdicaError(f"{name}: observed = {rows!r} is not allowed ({near})")
    seen = Observed(float(given["rate"]), float(given["least"]))
    return Schedule(lambda t: np.full(np.shape(t), np.nan), None, observed=seen)


def make_signal(spec: object, constants: Constants = None, name: str = "omega") -> Schedule:
    """A signal strength as a function of time: as :func:`make_schedule`, but 0 is allowed."""
    return make_schedule(spec, constants, name, zero=True)


ALLOWED_MOTIONS = (
    "{exchange: rate}, {jumps: {times: [t1, ...], share: s}}, or both; or null for a feature that "
    "stays"
)


class Motion(NamedTuple):
    """How the entries of a feature change places, which keeps them all, and |xi|^2, as they are.

    ``rate`` is delta: how often an entry changes places with another, per unit of time t = k/n; of
    pairs that are exchanged at random times delta/2 are on average in a step. ``jumps`` are times
    at which a ``share`` of the entries is permuted at random.
    """

    rate: float = 0.0
    jumps: tuple[float, ...] = ()
    share: float = 0.0

    @property
    def moves(self) -> bool:
        """Whether anything moves."""
        return self.rate > 0 or bool(self.jumps)


STILL = Motion()


def _jump_times(spec: object) -> tuple[tuple[float, ...], float]:
    if not isinstance(spec, Mapping) or set(spec) != {"times", "share"}:
        raise HdicaError(
            f"motion: jumps = {spec!r} is not allowed (allowed: {{times: [t1, ...], share: s}})",
            ["motion"],
        )
    times, share = numbers(spec["times"]), spec["share"]
    if times is None or not times.size or not increasing(times):
        raise HdicaError(
            f"motion: times = {spec['times']!r} is not allowed (increasing times > 0)", ["motion"]
        )
    if not is_number(share) or not 0 < share <= 1:
        raise HdicaError(f"motion: share = {share!r} is not allowed (0 < share <= 1)", ["motion"])
    return tuple(times.tolist()), float(share)


def make_motion(spec: object) -> Motion:
    """The motion that a study names.

    None: the feature stays. ``{"exchange": delta}``: pairs of entries change places at random
    times, each entry at the rate delta per unit of time. ``{"jumps": {"times", "share"}}``: at each
    of the times a share of the entries, drawn anew, is permuted at random. Both can be given.
    """
    spec = plain(spec)
    if spec is None:
        return STILL
    if not isinstance(spec, Mapping) or not spec or not set(spec) <= {"exchange", "jumps"}:
        near = suggestion(spec, ("exchange", "jumps"), ALLOWED_MOTIONS)
        raise HdicaError(f"motion = {spec!r} is not allowed ({near})", ["motion"])
    jumps, share = _jump_times(spec["jumps"]) if "jumps" in spec else ((), 0.0)
    rate = spec.get("exchange", 0.0)
    if not is_number(rate) or not 0 <= rate < math.inf:
        raise HdicaError(
            f"motion: exchange = {rate!r} is not allowed (a finite number >= 0, exchanges of an "
            "entry per unit of time)",
            ["motion"],
        )
    return Motion(float(rate), jumps, share)
