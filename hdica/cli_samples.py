"""``hdica samples``: how many samples the systems of a study need, and with which step sizes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hdica.errors import HdicaError, printable

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from numpy.typing import NDArray

    from hdica.systems.space import Space

    Mask = NDArray[np.bool_]

MOST = 200
"""Rows of a table: each takes up to some seconds."""
STEPS = ("tau", "nu")
"""Axes that do not matter: the best step size is part of the answer."""
ANY_STEP = 0.01


def samples(
    study: Annotated[
        Path | None,
        typer.Argument(metavar="STUDY", help="Study file, *.yaml: a row for each of its systems."),
    ] = None,
    system: Annotated[str, typer.Option(help="Instead of a study, as OnlineICA.")] = "",
    parameter: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Its parameters, as start.overlap=0.5."),
    ] = None,
    n: Annotated[list[int] | None, typer.Option(help="Dimension; default: 1000.")] = None,
    overlap: Annotated[float, typer.Option(help="Size of the overlap to be reached.")] = 0.9,
    probability: Annotated[float, typer.Option(help="That it is reached with them.")] = 0.95,
    start: Annotated[
        str, typer.Option(metavar="random|OVERLAP", help="Default: the start of the study.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say how many samples lead to an overlap, and with which step sizes."""
    from hdica.api.samples import RANDOM, samples_to_overlap
    from hdica.systems.values import number

    begin = start if start in ("", RANDOM) else number(start, "--start")
    systems = list(_systems(*_asked(study, system, parameter or [])))
    sizes = n or [1000]
    if len(systems) * len(sizes) > MOST:
        raise HdicaError(
            f"{len(systems)} systems at {len(sizes)} n are not allowed (at most {MOST} together: "
            "a study with a smaller grid)"
        )
    rows, refusals = list[dict[str, Any]](), list[HdicaError]()
    for (chosen, parameters), size in itertools.product(systems, sizes):
        try:
            need = samples_to_overlap(
                parameters, size, overlap, probability, begin or None, timeout=None
            )
            rows.append({**chosen, "n": size, **_row(need)})
        except HdicaError as exc:
            refusals.append(exc)
            rows.append({**chosen, "n": size, "refused": str(exc)})
    if len(refusals) == len(rows):
        raise refusals[0]
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    import pandas as pd

    from hdica.cli_tables import answer_table

    typer.echo(printable(_sentence(rows, overlap, probability)))
    table = pd.DataFrame(rows).dropna(axis="columns", how="all")
    if "refused" in table:
        table["refused"] = table.pop("refused")
    leaving = "tau leads away from Q = 0, " if "tau" in table else ""
    title = f"{leaving}first_tau to last_tau lead from {'there' if leaving else 'the start'} on"
    answer_table(table.astype(object).where(table.notna(), None), title)


def _asked(study: Path | None, system: str, parameters: list[str]) -> tuple[Space, Mask | None]:
    """The systems of a study, with those that it leaves out, or the one of a name."""
    from hdica.study.segment import check_where
    from hdica.study.study import load_study
    from hdica.systems.space import space_of
    from hdica.systems.system import system_named

    if (study is None) == (not system):
        raise HdicaError("either STUDY or --system is needed (as --system OnlineICA)")
    if study is not None:
        if parameters:
            raise HdicaError("--set is not allowed with a study (its file has the parameters)")
        whole = load_study(study)
        return whole.space, check_where(whole.where, whole.space.axes)
    content: dict[str, Any] = {}
    for text in parameters:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise HdicaError(f"--set {text!r} is not allowed (KEY=VALUE, as source=uniform)")
        content[key] = _value(value)
    fields = system_named(system).parameters
    if STEPS[0] in fields.model_fields and not any(name in content for name in STEPS):
        content[STEPS[0]] = ANY_STEP
    return space_of(fields, content, {}), None


def _value(text: str) -> Any:
    """JSON, or a text as it stands."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _systems(space: Space, left_out: Mask | None) -> Iterator[tuple[dict[str, Any], Any]]:
    """Every system of a space but for its step size, with its values of the axes.

    A system is left out where it is at every step size.
    """
    axes = [axis for axis in space.axes if axis.dim not in STEPS]
    combinations: Iterable[tuple[Any, ...]] = itertools.product(*(axis.values for axis in axes))
    if left_out is not None:
        steps = tuple(k for k, axis in enumerate(space.axes) if axis.dim in STEPS)
        combinations = itertools.compress(combinations, ~left_out.all(axis=steps).reshape(-1))
    for values in combinations:
        chosen = {axis.dim: value for axis, value in zip(axes, values, strict=True)}
        yield chosen, space.at({a.path: v for a, v in zip(axes, values, strict=True)})


def _row(need: xr.Dataset) -> dict[str, float | None]:
    """Numbers of a row: without an escape, or a schedule, there is none."""
    row = {str(name): float(value) for name, value in need.data_vars.items() if not value.dims}
    if "schedule" in need:
        row |= {"first_tau": float(need.schedule[0]), "last_tau": float(need.schedule[-1])}
    return {name: value if value == value else None for name, value in row.items()}


def _sentence(rows: list[dict[str, Any]], overlap: float, probability: float) -> str:
    answers = [row for row in rows if "samples" in row]
    least, most = (choose(answers, key=lambda row: row["samples"]) for choose in (min, max))
    error = float(f"{least['samples_error']:.2g}")
    lead = f"{least['samples']:.4g} ± {error:g} samples"
    if len(answers) > 1:
        lead = f"{least['samples']:.4g} to {most['samples']:.4g} samples"
    text = f"{lead} lead to an overlap of {overlap:g} with probability {probability:g}"
    if len(answers) > 1:
        return text
    parts = []
    if least["escape"]:
        parts.append(f"{least['escape']:.4g} to leave Q = 0 at tau = {least['tau']:.4g}")
    if least["growth"]:
        way = f"as tau goes from {least['first_tau']:.4g} to {least['last_tau']:.4g}"
        parts.append(f"{least['growth']:.4g} of growth {way}")
    return f"{text} at n = {least['n']}: {', '.join(parts)}"
