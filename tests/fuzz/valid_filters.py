"""Parameters of series of filters that must be accepted, and the analyses of their methods."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hdica.systems.method import Method

Draw = Any
FILTERS: list[Any] = [
    {"random": {"filters": 3, "width": 4}},
    {"random": {"filters": 2, "width": 6, "seed": 5}},
    {"trained": {"steps": 5, "filters": 2, "width": 4, "labels": "random"}},
]
IMAGES: list[Any] = [{"bundled": ["china", "flower"]}, {"bundled": "flower"}]
AXES: dict[str, list[Any]] = {
    "k": [[0.2, 0.4], [3, 5], {"start": 0.1, "stop": 0.9, "num": 3}],
    "colour": [["grey"]],
    "patches": [[20, 50]],
}


@st.composite
def parameters(draw: Draw) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stays fixed and what is swept."""
    keys = draw(st.lists(st.sampled_from(list(AXES)), max_size=2, unique=True))
    grid = {key: draw(st.sampled_from(AXES[key])) for key in keys}
    # Photographs that scikit-learn brings: they are there without anything extra.
    fixed: dict[str, Any] = {
        "filters": draw(st.sampled_from(FILTERS)), "images": draw(st.sampled_from(IMAGES)),
    }  # fmt: skip
    fields: dict[str, list[Any]] = {"colour": ["grey", "rgb"], "k": [0.5, 7], "patches": [30]}
    for name, values in fields.items():
        if name not in grid and draw(st.booleans()):
            fixed[name] = draw(st.sampled_from(values))
    return fixed, grid


def _has(method: Method, variable: str, dims: tuple[str, ...]) -> bool:
    return any(o.name == variable and o.dims == dims for o in method.outputs.always)


@st.composite
def analysis(draw: Draw, chosen: list[Method], grid: dict[str, Any]) -> dict[str, Any]:
    """Analyses that the chosen methods can give."""
    timed = [m for m in chosen if _has(m, "excess_overlap", ("time",))]
    runs = [m.name for m in timed if m.stochastic]
    some: dict[str, Any] = {}
    if timed:
        some["compare"] = {"curves": [m.name for m in timed], "variable": "excess_overlap"}
    if runs:
        some["ensemble"] = {"simulation": runs[0], "variable": "kurtosis"}
    for over in ("time", "fraction"):
        able = [m for m in chosen if _has(m, "printed_overlap", (over,))]
        if able and "curves" not in some:
            known = [m.name for m in able if not m.stochastic]
            some["curves"] = {
                "method": able[0].name, "variables": ["excess_overlap", "printed_overlap"],
                "over": over, "theory": next(iter(known), None), "rises": draw(st.booleans()),
            }  # fmt: skip
    return {name: settings for name, settings in some.items() if draw(st.booleans())}
