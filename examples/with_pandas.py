"""Results of a study with pandas: ``python with_pandas.py results/first.zarr``.

The study has a simulation, ``chain``.
"""

import sys

import hdica

tree = hdica.open_results(sys.argv[1])
means = tree.hdica["chain"].mean("Q").isel(time=-1)

# One row a grid point and n: labels become columns.
table = means.to_dataframe().reset_index()
print(table[["tau", "n", "Q", "Q_se", "Q_runs"]].to_string(index=False))

# Single runs: one row a seed; what did not finish is no result.
last = tree["chain"].to_dataset().isel(time=-1).to_dataframe().reset_index()
last = last[last["status"] == 1]
print(last.groupby(["tau", "n"])["Q"].describe()[["count", "mean", "std"]])
