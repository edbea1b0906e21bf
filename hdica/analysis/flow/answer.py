"""Up to where the limit has an informative state, in one sentence."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, points
from hdica.analysis.show.sentences import among
from hdica.analysis.show.words import number, place, symbol
from hdica.systems.kinds import ZERO


def answer(data: xr.Dataset) -> Answer | None:
    """The grid points with a stable informative fixed point, and the first without."""
    if "fixed_q" not in data:
        return None
    dims = [str(d) for d in data["fixed_q"].dims if d != "fixed_point"]
    cells = [p for p in points(data, dims) if bool(data["fixed_q"].sel(p).notnull().any())]
    if not cells:
        return None  # what is pending has no fixed points yet, which does not mean that it has none
    stable = [_largest(data.sel(p)) for p in cells]
    learned = [(p, q) for p, q in zip(cells, stable, strict=True) if q > ZERO]
    lost = [p for p, q in zip(cells, stable, strict=True) if not q > ZERO]
    if not learned:
        return Answer(
            f"The limit has no stable informative fixed point{among()}: nothing is learned."
        )
    ordered = _in_order(dims, learned, lost)
    if ordered:
        return Answer(ordered)
    point, q = learned[-1]
    text = f"The limit has a stable informative fixed point{_at(point)}, <i>q</i> = {number(q, 4)}"
    if lost and len(dims) == 1:
        return Answer(f"{text}, and none{_at(lost[0])}{among()}.")
    return Answer(f"{text}.")


def _in_order(dims: list[str], learned: list[tuple[Point, float]], lost: list[Point]) -> str:
    """The same where a parameter has all points with such a state on one side."""
    if len(dims) != 1 or not lost:
        return ""
    (dim,) = dims
    have, lack = [float(p[dim]) for p, _ in learned], [float(p[dim]) for p in lost]
    if max(have) < min(lack):
        edge, beyond, words = max(have), min(lack), ("up to", "from")
    elif min(have) > max(lack):
        edge, beyond, words = min(have), max(lack), ("from", "up to")
    else:
        return ""
    q = next(q for p, q in learned if float(p[dim]) == edge)
    name = symbol(dim).html
    return (
        f"The limit has a stable informative fixed point {words[0]} {name} = {number(edge, 6)}, "
        f"where <i>q</i> = {number(q, 4)}, and none {words[1]} {name} = {number(beyond, 6)}"
        f"{' on' if words[1] == 'from' else ''}{among()}."
    )


def _at(point: Point) -> str:
    return f" at {place(point).html}" if point else ""


def _largest(here: xr.Dataset) -> float:
    """The largest stable q, 0 if there is none."""
    q = here["fixed_q"].where(here["stable"] > 0.5)
    return float(q.fillna(0.0).max())
