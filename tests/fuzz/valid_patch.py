"""Parameters of ICA of patches that must be accepted, and the analyses of its methods."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hdica.systems.method import Method

Draw = Any
FIELDS: dict[str, list[Any]] = {
    "colour": ["grey", "rgb"],
    "contrast": ["logcosh", "exp", "kurtosis", "he4", "log(cosh(c_*s))/c_"],
    "space": ["ambient", {"principal": 4}],
    "restarts": [1, 3],
    "test": [50, 10_000],
    "directions": [2, 20],
    "iterations": [5, 200],
    "tolerance": [1e-5, 1e-9],
    "kept": [2, 8],
}
SAMPLES: list[dict[str, Any]] = [
    {}, {"samples": 500}, {"samples_per_dimension": 3}, {"samples_per_dimension": 1.5},
]  # fmt: skip
AXES: dict[str, list[Any]] = {
    "width": [[4, 6], [8], {"start": 4, "stop": 8, "num": 3}],
    "colour": [["grey", "rgb"]],
    "contrast": [["logcosh", "exp"], ["log(cosh(c_*s))/c_"]],
    "d": [[2, 4], {"start": 2, "stop": 8, "num": 3}],
    "restarts": [[1, 5]],
    "c_": [[1, 1.5]],
}
SETS = {"d": "space"}


@st.composite
def parameters(draw: Draw) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stays fixed and what is swept; photographs that are there wherever tests run."""
    keys = draw(st.lists(st.sampled_from(list(AXES)), max_size=3, unique=True))
    grid = {key: draw(st.sampled_from(AXES[key])) for key in keys}
    taken = {SETS.get(key, key) for key in grid}
    fixed: dict[str, Any] = {"images": {"bundled": ["china"]}, "constants": {"c_": 1.2}}
    fixed |= draw(st.sampled_from(SAMPLES))
    for name, values in FIELDS.items():
        if name not in taken and draw(st.booleans()):
            fixed[name] = draw(st.sampled_from(values))
    if "c_" in grid:
        grid.pop("contrast", None)
        fixed["contrast"] = FIELDS["contrast"][-1]
        del fixed["constants"]
    if "width" not in grid:
        fixed["width"] = 5
    return fixed, grid


@st.composite
def analysis(draw: Draw, chosen: list[Method], grid: dict[str, Any]) -> dict[str, Any]:
    """Analyses that the chosen methods can give."""
    runs = [m.name for m in chosen if any(o.name == "test_loss" for o in m.outputs.always)]
    some: dict[str, Any] = {}
    if runs:
        some["compare"] = {"curves": runs, "variable": "raw_loss"}
        some["paths"] = {"simulation": runs[0], "runs": 2}
    return {name: settings for name, settings in some.items() if draw(st.booleans())}
