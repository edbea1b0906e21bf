"""Answer of a question that is asked of results on disk, with what there is to know beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hdica.status import DONE, STATUS_NAMES
from hdica.sweep.outcome.looks import settled
from hdica.sweep.outcome.query import (
    averaged_in_a_table,
    choose_method,
    dim_order,
    methods,
    query,
    select,
    selected,
)
from hdica.sweep.outcome.results import open_results

if TYPE_CHECKING:
    import xarray as xr


def unfinished(
    tree: xr.DataTree, selection: dict[str, str], method: str, nearest: bool = False
) -> str:
    """How many of the selected points are not done, in words; empty if all are."""
    status = tree[method].to_dataset()[["status"]]
    chosen = {dim: text for dim, text in selection.items() if dim in status.dims}
    values = select(status, chosen, nearest)["status"].to_numpy()
    found = [(name, int((values == code).sum())) for code, name in enumerate(STATUS_NAMES)]
    return ", ".join(f"{n} are {name}" for name, n in found if n and name != STATUS_NAMES[DONE])


@dataclass(frozen=True)
class Answer:
    """Answer of a question that was asked of results on disk."""

    data: xr.Dataset  # the selected variables, loaded
    over: list[str]  # dimensions over which a table still averages
    order: list[str]  # dimensions in the order of the study
    title: str  # what was asked
    notes: list[str]  # what there is to know beside it, a sentence each


def answer(
    results: str | Path,
    selection: dict[str, str],
    method: str | None = None,
    variables: Sequence[str] = (),
    mean: Sequence[str] = (),
    nearest: bool = False,
    tabled: bool = False,
) -> Answer:
    """Ask results on disk, as :func:`query` does; if published anew meanwhile, one of both.

    If ``tabled``, a table is wanted, which averages over seeds unless one of them is asked for.
    Its means are left to :func:`hdica.sweep.outcome.mean_table.mean_table`.
    """

    def ask() -> Answer:
        tree = open_results(results)
        chosen, over = choose_method(tree, list(selection), method), list(mean)
        if tabled and not over and "seed" not in selection:
            over = averaged_in_a_table(tree[chosen].to_dataset(), variables)
        ask_for = selected if tabled else query
        found = ask_for(tree, selection, chosen, variables, over, nearest)
        title = f"{chosen}, mean over {', '.join(over)}" if over else chosen
        notes, left = [], unfinished(tree, selection, chosen, nearest)
        if left:
            notes.append(f"of these points {left} (they have no value, or none at the end)")
        others = [m for m in methods(tree) if m != chosen]
        if tabled and method is None and others:
            notes.append(f"other methods: {', '.join(others)} (choose with --method)")
        return Answer(found, over if tabled else [], dim_order(tree, chosen), title, notes)

    return settled(results, ask)
