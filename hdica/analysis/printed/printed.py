"""Results beside numbers of a paper: ours with its error, theirs, and whether they agree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import xarray as xr
from markupsafe import Markup, escape
from scipy import stats

from hdica.analysis.printed import Place, Printed
from hdica.analysis.reading import described, finished, group
from hdica.errors import HdicaError, suggestion
from hdica.inputs.place import digest, place
from hdica.inputs.plain_yaml import load_reference
from hdica.show.choose import dims_of, evenly, numbers
from hdica.show.finding import Finding
from hdica.show.marks import ERRORS, GREY
from hdica.show.panel import Array, Panel, Points
from hdica.show.typeset import GREEK, typeset
from hdica.show.wording import listed
from hdica.show.words import OKABE_ITO, Text, number, p_value, plural, words
from hdica.status import PENDING
from hdica.verdict.cells import CONTROL, UNDECIDED, Judgement, judged

LONG_NAMES = {
    "ours": "result: mean over seeds, or what a method without seeds gives",
    "se": "standard error of the mean over seeds, 0 without seeds",
    "own_error": "error that the method gives of its own result, 0 if it gives none",
    "count": "seeds that are done, 0 for a method without seeds",
    "printed": "number of the paper",
    "printed_error": "standard error of the paper's number",
    "rounding": "half a unit of its last digit, or the tolerance with which it was computed",
    "corrected": "number as an erratum has it, NaN if there is none",
    "p_value": "chance of a difference as large if both are right",
    "corrected_p": "the same for the corrected number",
    "verdict": "whether result and number agree; pending or no result where there is none to judge",
    "corrected_verdict": "whether result and corrected number agree",
    "what": "what the number is",
    "where": "its section, equation or figure",
    "origin": "where it comes from",
    "erratum": "what is known against it",
}
KEPT = ("rounding", "what", "where", "origin", "erratum")
"""Fields of a number of the paper that have the same name here."""
LIKE = 1e-9
"""Relative distance up to which a value of ``sel`` is meant by a coordinate."""
FLOOR = 1e-12
"""Relative error of any number of ours: rounding."""
NO_RESULT = "no result"
SPELT = {letter: name for name, letter in GREEK.items()}
"""Greek letters as parameters are named."""
APART = {"derived": "a derivation", "simulated": "a simulation"}
"""Origins of numbers that a paper does not have itself."""
LEAST, MOST = 3, 40
"""Of fewer numbers there is no figure, and at most so many are drawn."""
NAMED = 8
"""So many numbers are named below the figure."""
CLOSE = 1e-3
"""No axis of ratios is shorter than this to either side of 1: what it would show is rounding."""


def printed(tree: xr.DataTree, settings: Printed) -> xr.Dataset:
    """Ours and the paper's number, with errors and a verdict, over ``number`` (names in the file).

    All numbers are judged together, with their rounding and the method's own error as tolerance.
    Where an erratum corrects a number, both are judged. Where no point is done the verdict is
    ``"pending"``, or ``"no result"`` if all points diverged or failed.
    """
    reference, rows = load_reference(settings.file), []
    for name, one in settings.numbers.items():
        if name not in reference.numbers:
            near = suggestion(name, list(reference.numbers))
            raise HdicaError(
                f"analysis.printed.numbers: {name!r} is not in {settings.file} ({near})"
            )
        theirs = reference.numbers[name]
        corrected = np.nan if theirs.corrected is None else theirs.corrected
        row = {"printed": theirs.value, "printed_error": theirs.error, "corrected": corrected}
        rows.append({**_ours(tree, name, one), **row, **{k: getattr(theirs, k) for k in KEPT}})
    columns = {key: ("number", [row[key] for row in rows]) for key in rows[0]}
    out = xr.Dataset(columns, coords={"number": list(settings.numbers)})
    out.attrs = {"file": settings.file, "sha256": digest(place(settings.file))}
    out.attrs |= {"paper": reference.paper, "level": settings.level, "tests": len(rows)}
    return described(_judged(out), LONG_NAMES)


def _judged(data: xr.Dataset) -> xr.Dataset:
    """The same with p-values and verdicts on what is printed, and on its correction if any."""
    repaired, absent = np.isfinite(data["corrected"].values), data["absent"].values
    first, p = _compared(data, data["printed"].values)
    best, corrected_p = _compared(data, wanted(data))
    verdict = np.where(repaired, first.verdict, best.verdict)
    verdict = np.where(verdict == "", absent, verdict)
    corrected = np.where(best.verdict == "", verdict, best.verdict)
    return data.drop_vars("absent").assign(
        p_value=("number", p),
        corrected_p=("number", np.where(repaired, corrected_p, np.nan)),
        verdict=("number", verdict.tolist()),
        corrected_verdict=("number", np.where(repaired, corrected, "").tolist()),
    )


def _compared(data: xr.Dataset, predicted: Array) -> tuple[Judgement, Array]:
    """Verdicts on all numbers together, and p-values of each alone: 0 or 1 where nothing is random.

    The control is off by a tenth, of 1 where a number is 0. Degrees of freedom are those of Welch
    and Satterthwaite, with those of the paper's error taken as many.
    """
    se, count, theirs = (data[key].values for key in ("se", "count", "printed_error"))
    error, size, off = np.hypot(se, theirs), np.abs(predicted), data["ours"].values - predicted
    slack = (data["own_error"] + data["rounding"]).values + FLOOR * size
    margin = CONTROL * np.where(size > 0, size, 1.0)
    beyond = np.maximum(np.abs(off) - slack, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = se**2 / (se**2 + theirs**2)
        freedom = np.where((se > 0) & (count > 1), (count - 1) / share**2, np.inf)
        p = np.where(error > 0, 2 * stats.t.sf(beyond / error, freedom), beyond == 0)
    judgement = judged(off, error, margin, freedom, slack, float(data.attrs["level"]))
    return judgement, np.where(np.isfinite(error + off), p, np.nan)


def _ours(tree: xr.DataTree, name: str, one: Place) -> dict[str, float | str]:
    """Result, its standard error over seeds, the method's own error, and how many seeds."""
    data, absent = group(tree, one.method), ""
    values = _chosen(finished(data, one.variable), name, one.sel)
    samples = np.abs(values.values) if one.magnitude else values.values
    samples = samples[np.isfinite(samples)]
    many, seeded = int(samples.size), "seed" in values.dims
    se = float(samples.std(ddof=1) / np.sqrt(many)) if many > 1 else np.nan
    if not many:
        known = {key: value for key, value in one.sel.items() if key in data["status"].dims}
        pending = bool((_chosen(data["status"], name, known) == PENDING).any())
        absent = "pending" if pending else NO_RESULT
    return {
        "ours": float(samples.mean()) if many else np.nan,
        "se": se if seeded or not many else 0.0,
        "own_error": _own_error(data, values, name, one),
        "count": many if seeded else 0,
        "absent": absent,
    }


def _own_error(data: xr.Dataset, values: xr.DataArray, name: str, one: Place) -> float:
    """What a method without seeds says of its own error, 0 if it says nothing."""
    own = set(data[one.variable].dims)
    for key in (f"{one.variable}_error", "error"):
        if key in data and "seed" not in data[key].dims and set(data[key].dims) <= own:
            # One error may be that of several numbers of a place.
            least = {k: v for k, v in one.sel.items() if k in data[key].dims or k not in own}
            error = float(np.nan_to_num(_chosen(finished(data, key), name, least).item()))
            relative = "relative" in str(data[key].attrs.get("long_name", ""))
            return error * float(np.abs(values).max()) if relative else error
    return 0.0


def _chosen(values: xr.DataArray, name: str, sel: Mapping[str, int | float | str]) -> xr.DataArray:
    """What is selected of an output, over seeds at most."""
    where = f"analysis.printed.numbers.{name}.sel"
    for key, wanted in sel.items():
        if key in values.dims:
            values = values.isel({key: _place_of(values, key, wanted, where)}, drop=True)
        elif key not in values.coords and key not in ("n", "time", "seed"):
            known = dims_of(values, "seed")
            raise HdicaError(f"{where}.{key} is not known ({suggestion(key, known)})")
    if "time" in values.dims:
        values = values.isel(time=-1, drop=True)
    if "n" in values.dims:
        # Not the largest n that is done: until that of the study is, the number is pending.
        values = values.sel(n=values["n"].max(), drop=True)
    values = values.squeeze([d for d in values.dims if d != "seed" and values.sizes[d] == 1])
    left = dims_of(values, "seed")
    if left:
        raise HdicaError(
            f"{where} lacks {left[0]} (one of {_listed(values, left[0])}: one number is needed)"
        )
    return values


def _place_of(values: xr.DataArray, key: str, wanted: int | float | str, where: str) -> int:
    """Position of a coordinate's value; of what is only numbered, the number itself."""
    known = values[key].values
    if isinstance(wanted, str) or known.dtype.kind not in "fiu":
        same = np.array([str(value) == str(wanted) for value in known])
    else:
        same = np.isclose(known.astype(float), float(wanted), rtol=LIKE, atol=0)
    if same.sum() != 1:
        raise HdicaError(
            f"{where}.{key} = {wanted!r} is not allowed "
            f"({suggestion(wanted, map(str, known), _listed(values, key))})"
        )
    return int(np.flatnonzero(same)[0])


def _listed(values: xr.DataArray, key: str) -> str:
    known = [f"{v:.12g}" if isinstance(v, float) else str(v) for v in values[key].values.tolist()]
    return ", ".join(known if len(known) <= 12 else [*known[:5], "...", *known[-5:]])


def wanted(data: xr.Dataset) -> Array:
    """The paper's numbers, corrected where an erratum does."""
    return np.where(np.isfinite(data["corrected"]), data["corrected"], data["printed"])


def findings(data: xr.Dataset) -> list[Finding]:
    """Every number that has a result here, those of one quantity together."""
    (judgement, _), every = _compared(data, wanted(data)), []
    count = data["count"].where(data["count"] > 0).values
    seeds = np.maximum(np.ceil(judgement.seeds * count), count + 1)
    for k in np.flatnonzero(judgement.verdict != ""):
        here, verdict = data.isel(number=k), str(judgement.verdict[k])
        value, error, theirs = numbers(here, {}, "ours", "se", "printed_error")
        one = Finding(*_quantity(here), value, error, theory=_theory(here), digits=6)
        one = replace(one, predicted=float(wanted(here)), predicted_error=theirs)
        evidence = _evidence(here, verdict)
        every.append(replace(one, verdict=verdict, evidence=evidence, seeds=float(seeds[k])))
    first = {one.subject: k for k, one in reversed(list(enumerate(every)))}
    return sorted(every, key=lambda one: first[one.subject])


def notes(data: xr.Dataset) -> list[str]:
    """How many numbers have no result yet, or none at all."""
    endings = {"pending": "pending", NO_RESULT: "without a result: all runs diverged or failed"}
    counts = {ending: int((data["verdict"] == kind).sum()) for kind, ending in endings.items()}
    return [
        f"{plural(many, 'number')} of the paper {'is' if many == 1 else 'are'} {ending}."
        for ending, many in counts.items()
        if many
    ]


def what_of(here: xr.Dataset) -> str:
    """What a number is; its name in the file where the file does not say it."""
    return str(here["what"].item()) or str(here["number"].item())


def _quantity(here: xr.Dataset) -> tuple[Text, dict[str, float]]:
    """What a number is, and its place: parts such as "tau = 0.05" between commas."""
    parts = [
        (part, re.fullmatch(r"(\S+) = (-?\d[\d.e-]*)", part)) for part in what_of(here).split(", ")
    ]
    quantity = ", ".join(part for part, pair in parts if pair is None)
    at = {SPELT.get(pair[1], pair[1]): float(pair[2]) for _, pair in parts if pair is not None}
    return words(typeset(quantity)), at


def _theory(here: xr.Dataset) -> Text:
    """The source of a number: the paper, its correction, or an independent computation."""
    origin, corrected = str(here["origin"].item()), bool(np.isfinite(here["corrected"]))
    if origin in APART:
        return words(f"{APART[origin]} independent of this code")
    return words(cited(str(here.attrs["paper"])) + (" as corrected" if corrected else ""))


def _evidence(here: xr.Dataset, verdict: str) -> str:
    """Where a number is, what the paper has if an erratum corrects it, and what decides."""
    parts = [typeset(str(here["where"].item()))]
    corrected = bool(np.isfinite(here["corrected"]))
    if corrected:
        erratum = typeset(str(here["erratum"].item()))
        parts.append(f"the paper has {number(float(here['printed']), 6)}, erratum {erratum}")
    random = float(here["se"]) > 0 or float(here["printed_error"]) > 0
    if np.isnan(here["se"]):
        parts = ["one seed has no error"]
    elif random:
        parts.append(p_value(float(here["corrected_p" if corrected else "p_value"])))
    elif verdict == UNDECIDED:
        parts = [f"its error and rounding hide a difference of {100 * CONTROL:g} %"]
    return str(Markup("; ").join(parts))


def cited(paper: str) -> str:
    """A reference cut down to names, or the title without any, and year; else as it is."""
    year = re.search(r"\b(?:19|20)\d\d\b", paper)
    names = paper.split(', "', 1)[0] if ', "' in paper else ""
    last = [part.split()[-1] for part in re.split(r", | and ", names) if part.split()]
    title = re.match(r'"([^":]+)', paper)
    if year and last:
        return f"{listed(last).replace(' and ', ' & ')} {year[0]}"
    return f"“{title[1]}” {year[0]}" if year and title else paper


def panels(data: xr.Dataset) -> list[Panel]:
    """One panel of ratios to reference numbers, and none where too few can be divided by."""
    can = np.isfinite(data["ours"].values) & (data["printed"].values != 0)
    kept = evenly(np.flatnonzero(can).tolist(), MOST)
    if len(kept) < LEAST:
        return []
    here = data.isel(number=kept)
    title, x = words("Reference numbers"), words("numbers, named below")
    text, ends = _caption(here, data.sizes["number"]), (0.4, len(kept) + 0.6)
    labels = title, x, words("computed / reference")
    marks = _marks(here)
    drawn = [end for mark in marks for end in (mark.y, mark.low, mark.high) if end is not None]
    close = bool((np.abs(np.concatenate(drawn) - 1) < CLOSE).all())
    height = (1 - CLOSE, 1 + CLOSE) if close else None
    look = Panel("printed", *labels, marks, text, counts=True, wide=True)
    return [replace(look, x_range=ends, y_range=height)]


def _marks(here: xr.Dataset) -> tuple[Points, ...]:
    """Theirs, theirs corrected where that is known, and ours, in units of what is printed."""
    at, unit = np.arange(1.0, here.sizes["number"] + 1), here["printed"].values
    out = []
    for label, name, errors, color, mark in (
        ("reference", "printed", ("printed_error", "rounding"), GREY, "square"),
        ("corrected", "corrected", (), OKABE_ITO[2], "diamond"),
        ("computed", "ours", ("se", "own_error"), OKABE_ITO[0], "circle"),
    ):
        y = here[name].values / unit
        ends: tuple[Array | None, Array | None] = (None, None)
        some = np.isfinite(y)
        if errors:
            sampled, exact = (here[error] for error in errors)
            half = np.nan_to_num(np.abs((ERRORS * sampled + exact).values / unit))
            ends = (y - half)[some], (y + half)[some]
        if some.any():
            out.append(Points(at[some], y[some], words(label), color, *ends, mark))
    return tuple(out)


def _caption(here: xr.Dataset, total: int) -> str:
    drawn = here.sizes["number"]
    every = [f"{k + 1} {typeset(what_of(here.isel(number=k)))}" for k in range(drawn)]
    names = ", ".join(every) if drawn <= NAMED else "as they are numbered in the table"
    left = f" {total - drawn} of {total} are not drawn." if drawn < total else ""
    return (
        f"Dots: computed here, ± 2 standard errors over seeds and the method's own error; squares: "
        f"{escape(here.attrs['paper'])}, with its error and rounding. From the left: "
        f"{escape(names)}.{left}"
    )
