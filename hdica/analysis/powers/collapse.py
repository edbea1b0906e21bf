"""Measured points of every n on the curve that they share, and on those of wrong powers of n.

Two controls have wrong powers of n, by the same amount to either side of the right ones. Only where
the points reject both do they lie on the curve itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import cycle
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import special, stats

from hdica.analysis.powers import Collapse
from hdica.analysis.reading import described, finished, group, interval_names
from hdica.errors import HdicaError
from hdica.limits.collapse import law
from hdica.show.choose import cells_of, has_values, positions
from hdica.show.finding import Finding, Judged
from hdica.show.marks import SHARES, SYMBOLS, bars, captioned, colored, interval
from hdica.show.panel import Item, Line, Panel
from hdica.show.words import Text, number, of_n, p_value, plural, symbol, words
from hdica.status import DIVERGED
from hdica.verdict.cells import AGREES, CLEAR, DIFFERS, UNDECIDED, Array
from hdica.verdict.ladder import student
from hdica.verdict.odds import wilson
from hdica.verdict.resample import shares_noise

LONG_NAMES = {
    "measured": "measured value: {w}",
    "se": "standard error of the measured value",
    "low": "lower end of the 95 % interval of the measured value",
    "high": "upper end of the 95 % interval of the measured value",
    "runs": "runs that are done",
    "open": "runs that ended before they showed it",
    "hits": "runs that went up, where these are counted",
    "diverged": "runs that diverged or failed",
    "predicted": "prediction at n",
    "sd": "standard deviation of a run in theory",
    "offset": "prediction at n less that of the law that all n share; 0 of a share",
    "shift": "distance by which the law is shifted to be the prediction at n, of a share",
    "score": "normal score of the measured value beside the prediction at n",
    "x": "control in units of its window, with the shift",
    "y": "measured value less the offset, in its unit",
    **interval_names("y", "y"),
    "law": "the law that all n share, at x",
    "x_control": "x with a wrong power of n",
    "y_control": "y with a wrong power of n",
    **interval_names("y_control", "y with a wrong power of n"),
    "curve": "the law that all n share, for figures",
    "curve_control": "the same over x with a wrong power of n",
    "curve_control_at": "where it is",
    "chi2": "sum of squared scores",
    "points": "cells in it",
    "worst": "least p-value of a cell times the number of cells",
    "p_value": "p-value of all cells beside their predictions",
    "p_control": "p-value of all cells with wrong powers of n",
    "p_opposite": "p-value of all cells with powers of n wrong by as much to the other side",
}


class Powers(NamedTuple):
    """How the window of the control shrinks and what is measured grows: n^-window, n^size."""

    window: float
    size: float


RIGHT = {
    "fold": Powers(2 / 3, 1 / 3),
    "separatrix": Powers(1 / 2, 0.0),
    "pitchfork": Powers(1 / 2, -1 / 2),
}
"""Powers of n at each transition: of Q^2 at a pitchfork, whose Q goes as n^(-1/4)."""
WRONG = {
    "fold": Powers(1 / 2, 1 / 2),
    "separatrix": Powers(1 / 3, 0.0),
    "pitchfork": Powers(1.0, -1.0),
}
"""Powers of a control: at a pitchfork those of noise away from it, where Q^2 goes as 1/n.

The powers of a second one are wrong by as much to the other side."""
WHAT = {
    "fold": "mean time of the fall",
    "separatrix": "share of runs that go up",
    "pitchfork": "steady mean of {v}^2",
}
POINTS = {
    "fold": "times of falls",
    "separatrix": "shares of runs that go up",
    "pitchfork": "steady mean squares",
}
"""What lies on the curve."""
CORRECTED = {
    "fold": "time of a fall",
    "separatrix": "distance z",
    "pitchfork": "steady mean square",
}
SURE = 1e-9
"""A probability nearer to 0 or 1 tells no shift."""
CURVE = 161
ALONE = {"fold": (-1.0, 6.0), "separatrix": (-3.0, 3.0), "pitchfork": (-6.0, 6.0)}
"""Scaled controls between which a law stands without points."""
SHOWN = {"fold": 6.0, "separatrix": 4.0, "pitchfork": 6.0}
"""Largest scaled control of figures; beyond it there is little noise."""
EXPECTED = 5.0
"""Successes and failures from which on a share is normal enough for chi-square."""
LEAST_P = 1e-300
LEAST = 8
"""Runs from which on a mean is judged by its scatter."""


def collapse(tree: xr.DataTree, settings: Collapse) -> xr.Dataset:
    """Measured values of every n in units of theory, beside the law that all n share.

    Over the swept parameters and ``n``: the measured value with its error, the prediction at n,
    x, y = (measured - offset)/unit, with the offset that the prediction at n has beyond the law,
    and the score of measured beside predicted. The control has the same with x and unit that go
    with wrong powers of n: its p-value tells whether the runs would have seen them. Of a second
    control, which is wrong by as much to the other side, there is the p-value alone. ``curve`` is
    the law over ``at``.
    """
    kind, right, wrong = settings.kind, RIGHT[settings.kind], WRONG[settings.kind]
    data, theory = group(tree, settings.simulation), group(tree, settings.theory)
    runs = measured(data, theory, settings)
    # What theory has at other cells is nothing to these.
    runs, known = xr.align(runs, _theory(theory, kind), join="left")
    lost = (data["status"] >= DIVERGED).sum("seed")
    out = runs.merge(known.broadcast_like(runs["measured"])).assign(diverged=lost)
    out = out.transpose(*runs["measured"].dims)
    shared = shares_noise(data)
    fit = _fit(out, out["predicted"], shared)
    control, opposite = (_powers(out, kind, one) for one in (wrong, mirrored(right, wrong)))
    more = fit._asdict() | {"score": out["measured"].copy(data=fit.score)}
    more["x_control"] = control["x"]
    for name, one in (("p_control", control), ("p_opposite", opposite)):
        more[name] = _fit(out, one["predicted"], shared).p_value
    more |= _in_units(out, out["unit"], "y") | _in_units(out, control["unit"], "y_control")
    out = out.assign(more)
    out = out.merge(_curve(out, kind)).drop_vars("unit")
    out.attrs = {"kind": kind, "variable": settings.variable, "level": settings.level}
    out.attrs |= {"simulation": settings.simulation, "theory": settings.theory}
    out.attrs |= {"window": right.window, "size": right.size}
    out.attrs |= {"wrong_window": wrong.window, "wrong_size": wrong.size}
    what = WHAT[kind].format(v=settings.variable)
    units = {"measured": str(data["first"].attrs.get("units", "1"))} if "first" in data else {}
    return described(out, LONG_NAMES, units=units, w=what)


def _theory(theory: xr.Dataset, kind: str) -> xr.Dataset:
    """Scaled control, unit, law and prediction; infinite controls are none.

    What the prediction has beyond the law is taken off a time or a square; of a share it is the
    distance by which the law has to be shifted, so that shares stay between 0 and 1.
    """
    names = [name for name in ("scaled", "unit", "law", "predicted", "sd") if name in theory]
    out = xr.Dataset({name: finished(theory, name) for name in names}).rename(scaled="x")
    near = np.isfinite(out["x"]) & np.isfinite(out["law"])
    nothing = xr.zeros_like(out["x"])
    out = out.assign(shift=nothing, offset=nothing, unit=out.get("unit", nothing + 1))
    if kind == "separatrix":
        inside = (out["predicted"] > SURE) & (out["predicted"] < 1 - SURE)
        out["shift"] = (special.ndtri(out["predicted"]) - out["x"]).where(inside, 0.0)
        out["x"] = out["x"] + out["shift"]
        out["law"] = out["x"].copy(data=law(kind, out["x"].values))
    else:
        out["offset"] = out["predicted"] - out["unit"] * out["law"]
    return out.where(near)


def mirrored(right: Powers, wrong: Powers) -> Powers:
    """Powers that are wrong by as much to the other side."""
    return Powers(2 * right.window - wrong.window, 2 * right.size - wrong.size)


def _powers(out: xr.Dataset, kind: str, wrong: Powers) -> xr.Dataset:
    """Theory with wrong powers of n, right at the geometric mean of the n."""
    right = RIGHT[kind]
    grown = out["n"] / np.exp(np.log(out["n"].astype(float)).mean())
    x = (out["x"] - out["shift"]) * grown ** (wrong.window - right.window) + out["shift"]
    x = x.transpose(*out["x"].dims)
    parts = {"x": x, "law": x.copy(data=law(kind, x.values))}
    parts["unit"] = out["unit"] * grown ** (wrong.size - right.size)
    return xr.Dataset(parts | {"predicted": out["offset"] + parts["unit"] * parts["law"]})


def _in_units(out: xr.Dataset, unit: xr.DataArray, name: str) -> dict[str, xr.DataArray]:
    """The measured value without its offset and its interval, in a unit."""
    ends = {"measured": "", "low": "_low", "high": "_high"}
    return {f"{name}{end}": (out[one] - out["offset"]) / unit for one, end in ends.items()}


def _fit(out: xr.Dataset, predicted: xr.DataArray, shared: bool) -> Fit:
    """How the points lie beside a prediction; no chi-square of points that share their noise."""
    dims = out["measured"].dims
    at = predicted.transpose(*dims).values
    if has_values(out["hits"]):
        hits = out["hits"].where(out["measured"].notnull()).values
        fit = shares(hits, out["runs"].values, at)
    else:
        cv = (out["sd"] / out["predicted"]).transpose(*dims).values if "sd" in out else None
        fit = means(out["measured"].values, out["se"].values, out["runs"].values, at, cv)
    return fit._replace(chi2=0.0, points=0, p_value=fit.worst) if shared else fit


def _curve(out: xr.Dataset, kind: str) -> xr.Dataset:
    """The law over the range of the points, right and wrong."""
    ranges = []
    for name in ("x", "x_control"):
        known = out[name].where(out["measured"].notnull()).values
        x = known[np.isfinite(known)]
        # Where nothing is measured yet the law stands alone.
        ends = (x.min(), x.max()) if x.size else ALONE[kind]
        low, high = max(ends[0], -SHOWN[kind]), min(ends[1], SHOWN[kind])
        more = 0.03 * max(high - low, 1e-9)
        ranges.append(np.linspace(low - more, high + more, CURVE))
    at, control = ranges
    curves = {"curve": law(kind, at), "curve_control": law(kind, control)}
    curves["curve_control_at"] = control
    return xr.Dataset({name: ("at", values) for name, values in curves.items()}, {"at": at})


def measured(data: xr.Dataset, theory: xr.Dataset, settings: Collapse) -> xr.Dataset:
    """In each cell ``measured`` with ``se``, ``low`` and ``high``, ``runs``, ``open`` and ``hits``.

    ``open`` are runs that ended before what they were to show: a mean of the others would be too
    small, so such a cell has none. ``hits`` are successes where shares are counted, else NaN.
    """
    if settings.kind == "separatrix":
        return _shares(data, theory, settings)
    if settings.kind == "pitchfork":
        values = _steady_square(finished(data, settings.variable), settings.since)
        ended = xr.zeros_like(values, dtype=bool)
    else:
        values, ended = finished(data, "first"), finished(data, "first_seen") == 0
    result, still = student(values), (ended & values.notnull()).sum("seed")
    known = (still == 0) & (result["seeds"] >= LEAST)
    out = result[["mean", "se", "low", "high"]].where(known).rename(mean="measured")
    nothing = xr.full_like(out["measured"], np.nan)
    return out.assign(runs=result["seeds"], open=still, hits=nothing)


def _steady_square(values: xr.DataArray, since: float | None) -> xr.DataArray:
    """Mean square over the times at which runs are steady."""
    time = positions(values, "time")
    begin = time[-1] / 2 if since is None else since
    if not (time >= begin).any():
        raise HdicaError(
            f"analysis.collapse.since = {begin:g} is not allowed (the last time is {time[-1]:g})"
        )
    return (values.isel(time=time >= begin) ** 2).mean("time")


def _shares(data: xr.Dataset, theory: xr.Dataset, settings: Collapse) -> xr.Dataset:
    """Shares of runs that end above the unstable state, with their Wilson intervals."""
    values = finished(data, settings.variable).isel(time=-1, drop=True)
    _, edge = xr.align(values, finished(theory, "edge"), join="left")
    runs = values.notnull().sum("seed")
    hits = ((values > edge) & values.notnull()).sum("seed").transpose(*runs.dims)
    low, high = xr.apply_ufunc(wilson, hits, runs, output_core_dims=[[], []], vectorize=True)
    share = (hits / runs).where(runs > 0)
    out = {"measured": share, "se": np.sqrt(share * (1 - share) / runs), "low": low, "high": high}
    out |= {"runs": runs, "open": xr.zeros_like(runs), "hits": hits.astype(float)}
    return xr.Dataset(out)


class Fit(NamedTuple):
    """All cells together."""

    score: Array
    """Normal score of each cell, NaN where it is not judged."""
    chi2: float
    """Sum of squared scores of the cells that are normal enough, which have ``points``."""
    points: int
    worst: float
    """Least p-value of a cell times the number of cells."""
    p_value: float
    """Of chi-square and of the worst cell, the smaller times two."""


def means(
    measured: Array, se: Array, runs: Array, predicted: Array, cv: Array | None = None
) -> Fit:
    """Of means over seeds, whose scatter is predicted, or estimated from as many runs.

    Times are skewed: where few are long, the mean and the scatter of a sample are small together,
    and Student's statistic is too often far below 0. With a predicted ratio ``cv`` of standard
    deviation and mean, the mean of the runs has the gamma law with both moments.
    """
    if cv is None:
        side = (measured - predicted) / np.where(se > 0, se, np.nan)
        p = stats.t.sf(np.abs(side), np.maximum(runs - 1, 1))
    else:
        shape = runs / cv**2
        part = np.asarray(measured / predicted * shape)
        below, above = stats.gamma.cdf(part, shape), stats.gamma.sf(part, shape)
        p, side = np.minimum(below, above), np.where(above < below, 1.0, -1.0)
    return _together(_scores(p, side), np.isfinite(p))


def shares(hits: Array, runs: Array, predicted: Array) -> Fit:
    """Of shares of runs: exactly in each cell, by chi-square where enough is expected."""
    p0 = np.clip(predicted, 0.0, 1.0)
    known = np.isfinite(hits) & np.isfinite(p0) & (runs > 0)
    p = np.full(np.shape(hits), np.nan)
    for i in zip(*np.nonzero(known), strict=True):
        p[i] = stats.binomtest(int(hits[i]), int(runs[i]), float(p0[i])).pvalue / 2
    expected = runs * np.minimum(p0, 1 - p0)
    with np.errstate(divide="ignore", invalid="ignore"):
        normal = (hits - runs * p0) / np.sqrt(runs * p0 * (1 - p0))
    many = known & (expected >= EXPECTED)
    score = np.where(many, normal, _scores(p, hits - runs * p0))
    return _together(np.where(known, score, np.nan), many, p)


def _scores(p: Array, side: Array) -> Array:
    return np.asarray(np.sign(side) * stats.norm.isf(np.clip(p, LEAST_P, 0.5)))


def _together(score: Array, normal: NDArray[np.bool_], p: Array | None = None) -> Fit:
    known = np.isfinite(score)
    points = int((known & normal).sum())
    chi2 = float(np.sum(score[known & normal] ** 2))
    each = stats.norm.sf(np.abs(score[known])) if p is None else p[known]
    worst = min(1.0, 2 * float(each.min(initial=0.5)) * int(known.sum())) if known.any() else np.nan
    both = [worst, float(stats.chi2.sf(chi2, points))] if points else [worst]
    whole = min(1.0, len(both) * min(both)) if known.any() else np.nan
    return Fit(score, chi2, points, worst, whole)


def findings(data: xr.Dataset) -> list[Finding]:
    """Chi-square about the curve and the farthest point, and what the curve leaves to each n."""
    known = [p for p in cells_of(data["measured"]) if np.isfinite(data["score"].sel(p))]
    if not known:
        return []
    many, chi2 = int(data["points"]), float(data["chi2"])
    tests = 2 if many else 1
    scores = {k: abs(float(data["score"].sel(p))) for k, p in enumerate(known)}
    worst = max(scores, key=lambda k: scores[k])
    unit = words("standard errors")
    distance = words("the largest distance of a point from its prediction")
    judged = _judgement(data, tests * float(data["worst"]))
    farthest = Finding(distance, known[worst], scores[worst], unit=unit, digits=2, **judged)
    farthest = replace(farthest, theory=words("what chance allows"))
    curve = f"χ² of the {POINTS[str(data.attrs['kind'])]} about one curve for all " + symbol("n")
    judged, scatter = _judgement(data, tests * stats.chi2.sf(chi2, many)), float(np.sqrt(2 * many))
    whole = Finding(curve, {}, chi2, scatter, predicted=many, **judged)
    whole = replace(whole, theory=words("its expected value"))
    unfallen = int((data["open"] > 0).sum())
    name = words("the number of points without a mean, since runs ended before they fell,")
    open_ = [Finding(name, {}, unfallen)] if unfallen else []
    return [*([whole] if many else []), farthest, *_corrections(data), *open_]


def _judgement(data: xr.Dataset, p: float) -> Judged:
    """Verdict and evidence: points agree with the curve only where they reject both controls."""
    p, level = min(p, 1.0), float(data.attrs["level"])
    controls = [float(data[name]) for name in ("p_control", "p_opposite")]
    wrong = WRONG[data.attrs["kind"]]
    both = (wrong, mirrored(RIGHT[data.attrs["kind"]], wrong))
    sides = [
        f"{p_value(control)} with {_named(powers)}"
        for control, powers in zip(controls, both, strict=True)
    ]
    least = sides[int(np.argmax(controls))]
    verdict, evidence = UNDECIDED, f"wrong powers of <i>n</i> are not rejected either: {least}"
    if p < level / CLEAR:
        verdict, evidence = DIFFERS, p_value(p)
    elif p < level:
        evidence = f"{p_value(p)} is too close to the level to decide"
    elif all(control < level / CLEAR for control in controls):
        verdict, evidence = AGREES, f"{p_value(p)}; {' and '.join(sides)}"
    return {"verdict": verdict, "evidence": evidence}


def _named(powers: Powers) -> str:
    """Powers of n of the window and, where it has one, of what is measured."""
    window, size = power(-powers.window).html, power(powers.size).html
    return f"a window of {window}" + (f" and a size of {size}" if powers.size else "")


def power(exponent: float) -> Text:
    """A power of n: n^(−2/3)."""
    near = Fraction(exponent).limit_denominator(9)
    text = str(near) if abs(float(near) - exponent) < 1e-9 else number(exponent)
    text = text.replace("-", "−")
    return Text(f"<i>n</i><sup>{text}</sup>", f"$n^{{{text.replace('−', '-')}}}$", f"n^({text})")


def _corrections(data: xr.Dataset) -> list[Finding]:
    """What the prediction has beyond the curve, which is not fitted, at both ends of n."""
    kind = data.attrs["kind"]
    size = abs(data["shift"] if kind == "separatrix" else data["offset"])
    if kind == "pitchfork":
        size = 100 * size / data["predicted"]
    known = size.where(data["score"].notnull()).max([d for d in size.dims if d != "n"])
    name = f"the largest correction of the {CORRECTED[kind]} at finite " + symbol("n")
    unit = words("%" if kind == "pitchfork" else "")
    ends = dict.fromkeys(int(n) for n in data["n"].values[[0, -1]])
    return [Finding(name, {"n": n}, float(known.sel(n=n)), unit=unit, digits=2) for n in ends]


CONTROLS = {
    "fold": "scaled distance to the fold " + Text("ε", r"$\varepsilon$", "ε"),
    "separatrix": "distance to the unstable overlap " + Text("<i>z</i>", "$z$", "z"),
    "pitchfork": "scaled distance to the pitchfork " + Text("<i>x</i>", "$x$", "x"),
}
LAWS = {
    "fold": Text("<i>F</i>(ε)", r"$F(\varepsilon)$", "F(ε)"),
    "separatrix": Text("Φ(<i>z</i>)", r"$\Phi(z)$", "Φ(z)"),
    "pitchfork": Text("Ψ(<i>x</i>)", r"$\Psi(x)$", "Ψ(x)"),
}


def quantity(data: xr.Dataset) -> Text:
    """What is measured, in the units in which it collapses."""
    kind = data.attrs["kind"]
    if kind == "fold":
        return "time of the fall / (" + power(1 / 3) + " times its scale)"
    if kind == "separatrix":
        return words("share of runs that go up")
    name = symbol(data.attrs["variable"])
    square = Text(f"⟨{name.html}²⟩", f"$\\langle$ {name.tex}$^2\\rangle$", f"⟨{name.plain}²⟩")
    return square + " / (" + power(-1 / 2) + " times its scale)"


def panels(data: xr.Dataset) -> list[Panel]:
    """The points on the law, and the control."""
    return [_panel(data, ""), _panel(data, "_control")]


def _panel(data: xr.Dataset, tail: str) -> Panel:
    kind, sizes = data.attrs["kind"], data["n"].values.tolist()
    at = data[f"curve{tail}_at" if tail else "at"].values
    items: list[Item] = [Line(at, data[f"curve{tail}"].values, LAWS[kind], "ink")]
    for (color, n), mark in zip(colored(sizes), cycle(SYMBOLS), strict=False):
        here = data.sel(n=n)
        x, heights = here[f"x{tail}"].values.ravel(), interval(here, f"y{tail}")
        inside = (x >= at[0]) & (x <= at[-1])
        drawn = [values.ravel()[inside] for values in heights]
        items += bars(x[inside], drawn, of_n(int(n)), color, symbol=mark)
    wrong = " wrong powers of " + symbol("n")
    title = "Control:" + wrong if tail else words("No exponent fitted")
    labels = CONTROLS[kind], "the same with" + wrong if tail else quantity(data)
    text, ends = _caption(data, items, tail), (float(at[0]), float(at[-1]))
    panel = Panel(f"collapse{tail}", title, *labels, tuple(items), text, x_range=ends)
    return replace(panel, log_y=kind == "fold", y_range=SHARES if kind == "separatrix" else None)


def _caption(data: xr.Dataset, items: Sequence[Item], tail: str) -> str:
    if tail:
        return (
            "The same points and the same law as if the powers of <i>n</i> were others: "
            f"{windows(data, WRONG)} Right at the geometric mean of the <i>n</i>."
        )
    sentences = {
        "points": "Points: runs with 95 % intervals, without what the prediction at their "
        "<i>n</i> has beyond the law of all <i>n</i>.",
        "solid": f"Line: the law {LAWS[str(data.attrs['kind'])].html}, without a parameter.",
    }
    out = [*captioned(items, sentences), windows(data, RIGHT)]
    x, at = data["x"].where(data["score"].notnull()).values, data["at"].values
    many = int(((x < at[0]) | (x > at[-1])).sum())
    if many:
        out.append(f"{plural(many, 'point')} farther out {'is' if many == 1 else 'are'} not drawn.")
    return " ".join(out)


def windows(data: xr.Dataset, powers: Mapping[str, Powers]) -> str:
    """How the window and what is measured scale with n."""
    kind = data.attrs["kind"]
    window, size = powers[kind]
    text = f"The window shrinks as {power(-window).html}"
    if kind == "separatrix":
        return f"{text}."
    what = "times grow" if kind == "fold" else f"{symbol(str(data.attrs['variable'])).html}² goes"
    return f"{text}, {what} as {power(size).html}."
