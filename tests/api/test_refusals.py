"""Numbers in any spelling, one spelling for constants, and refusals in hdica's own words."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import hdica
from hdica.errors import HdicaError
from hdica.run.settings import ClusterSettings
from hdica.store.query import check_export
from hdica.sweep import Study
from hdica.systems.space import in_one_spelling

ANNOUNCED = re.compile(r"(^|\()(allowed|there|swept|its methods): (auto, )?$")
"""What comes before a list of names in a refusal."""
VALIDATOR = re.compile(
    r"[Ii]nput should|valid (string|number|integer|dict)|pydantic|unable to parse"
)
"""Words of a validator, which speak of no field of ours."""
PCA: dict[str, Any] = {
    "tau": 0.5, "omega": 1.0, "prior": {"sparse": 0.05}, "start": {"overlap": 0.3},
    "regularizer": "beta*sign(x)",
}  # fmt: skip
SPELLINGS = ["beta", "constants.beta", "constants_beta"]


def ica(**fields: Any) -> Any:
    return hdica.OnlineICA(**({"tau": 0.05, "source": "uniform"} | fields))


def subspace(**fields: Any) -> Any:
    return hdica.SubspaceICA(dimension=9, rank=1, beta=1, **fields)


def patches(**fields: Any) -> Any:
    return hdica.PatchICA(images="bundled", width=4, **fields)


def study(**keys: Any) -> Study:
    return Study(**({
        "study": "small", "system": "OnlineICA", "parameters": {"source": "uniform"},
        "grid": {"tau": [0.02, 0.05]}, "times": [0, 1], "methods": {"ode": {}},
    } | keys))  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"tau": "0.05"}, "tau"),
        ({"tau": "1/20"}, "tau"),
        ({"batch": "4"}, "batch"),
        ({"Q0": "1/2"}, "start"),
        ({"prior": {"sparse": "1/10"}}, "prior"),
        ({"regularizer": "beta*x", "constants": {"beta": "1/2"}}, "constants"),
        ({"source": {"student": "7"}}, "source"),
    ],
)
def test_a_number_may_be_written_as_a_text_or_a_fraction(fields: dict[str, Any], name: str) -> None:
    def numbers(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: numbers(one) for key, one in value.items()}
        return eval(value) if re.fullmatch("[0-9./]+", str(value)) else value  # noqa: S307

    assert ica(**fields) == ica(**numbers(fields))
    assert not isinstance(getattr(ica(**fields), name), str)


def test_formulas_stay_texts() -> None:
    assert ica(regularizer="0").regularizer == "0"
    assert ica(tau="0.1/(1 + t)").tau == "0.1/(1 + t)"
    words = study(
        grid={"regularizer": ["0", "1/2"]},
        methods={"pde": {}},
        parameters={"tau": 0.1, "source": "uniform"},
    )
    assert words.spec.space.axes[0].values == ("0", "1/2")


def test_numbers_as_texts_in_calls_and_grids() -> None:
    assert hdica.critical(ica(tau="1/20"), "tau")["value"].size == 1
    found = hdica.limit(ica(), times=["0", "1/2"], over={"tau": ["1/50", "0.05"]})
    assert found.tau.values.tolist() == [0.02, 0.05]
    assert found.time.values.tolist() == [0, 0.5]
    runs = hdica.simulate(ica(), n="50", seeds="2", times=[0, 1])
    assert runs.sizes["seed"] == 2
    for values in (["1/20", "1/50"], {"start": "1/50", "stop": "0.05", "num": "2"}):
        assert study(grid={"tau": values}).spec.space.axes[0].values == (0.02, 0.05)
    with pytest.raises(hdica.HdicaError, match="appears twice"):
        study(grid={"tau": ["1/20", "0.05"]})


@pytest.mark.parametrize("key", SPELLINGS)
def test_a_constant_has_one_spelling_everywhere(key: str) -> None:
    pca = hdica.SparsePCA(**PCA, constants={"beta": 0.2})
    over = {"tau": [0.4, 0.5], key: [0.1, 0.2]}
    assert hdica.limit(pca, times=[0, 1], method="pde", over=over).Q.dims == ("tau", "beta", "time")
    assert hdica.sensitivity(pca, at=0.1, wrt=[key]).parameter.values.tolist() == ["beta"]
    formulas = [PCA["regularizer"], "max(beta - abs(x), 0)*sign(x)"]
    given = {k: v for k, v in PCA.items() if k != "regularizer"}
    for grid in ({key: [0.1, 0.2]}, {"regularizer": formulas, key: [0.1, 0.2]}):
        fixed = given if "regularizer" in grid else PCA
        for other in SPELLINGS:
            one = study(
                system="SparsePCA", parameters=fixed, grid=grid,
                methods={"vector": {"n": 100, "seeds": 2}, "pde": {}},
                analysis={"dependence": {"simulation": "vector", "theory": "pde", "over": other}},
            )  # fmt: skip
            assert one.spec.space.axes[-1].dim == "beta"
            assert [s.over for _, s in one.spec.analysis.items()] == ["beta"]


def test_a_constant_called_as_a_field_keeps_its_path() -> None:
    used = {"regularizer": "omega*sign(x)", "constants": {"omega": 0.1}}
    assert in_one_spelling("constants.omega", hdica.SparsePCA, used) == "constants.omega"
    with pytest.raises(hdica.HdicaError, match="already set by"):
        study(system="SparsePCA", parameters=PCA, grid={"beta": [0.1], "constants.beta": [0.2]},
              methods={"pde": {}})  # fmt: skip


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: study(system="onlineICA"), "did you mean 'OnlineICA'?"),
    (lambda: study(grid={"tau": {"start": 0.1, "stop": 1, "step": 1}}), ": grid.tau.step is not a"),
    (lambda: study(times={"start": 0, "stop": 1, "step": 1}), ": times.step is not a known key"),
    (lambda: study(times={"start": 0, "stop": 1, "num": 1}), "num = 1 is not allowed (>= 2"),
    (lambda: study(grid={"tau": {"start": 0.1, "stop": 1, "num": 2.5}}), "(a whole number)"),
    (lambda: study(times={"stop": 1, "num": 2, "spacing": "x"}), "(allowed: linear, log)"),
    (lambda: study(title=5), "title = 5 is not allowed (a text)"),
    (lambda: study(max_points="many"), "(a whole number)"),
    (lambda: study(noise="none"), "(allowed: own, shared)"),
    (lambda: ica(start=5), "start = 5 is not allowed (a mapping)"),
    (lambda: ica(tau=[0.1]), "tau = [0.1] is not allowed (a number)"),
    (lambda: ica(constants={"beta": "x"}), "constants.beta = 'x' is not allowed (a number"),
    (lambda: ica(nonlinearity="np.tanh(x)"), "write tanh(x)"),
    (lambda: ica(nonlinearity="tanh"), "write tanh(x)"),
    (lambda: ica(nonlinearity=np.tanh), "write the formula 'tanh(x)'"),
    (lambda: ica(nonlinearity="tahn(x)"), "did you mean tanh(x)?"),
    (lambda: ica(nonlinearity="cube"), "write x**3"),
    (lambda: ica(nonlinearity="X**3"), "did you mean 'x'?"),
    (lambda: ica(source="Uniform"), "did you mean 'uniform'?"),
    (lambda: ica(source="normal"), "(did you mean 'gaussian', which no rule can learn?"),
    (lambda: ica(tau="inf"), ": tau = 'inf' is not allowed (allowed: a number > 0, a formula in t"),
    (lambda: ica(tau="1/0"), ": tau: formula '1/0': it divides by zero; allowed are"),
    (lambda: ica(tau="0.1*exp(-2t)"), "it is not a formula: write 0.1*exp(-2*t);"),
    (
        lambda: ica(regularizer="beta*x"),
        ": regularizer: formula 'beta*x': 'beta' is neither a variable nor a constant (known: ['x'"
        ", 'pi']): give it a number in constants, such as {beta: 0.2};",
    ),
    (lambda: ica(regularizer="b=0.2"), "a constant gets its number in constants, such as {beta: "),
    (lambda: ica(nonlinearity="inf*x"), ": formula 'inf*x': 'inf' is no finite number;"),
    (lambda: ica(nonlinearity="2x**3 - 1e-3x"), "write 2*x**3 - 1e-3*x;"),
    (lambda: ica(nonlinearity="2sin(x)(x)"), "write 2*sin(x)*(x);"),
    (lambda: ica(nonlinearity="x(x + 1)"), "'x' is not a function: write x*(x + 1);"),
    (lambda: ica(nonlinearity="3(x + 1)"), "write 3*(x + 1);"),
    (lambda: subspace(contrast="2s"), "contrast: formula '2s': it is not a formula: write 2*s;"),
    (lambda: ica(prior={"sparce": 0.1}), "did you mean 'sparse'?"),
    (lambda: ica(start={"overlp": 0.1}), "did you mean 'overlap'?"),
    (lambda: hdica.limit(ica(), times=[0], method="Ode"), "did you mean 'ode'?"),
    (lambda: study(times={"stop": 1, "num": 2, "spacing": "lgo"}), "did you mean 'log'?"),
    (lambda: hdica.critical_curve(ica(), "tau", "tau", [1], kind="folds"), "did you mean 'fold'?"),
    (lambda: hdica.critical_curve(ica(), "tau", "thresold", [1]), "did you mean 'threshold'?"),
    (lambda: hdica.critical_curve(ica(), "tua", "tau", [1]), "did you mean 'tau'?"),
    (lambda: hdica.best(ica(), {"tau": (0.1, 1)}, goal="steady overlp"), "mean 'steady overlap'?"),
    (lambda: hdica.best(ica(), {"tau": (0.1, 1)}, goal={"time too": 0.5}), "mean 'time to'?"),
    (lambda: hdica.simulate(ica(), n=9, times=[0], noise="sharde"), "did you mean 'shared'?"),
    (
        lambda: hdica.simulate(patches(), times=[0], method="filter_bank", extra=["filers"]),
        "did you mean 'filters'?",
    ),
    (lambda: hdica.escape_time(ica(tau=None, nu=1), method="limt"), "did you mean 'limit'?"),
    (lambda: ica(motion={"exchang": 0.1}), "did you mean 'exchange'?"),
    (lambda: ica(tau={"observed": {"rte": 0.1}}), "did you mean 'rate'?"),
    (lambda: ica(data={"array": [[1, 2, 3]], "order": "shufled"}), "did you mean 'shuffled'?"),
    (lambda: hdica.PatchICA(images={"bundled": ["chinna"]}), "did you mean 'china'?"),
    (lambda: patches(space="ambiant"), "did you mean 'ambient'?"),
    (lambda: patches(colour="gray"), "did you mean 'grey'?"),
    (lambda: hdica.HebbianICA(mu=1, sigma="escpe"), "did you mean 'escape'?"),
    (lambda: hdica.HebbianICA(mu=1, start="randm"), "did you mean 'random'?"),
    (lambda: hdica.TensorialICA(dimension=3, eta=1, start="unifrom"), "did you mean 'uniform'?"),
    (lambda: hdica.TensorialICA(dimension=3, bounds={"epsilom": 0.1}), "did you mean 'epsilon'?"),
    (lambda: subspace(space="princpal"), "did you mean 'principal'?"),
    (lambda: subspace(batch="fersh"), "did you mean 'fresh'?"),
    (lambda: hdica.OnlineRule(update="-u", normalise="nrom"), "did you mean 'norm'?"),
    (lambda: hdica.plots.style("colum"), "did you mean 'column'?"),
    (lambda: study().run(cluster="locl"), "did you mean 'local'?"),
    (lambda: hdica.FilterSeries(filters={"random": {"filtrs": 3}}), "did you mean 'filters'?"),
    (lambda: check_export("cvs", None), "did you mean 'csv'?"),
]  # fmt: skip

NO_MISSPELLING = {
    "field_maker", "convert", "candidates", "record_of",  # a system or class that is there
    "critical_curve", "only", "_check_batch", "animate", "_critical",
    "fixed_vector", "_not_allowed",  # what is allowed, but not here
    "_chosen",  # nothing was given
}  # fmt: skip
"""Functions whose refusals list what no word that was written is like."""


@pytest.mark.deep
def test_every_list_of_names_comes_with_the_nearest_one() -> None:
    """By the one function for it: none writes such a list into its sentence itself."""
    found = set()
    for path in Path(hdica.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            texts = (node for node in ast.walk(function) if isinstance(node, ast.JoinedStr))
            if any(map(_lists_names, texts)):
                found.add(function.name)
    assert found - {"suggestion", "unknown_key"} == NO_MISSPELLING


def _lists_names(text: ast.JoinedStr) -> bool:
    """Whether a list that is no constant follows what announces one."""
    for before, after in pairwise(text.values):
        announced = isinstance(before, ast.Constant) and ANNOUNCED.search(str(before.value))
        if announced and isinstance(after, ast.FormattedValue):
            name = after.value.id if isinstance(after.value, ast.Name) else ""
            if not name.isupper():
                return True
    return False


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_a_refusal_is_in_our_words(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(hdica.HdicaError) as caught:
        call()
    assert words in str(caught.value)
    assert not VALIDATOR.search(str(caught.value))


def test_names_of_the_package_are_suggested() -> None:
    for wrong, right in (("onlineICA", "OnlineICA"), ("simulat", "simulate")):
        with pytest.raises(AttributeError, match=f"did you mean '{right}'"):
            getattr(hdica, wrong)


def test_an_account_of_digits_is_a_name() -> None:
    found = ClusterSettings.model_validate({"mode": "slurm", "slurm": {"account": 12345}})
    assert found.slurm is not None
    assert found.slurm.account == "12345"


EMPTY: Any = np.zeros(0)
FUNCTIONS = [
    "best", "cite", "critical", "critical_curve", "effective_potential", "escape_time",
    "fixed_points", "limit", "open_results", "register", "sensitivity", "simulate",
    "whiten", "asymptotics", "best_step",
]  # fmt: skip
NEEDED = {
    "best": ({}, "Q"), "critical_curve": ("tau", "Q0", [0.1])
}  # fmt: skip
"""What stands behind the first argument of a call that may not leave it out."""
KEYWORDS: dict[str, dict[str, Any]] = {
    "effective_potential": {"times": [0, 1]},
    "sensitivity": {"at": 0.1},
    "simulate": {"times": [0, 1], "n": 10},
}


@pytest.mark.parametrize("name", [*FUNCTIONS, "Study.load", "Study.from_mapping"])
def test_an_argument_of_another_kind_is_answered_by_a_sentence(
    name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.zarr").mkdir()
    function = getattr(Study, name[6:]) if name.startswith("Study.") else getattr(hdica, name)
    wrong = [None, 5, b"", [], {}, "", ".", "folder", "folder.zarr", "a\0.zarr", object()]
    for given in wrong:
        with pytest.raises(hdica.HdicaError):
            function(given, *NEEDED.get(name, ()), **KEYWORDS.get(name, {}))


def test_a_path_that_is_too_long_is_answered_by_a_sentence() -> None:
    path, name = "a" * 5000, f"{'a' * 245}.zarr"
    for call in (
        hdica.load_filters, hdica.cite, hdica.open_results, Study.load, study().run,
        lambda one: ica(data=f"{one}.npy"), hdica.whiten,
    ):  # fmt: skip
        with pytest.raises(hdica.HdicaError, match="is not allowed") as refused:
            call(path)
        assert len(str(refused.value)) < 300
    for call in (study().run, hdica.open_results):
        with pytest.raises(hdica.HdicaError, match="of at most 200 bytes"):
            call(name)


def test_a_path_of_another_kind_is_answered_by_a_sentence() -> None:
    for given in (5, b"", [], "", "folder", "a\0.zarr", object()):
        for call in (lambda out: study().plan(out), lambda out: study().run(out)):
            with pytest.raises(hdica.HdicaError, match="not allowed"):
                call(given)
        with pytest.raises(hdica.HdicaError):
            study().report(given)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ica(source=xr.Dataset()),
        lambda: hdica.limit(ica(), times=xr.Dataset()),
        lambda: hdica.SubspaceModel(rank=1, beta=1, dimension=10**400),
        lambda: hdica.excess_kurtosis(10**400),
        lambda: hdica.excess_kurtosis(np.array([1j, 2, 3])),
        lambda: hdica.excess_kurtosis(np.arange(5.0), axis=EMPTY),
        lambda: hdica.best(ica(), {"tau": [0.01, 0.1]}, EMPTY),
        lambda: hdica.load_filters("filters.npz", training=EMPTY),
        lambda: hdica.limit(ica(), times=[0, 1], bands=EMPTY),
        lambda: hdica.simulate(ica(), times=[0, 1], n=10, functionals=EMPTY),
        lambda: hdica.simulate(ica(), times=[0, 1], n=10, timeout=EMPTY),
        lambda: hdica.whiten(np.zeros((0, 5))),
    ],
)
def test_what_is_no_number_or_beyond_all_numbers_is_refused_in_a_sentence(
    call: Callable[[], Any],
) -> None:
    with pytest.raises(HdicaError, match=r"is not (allowed|known)"):
        call()


def test_no_output_time_is_refused_in_a_sentence() -> None:
    import hdica

    system = hdica.OnlineICA(tau=0.05, start={"overlap": 0.5})
    for over in (None, {"tau": [0.1]}):
        with pytest.raises(HdicaError, match="times is an empty list"):
            hdica.limit(system, times=[], over=over)
        with pytest.raises(HdicaError, match="times is an empty list"):
            hdica.simulate(system, times=[], n=[100], seeds=2, over=over)
