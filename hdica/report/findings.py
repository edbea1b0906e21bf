"""What the numbers say, in sentences with numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from markupsafe import Markup, escape

from hdica.report.choose import MOST, Point, points, spread
from hdica.report.figures.convergence import grid_of
from hdica.report.figures.phase import critical_values
from hdica.report.words import count, number, p_value, place, plural, symbol

N = symbol("n").html


def findings(aggregate: xr.DataTree) -> list[Markup]:
    """Sentences of HTML for the top of a report, most important first."""
    out: list[str] = []
    if "phase" in aggregate:
        out += _phase(aggregate["phase"].to_dataset())
    if "convergence" in aggregate:
        out += _convergence(aggregate["convergence"].to_dataset())
    if "flow" in aggregate:
        out += _flow(aggregate["flow"].to_dataset())
    # Every part that a user wrote went through place() or escape().
    return [Markup(text) for text in out + _runs(aggregate["runs"].to_dataset())]


def _listed(parts: Sequence[str]) -> str:
    """Join parts as in: a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _cell(point: Point) -> str:
    """A grid point with its method: "chain, τ = 0.05"."""
    rest = {k: v for k, v in point.items() if k != "simulation"}
    return ", ".join([str(escape(point["simulation"])), *([place(rest).html] if rest else [])])


def _span(data: xr.Dataset) -> str:
    return f"{N} = {count(data['n'].values[0])} … {count(data['n'].values[-1])}"


def _convergence(data: xr.Dataset) -> list[str]:
    return [
        *_verdicts(data),
        *_exponents(data, "fluctuation", "sd", "a", 0.5),
        *_exponents(data, "bias", "|mean − limit|", "b", 1.0),
        *_prediction(data),
        *_largest(data),
    ]


def _verdicts(data: xr.Dataset) -> list[str]:
    cells = points(data, ["simulation", *grid_of(data)])
    verdicts = [str(data["verdict"].sel(p).item()) for p in cells]
    if len(cells) == 1:
        return [_single_verdict(data)]
    counts = {v: verdicts.count(v) for v in ("agrees", "differs", "undecided")}
    out = [
        f"Of {len(cells)} comparisons of simulation and limit {counts['agrees']} agree, "
        f"{counts['differs']} differ and {counts['undecided']} are undecided (level "
        f"{number(data.attrs['level'])} for the whole study)."
    ]
    for verdict in ("differs", "undecided"):
        where = [p for p, v in zip(cells, verdicts, strict=True) if v == verdict]
        reasons = sorted({str(data["why"].sel(p).item()) for p in where})
        for reason in reasons:
            some = [p for p in where if str(data["why"].sel(p).item()) == reason]
            listed = "; ".join(_cell(p) for p in some[:3])
            more = f"; and {len(some) - 3} more" if len(some) > 3 else ""
            out.append(f"{verdict.capitalize()}, because {reason}: {listed}{more}.")
    return out


def _single_verdict(data: xr.Dataset) -> str:
    says = {"agrees": "agrees with the limit", "differs": "differs from the limit"}
    verdict = says.get(
        str(data["verdict"].values.item()), "can be neither told from the limit nor confirmed"
    )
    p, control = float(data["p_value"].values.item()), float(data["control_p"].values.item())
    return (
        f"The simulation {verdict}: {data['why'].values.item()} ({escape(p_value(p))}; "
        f"for the wrong drift {escape(p_value(control))}; level "
        f"{number(data.attrs['level'])})."
    )


def _exponents(
    data: xr.Dataset, noun: str, quantity: str, letter: str, expected: float
) -> list[str]:
    if data.sizes["n"] < 2:
        return []
    name = f"{noun}_exponent"
    value, low, high = (data[name + end].values.ravel() for end in ("", "_low", "_high"))
    known = np.isfinite(value)
    total, found = len(value), int(known.sum())
    if found == 0:
        return [f"The {noun} does not stand above its noise: no exponent ({_span(data)})."]
    law = f"{quantity} ∼ {N}<sup>−<i>{letter}</i></sup>"
    if total == 1:
        ends = f"[{number(low[0], 2)}, {number(high[0], 2)}]"
        return [
            f"The {noun} falls as {law}, <i>{letter}</i> = {number(value[0])} {ends} "
            f"(expected {expected:g}; {_span(data)})."
        ]
    inside = int(((low <= expected) & (expected <= high))[known].sum())
    missing = f"; the other {total - found} are not resolved" if found < total else ""
    return [
        f"The {noun} falls as {law} with median <i>{letter}</i> = "
        f"{number(float(np.median(value[known])))} over {plural(found, 'comparison')}; "
        f"{inside} of {found} 95 % intervals contain {expected:g}{missing}."
    ]


def _prediction(data: xr.Dataset) -> list[str]:
    last = data["rms_sd"].notnull().any([d for d in data["rms_sd"].dims if d != "n"])
    top = data.isel(n=int(np.flatnonzero(last.values)[-1])) if bool(last.any()) else data.isel(n=-1)
    ratio = (top["rms_sd"] / top["rms_sd_predicted"]).values.ravel()
    ratio = ratio[np.isfinite(ratio)]
    if not len(ratio):
        return []
    ends = (
        number(ratio[0])
        if len(ratio) == 1
        else f"between {number(ratio.min())} and {number(ratio.max())}"
    )
    return [
        f"At {N} = {count(float(top['n']))} the measured sd is {ends} times that of the central "
        "limit theorem."
    ]


def _largest(data: xr.Dataset) -> list[str]:
    cells = points(data, ["simulation", *grid_of(data)])
    top = data.isel(n=-1)
    known = [p for p in cells if np.isfinite(float(top["sup_error"].sel(p)))]
    if not known:
        return []
    worst = max(known, key=lambda p: float(top["sup_error"].sel(p)))
    here = top.sel(worst)
    return [
        f"At {N} = {count(float(top['n']))} the mean is nowhere further from the limit than "
        f"{number(float(here['sup_error']), 2)} ± {number(float(here['sup_error_se']), 2)} "
        f"({_cell(worst)}, <i>t</i> = {number(float(here['sup_time']))})."
    ]


def _phase(data: xr.Dataset) -> list[str]:
    out = []
    for value, overlap in critical_values(data):
        out.append(
            f"In theory learning is possible up to {symbol('tau_c').html} = {number(value, 6)}, "
            f"where the informative fixed points meet at <i>Q</i> = {number(overlap, 4)}."
        )
    out += _agreement(data)
    return out + (_boundary(data) if "threshold" in data else [])


def _agreement(data: xr.Dataset) -> list[str]:
    if "agreement_share" not in data:
        return []
    share = float(data["agreement_share"].isel(n=-1))
    cells = int(np.prod([data.sizes[d] for d in data["agreement"].dims if d != "n"]))
    if not np.isfinite(share):
        return []
    return [
        f"At {N} = {count(data['n'].values[-1])} and <i>t</i> = {number(data.attrs['time'])} the "
        f"majority of seeds is on the limit's side in {number(100 * share, 4)} % of "
        f"{count(cells)} cells."
    ]


def _boundary(data: xr.Dataset) -> list[str]:
    """Measured against theoretical start with even odds, at a few values of x."""
    x, y = data.attrs["x"], data.attrs["y"]
    last = data.isel({d: -1 for d in data["threshold"].dims if d != x})
    found, error = last["threshold"].values, last["threshold_se"].values
    theory = last["boundary"].values if "boundary" in last else np.full_like(found, np.nan)
    keep = np.flatnonzero(np.isfinite(found))
    if not len(keep):
        return []
    parts = []
    for k in (int(keep[i]) for i in spread(len(keep), 3)):
        here = f"{number(found[k])} ± {number(error[k], 1)}"
        if y == "Q0" and np.isfinite(theory[k]):
            here += f" (boundary {symbol('Q_u').html} = {number(theory[k])})"
        parts.append(f"{here} at {place({x: last[x].values[k]}).html}")
    return [
        f"At {N} = {count(data['n'].values[-1])} half of the seeds succeed from "
        f"{symbol(y).html} = {_listed(parts)}."
    ]


def _flow(data: xr.Dataset) -> list[str]:
    if "fixed_q" not in data:
        return []
    everything = points(data, [str(d) for d in data["fixed_q"].dims if d != "fixed_point"])
    out = []
    for point in (everything[i] for i in spread(len(everything), MOST)):
        lead = f"At {place(point).html} " if point else ""
        kinds = _fixed_points(data.sel(point))
        if kinds:
            out.append(f"{lead}the informative fixed points are {_listed(kinds)}.")
        else:
            out.append(f"{lead}the only fixed point is <i>q</i> = 0: nothing is learned.")
    return [text[0].upper() + text[1:] for text in out]


def _fixed_points(here: xr.Dataset) -> list[str]:
    """Informative fixed points by q; -Q and Q are one."""
    pairs = zip(here["fixed_q"].values, here["stable"].values, strict=True)
    kinds = {(number(q, 4), bool(s > 0.5)): float(q) for q, s in pairs if q > 1e-9}
    ordered = sorted(kinds, key=lambda kind: kinds[kind])
    return [f"<i>q</i> = {q} ({'stable' if s else 'unstable'})" for q, s in ordered]


def _runs(data: xr.Dataset) -> list[str]:
    total, done = int(data["points"].sum()), int(data["done"].sum())
    lost: dict[str, Any] = {k: int(data[k].sum()) for k in ("diverged", "failed", "pending")}
    extra = _listed(
        [f"{count(v)} {k}" for k, v in lost.items() if v] or ["none diverged or failed"]
    )
    return [
        f"{count(done)} of {plural(total, 'point')} are done ({extra}); they took "
        f"{number(float(data['cpu_seconds'].sum()))} s of processor time."
    ]
