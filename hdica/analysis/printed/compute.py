"""Results beside numbers of a paper: ours with its error, theirs, and whether they agree."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import xarray as xr
from markupsafe import Markup
from scipy import stats

from hdica.analysis.describe import described
from hdica.analysis.printed import Place, Printed, check_names
from hdica.analysis.reading import finished, group
from hdica.errors import HdicaError, suggestion
from hdica.inputs.digest import digest
from hdica.inputs.place import place
from hdica.inputs.reference import Number, load_reference
from hdica.show.finding import Finding
from hdica.show.typeset import GREEK, typeset
from hdica.show.wording import listed
from hdica.show.words import Text, number, p_value, plural, words
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
LIKE = 1e-9
"""Relative distance up to which a value of ``sel`` is meant by a coordinate."""
FLOOR = 1e-12
"""Relative error of any number of ours: rounding."""
NO_RESULT = "no result"
SPELT = {letter: name for name, letter in GREEK.items()}
"""Greek letters as parameters are named."""
APART = {"derived": "a derivation", "simulated": "a simulation"}
"""Origins of numbers that a paper does not have itself."""


def printed(tree: xr.DataTree, settings: Printed) -> xr.Dataset:
    """Ours and the paper's number, with errors and a verdict, over ``number`` (names in the file).

    All numbers are judged together, with their rounding and the method's own error as tolerance.
    Where an erratum corrects a number, both are judged. Where no point is done the verdict is
    ``"pending"``, or ``"no result"`` if all points diverged or failed.
    """
    reference = load_reference(settings.file)
    check_names(settings, list(reference.numbers), settings.file)
    rows = [
        _row(tree, name, one, reference.numbers[name]) for name, one in settings.numbers.items()
    ]
    columns = {key: ("number", [row[key] for row in rows]) for key in rows[0]}
    out = xr.Dataset(columns, coords={"number": list(settings.numbers)})
    out.attrs = {"file": settings.file, "sha256": digest(place(settings.file))}
    out.attrs |= {"paper": reference.paper, "level": settings.level, "tests": len(rows)}
    return described(_with_verdicts(tree, settings, out), LONG_NAMES)


def _row(tree: xr.DataTree, name: str, one: Place, number: Number) -> dict[str, Any]:
    row: dict[str, Any] = _ours(tree, name, one)
    row |= {"printed": number.value, "printed_error": number.error, "rounding": number.rounding}
    row["corrected"] = np.nan if number.corrected is None else number.corrected
    row |= {"p_value": _p_value(row, number.value), "verdict": ""}
    row |= {"corrected_p": _p_value(row, row["corrected"]), "corrected_verdict": ""}
    return row | {k: getattr(number, k) for k in ("what", "where", "origin", "erratum")}


def _with_verdicts(tree: xr.DataTree, settings: Printed, out: xr.Dataset) -> xr.Dataset:
    """The same with the verdicts on what is printed, and on what an erratum makes of it."""
    repaired = np.isfinite(out["corrected"].values)
    as_printed, best = (_judgement(out, out["printed"].values), _judgement(out, wanted(out)))
    verdict = np.where(repaired, as_printed.verdict, best.verdict).astype(object)
    for k, (name, one) in enumerate(settings.numbers.items()):
        verdict[k] = verdict[k] or _absent(tree, name, one)
    corrected = np.where(best.verdict == "", verdict, best.verdict)
    return out.assign(
        verdict=("number", verdict.astype(str)),
        corrected_verdict=("number", np.where(repaired, corrected, "").astype(str)),
    )


def _judgement(data: xr.Dataset, predicted: np.ndarray) -> Judgement:
    """Verdicts on all numbers; their control is off by a tenth, of 1 where a number is 0."""
    size, error = np.abs(predicted), np.hypot(data["se"].values, data["printed_error"].values)
    return judged(
        data["ours"].values - predicted,
        error,
        CONTROL * np.where(size > 0, size, 1.0),
        _freedom(data),
        (data["own_error"] + data["rounding"]).values + FLOOR * size,
        float(data.attrs["level"]),
    )


def _freedom(data: xr.Dataset) -> np.ndarray:
    """Degrees of freedom (Welch and Satterthwaite), those of the paper's error taken as many."""
    se, count = data["se"].values, data["count"].values
    with np.errstate(invalid="ignore", divide="ignore"):
        share = se**2 / (se**2 + data["printed_error"].values ** 2)
        return np.where((se > 0) & (count > 1), (count - 1) / share**2, np.inf)


def _ours(tree: xr.DataTree, name: str, one: Place) -> dict[str, float]:
    """Result, its standard error over seeds, the method's own error, and how many seeds."""
    data = group(tree, one.method)
    values = _chosen(finished(data, one.variable), name, one)
    own = _own_error(data, values, name, one)
    samples = np.abs(values.values) if one.magnitude else values.values
    samples = samples[np.isfinite(samples)]
    many, seeded = int(samples.size), "seed" in values.dims
    se = float(samples.std(ddof=1) / np.sqrt(many)) if many > 1 else np.nan
    return {
        "ours": float(samples.mean()) if many else np.nan,
        "se": se if seeded or not many else 0.0,
        "own_error": own,
        "count": many if seeded else 0,
    }


def _own_error(data: xr.Dataset, values: xr.DataArray, name: str, one: Place) -> float:
    """What a method without seeds says of its own error, 0 if it says nothing."""
    own = set(data[one.variable].dims)
    for key in (f"{one.variable}_error", "error"):
        if key not in data or "seed" in data[key].dims or not set(data[key].dims) <= own:
            continue
        error = float(np.nan_to_num(_chosen(finished(data, key), name, one).item()))
        relative = "relative" in str(data[key].attrs.get("long_name", ""))
        return error * float(np.abs(values).max()) if relative else error
    return 0.0


def _absent(tree: xr.DataTree, name: str, one: Place) -> str:
    """Why there is no result: points are pending, or all of them ended without one."""
    status = group(tree, one.method)["status"]
    selected = {key: value for key, value in one.sel.items() if key in status.dims}
    chosen = _chosen(status, name, one.model_copy(update={"sel": selected}))
    return "pending" if bool((chosen == PENDING).any()) else NO_RESULT


def _chosen(values: xr.DataArray, name: str, one: Place) -> xr.DataArray:
    """What is selected of an output, over seeds at most."""
    where = f"analysis.printed.numbers.{name}.sel"
    for key, wanted in one.sel.items():
        if key in values.dims:
            values = values.isel({key: _place_of(values, key, wanted, where)}, drop=True)
        elif key not in values.coords and key not in ("n", "time", "seed"):
            known = [str(d) for d in values.dims if d != "seed"]
            raise HdicaError(f"{where}.{key} is not known ({suggestion(key, known)})")
    if "time" in values.dims:
        values = values.isel(time=-1, drop=True)
    if "n" in values.dims:
        # Not the largest n that is done: until that of the study is, the number is pending.
        values = values.sel(n=values["n"].max(), drop=True)
    values = values.squeeze([d for d in values.dims if d != "seed" and values.sizes[d] == 1])
    left = [str(d) for d in values.dims if d != "seed"]
    if left:
        raise HdicaError(
            f"{where} lacks {left[0]} (one of {_listed(values, left[0])}: one number is needed)"
        )
    return values


def _place_of(values: xr.DataArray, key: str, wanted: Any, where: str) -> int:
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


def _p_value(row: dict[str, Any], value: float) -> float:
    """Chance of a difference as large; 0 or 1 where nothing is random."""
    slack = row["own_error"] + row["rounding"] + FLOOR * abs(value)
    beyond = max(abs(row["ours"] - value) - slack, 0.0)
    spread = float(np.hypot(row["se"], row["printed_error"]))
    if not np.isfinite(spread + row["ours"] + value):
        return float("nan")
    if spread == 0:
        return float(beyond == 0)
    freedom = _freedom(xr.Dataset({k: row[k] for k in ("se", "count", "printed_error")}))
    return float(2 * stats.t.sf(beyond / spread, freedom))


def wanted(data: xr.Dataset) -> np.ndarray:
    """The paper's numbers, corrected where an erratum does."""
    return np.where(np.isfinite(data["corrected"]), data["corrected"], data["printed"])


def findings(data: xr.Dataset) -> list[Finding]:
    """Every number that has a result here, those of one quantity together."""
    judgement, every = _judgement(data, wanted(data)), []
    count = data["count"].where(data["count"] > 0).values
    seeds = np.maximum(np.ceil(judgement.seeds * count), count + 1)
    for k in np.flatnonzero(judgement.verdict != ""):
        here, verdict = data.isel(number=k), str(judgement.verdict[k])
        quantity, at = _quantity(here)
        one = Finding(
            words(quantity),
            at,
            float(here["ours"]),
            float(here["se"]),
            predicted=float(wanted(here)),
            predicted_error=float(here["printed_error"]),
            verdict=verdict,
            evidence=_evidence(here, verdict),
            seeds=float(seeds[k]),
            theory=_theory(here),
            digits=6,
        )
        every.append(one)
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
    return typeset(str(here["what"].item()) or str(here["number"].item()))


def _quantity(here: xr.Dataset) -> tuple[str, dict[str, float]]:
    """What a number is, and its place: parts such as "tau = 0.05" between commas."""
    text = str(here["what"].item()) or str(here["number"].item())
    parts = re.split(r", ", text)
    pairs = [re.fullmatch(r"(\S+) = (-?\d[\d.e-]*)", part) for part in parts]
    quantity = ", ".join(part for part, pair in zip(parts, pairs, strict=True) if pair is None)
    at = {SPELT.get(pair[1], pair[1]): float(pair[2]) for pair in pairs if pair is not None}
    return typeset(quantity), at


def _theory(here: xr.Dataset) -> Text:
    """Who has a number: the paper, its correction, or whoever found it apart from this code."""
    origin = str(here["origin"].item())
    if origin in APART:
        return words(f"{APART[origin]} independent of this code")
    corrected = bool(np.isfinite(here["corrected"]))
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
