"""What the comparison of simulation and limit says, and its table."""

from __future__ import annotations

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.convergence.figure import grid_of
from hdica.analysis.show.choose import Point, at_largest_n, points
from hdica.analysis.show.sentences import (
    N,
    among,
    cell,
    counted,
    exponents,
    near,
    rarity,
    would_decide,
)
from hdica.analysis.show.table import VERDICT_HEAD, Table, exponent, of_verdicts, verdict
from hdica.analysis.show.words import count, number, p_value, symbol, value_of, with_error


def convergence(data: xr.Dataset) -> list[str]:
    """Sentences on verdicts, exponents and sizes."""
    first, *reasons = _verdicts(data)
    return [
        first,
        *_largest(data),
        *reasons,
        *exponents(data, "fluctuation", "fluctuation", "sd", "a", 0.5, "rms_sd"),
        *exponents(data, "bias", "bias", "|mean − limit|", "b", 1.0, "sup_error"),
        *_prediction(data),
        *_known_term(data),
    ]


def _verdicts(data: xr.Dataset) -> list[str]:
    cells = points(data, ["simulation", *grid_of(data)])
    if len(cells) == 1:
        return [_single_verdict(data)]
    return counted(data, cells, "comparisons of simulation and limit", cell)


def _single_verdict(data: xr.Dataset) -> str:
    data = data.squeeze()
    verdict, why = str(data["verdict"].item()), str(data["why"].item())
    p, control = float(data["p_value"]), float(data["control_p"])
    level = number(data.attrs["level"])
    says = {"agrees": "agrees with the limit", "differs": "differs from the limit"}
    tests = f"{escape(p_value(p))}; for the wrong drift {escape(p_value(control))}; level {level}"
    if verdict in says and not near(data):
        return f"The simulation {says[verdict]}: {why} ({tests})."
    reason = f"{why} ({tests})" if np.isfinite(p) else why
    if near(data):
        reason = (
            f"{escape(p_value(p))} is below the level {level}, but {rarity(data, p)} (for the "
            f"wrong drift {escape(p_value(control))})"
        )
    tail = would_decide(data, [{}])
    return f"Whether the simulation tends to the limit is open: {reason}{tail}."


def _known_term(data: xr.Dataset) -> list[str]:
    """That the term of order 1/n is theory's, where it is."""
    known = data["term_known"].values.ravel() > 0
    if not known.any():
        return []
    where = "" if known.all() else f" in {known.sum()} of {known.size} comparisons"
    return [
        f"The term <i>m</i>/{N} by which means are beyond the limit is that of theory, and not "
        f"fitted{where}."
    ]


def _prediction(data: xr.Dataset) -> list[str]:
    known = data["rms_sd"].notnull().any([d for d in data["rms_sd"].dims if d != "n"])
    top = at_largest_n(data, known)
    ratio = (top["rms_sd"] / top["rms_sd_predicted"]).values.ravel()
    ratio = ratio[np.isfinite(ratio)]
    if not len(ratio):
        return []
    ends = (
        number(ratio[0])
        if len(ratio) == 1
        else f"between {number(ratio.min())} and {number(ratio.max())}{among()}"
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
        f"{with_error(float(here['sup_error']), float(here['sup_error_se']))} "
        f"({cell(worst)}, <i>t</i> = {number(float(here['sup_time']))}){among()}."
    ]


def table(data: xr.Dataset) -> Table:
    """One row for each grid point and simulation; whatever does not agree comes first."""
    dims = ["simulation", *grid_of(data)]
    head = (
        *("method" if d == "simulation" else symbol(d).html for d in dims),
        *VERDICT_HEAD,
        "<i>n</i> used from",
        "<i>a</i> (fluctuation)",
        "<i>b</i> (bias)",
        "sup error, largest <i>n</i>",
    )
    return of_verdicts(data, dims, head, _row, [data[d].dtype.kind in "fiu" for d in dims])


def _row(point: Point, here: xr.Dataset) -> tuple[str, ...]:
    return (
        *map(value_of, point.values()),
        *verdict(here),
        count(float(here["n_from"])) if np.isfinite(here["n_from"]) else "–",
        exponent(here, "fluctuation_exponent"),
        exponent(here, "bias_exponent"),
        _error(here),
    )


def _error(here: xr.Dataset) -> str:
    last = at_largest_n(here, here["sup_error"].notnull())
    if not np.isfinite(last["sup_error"]):
        return "–"
    return with_error(float(last["sup_error"]), float(last["sup_error_se"]))
