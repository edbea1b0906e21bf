"""Critical values over another parameter: lines in the plane of the two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError, suggestion
from hdica.plots.source import NUMERIC, Source
from hdica.show.marks import color_of
from hdica.show.panel import Line, Panel
from hdica.show.words import EMPTY, axis, critical, words
from hdica.systems.method import varied
from hdica.systems.outputs import TRANSITION_KINDS

VALUE = "value"


def holds(source: Source) -> bool:
    """Whether it has critical values."""
    return VALUE in source.data and ("transition" in source.data.dims or _curve(source))


def _curve(source: Source) -> bool:
    return "parameter" in source.data.attrs and source.data[VALUE].ndim == 1


def panel(source: Source, x: str | None = None) -> Panel:
    """A line for every kind of transition, with its error as a band."""
    known = [d for d in source.numeric if source.data.sizes[d] > 1]
    if x is not None and x not in known:
        raise HdicaError(f"x = {x!r} is not allowed ({suggestion(x, known, what=NUMERIC)})")
    if not known:
        raise HdicaError('critical values: one is no line (give over={"...": [...]})')
    across = x or known[0]
    more = [d for d in source.grid if d != across and source.data.sizes[d] > 1]
    if more:
        raise HdicaError(f"critical values: choose one value of {', '.join(more)} (.sel)")
    lines = [line for line in _lines(source, across) if np.isfinite(line.y).any()]
    title = lines[0].label if len({line.label.plain for line in lines}) == 1 else EMPTY
    return Panel("critical", title, axis(across), critical(_parameter(source)), tuple(lines))


def _parameter(source: Source) -> str:
    """The parameter whose critical values these are."""
    named = source.data.attrs.get("parameter")
    if named:
        return str(named)
    known = () if source.record is None else source.record.methods
    return next((v for m in known if m.name == source.method and (v := varied(m))), "value") or ""


def _lines(source: Source, x: str) -> list[Line]:
    """One line a kind, of several transitions of one kind one line each."""
    data, at = source.data, source.data[x].values.astype(float)
    order = np.argsort(at)
    if "transition" not in data.dims:
        values = data[VALUE].squeeze(drop=True).values[order]
        name = str(data.attrs.get("kind", TRANSITION_KINDS[0]))
        return [_line(at[order], values, _error(source, x)[order], name)]
    columns = [
        data[k].squeeze([d for d in source.grid if d != x], drop=True).transpose(x, "transition")
        for k in (VALUE, "kind")
    ]
    value, kind = (one.values[order] for one in columns)
    out: list[Line] = []
    for code, name in enumerate(TRANSITION_KINDS):
        own = np.where(kind == code, value, np.nan)
        ranked = np.sort(own, axis=1)
        for k in range(int(np.isfinite(own).sum(axis=1).max(initial=0))):
            error = np.zeros(len(at))
            line = _line(at[order], ranked[:, k], error, name)
            out.append(replace(line, listed=k == 0))
    return out


def _error(source: Source, x: str) -> np.ndarray:
    if "error" not in source.data:
        return np.zeros(source.data.sizes[x])
    return np.nan_to_num(source.data["error"].squeeze(drop=True).values.astype(float))


def _line(x: np.ndarray, y: np.ndarray, error: np.ndarray, name: str) -> Line:
    color = color_of(TRANSITION_KINDS.index(name), len(TRANSITION_KINDS))
    return Line(x, y, words(name), color, low=y - error, high=y + error, bold=True)
