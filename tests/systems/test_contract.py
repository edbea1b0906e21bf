"""What every method of every registered system promises; no test is edited for a new one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING, Save
from hdica.run.runner import run as run_study
from hdica.status import DONE
from hdica.store.publish import publish
from hdica.store.results import open_results
from hdica.study.study import study_from
from hdica.systems.arguments import taken_names
from hdica.systems.fields import with_parameter
from hdica.systems.labelled import about, dataset, described
from hdica.systems.method import Method, Role
from hdica.systems.parameters import constants_of
from hdica.systems.system import System, methods_of, systems
from hdica.systems.values import canonical
from tests.api.test_formats import assert_every_format

RECORDS = [record for record in systems().values() if record.name != "Toy"]
TIMES = np.array([0.0, 0.5, 2.0])
SAVE = Save((0.5, 2.0), (-2.0, -1.0, 0.0, 1.0, 2.0), (0.5, 1.0), {"fourth": "x**4"})
N, SEED = 50, 3
EVERY = [
    pytest.param(record, method, id=f"{record.name}-{method.name}")
    for record in RECORDS
    for method in record.methods
]
OF_EACH_KIND = list(
    {
        (m.role, m.stochastic, m.takes_n, bool(m.outputs.keeps), bool(m.outputs.extras)): one
        for one in reversed(EVERY)
        for m in [one.values[1]]
    }.values()
)
"""A method of each kind, of which a sweep treats all alike."""
KEEPING = [one for one in EVERY if one.values[1].outputs.keeps]
EXTRA = [one for one in EVERY if one.values[1].outputs.extras]
SENTENCE = re.compile(r"[^\n]{10,600}")


def problems(record: System) -> list[Any]:
    return [record.parameters(**dict(given)) for given in record.examples]


def problem(record: System, method: Method, save: Save = NOTHING) -> Any:
    """The first example to which a method applies; for densities one with several groups."""
    able = [one for one in problems(record) if not method.scope.refuses(one)]
    assert able, f"no example of {record.name} is one that {method.name} applies to"
    if save.anything:
        able.sort(key=lambda one: -len(one.dims().get("feature", ())))
    return able[0]


def size(method: Method, n: int = N) -> int | None:
    """The dimension of a point: none where it is a field of the system."""
    return n if method.takes_n else None


def computed(method: Method, system: Any, save: Save = NOTHING, seed: int = SEED) -> Any:
    return method.run(system, TIMES, size(method), seed if method.stochastic else None, save)


ONCE: dict[tuple[str, str, str], Any] = {}
"""What was computed once, for all tests that hold it to something else."""


def once(record: System, method: Method, system: Any) -> Any:
    """A result that nobody changes; :func:`computed` computes it anew."""
    key = record.name, method.name, repr(system)
    if key not in ONCE:
        ONCE[key] = computed(method, system)
    return ONCE[key]


def same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert np.asarray(values).tobytes() == np.asarray(other[name]).tobytes(), name


@pytest.mark.parametrize(("record", "method"), EVERY)
def test_it_returns_what_it_declares_and_the_same_twice(record: System, method: Method) -> None:
    system = problem(record, method)
    first = once(record, method, system)
    assert not first.diverged
    same(first.values, computed(method, system).values)
    coords = method.coords_of(TIMES, NOTHING, system.dims())
    for output in method.outputs.always:
        shape = tuple(len(coords[dim]) for dim in output.dims)
        values = np.asarray(first.values[output.name], dtype=float)
        assert values.shape == shape, output.name


@pytest.mark.parametrize(("record", "method"), EVERY)
def test_some_example_has_a_number_in_every_variable(record: System, method: Method) -> None:
    able = [one for one in problems(record) if not method.scope.refuses(one)]
    missing = {output.name for output in method.outputs.always}
    for system in able:
        values = once(record, method, system).values
        missing -= {name for name in missing if np.any(np.isfinite(values[name]))}
        if not missing:
            return
    assert not missing


@pytest.mark.parametrize(("record", "method"), EVERY)
def test_every_variable_and_dimension_says_what_it_is(record: System, method: Method) -> None:
    system = problem(record, method)
    result = once(record, method, system)
    found = dataset(record, method, TIMES, NOTHING, system.dims(), [result], "")
    for name, variable in found.data_vars.items():
        assert variable.attrs["long_name"], name
        assert variable.attrs["units"], name
    known = about(record)
    plain = {"fixed_point", "transition", "branch_point", "q"}
    for dim in set(found.dims) - plain:
        assert known[str(dim)]["long_name"], dim
    assert found.attrs["equations"]
    assert found.attrs["kernel_version"] == method.about.kernel
    assert method.cost.seconds(system, size(method), 2.0) > 0
    assert_every_format(described(found, system))


@pytest.mark.parametrize(("record", "method"), KEEPING)
def test_what_is_kept_has_its_shape_and_changes_no_other_number(
    record: System, method: Method
) -> None:
    system = problem(record, method, SAVE)
    with_it = computed(method, system, SAVE).values
    without = once(record, method, system).values
    coords = method.coords_of(TIMES, SAVE, system.dims())
    for output in method.outputs_of(SAVE):
        assert np.shape(with_it[output.name]) == tuple(len(coords[d]) for d in output.dims)
    for output in method.outputs.always:
        assert with_it[output.name].tobytes() == without[output.name].tobytes()
    if "cdf" in with_it:
        below = with_it["cdf"]
        if "fixed_point" in coords:  # a list of states, which NaN fill up
            below = below[np.isfinite(with_it[method.outputs.always[0].name])]
        assert below.size
        assert np.all((below >= 0) & (below <= 1))
        assert with_it["weight"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("record", "method"), EXTRA)
def test_what_is_asked_for_by_name_changes_no_other_number(record: System, method: Method) -> None:
    system = problem(record, method)
    without = once(record, method, system).values
    for names in (
        [method.outputs.extras[0].name],
        [output.name for output in method.outputs.extras],
    ):
        save = Save(extra=tuple(names))
        found = computed(method, system, save).values
        coords = method.coords_of(TIMES, save, system.dims())
        for output in method.outputs_of(save):
            assert np.shape(found[output.name]) == tuple(len(coords[d]) for d in output.dims)
        same({name: found[name] for name in without}, without)
        assert all(np.isfinite(found[name]).any() for name in names)


VARIANTS = [
    pytest.param(record, method, id=f"{record.name}-{name}-{noise}")
    for record in RECORDS
    for noise in ("own", "shared")
    for name, method in methods_of(record.name, noise).items()
    if getattr(method, "together", None) is not None
]


@pytest.mark.parametrize(("record", "method"), VARIANTS)
def test_points_together_have_the_bits_of_each_alone(record: System, method: Method) -> None:
    one = problem(record, method)
    step = next(control.name for control in record.controls if control.step)
    given = {**dict(one), **constants_of(one)}[step]
    factors = (1.0, 0.6, 1.5) if isinstance(given, float) else ()
    alike = [with_parameter(one, step, factor * given) for factor in factors] or [one]
    trials, n = [(system, seed) for seed in (5, 0, 7) for system in alike], size(method, 30)
    found = method.run_all(trials, TIMES, n)
    for (system, seed), result in zip(trials, found, strict=True):
        alone = method.run(system, TIMES, n, seed, NOTHING)
        assert result.diverged == alone.diverged
        same(result.values, alone.values)


IN_TIME = [
    pytest.param(record, name, id=f"{record.name}-{name}")
    for record in RECORDS
    for name, symbol in record.parameters.formulas.items()
    if symbol == "t"
]


@pytest.mark.parametrize(("record", "name"), IN_TIME)
def test_a_formula_in_t_is_allowed_until_it_is_negative(record: System, name: str) -> None:
    """Before anything is computed, and in limits and simulations alike."""
    units = {one.values[1] for one in IN_TIME if one.values[0] is record} - {"omega"}
    others = dict.fromkeys(units - {name}) if name in units else {}
    one = problems(record)[0].model_copy(update={name: "0.1*(1 - t/3)", **others})
    assert one.refuses_until(2.9) == ""
    assert SENTENCE.fullmatch(one.refuses_until(4.0))
    if all(method.scope.refuses(one) for method in record.with_role(Role.LIMIT)):
        return
    for ask in (hdica.limit, hdica.simulate):
        with pytest.raises(HdicaError, match=f"{name} = '0.1.* at t = 3 and is -0.03333 at t = 4"):
            ask(one, times=[0, 4])


@pytest.mark.parametrize(("record", "method"), EVERY)
def test_a_refusal_is_one_sentence(record: System, method: Method) -> None:
    for system in problems(record):
        why = method.scope.refuses(system)
        assert why == "" or SENTENCE.fullmatch(why)


@pytest.mark.deep
@pytest.mark.parametrize(("record", "method"), EVERY)
def test_fields_that_it_ignores_change_nothing(record: System, method: Method) -> None:
    """Of fields with a plain number: others are tried by the tests of their system."""
    system = problem(record, method)
    for name in method.scope.ignores & set(type(system).model_fields):
        value = getattr(system, name)
        if not isinstance(value, float):
            continue
        try:
            other = system.model_copy(update={name: canonical(0.93 * value)})
        except HdicaError:
            continue
        same(once(record, method, system).values, computed(method, other).values)


def _study(record: System, method: Method, out: Any) -> Any:
    given = dict(
        next(
            g
            for g, s in zip(record.examples, problems(record), strict=True)
            if not method.scope.refuses(s)
        )
    )
    where = {"n": [20, 30]} if method.takes_n else {}
    return study_from({
        "study": "contract", "title": "Contract", "system": record.name, "parameters": given,
        "times": TIMES.tolist(),
        "methods": {method.name: where | ({"seeds": 4} if method.stochastic else {})},
    })  # fmt: skip


@pytest.mark.parametrize(("record", "method"), OF_EACH_KIND)
def test_a_study_of_it_resumes_with_the_bits_of_one_run(
    record: System, method: Method, tmp_path: Any
) -> None:
    study = _study(record, method, tmp_path)
    whole, parts = tmp_path / "whole.zarr", tmp_path / "parts.zarr"
    run_study(study, whole, progress=False, shard=(0, 1))
    first = run_study(study, parts, progress=False, shard=(1, 2), block=1)
    second = run_study(study, parts, progress=False, block=1)
    again = run_study(study, parts, progress=False)
    assert second.complete
    assert again.computed == 0
    points = (2 if method.takes_n else 1) * (4 if method.stochastic else 1)
    assert first.computed + second.computed == points
    trees = []
    for out in (whole, parts):
        publish(study, out)
        with open_results(out) as tree:
            trees.append(tree[method.name].to_dataset().load())
    for tree in trees:
        assert (tree["status"] == DONE).all()
    for name, variable in trees[0].data_vars.items():
        if name not in ("cpu_seconds", "reason"):
            assert variable.values.tobytes() == trees[1][name].values.tobytes(), name


AGREEING = [
    pytest.param(record, limit, simulation, id=f"{record.name}-{limit.name}-{simulation.name}")
    for record in RECORDS
    for limit in record.with_role(Role.LIMIT)
    for simulation in record.with_role(Role.SIMULATION)
    if limit.about.accuracy != "approximate" and simulation.about.accuracy.startswith("exact")
    if simulation.takes_n  # without n nobody but the system knows what goes to its limit
]


@pytest.mark.parametrize(("record", "limit", "simulation"), AGREEING)
def test_a_limit_is_where_simulations_go(record: System, limit: Method, simulation: Method) -> None:
    """At n = 2000, within four standard errors and a finite-n term of 10/n; 2 % off is seen by
    the tests of each system, which have the seeds for it."""
    able = [
        s
        for s in problems(record)
        if not limit.scope.refuses(s) and not simulation.scope.refuses(s)
    ]
    if not able:
        pytest.skip("no example has both")
    system, n, name = able[0], 2000, record.order_parameters[0].name
    expected = np.asarray(limit.run(system, TIMES, None, None, NOTHING).values[name])
    runs = simulation.run_all([(system, seed) for seed in range(24)], TIMES, n)
    found = np.array([one.values[name] for one in runs])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - expected) <= 4 * error + 10 / n)


def test_names_of_variables_do_not_meet_those_of_dimensions() -> None:
    for record in RECORDS:
        for method in record.methods:
            every = method.outputs.always + method.outputs.extras
            assert {o.name for o in every} <= taken_names(every)
            assert len({o.name for o in every}) == len(every)
            assert not {o.name for o in every} & {dim for o in every for dim in o.dims}


def test_the_record_says_what_a_reader_needs() -> None:
    for record in RECORDS:
        assert record.title
        assert record.papers
        assert all(paper.cite and paper.title for paper in record.papers)
        assert all(one.meaning for one in record.order_parameters)
        fields = record.parameters.model_fields
        assert all(field.description for field in fields.values())
        assert {dim for one in record.order_parameters for dim in one.dims} <= {
            dim.name for dim in record.dimensions
        }
        ranked = [m.rank for m in record.methods if m.role is Role.LIMIT and m.rank]
        assert len(set(ranked)) == len(ranked)


def test_the_api_finds_every_role() -> None:
    for record in RECORDS:
        for system in problems(record):
            able = [
                m
                for m in record.with_role(Role.SIMULATION)
                if m.rank and not m.scope.refuses(system)
            ]
            assert able
            found = hdica.simulate(system, n=size(able[0], 30), times=[0, 1], seeds=2)
            assert found.attrs["method"] == able[0].name
            assert found.attrs["system"] == record.name
