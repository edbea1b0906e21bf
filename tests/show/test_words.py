"""Formulas, texts and figures as they are printed."""

import json

import numpy as np
import pytest
from markupsafe import Markup

import hdica
from hdica.analysis.aggregate import aggregate
from hdica.ingredients.save import NOTHING
from hdica.show.terms import speaking_of
from hdica.show.typeset import formula, prose, tied, typeset
from hdica.show.words import at, axis, place
from hdica.systems.system import systems

OF_MATRICES = [
    (record.name, one)
    for record in systems().values()
    for one in record.order_parameters
    if record.name != "Toy" and set(one.dims) & record.entries
]


def test_formulas_are_written_as_they_are_printed() -> None:
    assert typeset("where(abs(x) < 0.3, 6*sign(x), 0)") == "6 sign(x) if |x| < 0.3, else 0"
    assert typeset("n^-1/2, n^1/2, tau^2/2, n -> infinity") == "n^-1/2, n^1/2, τ²/2, n → ∞"
    assert typeset("x**3 - 0.27*sign(x)") == "x³ − 0.27 sign(x)"
    assert typeset("max(7 - 2.5e-3*x, -x)") == "max(7 − 2.5 × 10⁻³ x, −x)"
    assert formula("eq. (1)-(2); Dormand-Prince, tolerance 1e-12") == (
        "eq. (1)–(2); Dormand–Prince, tolerance 10⁻¹²"
    )
    assert typeset("step size tau = 0.1, beta2 stays") == "step size τ = 0.1, beta2 stays"
    assert prose("up to tau_c < x_0^2 of a_study_file") == (
        "up to τ<sub>c</sub> &lt; x<sub>0</sub>² of a_study_file"
    )
    assert prose("as n^(-2/3), (V/n)^(1/2) and x^(a + b)") == (
        "as n<sup>−2/3</sup>, (V/n)<sup>1/2</sup> and x^(a + b)"
    )


def test_lines_break_within_no_figure() -> None:
    said = "at <i>n</i> = 900 it is 0.1 ± 0.2 (5 % of it, p &lt; 1)"
    bound = "at <i>n</i>~=~900 it is 0.1~±~0.2 (5~% of it, p~&lt;~1)"
    assert tied(Markup(said)) == bound.replace("~", "\u00a0")
    assert tied("a < b") == "a\u00a0&lt;\u00a0b"
    assert tied("<b>") == "&lt;b&gt;"


@pytest.mark.parametrize(("name", "parameter"), OF_MATRICES)
def test_entries_of_a_matrix_are_counted_from_one(name, parameter) -> None:
    """Whatever number they have in datasets."""
    record = systems()[name]
    method = next(m for m in record.methods if parameter.name in [o.name for o in m.outputs.always])
    able = (record.parameters(**one) for one in record.examples)
    system = next(one for one in able if not method.scope.refuses(one))
    numbers = method.coords_of(np.array([0.0]), NOTHING, system.dims())
    with speaking_of(name):
        first = place({dim: numbers[dim][0] for dim in parameter.dims})
        each = [at(dim, numbers[dim][0]).plain for dim in parameter.dims]
    assert first.plain == parameter.name + "₁" * len(parameter.dims)
    assert all(one.endswith(" 1") for one in each)


CASES = {
    "zip": {"grid": {"zip": {"tau": [0.02, 0.04], "Q0": [0.8, 0.7]}}},
    "rows": {"cases": [{"tau": 0.02, "Q0": 0.7, "label": "slow"}, {"tau": 0.05, "Q0": 0.7}]},
    "sample": {"sample": {"points": 2, "seed": 1, "over": {"tau": [0.02, 0.04], "Q0": [0.1, 0.9]}}},
}


@pytest.mark.parametrize(
    ("name", "point", "text"),
    [
        ("zip", {"tau": 0.04, "n": 100}, "τ = 0.04, Q₀ = 0.7, n = 100"),
        ("rows", {"case": "slow"}, "case = slow, τ = 0.02, Q₀ = 0.7"),
        ("rows", {"case": "tau = 0.05; Q0 = 0.7"}, "τ = 0.05, Q₀ = 0.7"),
        ("rows", {"case": "another"}, "case = another"),
        ("sample", {"sample": 1.0}, "sample = 1, τ = 0.03"),
    ],
)
def test_a_case_is_named_by_what_goes_together_in_it(name, point, text) -> None:
    study = hdica.Study(
        study="cases", system="OnlineICA", times=[0, 1], methods={"ode": {}}, **CASES[name]
    )
    with speaking_of("OnlineICA", json.dumps(study.to_mapping())):
        assert place(point).plain.startswith(text)
        named = axis("tau").plain
    assert named == ("step size τ, with Q₀" if name == "zip" else "step size τ")
    with speaking_of("OnlineICA"):
        assert place(point).plain.count("=") == len(point) + ("Q0" in str(point)) * 2


def test_aggregates_have_the_parameters_of_cases(tmp_path) -> None:
    study = hdica.Study(
        study="cases",
        system="OnlineICA",
        times=[0, 1],
        methods={"chain": {"n": [20, 40], "seeds": 3}, "ode": {}},
        **CASES["zip"],
    )
    tree = study.run(out=tmp_path / "cases.zarr")
    found = aggregate(tree)["convergence"]
    assert found["Q0"].dims == ("tau",)
    assert found["Q0"].values.tolist() == [0.8, 0.7]
    assert found.sel(tau=0.04)["Q0"] == 0.7
