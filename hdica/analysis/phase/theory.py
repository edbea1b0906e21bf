"""The boundary in theory: from the store, or found here where the study computed none."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.reading import group, steady_states, study, system_of, transitions_in
from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING
from hdica.status import DONE
from hdica.systems.kinds import FOLD, ZERO
from hdica.systems.method import Method, Role
from hdica.systems.registry import system_named
from hdica.systems.space import Space, space_of

NONE = np.empty(0)
"""The times of what has none."""
MOST = 64
"""Values of x at which steady states are found here."""
SECONDS = 30.0
"""What a method may take by its own model of cost, over all values of x, to be run here."""


def with_theory(tree: xr.DataTree, x: str, simulation: str) -> xr.DataTree:
    """The store with transitions along x and steady states over x, found here if it lacks them.

    They depend on x alone: nothing else that is swept may change them. What cannot be found stays
    away, and so does what would take more than :data:`SECONDS` or is wanted at more than
    :data:`MOST` values of x: a study that names the method has it at any cost. Nothing is added to
    results that name no study, whose fixed parameters are unknown.
    """
    if not tree.attrs.get("study_yaml"):
        return tree
    found = tree
    if transitions_in(tree, x) is None:
        found = _with(found, x, simulation, Role.TRANSITIONS)
    if steady_states(tree) is None and tree[simulation].sizes[x] <= MOST:
        found = _with(found, x, simulation, Role.STEADY_STATES)
    return found


def _with(tree: xr.DataTree, x: str, simulation: str, role: Role) -> xr.DataTree:
    """The store with the group of the first method of a role that suits it."""
    method = _suiting(tree, x, simulation, role)
    if method is None:
        return tree
    try:
        data = _found(tree, simulation, method, x if role is Role.STEADY_STATES else "")
    except HdicaError:
        return tree  # without it the diagram is drawn all the same
    found = tree.copy()
    found[method.name] = xr.DataTree(data)
    return found


def _suiting(tree: xr.DataTree, x: str, simulation: str, role: Role) -> Method | None:
    """A method on which nothing that is swept beside x has an influence."""
    record = system_of(tree)
    if record is None or x not in [one.name for one in record.controls]:
        return None
    swept = [str(d) for d in tree[simulation]["status"].dims if d not in ("n", "seed", x)]
    grid = {key.replace(".", "_"): key for key in study(tree).get("grid") or {}}
    aliases = getattr(record.parameters, "aliases", {})
    tops = {aliases.get(grid.get(d, d), (grid.get(d, d).split(".")[0],))[0] for d in swept}
    for method in record.with_role(role):
        free = role is Role.STEADY_STATES or method.varies == x
        if method.name not in tree and free and tops <= method.ignores:
            return method
    return None


def _found(tree: xr.DataTree, simulation: str, method: Method, x: str) -> xr.Dataset:
    """What a method gives at every value of x, or once without x, as a store has it."""
    from hdica.systems.labelled import dataset

    space = _space(tree, simulation)
    axis = next((one for one in space.axes if one.dim == x), None)
    chosen = [{}] if axis is None else [{axis.path: value} for value in axis.values]
    needed = sum(method.seconds(space.at(one), None, 0.0) for one in chosen)
    if needed > SECONDS:
        raise HdicaError(f"{method.name} would take about {needed:.0f} s (name it in the study)")
    results = [method.run(space.at(one), NONE, None, None, NOTHING) for one in chosen]
    record = system_named(str(tree.attrs["system"]))
    given = results if axis is not None else results[:1]
    data = dataset(record, method, NONE, NOTHING, space.at().dims(), given, x)
    if axis is not None:
        data = data.assign_coords({x: list(axis.values)})
    shape = [data.sizes[x]] if axis is not None else []
    return data.assign(status=([x] if x else [], np.full(shape, DONE, dtype=np.uint8)))


def _space(tree: xr.DataTree, simulation: str) -> Space:
    """The systems of the study of a store, with the values that its simulation has."""
    said, data = study(tree), tree[simulation].to_dataset()
    parameters = system_named(str(said["system"])).parameters
    grid = {key: tuple(data[key.replace(".", "_")].values.tolist()) for key in said["grid"]}
    return space_of(parameters, said.get("parameters") or {}, grid)


def theory(tree: xr.DataTree, variable: str, x: str) -> xr.Dataset:
    """Boundary from the unstable fixed points, and the critical values of ``x``."""
    out: dict[str, xr.DataArray] = {}
    states, transitions = steady_states(tree), transitions_in(tree, x)
    if states is not None and x in tree[states].dims:
        fixed = group(tree, states)
        at, stable = fixed[variable], fixed["stable"]
        known = at.where((fixed["status"] == DONE) & (at > ZERO))
        out["boundary"] = known.where(stable == 0).min("fixed_point")
        out["boundary_stable"] = known.where(stable == 1).max("fixed_point")
    if transitions is not None:
        found = group(tree, transitions)
        found = found.where(found["kind"] == FOLD)  # where informative states appear or vanish
        pairs = {"critical_value": "value", "critical_overlap": variable, "critical_error": "error"}
        out |= {name: found[own] for name, own in pairs.items() if own in found}
    return xr.Dataset(out).reset_coords(drop=True)
