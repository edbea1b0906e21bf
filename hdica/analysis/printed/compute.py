"""Results beside numbers of a paper: ours with its error, theirs, and whether they agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis.describe import described
from hdica.analysis.printed.record import Place, Printed, check_names
from hdica.analysis.reading import finished, group
from hdica.errors import HdicaError, suggestion
from hdica.inputs.digest import digest
from hdica.inputs.place import place
from hdica.inputs.reference import Number, load_reference
from hdica.status import PENDING

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


def printed(tree: xr.DataTree, settings: Printed) -> xr.Dataset:
    """Ours and the paper's number, with errors and a verdict, over ``number`` (names in the file).

    A mean over seeds is tested by Student's t beyond the number's rounding and the method's own
    error; what has no standard error at all agrees if it is within these. The level is shared by
    all numbers. Where an erratum corrects a number, both are tested. Where no point is done the
    verdict is ``"pending"``, or ``"no result"`` if all points diverged or failed.
    """
    reference = load_reference(settings.file)
    check_names(settings, list(reference.numbers), settings.file)
    rows = [
        _row(tree, name, one, reference.numbers[name], settings.level / len(settings.numbers))
        for name, one in settings.numbers.items()
    ]
    columns = {key: ("number", [row[key] for row in rows]) for key in rows[0]}
    out = xr.Dataset(columns, coords={"number": list(settings.numbers)})
    out.attrs = {
        "file": settings.file,
        "sha256": digest(place(settings.file)),
        "paper": reference.paper,
        "level": settings.level,
        "tests": len(rows),
    }
    return described(out, LONG_NAMES)


def _row(tree: xr.DataTree, name: str, one: Place, number: Number, level: float) -> dict[str, Any]:
    ours, se, count, own_error = _ours(tree, name, one)
    found: dict[str, Any] = {
        "ours": ours,
        "se": se,
        "own_error": own_error,
        "count": count,
        "printed": number.value,
        "printed_error": number.error,
        "rounding": number.rounding,
        "corrected": np.nan if number.corrected is None else number.corrected,
    }
    for key, ending, value in (("p_value", "", number.value), ("corrected_p", "corrected_", None)):
        value = number.corrected if value is None else value
        p = np.nan if value is None else _p_value(found, value)
        found[key] = p
        judged = _verdict(p, level) if np.isfinite(ours) else _absent(tree, name, one)
        found[f"{ending}verdict"] = "" if value is None else judged
    words = {"what": number.what, "where": number.where, "origin": number.origin}
    return found | words | {"erratum": number.erratum}


def _ours(tree: xr.DataTree, name: str, one: Place) -> tuple[float, float, int, float]:
    """Result, its standard error over seeds, how many of these, and the method's own error."""
    data = group(tree, one.method)
    values = _chosen(finished(data, one.variable), name, one)
    own = _own_error(data, values, name, one)
    samples = np.abs(values.values) if one.magnitude else values.values
    samples = samples[np.isfinite(samples)]
    if samples.size == 0:
        return np.nan, np.nan, 0, own
    if "seed" not in values.dims:
        return float(samples.item()), 0.0, 0, own
    several = samples.size > 1
    se = float(samples.std(ddof=1) / np.sqrt(samples.size)) if several else np.nan
    return float(samples.mean()), se, int(samples.size), own


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
    return "pending" if bool((chosen == PENDING).any()) else "no result"


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


def _p_value(found: dict[str, Any], value: float) -> float:
    """Chance of a difference as large; 0 or 1 where nothing is random."""
    slack = found["own_error"] + found["rounding"] + FLOOR * abs(value)
    beyond = max(abs(found["ours"] - value) - slack, 0.0)
    spread = float(np.hypot(found["se"], found["printed_error"]))
    if not np.isfinite(spread + found["ours"]):
        return float("nan")
    if spread == 0:
        return float(beyond == 0)
    freedom = _freedom(found)
    return float(2 * stats.t.sf(beyond / spread, freedom))


def _freedom(found: dict[str, Any]) -> float:
    """Degrees of freedom (Welch and Satterthwaite), those of the paper's error taken as many."""
    if found["se"] == 0 or found["count"] < 2:
        return float("inf")
    share = found["se"] ** 2 / (found["se"] ** 2 + found["printed_error"] ** 2)
    return float((found["count"] - 1) / share**2)


def _verdict(p: float, level: float) -> str:
    if not np.isfinite(p):
        return "undecided"
    return "differs" if p < level else "agrees"
