"""Results of a study with xarray: ``python with_xarray.py results/first.zarr figure.pdf``.

The study has a simulation, ``chain``, and its limit, ``ode``.
"""

import sys

import hdica

store, figure = sys.argv[1:]
tree = hdica.open_results(store)  # a DataTree, read when it is used
print(tree.hdica)

# One method's results are a Dataset; its accessor asks what hdica knows to ask.
runs, limit = tree.hdica.dataset("chain"), tree.hdica.dataset("ode")
means = runs.hdica.mean("Q")  # Q, Q_se, Q_sd and Q_runs over every swept parameter, n and time
last = means.isel(n=-1, time=-1)
print(last[["Q", "Q_se"]].to_dataframe())

# How far is the mean from the limit, and when do the runs cross a value?
gap = runs.hdica.distance(limit)
print("largest difference:", gap["sup_error"].isel(n=-1).values.round(4).tolist())
print("its standard error:", gap["sup_error_se"].isel(n=-1).values.round(4).tolist())
passed = runs.isel(n=-1).hdica.crossings("Q", 0.5)
print("runs that cross 0.5:", passed["reached"].values.tolist())

# A figure for a paper.
with hdica.plots.style():
    axes = runs.isel(n=-1).hdica.plot.trajectories(limit=limit)
    axes.figure.savefig(figure)
