"""Write the answer of a query: a table, csv, json, netcdf or parquet."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdica.errors import HdicaError, printable, suggestion
from hdica.sweep.files.folder import check_file, write_file
from hdica.sweep.outcome.mean_table import mean_table
from hdica.sweep.outcome.parquet import check_parquet, parquet
from hdica.sweep.outcome.query import table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

ROWS = 40
"""Rows of a table on a terminal."""
BINARY = {"netcdf": ".nc", "parquet": ".parquet"}
"""What is no text and so not for a terminal, and how its files are called."""
FORMATS = ("csv", "json", *BINARY, "-")


def check_export(to: str, out: Path | None) -> None:
    """Refuse what cannot be written, before anything is read.

    Raises
    ------
    HdicaError
        If there is no such format, a terminal would get bytes, a library is missing, or ``out`` is
        no place for a file.
    """
    if to not in FORMATS:
        raise HdicaError(f"--to {to!r} is not allowed ({suggestion(to, FORMATS)})")
    if out is not None:
        check_file(out)
    elif to in BINARY and sys.stdout.isatty():
        raise HdicaError(
            f"--to {to} is not for a terminal (give --out FILE{BINARY[to]} or redirect)"
        )
    if to == "parquet":
        check_parquet()


def export(
    data: xr.Dataset,
    to: str,
    out: Path | None,
    order: list[str],
    title: str,
    over: Sequence[str] = (),
) -> None:
    """Write a selection in one of :data:`FORMATS`; ``-`` is a table, whose title is shown.

    ``out`` is a file, or None for stdout; ``order`` is that of the coordinates, ``over`` what a
    table averages over.
    """
    if to == "netcdf":
        _bytes(_netcdf(data), out)
        return
    frame = mean_table(data, over, order) if over else table(data, order)
    if to == "parquet":
        _bytes(parquet(frame, data), out)
        return
    if to == "-" and out is None and sys.stdout.isatty():
        _rich(frame, title)
        return
    text = {"csv": _csv, "json": _json, "-": _plain}[to](frame)
    if out is None:
        sys.stdout.write(printable(text, " \n\t") if sys.stdout.isatty() else text)
    else:
        write_file(out, text.encode())


def _csv(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False, lineterminator="\n")


def _json(frame: pd.DataFrame) -> str:
    def plain(value: Any) -> Any:
        found = value.item() if hasattr(value, "item") else value
        return None if isinstance(found, float) and not math.isfinite(found) else found

    columns = [str(column) for column in frame.columns]
    rows = [
        dict(zip(columns, map(plain, row), strict=True))
        for row in frame.itertuples(index=False, name=None)
    ]
    return json.dumps(rows, indent=1) + "\n"


def _plain(frame: pd.DataFrame) -> str:
    text: str = frame.to_string(index=False, float_format=lambda v: f"{v:.6g}", na_rep="-")
    return text + "\n"


def _netcdf(data: xr.Dataset) -> bytes:
    # In memory: where the disk is full, HDF5 ends with what it was doing, not with why.
    return bytes(data.to_netcdf(engine="h5netcdf"))


def _bytes(content: bytes, out: Path | None) -> None:
    if out is None:
        sys.stdout.buffer.write(content)
    else:
        write_file(out, content)


def _rich(frame: pd.DataFrame, title: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def cell(value: Any) -> Text:
        # Not markup, and nothing that a terminal would obey.
        return Text(f"{value:.6g}" if isinstance(value, float) else printable(str(value)))

    shown = Table(box=box.SIMPLE_HEAD, title=Text(printable(title)))
    for column in frame.columns:
        shown.add_column(cell(str(column)), justify="right")
    for row in frame.head(ROWS).itertuples(index=False, name=None):
        shown.add_row(*map(cell, row))
    console = Console()
    console.print(shown)
    if len(frame) > ROWS:
        console.print(f"{len(frame) - ROWS} more rows (--to csv prints all)", highlight=False)
