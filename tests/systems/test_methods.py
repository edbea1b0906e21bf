"""What every registered method promises: shapes, determinism, agreement with the limit."""

import numpy as np
import pytest

import hdica
from hdica.ingredients.save import NOTHING, Save
from hdica.systems.registry import METHODS

SYSTEMS = {
    "OnlineICA": hdica.OnlineICA(tau=0.05, start={"overlap": 0.7}),
    "SparsePCA": hdica.SparsePCA(tau=0.5, omega=1.5, start={"overlap": 0.7}),
}
SPARSE = {
    name: system.model_copy(update={"regularizer": "0.1*sign(x)", "prior": {"sparse": 0.3}})
    for name, system in SYSTEMS.items()
}
EVERY = [(system, name) for system in SYSTEMS for name in METHODS[system]]
TIMES = np.array([0.0, 0.5, 2.0])
SAVE = Save((0.5, 2.0), (-2.0, -1.0, 0.0, 1.0, 2.0), (0.5, 1.0), {"fourth": "x**4"})


def run(method, system, save=NOTHING):
    n, seed = (50, 3) if method.stochastic else (None, None)
    return method.run(system, TIMES, n, seed, save).values


def check(method, system, save):
    first, second = run(method, system, save), run(method, system, save)
    coords = method.coords_of(TIMES, save, np.array(system.feature_groups()))
    outputs = method.outputs_of(save)
    assert {o.name for o in outputs} <= set(first)
    for output in outputs:
        shape = tuple(len(coords[d]) for d in output.dims)
        assert np.shape(first[output.name]) == shape, output.name
        assert np.asarray(first[output.name]).tobytes() == np.asarray(second[output.name]).tobytes()
    assert method.seconds(system, 50 if method.stochastic else None, 2.0) > 0


@pytest.mark.parametrize(("system", "name"), EVERY)
def test_every_method_returns_what_it_declares_and_the_same_twice(system, name):
    method = METHODS[system][name]
    assert method.refuses(SYSTEMS[system]) == ""
    check(method, SYSTEMS[system], NOTHING)


@pytest.mark.parametrize(("system", "name"), [(s, m) for s, m in EVERY if METHODS[s][m].keeps])
def test_every_method_that_keeps_densities_returns_them_in_shape(system, name):
    method = METHODS[system][name]
    assert method.refuses(SPARSE[system]) == ""
    check(method, SPARSE[system], SAVE)
    found = run(method, SPARSE[system], SAVE)
    assert np.all((found["cdf"] >= 0) & (found["cdf"] <= 1))
    assert found["weight"] == pytest.approx([0.7, 0.3])


@pytest.mark.parametrize("system", list(SYSTEMS))
def test_what_is_kept_changes_no_other_number(system):
    for method in METHODS[system].values():
        if method.keeps:
            with_it, without = run(method, SPARSE[system], SAVE), run(method, SPARSE[system])
            for output in method.outputs:
                assert with_it[output.name].tobytes() == without[output.name].tobytes()
