"""Which cells of a grid a refinement has computed: the coarse ones, then those between unlike ones.

A box of neighbouring cells that an analysis sees differ, at its corners or anywhere on it, is
divided in halves along each refined axis, until its sides are steps of the finest grid. The
decision is a function of results alone, so that neither workers nor restarts change it.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from hdica.errors import HdicaError, suggestion
from hdica.study.schema import StudySchema

Mask = NDArray[np.bool_]


def check_refine(study: StudySchema) -> None:
    """Refuse to refine what no analysis of the study sees, or other axes than numbers of a grid."""
    refine = study.refine
    if refine is None:
        return
    own = {name: kind for name, kind in study.analysis.items() if kind.sides is not None}
    if refine.analysis not in own:
        near = suggestion(refine.analysis, [*own]) if own else "phase or success, which it lacks"
        raise HdicaError(f"refine.analysis = {refine.analysis!r} is not one of the study ({near})")
    axes = [name for _, name in own[refine.analysis].swept()]
    if sorted(refine.over) != sorted(axes):
        raise HdicaError(
            f"refine.over = {[*refine.over]} is not allowed (the axes of the analysis, "
            f"{' and '.join(axes)}, which it may leave out)"
        )
    dims = [key.replace(".", "_") for key in study.grid]
    for name in axes:
        if name not in dims:
            raise HdicaError(f"refine: {name} is no parameter of the grid (cases and samples stay)")
    if study.where:
        raise HdicaError(
            f"where = {study.where!r} is not allowed with refine (it decides which points to leave "
            "out)"
        )


def _places(study: StudySchema) -> list[int]:
    """Positions of the refined axes among all that are swept."""
    assert study.refine is not None
    return [k for k, axis in enumerate(study.space.axes) if axis.dim in study.refine.over]


def coarse(study: StudySchema) -> Mask:
    """The cells of the grid as the study writes it, shape (sizes of all axes at the finest)."""
    assert study.refine is not None
    chosen = np.ones([axis.size for axis in study.space.axes], dtype=bool)
    for place in _places(study):
        index = np.arange(chosen.shape[place]) % study.refine.parts == 0
        chosen &= index.reshape([-1 if k == place else 1 for k in range(chosen.ndim)])
    return chosen


def finer(study: StudySchema, chosen: Mask, sides: NDArray[np.float64]) -> Mask | None:
    """The chosen cells with those of the next finer level; None if nothing is left to divide.

    Parameters
    ----------
    study
        With a refinement.
    chosen
        Cells that are computed, shape (sizes of all axes).
    sides
        What the analysis sees in them, NaN where that is nothing, shape (several, sizes of all
        axes): neighbours that differ in any of the several are divided.
    """
    assert study.refine is not None
    places, parts = _places(study), study.refine.parts
    seen = np.where(chosen, sides, np.nan)
    while parts > 1:
        more = chosen.copy()
        for corner in _unlike(seen, chosen, places, parts):
            box: list[slice | int] = list(corner)
            for place in places:
                box[place] = slice(corner[place], corner[place] + parts + 1, parts // 2)
            more[tuple(box)] = True
        if (more & ~chosen).any():
            return more
        parts //= 2
    return None


def _unlike(
    seen: NDArray[np.float64], chosen: Mask, places: list[int], width: int
) -> list[list[int]]:
    """Lower corners of the boxes with computed corners on which cells differ."""
    shape = tuple(width + 1 for _ in places)
    corners = sliding_window_view(chosen, shape, axis=tuple(places))
    boxes = sliding_window_view(seen, shape, axis=tuple(place + 1 for place in places))
    aligned = [slice(None)] * chosen.ndim
    for place in places:
        aligned[place] = slice(None, None, width)
    corners, boxes = corners[tuple(aligned)], boxes[(slice(None), *aligned)]
    ends = (slice(None),) * chosen.ndim + (slice(None, None, width),) * len(places)
    whole = corners[ends]
    inside = tuple(range(-len(places), 0))
    least = np.min(np.where(np.isnan(boxes), np.inf, boxes), axis=inside)
    most = np.max(np.where(np.isnan(boxes), -np.inf, boxes), axis=inside)
    unlike = (most > least).any(axis=0) & whole.all(axis=inside)
    steps = [width if k in places else 1 for k in range(chosen.ndim)]
    corners_of: list[list[int]] = (np.argwhere(unlike) * steps).tolist()
    return corners_of
