"""Parameters of Hebbian ICA that must be accepted, and the analyses of its methods."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hdica.systems.method import Method

Draw = Any
SOURCES: list[Any] = [
    "rademacher", "uniform", "laplace", {"bernoulli_gaussian": 0.3}, {"student": 9},
    {"discrete": {"values": [-1, 0, 3], "weights": [1, 2, 0.5]}},
]  # fmt: skip
RATES: dict[str, list[Any]] = {
    "mu": [0.02, "0.5/(t + 20)", {"steps": {"times": [1], "values": [0.1, 0.05]}}],
    "nu": [0.5, 4, "1 + 1/(1 + t)"],
    "eta": [1e-4, "c_/(t + 1000)"],
}
NONLINEARITIES = ["x**3", "tanh(x)", "x**3 - 0.1*x"]
AXES: dict[str, list[Any]] = {
    "alpha": [[0.2, 0.9], {"start": 0.1, "stop": 0.9, "num": 3}],
    "threshold": [[0.5, 0.8], [0.95]],
    "nonlinearity": [["x**3", "tanh(x)"]],
    "start": [["zero", "random"]],
    "c_": [[0.5, 2]],
}
RATE_AXES: dict[str, list[Any]] = {
    "mu": [[0.01, 0.03], {"start": 0.001, "stop": 0.1, "num": 3, "spacing": "log"}],
    "nu": [[0.1, 1, 4]],
    "eta": [[1e-5, 1e-4]],
}


@st.composite
def parameters(draw: Draw) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stays fixed and what is swept; exactly one step size."""
    k, m = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    unit = draw(st.sampled_from(sorted(RATES)))
    chosen = draw(st.lists(st.sampled_from(sorted(AXES)), max_size=2, unique=True))
    grid = {key: draw(st.sampled_from(AXES[key])) for key in chosen}
    fixed: dict[str, Any] = {
        "sources": [draw(st.sampled_from(SOURCES)) for _ in range(m)],
        "projections": k,
    }
    if "c_" in grid:
        fixed[unit] = "c_/(t + 1000)"
    elif draw(st.booleans()):
        grid[unit] = draw(st.sampled_from(RATE_AXES[unit]))
    else:
        fixed[unit] = draw(st.sampled_from(RATES[unit]))
    signs = st.lists(st.sampled_from([1, -1]), min_size=k, max_size=k)
    fixed["sigma"] = draw(st.one_of(signs, st.sampled_from(["stability", "escape", "adaptive"])))
    starts = ["zero", "random", {"random": True}, {"overlap": [[0.5] + [0.1] * (m - 1)] * k}]
    for name, values in {
        "nonlinearity": NONLINEARITIES, "alpha": [0.5, 0.05, 1.2], "start": starts,
    }.items():  # fmt: skip
        if name not in grid and draw(st.booleans()):
            fixed[name] = draw(st.sampled_from(values))
    if "c_" not in grid:
        fixed["constants"] = {"c_": 0.5}
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
    """Analyses that the chosen methods can give; those of overlaps take R by themselves."""
    entry = ("time", "projection", "source")
    runs, limits = (_over(chosen, "R", entry, random) for random in (True, False))
    passages, means = _over(chosen, "first", (), True), _over(chosen, "mean", (), False)
    numbers = [key for key in grid if key in {*RATES, "alpha", "threshold", "c_"}]
    some: dict[str, Any] = {}
    if runs and limits:
        some["convergence"] = {"simulation": runs, "limit": limits[0]}
    if runs or limits:
        some["compare"] = {"curves": runs + limits}
        some["decay"] = {"curves": runs + limits, "target": 0.5}
    if runs:
        some["paths"] = {"simulation": runs[0], "runs": 2, "threshold": 0.8}
    if any(m.name == "trapping" for m in chosen):
        some["trapping"] = {}
    swept = [key for key in numbers if all(_sweeps(m, key) for m in chosen)]
    if swept and (passages or means):
        some["escape"] = {"x": swept[0], "simulation": passages, "limits": means}
    return {name: settings for name, settings in some.items() if draw(st.booleans())}


def _sweeps(method: Method, key: str) -> bool:
    return key not in method.scope.ignores
