"""Results of a study with DuckDB: ``python with_duckdb.py results/first.zarr means.parquet``.

The study has a simulation, ``chain``. ``hdica query STORE --to parquet --out FILE`` writes the same
rows from a terminal, which DuckDB reads as ``select * from 'FILE'``.
"""

import sys

import duckdb

import hdica

store, out = sys.argv[1:]
tree = hdica.open_results(store)

# A table of every run at every time; DuckDB reads a DataFrame by its name.
runs = tree["chain"].to_dataset()[["Q", "status"]].to_dataframe().reset_index()
means = duckdb.sql(
    """
    select tau, n, time, avg(Q) as Q, stddev_samp(Q) / sqrt(count(*)) as Q_se, count(*) as runs
    from runs
    where status = 1  -- done
    group by tau, n, time
    order by tau, n, time
    """
)
print(means)
means.write_parquet(out)
print(duckdb.sql(f"select tau, max(abs(Q)) as largest from '{out}' group by tau order by tau"))
