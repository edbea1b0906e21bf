"""Parameters of any rule that must be accepted, and its analyses."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hdica.systems.method import Method

Draw = Any
UPDATES = ["tau*(v - u)", "-tau*u**3", "tau*tanh(v - u)", "tau*sign(v)*(u*v < 0)", "tau*u/norm"]
SOURCES: list[Any] = [
    "uniform",
    {"chi2": 2},
    {"sum": [{"law": "uniform", "weight": 1}, {"law": "laplace", "weight": 2}]},
]
START: dict[str, Any] = {"overlap": [[0.3, 0.1], [-0.2, 0.4]]}
AXES: dict[str, list[Any]] = {
    "tau": [[0.1, 0.02], {"start": 0.01, "stop": 1, "num": 3, "spacing": "log"}],
    "normalise": [["none", "norm"], ["norm"]],
    "entrywise": [["0", "-0.1*x"], ["-0.1*sign(x)"]],
}
ONE: dict[str, list[Any]] = {"Q0": [[0.1, 0.5], {"start": -0.6, "stop": 0.6, "num": 3}]}


@st.composite
def parameters(draw: Draw, system: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stays fixed and what is swept, of one estimate and feature or of two of each."""
    several = system == "SeveralRule"
    axes = AXES if several else AXES | ONE
    keys = draw(st.lists(st.sampled_from(list(axes)), max_size=3, unique=True))
    grid = {key: draw(st.sampled_from(axes[key])) for key in keys}
    update = draw(st.sampled_from(UPDATES[1:3] if several else UPDATES))
    fixed: dict[str, Any] = {"update": update.replace("v", "v2") if several else update}
    if several:
        fixed |= {
            "source": draw(st.sampled_from([["uniform", s] for s in SOURCES])),
            "start": START,
        }
    elif draw(st.booleans()):
        fixed["source"] = draw(st.sampled_from(SOURCES))
    if "tau" not in grid:
        fixed["constants"] = {"tau": draw(st.sampled_from([0.3, 0.05]))}
    return fixed, grid


@st.composite
def analysis(draw: Draw, chosen: list[Method], grid: dict[str, Any]) -> dict[str, Any]:
    """Analyses that the chosen methods can give."""
    runs = [m.name for m in chosen if m.stochastic]
    limits = [m.name for m in chosen if not m.stochastic]
    some: dict[str, Any] = {}
    if runs or limits:
        some["compare"] = {"curves": runs + limits}
    if runs and limits:
        some["convergence"] = {"simulation": runs, "limit": limits[0]}
    return {name: settings for name, settings in some.items() if draw(st.booleans())}
