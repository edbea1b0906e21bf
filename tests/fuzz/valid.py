"""Study files that must be accepted: every system, method, ingredient, analysis and spelling."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import strategies as st

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.study.segment import can_keep
from hdica.systems import system as registry
from hdica.systems.method import Method, Simulation
from hdica.systems.space import space_of
from hdica.systems.values import parse_axis
from tests.fuzz import (
    valid_filters,
    valid_hebbian,
    valid_patch,
    valid_rules,
    valid_several,
    valid_subspace_ica,
    valid_tensorial,
)

Draw = Any
PLAIN = st.text(
    st.characters(categories=["L", "N", "P", "S"], include_characters=" ", max_codepoint=0x2FFF),
    max_size=40,
)
SOURCES: list[Any] = [
    "rademacher", "uniform", "laplace", "gaussian", {"bernoulli_gaussian": 0.3}, {"student": 9},
    {"chi2": 3}, {"scipy": "arcsine"}, {"scipy": "gamma", "a": 2.5},
    {"discrete": {"values": [-1, 0, 3], "weights": [1, 2, 0.5]}}, {"discrete": {"values": [0, 1]}},
]  # fmt: skip
PRIORS: list[Any] = [
    "dense", "gaussian", {"sparse": 0.3}, {"sparse_sign": 0.5}, {"bernoulli_gaussian": 0.25},
    {"atoms": [1, 2], "weights": [0.5, 0.5]}, {"bernoulli_gaussian": 1},
]  # fmt: skip
STARTS: list[Any] = [
    {"overlap": 0.4}, {"overlap": -1}, {"overlap": 0.5, "exact": True}, {"overlap": 0},
    {"normal": {"mean": 0.7, "var": 0.5}}, {"normal": {"mean": 0, "var": 1}},
]  # fmt: skip
STEPS: list[Any] = [
    0.05, 1, "0.1/(1 + t/50)", "gamma_*0.2", {"steps": {"times": [1], "values": [0.1, 0.05]}},
]  # fmt: skip
NONLINEARITIES = ["x**3", "-x**3", "x**3 - 0.1*x", "tanh(x)", "x", "beta*x**3", "x**2/3 + 1"]
REGULARIZERS = [
    "0",
    "0.1*x",
    "beta*sign(x)",
    "0.2*sign(x) + x/5",
    "tanh(2*x)",
    "x**3/9",
    "abs(x)/4",
]
CONSTANTS = {"beta": 0.3, "gamma_": 0.5}
TIMES: list[Any] = [
    [0, 0.5, 1], [2], [0], {"stop": 4, "num": 5}, {"start": 1, "stop": 8, "num": 4,
    "spacing": "log"},
]  # fmt: skip
AXES: dict[str, list[Any]] = {
    "tau": [[0.1, 0.02], {"start": 0.01, "stop": 1, "num": 3, "spacing": "log"}, [0.25]],
    "Q0": [[0.1, 0.5], {"start": 0.1, "stop": 0.9, "num": 3}],
    "rho": [[0.2, 0.5], [0.05]],
    "source": [["uniform", "laplace"], ["gaussian"]],
    "prior": [["gaussian", "dense"]],
    "prior.sparse_sign": [[0.1, 0.9]],
    "start.normal.var": [[0.5, 1.5]],
    "regularizer": [["0", "0.1*x"], ["beta*sign(x)"]],
    "nonlinearity": [["x**3", "-x**3"]],
    "beta": [[0.1, 0.2], [-1]],
    "omega": [[0.5, 2], {"start": 0, "stop": 1, "num": 2}],
    "variant": [["linearised"]],
}
OWN = {
    "SeveralICA": valid_several,
    "HebbianICA": valid_hebbian,
    "TensorialICA": valid_tensorial,
    "SubspaceICA": valid_subspace_ica,
    "PatchICA": valid_patch,
    "FilterSeries": valid_filters,
    "OnlineRule": valid_rules,
    "SeveralRule": valid_rules,
}
"""Systems with parameters and analyses of their own."""
SETS = {  # the field that an axis sets, beside its own name
    "Q0": "start", "rho": "prior", "prior.sparse_sign": "prior", "start.normal.var": "start",
}  # fmt: skip


@st.composite
def parameters(draw: Draw, system: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stays fixed and what is swept; no field twice, and no constant without a number."""
    own = {"OnlineICA": {"source", "nonlinearity"}, "SparsePCA": {"omega", "variant"}}
    foreign = own["OnlineICA" if system == "SparsePCA" else "SparsePCA"]
    keys = [key for key in AXES if key not in foreign]
    chosen = draw(st.lists(st.sampled_from(keys), max_size=3, unique=True))
    taken: set[str] = set()
    grid: dict[str, Any] = {}
    for key in chosen:
        field = SETS.get(key, key)
        if field not in taken:
            taken.add(field)
            grid[key] = draw(st.sampled_from(AXES[key]))
    fields: dict[str, list[Any]] = {
        "tau": STEPS, "prior": PRIORS, "start": STARTS, "regularizer": REGULARIZERS,
        **({"source": SOURCES, "nonlinearity": NONLINEARITIES} if system == "OnlineICA" else {}),
        **({"omega": [1, 0, 2.5], "variant": ["linearised"]} if system == "SparsePCA" else {}),
    }  # fmt: skip
    fixed = {
        name: draw(st.sampled_from(values))
        for name, values in fields.items()
        if name not in taken and (name == "tau" or draw(st.booleans()))
    }
    if "start.normal.var" in grid:
        fixed["start"] = {"normal": {"mean": 0.5}}
    if "beta" in grid:
        fixed["regularizer"] = "beta*sign(x)"
        grid.pop("regularizer", None)
        fixed["constants"] = {"gamma_": 0.5}
    else:
        fixed["constants"] = dict(CONSTANTS)
    return fixed, grid


def _built(system: str, fixed: dict[str, Any], grid: dict[str, Any]) -> list[Any]:
    """A system for every value of every axis, the others at their first."""
    space = space_of(
        registry.system_named(system).parameters,
        fixed,
        {key: parse_axis(values, key) for key, values in grid.items()},
    )
    return [
        space.at(),
        *(space.at({axis.path: one}) for axis in space.axes for one in axis.values[1:]),
    ]


def _uneven(method: Method, systems: list[Any]) -> bool:
    """Whether results of a method have another shape for some of the systems."""
    dims = {dim for output in method.outputs.always for dim in output.dims}
    own = [{k: v for k, v in one.dims().items() if k in dims} for one in systems]
    return any(one != own[0] for one in own)


@st.composite
def methods(draw: Draw, fit: list[Method]) -> dict[str, Any]:
    """Some of the methods that fit, with n and seeds where they need them."""
    chosen = draw(
        st.lists(st.sampled_from(fit), min_size=1, max_size=4, unique_by=lambda m: m.name)
    )
    dimensions = st.sampled_from([100, [50], [3000, 20, 50], [10**6]])
    seeds = st.sampled_from([1, 16, [0, 5], [7]])

    def settings(method: Method) -> Any:
        needed = {"n": method.takes_n, "seeds": method.stochastic}
        if not any(needed.values()):
            return draw(st.sampled_from([{}, None]))
        return {k: draw(v) for k, v in (("n", dimensions), ("seeds", seeds)) if needed[k]}

    return {m.name: settings(m) for m in chosen}


@st.composite
def saved(
    draw: Draw, chosen: list[Method], times: list[float], grouped: bool
) -> dict[str, Any] | None:
    """What the chosen methods can keep, or nothing; densities where all cells have their groups."""
    at = tuple(sorted(draw(st.sets(st.sampled_from(times), min_size=1, max_size=2))))
    x = draw(st.sampled_from([(-1.0, 0.0, 1.0), (0.5, 2.0)]))
    thresholds = draw(st.sampled_from([(0.0, 0.5), (1.0,)]))
    functionals = draw(st.sampled_from([{"mse": "(x - xi)**2"}, {"m4": "x**4", "a_": "abs(x)*xi"}]))
    parts: list[tuple[dict[str, Any], Save]] = [
        ({"snapshots": [*at], "x": [*x]}, Save(at, x=x)),
        ({"snapshots": [*at], "thresholds": [*thresholds]}, Save(at, thresholds=thresholds)),
        ({"functionals": functionals}, Save(functionals=functionals)),
    ]
    found: dict[str, Any] = {}
    for content, part in parts if grouped else parts[1:]:
        if draw(st.booleans()) and any(can_keep(m, part) for m in chosen):
            found |= content
    return found or None


def _has(method: Method, variable: str, dims: tuple[str, ...]) -> bool:
    return any(o.name == variable and o.dims == dims for o in method.outputs.always)


@st.composite
def analysis(draw: Draw, chosen: list[Method], grid: dict[str, Any]) -> dict[str, Any]:
    """Analyses that the chosen methods can give."""
    time, state = ("time",), ("fixed_point",)
    runs = [m.name for m in chosen if m.stochastic and _has(m, "Q", time)]
    limits = [m.name for m in chosen if not m.stochastic and _has(m, "Q", time)]
    states = [m.name for m in chosen if _has(m, "Q", state)]
    names = {m.name for m in chosen}
    swept = [key.replace(".", "_") for key in grid]
    some: dict[str, Any] = {}
    if runs and limits:
        some["convergence"] = {"simulation": runs, "limit": limits[0], "level": 0.05}
    if runs and len(swept) > 1:
        some["phase"] = {"simulation": runs[0], "x": swept[0], "y": swept[1], "success": 0.25}
    if "drift" in names:
        some["flow"] = {"fixed_points": states[0] if states else None}
    if (states or limits or runs) and swept:
        some["steady"] = {"x": swept[0], "limits": states + limits, "simulation": runs}
    if "critical" in names and swept:
        some["transition"] = {"x": swept[0]}
    if runs or limits:
        some["compare"] = {"curves": runs + limits, "band": 2, "steady": next(iter(states), None)}
    return {name: settings for name, settings in some.items() if draw(st.booleans())}


@st.composite
def studies(draw: Draw, system: str | None = None) -> dict[str, Any]:
    """A study as plain data, which must be accepted: of one system, or of any."""
    system = system or draw(st.sampled_from(sorted(set(registry.systems()) - {"Toy"})))
    own = OWN.get(system)
    if own is None or own is valid_rules:
        fixed, grid = draw((own or sys.modules[__name__]).parameters(system))
    else:
        fixed, grid = draw(own.parameters())
    known = registry.methods_of(system)
    try:
        systems = _built(system, fixed, grid)
    except HdicaError as exc:  # a schedule or a formula that the other choices do not allow
        raise AssertionError(f"{system} {fixed} {grid}: {exc}") from exc
    fit = [
        m
        for m in known.values()
        if not any(m.scope.refuses(one) for one in systems) and not _uneven(m, systems)
    ]
    asked = draw(methods(fit))
    chosen = [known[name] for name in asked]
    times = draw(st.sampled_from(TIMES))
    study: dict[str, Any] = {
        "study": "fuzz",
        "title": draw(PLAIN.filter(str.strip)),
        "system": system,
        "parameters": fixed,
        "times": times,
        "methods": asked,
    }
    if grid or draw(st.booleans()):
        study["grid"] = grid
    if draw(st.booleans()):
        study["description"] = draw(PLAIN)
    if isinstance(times, list) and (save := draw(saved(chosen, times, "prior" not in grid))):
        study["save"] = save
    if any(isinstance(m, Simulation) and m.shared for m in chosen) and draw(st.booleans()):
        study["noise"] = "shared"
    asked_of = own.analysis if own else analysis
    study["analysis"] = draw(asked_of(chosen, grid))
    return study
