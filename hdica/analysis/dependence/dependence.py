"""Means over seeds along a swept parameter with what theory predicts: findings and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product, zip_longest

import numpy as np
import xarray as xr

from hdica.analysis import reading
from hdica.analysis.dependence import BOUNDS, Dependence, bound
from hdica.analysis.settings import Suiting
from hdica.show.choose import (
    MOST,
    Point,
    at_largest_n,
    dims_of,
    has_values,
    numbers,
    points,
    positions,
    selection_note,
    shown,
)
from hdica.show.finding import THEORY, Finding, Form, named
from hdica.show.marks import GREY, bars, colored, level, lines_first
from hdica.show.panel import Item, Line, Panel
from hdica.show.wording import listed, where
from hdica.show.words import (
    EMPTY,
    Text,
    axis,
    capital,
    joined,
    measurement,
    method_name,
    number,
    p_value,
    place,
    symbol,
    words,
)
from hdica.status import DIVERGED
from hdica.systems.method import Role
from hdica.verdict.cells import AGREES, DIFFERS, LEVEL, UNDECIDED, judged
from hdica.verdict.ladder import student

LONG_NAMES = {
    "mean": "mean of the output over seeds",
    "se": "standard error of the mean of the output",
    "low": "lower end of the 95 % interval of the mean of the output",
    "high": "upper end of the 95 % interval of the mean of the output",
    "sd": "standard deviation of the output over seeds",
    "seeds": "seeds that are done",
    "diverged": "seeds that diverged or failed",
    "predicted": "the output in theory",
    "difference": "mean of the output less theory",
    "claimed": "1 where the study claims the prediction",
    "margin": "by how much the control is off, to either side",
    "verdict": "agrees, differs or undecided",
    "p_value": "p-value of the prediction, corrected for all points that are judged",
    "seeds_needed": "seeds that would decide an undecided point",
}
COUNTS = ("seeds", "diverged")
FORMS = {"largest": Form.LARGEST, "smallest": Form.SMALLEST}
SIGMAS = 2.0
"""Means that are fewer standard errors apart are equal within errors."""
Curve = tuple[Text, xr.Dataset]
"""What is drawn in one colour, with its name: a method, at a point of what is not on the axis."""


def dependence(tree: xr.DataTree, settings: Dependence) -> xr.Dataset | None:
    """Mean, 95 % interval and prediction of outputs, over ``simulation``, ``output`` and the grid.

    The intervals are Student's over seeds; the difference to theory has the error of the mean. None
    if no parameter is named and none is swept over numbers.
    """
    groups = reading.groups(tree, settings.simulation)
    swept = reading.numeric(tree, settings.simulation[0])
    x = settings.over or max(swept, key=lambda d: tree[settings.simulation[0]].sizes[d], default="")
    if not x:
        return None
    for data in groups.values():
        if x != "n":  # which no study sweeps, and a plot may have on its axis
            reading.check_numbers(data, x, "analysis.dependence.over")
        for name in settings.where:
            reading.check_numbers(data, name, "analysis.dependence.where")
    theory = reading.group(tree, settings.theory) if settings.theory else None
    parts = {name: _simulated(data, theory, settings) for name, data in groups.items()}
    out = reading.over(parts, "simulation", *COUNTS)
    out = out.transpose("simulation", "output", ..., x)
    out.attrs = {"variable": settings.variable, "over": x, "log": settings.log}
    out.attrs |= {"theory": settings.theory or "", "levels": list(settings.levels.values())}
    out.attrs["level_names"] = list(settings.levels)
    known = reading.method_of(tree, settings.theory)
    if known is not None and known.role is Role.LIMIT:
        out.attrs["called"] = "the limit"
    timed = [d for d in groups.values() if "time" in getattr(d.get(settings.variable), "dims", ())]
    if timed:
        out.attrs["time"] = float(timed[0]["time"].values[-1])
    if settings.extreme != "none":
        out.attrs["extreme"] = settings.extreme
    if has_values(out["difference"]):
        out = with_verdicts(out, settings.control, settings.where)
    return reading.described(out, LONG_NAMES)


def with_verdicts(out: xr.Dataset, control: float, where: Mapping[str, str]) -> xr.Dataset:
    """The same with the verdict of every point at the largest n of its method.

    Points of an output that the study claims are judged together, and so are all others. Their
    control is off by a share of the largest prediction among them, or, where they are drawn on a
    logarithmic axis, of each.
    """
    means, claimed = out["mean"], xr.DataArray(True)
    for name, text in where.items():
        sign, number = bound(text)
        claimed = claimed & BOUNDS[sign](out[name], number)
    last = xr.DataArray(True)
    if "n" in out.dims and out.attrs["over"] != "n":
        last = out["n"] == _at_last_n(out)["n"]
    claimed, last, seeds, output = (
        one.broadcast_like(means).transpose(*means.dims)
        for one in (claimed, last, out["seeds"], out["output"])
    )
    verdict = xr.full_like(means, "", dtype="<U9")
    p_value, needed, margin = (xr.full_like(means, np.nan) for _ in range(3))
    for name in out["output"].values:
        for part in (claimed, ~claimed):
            at = (part & last & (output == name)).values
            difference, error, predicted, many = (
                one.values[at] for one in (out["difference"], out["se"], out["predicted"], seeds)
            )
            off = control * np.abs(predicted)
            if out.attrs.get("log") not in ("y", "both"):
                off[:] = off[np.isfinite(difference)].max(initial=0.0)
            result = judged(difference, error, off, many - 1)
            verdict.values[at], p_value.values[at] = result.verdict, result.p_value
            margin.values[at] = off
            needed.values[at] = np.ceil(result.seeds * many)
    out = out.assign(margin=margin, verdict=verdict, p_value=p_value, seeds_needed=needed)
    attrs = {"control": control, "where": list(where), "where_bounds": list(where.values())}
    return out.assign(claimed=claimed.astype(int)).assign_attrs(attrs)


def _at_last_n(data: xr.Dataset) -> xr.Dataset:
    """Every method at the largest n at which it has a mean, with that n over ``simulation``."""
    if "n" not in data.dims:
        return data
    mean = data["mean"]
    return at_largest_n(data, mean.notnull().any(dims_of(mean, "simulation", "n")))


def _simulated(data: xr.Dataset, theory: xr.Dataset | None, settings: Dependence) -> xr.Dataset:
    """All outputs of one method, over ``output``."""
    parts = {}
    for output, of_theory in zip_longest(settings.outputs, settings.of_theory):
        values = reading.at_end(data, output)
        part = student(values if "seed" in values.dims else values.expand_dims("seed"))
        prediction = None if theory is None or not of_theory else reading.at_end(theory, of_theory)
        part["predicted"] = predicted_like(prediction, part["mean"])
        part["difference"] = part["mean"] - part["predicted"]
        parts[output] = part
    lost = (data["status"] >= DIVERGED).sum([d for d in data["status"].dims if d == "seed"])
    return reading.over(parts, "output").assign(diverged=lost)


def predicted_like(theory: xr.DataArray | None, like: xr.DataArray) -> xr.DataArray:
    """Theory in the cells of a simulation, NaN without any; at its largest n if these have no n."""
    if theory is None:
        return xr.full_like(like, np.nan)
    if "n" in theory.dims and "n" not in like.dims:
        theory = theory.isel(n=-1, drop=True)
    _, known = xr.align(like, theory, join="left")
    return known.broadcast_like(like).transpose(*like.dims)


def findings(data: xr.Dataset) -> list[Finding]:
    """The extreme for which the study asks, then every output beside theory or at its ends."""
    here = _at_last_n(data)
    cuts = [here.sel(output=output) for output in here["output"].values]
    out = _extremes(cuts[0])
    for cut in cuts:
        if has_values(cut["difference"]):
            out += _comparisons(cut)
        else:
            ends = [curve[k] for curve in _curves(cut) for k in sorted({0, len(curve) - 1})]
            out += [*_changes(cut), *(_finding(cut, point, _mean(cut)) for point in ends)]
    return out


def others(data: xr.Dataset) -> list[str]:
    """Dimensions of the cells beside the swept parameter on the axis."""
    return dims_of(data["mean"], "simulation", "output", "n", data.attrs["over"])


def _curves(cut: xr.Dataset) -> list[list[Point]]:
    """The points of every curve that have a mean; curves without any are left out."""
    x, every = cut.attrs["over"], points(cut, ["simulation", *others(cut)])
    curves = [
        [{**curve, x: at} for at in cut["mean"].sel(curve).dropna(x)[x].values.tolist()]
        for curve in every
    ]
    return [curve for curve in curves if curve]


def _mean(cut: xr.Dataset) -> Text:
    return "mean " + symbol(str(cut["output"].item()))


def _finding(cut: xr.Dataset, point: Point, quantity: Text) -> Finding:
    """The mean at one point, with what theory has."""
    value, error, predicted = numbers(cut, point, "mean", "se", "predicted")
    place = named(cut, point)
    place |= {"n": int(cut["n"].sel(simulation=point["simulation"]))} if "n" in cut.coords else {}
    place |= {"t": cut.attrs["time"]} if "time" in cut.attrs else {}
    theory = words(str(cut.attrs.get("called", THEORY.plain)))
    return Finding(quantity, place, value, error, predicted=predicted, theory=theory)


def _comparisons(cut: xr.Dataset) -> list[Finding]:
    """Every point that is judged; those for which the study does not claim theory come last."""
    judgements, elsewhere = [], []
    for point in (one for curve in _curves(cut) for one in curve):
        here = cut.sel(point)
        verdict = str(here["verdict"].item())
        if verdict and bool(here["claimed"]):
            one, seeds = _finding(cut, point, _mean(cut)), float(here["seeds_needed"])
            evidence = _evidence(here, verdict)
            judgements.append(replace(one, verdict=verdict, evidence=evidence, seeds=seeds))
        elif verdict:
            elsewhere.append(_finding(cut, point, _mean(cut) + " outside the claimed part"))
    claimed = cut["predicted"].notnull() & (cut["claimed"] == 1)
    if missing := int((claimed & cut["mean"].isnull()).sum()):
        name = words(f"the number of points, of {int(claimed.sum())} with theory, without a mean")
        judgements.append(Finding(name, {}, missing, verdict=UNDECIDED))
    return [*judgements, *elsewhere]


def _evidence(here: xr.Dataset, verdict: str) -> str:
    """What decides on a point: its p-value and the control."""
    p = float(here["p_value"])
    if not np.isfinite(p):
        return "one seed has no error"
    text = p_value(p)
    if verdict == DIFFERS:
        return text
    if p < LEVEL:
        return f"{text} is too close to the level to decide"
    be = "is" if verdict == AGREES else "would not be"
    return f"{text}; a prediction off by {number(float(here['margin']))} {be} rejected"


def _changes(cut: xr.Dataset) -> list[Finding]:
    """By how much the mean changes between the two values of a parameter that is a word.

    Errors of differences take the means as independent, which is on the safe side where both are of
    the same seeds.
    """
    sides = [d for d in others(cut) if cut.sizes[d] == 2 and cut[d].dtype.kind not in "fiub"]
    if not sides:
        return []
    old, new = ({sides[-1]: value.item()} for value in cut[sides[-1]])
    quantity = "the change of " + _mean(cut) + " from " + place(old) + " to " + place(new)
    change = cut.sel(new)[["mean", "se", "predicted"]].drop_vars(sides[-1])
    change["mean"] = change["mean"] - cut["mean"].sel(old)
    change["se"] = np.hypot(change["se"], cut["se"].sel(old))
    change = change.assign_coords(n=cut["n"]) if "n" in cut.coords else change
    change.attrs = cut.attrs
    return [_finding(change, point, quantity) for curve in _curves(change) for point in curve]


def _extremes(cut: xr.Dataset) -> list[Finding]:
    """Where the mean is largest or smallest, for each value of swept numbers beside the axis."""
    form = FORMS.get(cut.attrs.get("extreme", ""))
    if form is None:
        return []
    conditions = [d for d in others(cut) if cut[d].dtype.kind in "fiu" and cut.sizes[d] > 1]
    quantity = _mean(cut)
    for k, name in enumerate(conditions):
        quantity += (" and " if k else " for each ") + symbol(name)
    extremes = [_extreme(cut, one, quantity, form) for one in points(cut, conditions)]
    return sorted(filter(None, extremes), key=lambda f: f.value, reverse=form is Form.LARGEST)


def _extreme(cut: xr.Dataset, condition: Point, quantity: Text, form: Form) -> Finding | None:
    """The extreme of all curves on which a condition holds; None if they have no mean."""
    sign = 1.0 if form is Form.LARGEST else -1.0

    def height(point: Point, name: str = "mean") -> float:
        return sign * float(cut[name].sel(point))

    curves = [one for one in _curves(cut) if condition.items() <= one[0].items()]
    best = sorted((max(one, key=height) for one in curves), key=height, reverse=True)
    if not best:
        return None
    first, x, word = best[0], cut.attrs["over"], form.name.lower()
    curve = next(one for one in curves if first in one)
    evidence = []
    if len(best) > 1:
        lead = measurement(*_apart(cut, first, best[1]))
        evidence.append(f"{lead} from the {word} with {_place(cut, best[1], first)}")
    if len(curve) > 1 and first in (curve[0], curve[-1]):
        evidence.append("it is at an end of the swept range")
    apart = [(one, *_apart(cut, first, one)) for one in curve if one != first]
    near = [_place(cut, one, first) for one, gap, error in apart if not gap > SIGMAS * error]
    if near:
        evidence.append(f"within errors of {listed(near)}")
    predictions = [one for one in curve if np.isfinite(height(one, "predicted"))]
    if predictions:
        top = max(predictions, key=lambda one: height(one, "predicted"))
        evidence.append(f"{word} in theory at {place({x: top[x]}).html}")
    return replace(_finding(cut, first, quantity), form=form, evidence="; ".join(evidence))


def _apart(cut: xr.Dataset, one: Point, other: Point) -> tuple[float, float]:
    """The distance of two means and its standard error, as if they were independent."""
    (a, da), (b, db) = (numbers(cut, point, "mean", "se") for point in (one, other))
    return abs(a - b), float(np.hypot(da, db))


def _place(cut: xr.Dataset, point: Point, beside: Point) -> str:
    """Where a point is, without the coordinates that it shares with another."""
    return where({k: v for k, v in named(cut, point).items() if v != beside[k]}).html


def panels(data: xr.Dataset) -> list[Panel]:
    """For every output its means, and where there is theory their difference to it."""
    here, out = data if data.attrs["over"] == "n" else _at_last_n(data), []
    for output in map(str, data["output"].values):
        cut = here.sel(output=output)
        if has_values(cut["mean"]):
            drawn = _drawn(cut)
            out.append(_means(cut, output, drawn))
            if has_values(cut["difference"]):
                out.append(_differences(cut, output, drawn))
    return out


def _drawn(cut: xr.Dataset) -> list[Curve]:
    """Every method at some points of the other parameters, with its name if there are several."""
    methods = [str(name) for name in cut["simulation"].values]
    chosen = shown(cut, others(cut), max(MOST // len(methods), 1))
    out = []
    for method, point in product(methods, chosen):
        name = method_name(method) if len(methods) > 1 or not point else EMPTY
        here = cut.sel(simulation=method, **point)
        if has_values(here["mean"]):
            out.append((joined(name, place(point)), here))
    return out


def _means(cut: xr.Dataset, output: str, drawn: Sequence[Curve]) -> Panel:
    x = cut.attrs["over"]
    at, items = positions(cut, x), list[Item]()
    lines: dict[tuple[bytes, bytes], Line] = {}
    for color, (label, here) in colored(drawn):
        line = here["predicted"].dropna(x)
        ends = [here[name].values for name in ("mean", "low", "high")]
        items += bars(at, ends, label, color, joined=not has_values(here["se"]))
        along = positions(line, x)
        if line.size > 1:  # methods with the same theory have one line
            theory = Line(along, line.values, "theory, " + label, color, listed=False)
            lines.setdefault((along.tobytes(), line.values.tobytes()), theory)
    theories = list(lines.values())
    if len(theories) == 1:  # of no curve in particular
        color = "ink" if len(drawn) > 1 else theories[0].color
        theories = [replace(theories[0], label=words("theory"), color=color, listed=True)]
    items += theories
    # A file returns a list of one as its only entry.
    names, values = (np.atleast_1d(cut.attrs[key]) for key in ("level_names", "levels"))
    for name, value in zip(names, values, strict=True):
        items.append(level(at, value, words(str(name)), GREY, dash="dot"))
    caption = ["Means over seeds with 95 % intervals" + ("; lines: theory." if lines else ".")]
    caption += selection_note(cut, others(cut), len(drawn))
    title, label = _beginning(output) + " against " + symbol(x), "mean of " + symbol(output)
    labels = title, "dimension " + symbol("n") if x == "n" else axis(x), label
    log_x, log_y = (cut.attrs["log"] in (side, "both") for side in "xy")
    marks, text = lines_first(items), " ".join(caption)
    return Panel(f"dependence_{output}", *labels, marks, text, log_x, log_y)


def _beginning(output: str) -> Text:
    """An output at the beginning of a title: a symbol as it is, a word with a capital letter."""
    name = symbol(output)
    return words(capital(name.plain)) if name == words(name.plain) and len(name.plain) > 1 else name


def _differences(cut: xr.Dataset, output: str, drawn: Sequence[Curve]) -> Panel:
    x = cut.attrs["over"]
    at = positions(cut, x)
    items: list[Item] = [level(at, 0.0, words("theory"), "ink", listed=False)]
    for color, (label, here) in colored(drawn):
        ends = [(here[end] - here["predicted"]).values for end in ("low", "high")]
        items += bars(at, [here["difference"].values, *ends], label, color)
    title, label = _beginning(output) + ": measured less predicted", "mean of " + symbol(output)
    text = "Difference of the mean over seeds to theory, with 95 % intervals."
    log = cut.attrs["log"]
    labels, key = (title, axis(x), label + " − theory"), f"dependence_difference_{output}"
    return Panel(key, *labels, tuple(items), text, log in ("x", "both"))


def suits(tree: xr.DataTree) -> Suiting:
    """The order parameter at the end, with theory, against the parameter that is swept most.

    Not where a phase diagram shows the same, over two parameters.
    """
    simulation = reading.offered(tree, Role.SIMULATION, "", "time")
    if not simulation:
        return None
    swept = reading.numeric(tree, simulation)
    if not swept or (reading.control(tree, swept) and len(swept) > 1):
        return None
    return {"simulation": simulation, "theory": reading.offered(tree, Role.LIMIT, "", "time")}
