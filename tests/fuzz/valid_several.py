"""Parameters of online ICA with several features that must be accepted, and its analyses."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hdica.systems.method import Method

Draw = Any
PAIRS: list[Any] = [["uniform", "laplace"], ["rademacher", {"chi2": 2}], ["gaussian", "uniform"]]
STEPS: list[Any] = [0.05, "0.1/(1 + t/50)", {"steps": {"times": [1], "values": [0.1, 0.02]}}]
AXES: dict[str, list[Any]] = {
    "tau": [[0.1, 0.02], {"start": 0.01, "stop": 1, "num": 3, "spacing": "log"}],
    "Q1": [[0.1, 0.5], {"start": -0.6, "stop": 0.6, "num": 3}],
    "Q2": [[0, 0.7]],
    "nonlinearity": [["x**3", "-x**3"], ["tanh(x)", "x**3"]],
}


@st.composite
def parameters(draw: Draw) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stays fixed and what is swept; each overlap of the start once."""
    keys = draw(st.lists(st.sampled_from(list(AXES)), max_size=3, unique=True))
    grid = {key: draw(st.sampled_from(AXES[key])) for key in keys}
    fixed: dict[str, Any] = {"sources": draw(st.sampled_from(PAIRS))}
    if "tau" not in grid:
        fixed["tau"] = draw(st.sampled_from(STEPS))
    if "nonlinearity" not in grid and draw(st.booleans()):
        fixed["nonlinearity"] = draw(st.sampled_from(["a*x**3", "tanh(a*x)"]))
        fixed["constants"] = {"a": 0.5}
    for name, value in (("Q1", 0.4), ("Q2", -0.3)):
        if name not in grid:
            fixed[name] = value
    return fixed, grid


@st.composite
def analysis(draw: Draw, chosen: list[Method], grid: dict[str, Any]) -> dict[str, Any]:
    """Analyses that the chosen methods can give."""
    runs = [m.name for m in chosen if m.stochastic]
    states = [m.name for m in chosen if any("fixed_point" in o.dims for o in m.outputs.always)]
    limits = [m.name for m in chosen if not m.stochastic and m.name not in states]
    some: dict[str, Any] = {}
    if runs or limits:
        some["compare"] = {"curves": runs + limits}
    if runs and limits:
        some["convergence"] = {"simulation": runs, "limit": limits[0]}
    if runs and {"Q1", "Q2"} <= set(grid):
        some["phase"] = {"simulation": runs[0], "x": "Q1", "y": "Q2", "success": 0.4}
    return {name: settings for name, settings in some.items() if draw(st.booleans())}
