"""Write the answer of a query: a table, csv, json, netcdf or parquet."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdica.errors import HdicaError, printable, suggestion
from hdica.store.paths import check_file, write_file
from hdica.store.query import table

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

BINARY = {"netcdf": ".nc", "parquet": ".parquet"}
"""What is no text and so not for a terminal, and how its files are called."""
FORMATS = ("csv", "json", *BINARY, "-")
COLUMNS = "columns"
"""Key of the metadata of a Parquet file: ``{name: {long_name, units}}`` of its columns as JSON."""


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
    if to == "parquet" and find_spec("pyarrow") is None:
        raise HdicaError("--to parquet needs the library pyarrow (pip install 'hdica[tables]')")


def export(data: xr.Dataset, to: str, out: Path | None, order: Sequence[str] = ()) -> None:
    """Write a selection.

    Parameters
    ----------
    data
        The selection, loaded.
    to
        One of :data:`FORMATS`; ``-`` is a table.
    out
        A file, or None for stdout.
    order
        Dimensions in the order of a table's columns.
    """
    content = _netcdf(data) if to == "netcdf" else _written(table(data, order), data, to)
    if out is not None:
        write_file(out, content.encode() if isinstance(content, str) else content)
    elif isinstance(content, bytes):
        sys.stdout.buffer.write(content)
    else:
        sys.stdout.write(printable(content, " \n\t") if sys.stdout.isatty() else content)


def _netcdf(data: xr.Dataset) -> bytes:
    # In memory: where the disk is full, HDF5 ends with what it was doing, not with why.
    return bytes(data.to_netcdf(engine="h5netcdf"))


def _written(frame: pd.DataFrame, data: xr.Dataset, to: str) -> str | bytes:
    """Rows in a format; ``data`` is the selection that they were made of."""
    if to == "parquet":
        return _parquet(frame, data)
    if to == "csv":
        return frame.to_csv(index=False, lineterminator="\n")
    if to == "json":
        # Not DataFrame.to_json, which writes 15 digits of a number, and at most 17 are needed.
        rows = frame.to_dict("records")
        return json.dumps([{k: _plain(v) for k, v in row.items()} for row in rows], indent=1) + "\n"
    text: str = frame.to_string(index=False, float_format=lambda v: f"{v:.6g}", na_rep="-")
    return text + "\n"


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _parquet(frame: pd.DataFrame, data: xr.Dataset) -> bytes:
    """Content of a Parquet file, for pandas, Polars, DuckDB, Arrow and whatever else reads it.

    Columns keep their types. The attributes of the results become metadata of the file, texts as
    they are and the others as JSON; long names and units become metadata of their columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def about(column: str) -> dict[str, str]:
        attrs = data[column].attrs if column in data.variables else {}
        return {key: str(attrs[key]) for key in ("long_name", "units") if key in attrs}

    rows = pa.Table.from_pandas(frame, preserve_index=False)
    columns = {name: about(name) for name in rows.schema.names}
    attrs = {str(k): v if isinstance(v, str) else json.dumps(v) for k, v in data.attrs.items()}
    metadata = {**(rows.schema.metadata or {}), **attrs, COLUMNS: json.dumps(columns)}
    fields = [field.with_metadata(columns[field.name]) for field in rows.schema]
    sink = pa.BufferOutputStream()
    pq.write_table(rows.cast(pa.schema(fields, metadata=metadata)), sink)
    return bytes(sink.getvalue())
