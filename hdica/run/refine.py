"""Add points to a study where its analysis sees neighbouring cells differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hdica.store.paths import locked
from hdica.store.results import laid_out
from hdica.store.working import chosen_cells, record_chosen
from hdica.study.refine import coarse, finer
from hdica.study.study import Study

NOTHING = (
    "refine: no two neighbouring cells of the grid differ, and no point was added (a wider or "
    "finer grid may have a boundary)"
)


def add_cells(study: Study, out: str | Path) -> bool:
    """Choose the cells of the next level, once all that are chosen are computed; whether any."""
    chosen = chosen_cells(study, out)
    more = finer(study, chosen, _sides(study, out))
    with locked(out):
        # Another run of the study may have gone on meanwhile.
        now = chosen_cells(study, out)
        finished = more is None and np.array_equal(now, chosen)
        record_chosen(study, out, now if more is None else more | now, finished)
    return more is not None


def without_boundary(study: Study, out: str | Path) -> str:
    """That a refinement has added nothing, empty if it has."""
    return NOTHING if np.array_equal(chosen_cells(study, out), coarse(study)) else ""


def _sides(study: Study, out: str | Path) -> NDArray[np.float64]:
    """What the analysis sees in the cells, shape (several, sizes of all axes)."""
    assert study.refine is not None
    settings, axes = getattr(study.analysis, study.refine.analysis), study.space.axes
    sizes = {axis.dim: axis.size for axis in axes}
    with laid_out(study, Path(out)) as tree:
        sides = type(settings).sides(tree, settings).load()
    lacking = {dim: size for dim, size in sizes.items() if dim not in sides.dims}
    sides = sides.drop_vars([d for d in lacking if d in sides.coords]).expand_dims(lacking)
    several = [dim for dim in sides.dims if dim not in sizes]
    values = sides.transpose(*several, *sizes).to_numpy()
    return np.asarray(values, dtype=float).reshape(-1, *sizes.values())
