"""The answer of a query as a Parquet file: a column a coordinate or variable, a row a value.

It is read by pandas, Polars, DuckDB, Arrow and whatever else reads Parquet; what the results say of
themselves is in the metadata of the file.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hdica.errors import HdicaError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

COLUMNS = "columns"
"""Key of the metadata with what the columns are: ``{name: {long_name, units}}`` as JSON."""


def check_parquet() -> None:
    """Say so in one sentence if there is nothing to write Parquet with.

    Raises
    ------
    HdicaError
        If the library is missing.
    """
    if find_spec("pyarrow") is None:
        raise HdicaError("--to parquet needs the library pyarrow (pip install 'hdica[tables]')")


def parquet(frame: pd.DataFrame, data: xr.Dataset) -> bytes:
    """Content of a Parquet file.

    Parameters
    ----------
    frame
        The rows; columns keep their types.
    data
        The selection that they were made of. Its attributes become metadata of the file, texts as
        they are and the others as JSON; those of its variables become metadata of their columns,
        and together, as JSON, the entry :data:`COLUMNS`.

    Raises
    ------
    HdicaError
        If pyarrow is missing.
    """
    check_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = {str(column): _about(data, str(column)) for column in frame.columns}
    table = pa.Table.from_pandas(frame, preserve_index=False)
    fields = [field.with_metadata(about[field.name]) for field in table.schema]
    said = {str(key): _text(value) for key, value in data.attrs.items()}
    kept = {**(table.schema.metadata or {}), **said, COLUMNS: json.dumps(about)}
    sink = pa.BufferOutputStream()
    pq.write_table(table.cast(pa.schema(fields, metadata=kept)), sink)
    return bytes(sink.getvalue())


def _about(data: xr.Dataset, column: str) -> dict[str, str]:
    """What a column is, and its units."""
    known = data[column].attrs if column in data.variables else {}
    return {key: str(known[key]) for key in ("long_name", "units") if key in known}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
