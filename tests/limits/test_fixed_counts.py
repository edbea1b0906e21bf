"""Counts of nodes, panels and places that no refinement sets: twice as many change nothing.

Each function of ``limits``, ``systems`` and ``ingredients`` that calls a quadrature rule, makes an
even grid or repeats something a fixed number of times is listed in fixed_counts.txt with what
protects it, and so in docs/reference/errors.md; one that is not listed fails here. The table is
written anew by ``python -m tests.limits.test_fixed_counts``.
"""

import ast
import importlib
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import roots_legendre

import hdica
from hdica.errors import HdicaError
from hdica.ingredients import laws, quadrature, sources
from hdica.ingredients.contrasts import make_contrast
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.priors import make_prior
from hdica.ingredients.quadrature import Nodes, panel_nodes
from hdica.ingredients.save import Save
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.limits.mean_field import entries
from hdica.limits.mean_field.steady import laplace_kernels, states
from hdica.limits.mean_field.steady.closure import close
from hdica.limits.mean_field.steady.confinement import confinement
from hdica.limits.mean_field.steady.stability import graded_modes, relaxation_modes
from hdica.limits.mean_field.transitions import landscape
from hdica.limits.numerics import densities
from hdica.limits.passage import chain as exact
from hdica.limits.passage.step import Points, step_of
from hdica.systems.projected import density
from hdica.systems.projected.density_values import antiderivative
from hdica.systems.sparse_pca.system import mean_field
from hdica.systems.tensorial_ica import bounds, fluctuation
from hdica.systems.tensorial_ica import fluctuation as tensorial

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("fixed_counts.txt")
RULES = {
    *("leggauss", "hermgauss", "hermegauss", "laggauss", "roots_legendre", "roots_hermitenorm"),
    *("roots_jacobi", "panel_nodes", "gaussian_nodes", "half_normal_nodes", "uniform_nodes"),
    *("gauss", "chi2_nodes", "sphere_nodes", "gauss_legendre", "composite_rule", "chebpts1"),
    *("chebpts2", "linspace", "geomspace", "logspace", "_lobatto", "_double_exponential"),
}
ROOMS = ("limits", "systems", "ingredients")
KINDS = {
    "refined": "refined",
    "twice": "twice as many",
    "search": "a search",
    "iterated": "until settled",
    "exact": "all there are",
    "drawn": "drawn",
}


def is_fixed(node):
    """Whether a count is a number above 3 or a constant of a module."""
    if isinstance(node, ast.BinOp):
        return is_fixed(node.left) or is_fixed(node.right)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and node.value > 3
    name = getattr(node, "id", getattr(node, "attr", ""))
    return name.strip("_").isupper()


def has_count(node):
    """Whether a node calls a rule, makes an even grid or repeats something so many times."""
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name in RULES or (name == "arange" and any(map(is_fixed, node.args)))
    loop = node.iter if isinstance(node, ast.For | ast.comprehension) else None
    by_range = isinstance(loop, ast.Call) and getattr(loop.func, "id", "") == "range"
    return by_range and all(map(is_fixed, loop.args))


def owners(node, owner="-"):
    """Functions with counts, methods of classes as Class.method; "-" is a module itself."""
    for child in ast.iter_child_nodes(node):
        inner = owner
        if isinstance(child, ast.ClassDef | ast.FunctionDef) and owner == "-":
            inner = child.name
        elif isinstance(child, ast.FunctionDef) and isinstance(node, ast.ClassDef):
            inner = f"{owner}.{child.name}"
        if has_count(child):
            yield owner
        yield from owners(child, inner)


def counted():
    """File and function of every count."""
    return {
        (path.relative_to(ROOT / "hdica").with_suffix("").as_posix(), name)
        for room in ROOMS
        for path in (ROOT / "hdica" / room).rglob("*.py")
        for name in owners(ast.parse(path.read_text()))
    }


def listed():
    """Kind, file, functions and what is counted, by row of the list."""
    rows = [line.split(" | ") for line in LIST.read_text().splitlines()]
    return [(kind, file, functions.split(), what) for kind, file, functions, what in rows]


def table():
    """The table of docs/reference/errors.md: the same count and protection in one row."""
    rows = {}
    for kind, file, _, what in listed():
        rows.setdefault((KINDS[kind], what), []).append(f"`{file}`")
    lines = [f"| {', '.join(files)} | {what} | {how} |\n" for (how, what), files in rows.items()]
    return "".join(["| files | what has a count | what protects it |\n|---|---|---|\n", *lines])


@pytest.mark.deep
def test_every_count_is_listed_with_what_protects_it():
    each = [(file, name) for _, file, names, _ in listed() for name in names]
    assert set(each) == counted()
    assert len(each) == len(set(each))


def test_the_table_of_the_manual_is_that_list():
    assert table() in (ROOT / "docs" / "reference" / "errors.md").read_text()


def test_every_doubled_count_is_listed_as_such():
    doubled = {file for kind, file, *_ in listed() if kind == "twice"}
    rules = {f"ingredients/{name}" for name in ("sources", "laws", "quadrature")}
    assert doubled - rules == {module.replace(".", "/") for module, *_ in COUNTS}


def trap(nu):
    ica = hdica.OnlineICA(source="rademacher", start={"overlap": 0}, nu=nu)
    return hdica.escape_time(ica)["survival"].values


def race(nu):
    several = {"sources": ["rademacher", "uniform"], "sigma": [-1], "nu": nu}
    return hdica.escape_time(hdica.HebbianICA(**several))["mean"].values


def rates(text, a, k, tilt):
    """Slowest rates at which an entry relaxes in a Boltzmann density."""
    return relaxation_modes(confinement(parse_formula(text)), a, k, tilt).rate[:5]


def graded_rates(text, a, k, tilt):
    return graded_modes(confinement(parse_formula(text)), a, k, tilt, 14)[0][:5]


def steady_density(text, tau):
    pca = hdica.SparsePCA(tau=tau, omega=1.0, prior={"sparse": 0.05}, regularizer=text)
    states = hdica.fixed_points(pca, x=[-1.0, -0.01, 0.0, 0.02, 3.0])
    return np.concatenate([states[name].values.ravel() for name in ("density", "cdf")])


def family(prior, regularizer):
    return lambda tau: mean_field(
        hdica.SparsePCA(omega=1.0, prior=prior, tau=tau, regularizer=regularizer)
    )


def near_zero(prior, regularizer, tau):
    land = landscape.landscape(family(prior, regularizer), tau, 2 * tau)
    return np.array([land.value(q, 0.3) for q in (2e-4, 9.9e-4)])


def half_line(ratio):
    """Moments of one side of a density, by the same lines without compilation."""
    out = np.empty(5)
    laplace_kernels.half_line.py_func(0.25 / ratio, 1.0, out)
    return out


def norm(spec):
    return np.array(bounds.psi2_norm(make_source(spec)))


def level(eta):
    moments = fluctuation.moments_of(make_source("uniform"), 6)
    times = np.array([1e3, 1e4, 1e5])
    return fluctuation.level_under(moments, 10, make_schedule(eta), 0.3, times) * 100


def levels(eta):
    system = hdica.TensorialICA(source="uniform", dimension=10, eta=eta)
    sizes = make_schedule(eta).value(np.linspace(0.0, 1e4, 60))
    return tensorial._levels(system, sizes)["S2"]


def hermite(text):
    contrast = make_contrast(text, {})
    return np.array([contrast.hermite(k) for k in (0, 2, 24)])


def path():
    """Overlaps that a walk of entries meets between the knots of their path."""
    system = hdica.SparsePCA(
        omega=1.0, prior="dense", tau=0.5, regularizer="0.1*x", start={"overlap": 0.1}
    )
    field, last = mean_field(system), 40.0
    return entries.order_of(field, last, entries.KNOTS).at(np.linspace(0.0, last, 331))[0]


STEEP = "0.5*sign(x) + tanh(20*x)"
FLAT = "0.3*x/(1 + x**2)"
STEADY = "limits.mean_field.steady"
COUNTS = [  # the number of so few is wrong, twice as many change the result by less than the last
    ("limits.escape", "_NODES", 2, partial(trap, 0.5), 1e-6),
    ("limits.escape", "_NODES", 2, partial(trap, 2.0), 1e-6),
    ("systems.hebbian_ica.escape_times", "_NODES", 2, partial(race, 0.5), 1e-6),
    ("systems.hebbian_ica.escape_times", "_NODES", 2, partial(race, 20.0), 1e-6),
    (f"{STEADY}.stability", "PANELS", 2, partial(rates, FLAT, 1e-3, 5.0, 3.0), 1e-9),
    (f"{STEADY}.stability", "DEGREE", 3, partial(rates, STEEP, 0.2, 10.0, 0.5), 1e-9),
    (f"{STEADY}.stability", "_NODES", 3, partial(graded_rates, "x**3 - x", 1e-3, 60.0, 1.0), 1e-9),
    (f"{STEADY}.stability", "_NODES", 3, partial(graded_rates, STEEP, 0.2, 10.0, 0.5), 1e-9),
    (f"{STEADY}.closure", "_ORDER", 3, partial(steady_density, "0.2*x**3", 0.05), 1e-9),
    (f"{STEADY}.laplace_kernels", "_POINTS", 12, partial(half_line, 0.26), 1e-12),
    (f"{STEADY}.laplace_kernels", "_POINTS", 12, partial(half_line, 1e8), 1e-12),
    (
        *("limits.mean_field.transitions.landscape", "_POINTS", 1),
        *(partial(near_zero, {"sparse": 0.01}, "1e-4*sign(x)", 0.001), 1e-9),
    ),
    (
        *("limits.mean_field.transitions.landscape", "_POINTS", 1),
        *(partial(near_zero, {"sparse": 0.05}, "0.025*sign(x)", 0.05), 1e-9),
    ),
    ("systems.tensorial_ica.bounds", "_NODES", 2, partial(norm, "uniform"), 1e-12),
    (
        *("systems.tensorial_ica.bounds", "_NODES", 2),
        *(partial(norm, {"scipy": "beta", "a": 0.3, "b": 0.4}), 1e-12),
    ),
    (
        *("systems.tensorial_ica.fluctuation", "_STRETCHES", 20),
        *(partial(level, "0.0005*(1 + sin(t/50))"), 1e-4),
    ),
    (
        *("systems.tensorial_ica.fluctuation", "_STRETCHES", 20),
        *(partial(level, "0.001/(1 + t/100)"), 1e-6),
    ),
    (
        *("systems.tensorial_ica.fluctuation", "NODES", 4),
        *(partial(levels, "0.001/(1 + t/100)"), 1e-9),
    ),
    ("limits.mean_field.entries", "KNOTS", 20, path, 1e-6),
    ("ingredients.contrasts", "_NODES", 2, partial(hermite, "log(cosh(3*s))"), 1e-12),
    ("ingredients.contrasts", "_NODES", 2, partial(hermite, "s**2/(1 + 9*s**2)"), 1e-12),
]


def without_caches():
    for module in [m for name, m in sys.modules.items() if name.startswith("hdica.")]:
        for value in list(vars(module).values()):
            if callable(getattr(value, "cache_clear", None)):
                value.cache_clear()


def set_count(room, name, count, monkeypatch):
    if name == "_POINTS":  # a rule on [0, 1]
        points, weights = roots_legendre(count)
        monkeypatch.setattr(room, "_WEIGHTS", weights / 2)
        monkeypatch.setattr(room, name, (points + 1) / 2)
    else:
        monkeypatch.setattr(room, name, count)


@pytest.mark.deep
@pytest.mark.parametrize(("module", "name", "few", "compute", "off"), COUNTS)
def test_twice_as_many_change_nothing(module, name, few, compute, off, monkeypatch):
    # Cells of a survival are refined on their own: few of them leave octaves of time as sharp.
    monkeypatch.setattr(densities, "_CELLS", 24)
    monkeypatch.setattr(densities, "_LEVELS", 2)
    room, results = importlib.import_module(f"hdica.{module}"), []
    usual = getattr(room, name)
    usual = usual.size if name == "_POINTS" else usual
    for count in (usual, 2 * usual, few):
        set_count(room, name, count, monkeypatch)
        without_caches()
        try:
            results.append(compute())
        except HdicaError:
            results.append(np.array(np.nan))
    without_caches()
    alone, twice, rough = results
    assert twice == pytest.approx(alone, rel=off, abs=off)
    # Else the count is not the one that matters.
    assert rough.shape != alone.shape or not np.allclose(rough, alone, rtol=off, atol=off)


def exact_states(field, rho, q):
    """Overlaps of steady states near q, the prior rho of normal entries by 14,400 nodes."""
    x, w = panel_nodes(np.linspace(0.0, 12.0, 1201), 6)
    w *= np.exp(-x * x / 2) / np.sum(w * np.exp(-x * x / 2))
    points = np.concatenate([-x, [0.0], x]) / np.sqrt(rho)
    nodes = Nodes(points, np.concatenate([rho * w / 2, [1 - rho], rho * w / 2]))
    fine = replace(field, prior=replace(field.prior, nodes=nodes))
    for _ in range(8):
        there = close(fine, q)
        q = q - there.excess / there.slope
    return q


@pytest.mark.deep
@pytest.mark.parametrize(
    ("prior", "rho", "tau", "beta"),
    [
        ("gaussian", 1.0, 0.1, 0.05),
        ("gaussian", 1.0, 0.01, 0.003),
        ("gaussian", 1.0, 0.001, 0.0005),
        ({"bernoulli_gaussian": 0.1}, 0.1, 0.01, 0.01),
        ({"scipy": "norm"}, 1.0, 0.01, 0.003),
        ({"slab": {"scipy": "norm"}, "rho": 0.3}, 0.3, 0.01, 0.005),
    ],
)
def test_bars_of_states_hold_what_nodes_of_a_prior_leave_out(prior, rho, tau, beta, monkeypatch):
    monkeypatch.setattr(states, "stability", lambda *_: (True, 0.0))
    field = family(prior, f"{beta}*sign(x)")(tau)
    found = states.steady_states(field)
    there = found.q > 0
    q, bar = found.q[there], found.error[there]
    off = np.abs(q - exact_states(field, rho, q))
    assert off.size
    assert np.all(off <= bar)
    assert np.all(bar < 0.02)
    assert off.max() > 1e-5  # else the nodes do not matter here


@pytest.mark.parametrize(
    ("prior", "order"),
    [("gaussian", 6), ({"bernoulli_gaussian": 0.3}, 6), ({"slab": "uniform", "rho": 0.5}, 7)],
)
def test_bars_of_densities_hold_what_nodes_of_a_prior_leave_out(prior, order):
    system = hdica.SparsePCA(
        omega=1.0, prior=prior, tau=0.3, regularizer="0.2*sign(x)", start={"overlap": 0.6}
    )
    usual, save = mean_field(system), Save(functionals={"size": "abs(x)"})
    field = replace(usual, prior=usual.prior.with_nodes(order))
    times = np.array([0.0, 5.0, 10.0, 20.0])
    path = density.path_of(field, system, times, save, density.COARSE)
    found = density.pde_values(field, system, times, save, path).values
    right = density.path_of(usual, system, times, save, density.COARSE)
    off = [right.q - path.q, right.r - path.r, right.functionals["size"] - path.functionals["size"]]
    known = path.q_error, path.r_error, path.functional_errors["size"]
    for name, one, before in zip(("Q", "R", "size"), off, known, strict=True):
        bar = found[f"{name}_error"] - before
        assert np.all(np.abs(one) <= bar + 1e-12)
        assert np.all(bar < 1e-2)
    assert np.abs(off[0]).max() > 1e-8  # else the nodes do not matter here


def test_a_law_of_one_panel_has_finer_nodes():
    law = make_prior({"slab": "uniform", "rho": 0.3})
    assert law.nodes.points.size == 33
    assert law.with_nodes(64).nodes.points.size == 129


def test_bars_of_states_hold_the_rounding_of_deep_wells():
    field = family({"sparse": 0.05}, "0.015*(0.3*sin(6*x) + x)")(0.005)
    q = np.array([1e-3])
    assert states.open_to_nodes(field, q)[0] > 1e-8 > states.accuracy(field)
    assert states.open_to_nodes(family({"sparse": 0.05}, FLAT)(0.5), q)[0] < 1e-11


@pytest.mark.parametrize("x", [[-5.0, 5.0], [-8.0, -1.0, 2.0, 9.0]])
@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("tanh(20*x)", lambda x: (np.logaddexp(20 * x, -20 * x) - np.log(2)) / 20),
        ("sin(6*x)", lambda x: (1 - np.cos(6 * x)) / 6),
        ("x/(1 + x**2)", lambda x: np.log1p(x * x) / 2),
    ],
)
def test_a_potential_does_not_depend_on_the_places_where_it_is_wanted(x, text, whole):
    at = np.array(x)
    found = antiderivative(SimpleNamespace(phi=parse_formula(text)), at)
    assert found == pytest.approx(whole(at), rel=1e-10, abs=1e-10)


@pytest.mark.deep
def test_a_random_start_that_reaches_the_threshold_is_in_the_error(monkeypatch):
    chain = exact.NormalisedChain(
        parse_formula("x**3").value, make_source("rademacher"), 0.05, 20, 0.5, True
    )
    usual = exact.exact_passage(chain, "random")
    monkeypatch.setattr(exact, "_SPHERE", 2 * exact._SPHERE)
    twice = exact.exact_passage(chain, "random")
    assert abs(twice.mean / usual.mean - 1) < usual.error
    monkeypatch.setattr(exact, "_SPHERE", 6)
    few = exact.exact_passage(chain, "random")
    assert few.error > 3 * usual.error


def twice_nodes(monkeypatch):
    """Rules of sources with twice their nodes."""
    for room in (sources, quadrature):
        rule = room.gaussian_nodes
        monkeypatch.setattr(room, "gaussian_nodes", lambda order, r=rule: r(2 * order))
    even = quadrature.uniform_nodes
    monkeypatch.setattr(quadrature, "uniform_nodes", lambda a, b, order: even(a, b, 2 * order))
    monkeypatch.setattr(quadrature, "_DENSITY", 2 * quadrature._DENSITY)


@pytest.mark.parametrize(
    "law",
    [
        sources._uniform,
        sources._laplace,
        partial(sources._student, 5.0),
        partial(sources._bernoulli_gaussian, 0.1),
        lambda: SimpleNamespace(
            nodes=laws._rule(*np.array([[0.4, 0.6], [-1.2, 0.8], [0.05, 0.3]]))
        ),
    ],
)
def test_twice_the_nodes_of_a_source_change_less_than_its_next_order(law, monkeypatch):
    def moments(order):
        points = Points(order, 24, 6)
        return step_of(lambda u: np.clip(3 * u, -1, 1), law(), 0.1, 20, points).moments(0.5)[0]

    usual, next_order = moments(24), moments(36)
    twice_nodes(monkeypatch)
    assert abs(moments(24) - usual) < max(abs(next_order - usual), 1e-12 * abs(usual))


if __name__ == "__main__":
    page = ROOT / "docs" / "reference" / "errors.md"
    text = page.read_text()
    start = text.index("| files |")
    end = text.index("\n\n", start) + 1
    page.write_text(text[:start] + table() + text[end:])
