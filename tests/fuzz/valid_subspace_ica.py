"""Parameters of subspace ICA that must be accepted, and the analyses of its methods."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hdica.systems.method import Method

Draw = Any
LATENT: list[Any] = [
    "rademacher", "uniform", "laplace", {"bernoulli_gaussian": 0.1}, {"chi2": 4},
    {"discrete": {"values": [-1, 0, 3], "weights": [1, 2, 0.5]}},
]  # fmt: skip
CONTRASTS = ["exp", "logcosh", "kurtosis", "he4", "log(cosh(c_*s))/c_"]
SPACES: list[Any] = ["principal", "known", "ambient", {"principal": 2}, {"principal": 5}]
ALGORITHMS: list[dict[str, Any]] = [
    {},
    {"batch": "fresh", "iterations": 3},
    {"restarts": 1, "tolerance": 1e-6},
    {"algorithm": "sgd", "eta": 0.5, "batch": 20},
    {"algorithm": "sgd", "eta": 0.1, "batch": "all", "direction": "ascent"},
    {"algorithm": "flow", "direction": "descent"},
]
AXES: dict[str, list[Any]] = {
    "beta": [[0.5, 1.0], {"start": 0.5, "stop": 4, "num": 3, "spacing": "log"}],
    "samples_per_dimension": [[4, 8], [6]],
    "a0": [[0.1, 0.5], {"start": 0.1, "stop": 0.9, "num": 3}],
    "latent": [["rademacher", "laplace"]],
    "contrast": [["exp", "logcosh"]],
    "whitening": [["sample", "population"]],
    "dimension": [[20, 30]],
    "d": [[2, 4]],
}
SETS = {"a0": "start", "d": "space"}


@st.composite
def parameters(draw: Draw) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stays fixed and what is swept; always a finite number of samples."""
    keys = draw(st.lists(st.sampled_from(list(AXES)), max_size=3, unique=True))
    grid = {key: draw(st.sampled_from(AXES[key])) for key in keys}
    taken = {SETS.get(key, key) for key in grid}
    fixed: dict[str, Any] = {"rank": 2, "constants": {"c_": 1.5}}
    fixed |= draw(st.sampled_from(ALGORITHMS))
    if "dimension" not in taken:
        fixed["dimension"] = 20
    if "beta" not in taken:
        fixed["beta"] = draw(st.sampled_from([1, 2.5, [3, 1]]))
    if "samples_per_dimension" not in taken:
        fixed |= draw(st.sampled_from([{"samples_per_dimension": 5}, {"samples": 150}]))
    fields: dict[str, list[Any]] = {
        "alpha": ["equal", [0.6, -0.8]], "latent": LATENT, "contrast": CONTRASTS,
        "space": SPACES, "whitening": ["sample", "population"],
        "start": ["uniform", {"overlap": 0.3}],
    }  # fmt: skip
    for name, values in fields.items():
        if name not in taken and draw(st.booleans()):
            fixed[name] = draw(st.sampled_from(values))
    return fixed, grid


def _over(chosen: list[Method], dims: tuple[str, ...], random: bool) -> list[str]:
    return [
        m.name
        for m in chosen
        if m.stochastic == random
        and any(o.name == "overlap" and o.dims == dims for o in m.outputs.always)
    ]


@st.composite
def analysis(draw: Draw, chosen: list[Method], grid: dict[str, Any]) -> dict[str, Any]:
    """Analyses that the chosen methods can give."""
    runs, limits = (_over(chosen, ("time",), random) for random in (True, False))
    some: dict[str, Any] = {}
    if runs:
        some["ensemble"] = {"simulation": runs[0], "theory": limits}
    if runs or limits:
        some["compare"] = {"curves": runs + limits}
    return {name: settings for name, settings in some.items() if draw(st.booleans())}
