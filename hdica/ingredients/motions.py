"""Features that move: entries that are exchanged at a rate, or many at once at given times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.plain import plain
from hdica.ingredients.quadrature import increasing, numbers

ALLOWED = (
    "{exchange: rate}, {jumps: {times: [t1, ...], share: s}}, or both; or null for a feature that "
    "stays"
)


@dataclass(frozen=True)
class Motion:
    """How the entries of a feature change places, which keeps them all, and |xi|^2, as they are.

    Parameters
    ----------
    rate
        delta: how often an entry changes places with another, per unit of time t = k/n. Pairs are
        exchanged at random times, delta/2 of them a step on average.
    jumps
        Times at which a share of the entries is permuted at random.
    share
        That share.
    """

    rate: float = 0.0
    jumps: tuple[float, ...] = ()
    share: float = 0.0

    @property
    def moves(self) -> bool:
        """Whether anything moves."""
        return self.rate > 0 or bool(self.jumps)


STILL = Motion()


def _rate(rate: Any) -> float:
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < math.inf:
        raise HdicaError(
            f"motion: exchange = {rate!r} is not allowed (a finite number >= 0, exchanges of an "
            "entry per unit of time)",
            ["motion"],
        )
    return float(rate)


def _jumps(spec: Any) -> tuple[tuple[float, ...], float]:
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
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise HdicaError(f"motion: share = {share!r} is not allowed (0 < share <= 1)", ["motion"])
    return tuple(times.tolist()), float(share)


def make_motion(spec: Any) -> Motion:
    """The motion that a study names.

    None: the feature stays. ``{"exchange": delta}``: pairs of entries change places at random
    times, each entry at the rate delta per unit of time. ``{"jumps": {"times", "share"}}``: at each
    of the times a share of the entries, drawn anew, is permuted at random. Both can be given.
    """
    spec = plain(spec)
    if spec is None:
        return STILL
    if not isinstance(spec, Mapping) or not spec or not set(spec) <= {"exchange", "jumps"}:
        near = suggestion(spec, ("exchange", "jumps"), ALLOWED)
        raise HdicaError(f"motion = {spec!r} is not allowed ({near})", ["motion"])
    jumps, share = _jumps(spec["jumps"]) if "jumps" in spec else ((), 0.0)
    return Motion(_rate(spec.get("exchange", 0.0)), jumps, share)
