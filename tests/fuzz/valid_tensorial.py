"""Parameters of tensorial ICA that must be accepted, and the analyses of its methods."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hdica.systems.method import Method

Draw = Any
SOURCES: list[Any] = [
    "rademacher", "uniform", "laplace", {"bernoulli_gaussian": 0.3}, {"student": 9.5},
    {"discrete": {"values": [-1, 0, 3], "weights": [1, 2, 0.5]}},
]  # fmt: skip
STARTS: list[Any] = [
    "uniform", "axis", "maximiser", {"angle": 0.3}, {"support": 2}, {"v": [1, -2]},
]  # fmt: skip
STEPS: list[dict[str, Any]] = [
    {"eta": 1e-5},
    {"eta": "c_/(t + 1000)"},
    {"eta": {"steps": {"times": [1], "values": [1e-4, 2e-5]}}},
    {"schedule": {"T": 1000, "c1": 0.1, "c2": 1}},
    {"schedule": {"kappa": 8, "c1": 0.05}},
    {"schedule": {"T": 2000, "c2": 1.5}},
    {"schedule": {"anneal": 1, "t0": 5000}},
]
AXES: dict[str, list[Any]] = {
    "dimension": [[2, 3], [4]],
    "source": [["uniform", "rademacher"]],
    "angle": [[0.1, 0.5], {"start": 0, "stop": 0.5, "num": 3}],
    "sign": [["known", "estimated"]],
    "mixing": [["identity", "random"]],
    "eta": [[1e-6, 1e-5], {"start": 1e-6, "stop": 1e-5, "num": 3, "spacing": "log"}],
    "c_": [[0.01, 0.02]],
}
SETS = {"angle": "start"}


@st.composite
def parameters(draw: Draw) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stays fixed and what is swept; exactly one way to set the step size."""
    keys = draw(st.lists(st.sampled_from(list(AXES)), max_size=3, unique=True))
    grid = {key: draw(st.sampled_from(AXES[key])) for key in keys}
    fixed: dict[str, Any] = {"constants": {"c_": 0.01}}
    if "c_" in grid:
        grid.pop("eta", None)
        fixed = {"eta": STEPS[1]["eta"]}
    elif "eta" not in grid:
        fixed |= draw(st.sampled_from(STEPS))
    taken = {SETS.get(key, key) for key in grid}
    vectors = "dimension" in grid
    starts = [one for one in STARTS if not (vectors and isinstance(one, dict) and "v" in one)]
    fields: dict[str, list[Any]] = {
        "source": SOURCES, "start": starts, "sign": ["known", "estimated"],
        "mixing": ["identity", "random"], "bounds": [{}, {"noise": 0.1, "epsilon": 0.05}],
    }  # fmt: skip
    for name, values in fields.items():
        if name not in taken and draw(st.booleans()):
            fixed[name] = draw(st.sampled_from(values))
    if not vectors:
        fixed["dimension"] = 2
    return fixed, grid


def _over(chosen: list[Method], variable: str, dims: tuple[str, ...], random: bool) -> list[str]:
    return [
        m.name
        for m in chosen
        if m.stochastic == random
        and any(o.name == variable and o.dims == dims for o in m.outputs.always)
    ]


@st.composite
def analysis(draw: Draw, chosen: list[Method], grid: dict[str, Any]) -> dict[str, Any]:
    """Analyses that the chosen methods can give."""
    runs, limits = (_over(chosen, "tan2", ("time",), random) for random in (True, False))
    ends, ended = (_over(chosen, "tan2", (), random) for random in (True, False))
    names = {m.name for m in chosen}
    swept = [key for key in grid if key in ("dimension", "eta", "c_")]
    some: dict[str, Any] = {}
    if runs:
        bound = {"bound": "bounds", "terms": "lemma_6", "power": 2} if "bounds" in names else {}
        some["ensemble"] = {"simulation": runs[0], "theory": limits, "crossings": 0.3} | bound
        some["paths"] = {"simulation": runs[0], "runs": 2, "threshold": 0.8}
    if runs or limits:
        some["compare"] = {"curves": runs + limits}
        some["decay"] = {"curves": runs + limits, "target": 0}
    of_all = [key for key in swept if all(key not in m.scope.ignores for m in chosen)]
    if ends and of_all:
        theory = {"theory": ended[0]} if ended else {}
        some["exponents"] = {"simulation": ends, "variable": "tan2", "over": of_all[:1]} | theory
    if ends and len(of_all) > 1:
        x, y = of_all[:2]
        some["success"] = {"simulation": ends[0], "variable": "tan2", "below": 0.3, "x": x, "y": y}
    if "critical_points" in names:
        some["sphere"] = {"states": "critical_points", "coordinates": "v"}
    return {name: settings for name, settings in some.items() if draw(st.booleans())}
