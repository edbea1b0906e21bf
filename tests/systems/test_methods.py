"""What every registered method promises: shapes, determinism, agreement with the limit."""

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING, Save
from hdica.systems.registry import methods_of

SYSTEMS = {
    "OnlineICA": hdica.OnlineICA(tau=0.05, start={"overlap": 0.7}),
    "SparsePCA": hdica.SparsePCA(tau=0.5, omega=1.5, start={"overlap": 0.7}),
}
SPARSE = {
    name: system.model_copy(update={"regularizer": "0.1*sign(x)", "prior": {"sparse": 0.3}})
    for name, system in SYSTEMS.items()
}
EVERY = [(system, name) for system in SYSTEMS for name in methods_of(system)]
TIMES = np.array([0.0, 0.5, 2.0])
SAVE = Save((0.5, 2.0), (-2.0, -1.0, 0.0, 1.0, 2.0), (0.5, 1.0), {"fourth": "x**4"})


def run(method, system, save=NOTHING):
    n, seed = (50, 3) if method.stochastic else (None, None)
    return method.run(system, TIMES, n, seed, save).values


def check(method, system, save):
    first, second = run(method, system, save), run(method, system, save)
    coords = method.coords_of(TIMES, save, system.dims())
    outputs = method.outputs_of(save)
    assert {o.name for o in outputs} <= set(first)
    for output in outputs:
        shape = tuple(len(coords[d]) for d in output.dims)
        assert np.shape(first[output.name]) == shape, output.name
        assert np.asarray(first[output.name]).tobytes() == np.asarray(second[output.name]).tobytes()
    assert method.seconds(system, 50 if method.stochastic else None, 2.0) > 0


@pytest.mark.parametrize(("system", "name"), EVERY)
def test_every_method_returns_what_it_declares_and_the_same_twice(system, name):
    method = methods_of(system)[name]
    assert method.refuses(SYSTEMS[system]) == ""
    check(method, SYSTEMS[system], NOTHING)


@pytest.mark.parametrize(("system", "name"), [(s, m) for s, m in EVERY if methods_of(s)[m].keeps])
def test_every_method_that_keeps_densities_returns_them_in_shape(system, name):
    method = methods_of(system)[name]
    assert method.refuses(SPARSE[system]) == ""
    check(method, SPARSE[system], SAVE)
    found = run(method, SPARSE[system], SAVE)
    assert np.all((found["cdf"] >= 0) & (found["cdf"] <= 1))
    assert found["weight"] == pytest.approx([0.7, 0.3])


@pytest.mark.parametrize("system", list(SYSTEMS))
def test_what_is_kept_changes_no_other_number(system):
    for method in methods_of(system).values():
        if method.keeps:
            with_it, without = run(method, SPARSE[system], SAVE), run(method, SPARSE[system])
            for output in method.outputs:
                assert with_it[output.name].tobytes() == without[output.name].tobytes()


VARIANTS = [
    (system, name, noise)
    for system, name in EVERY
    for noise in ("own", "shared")
    if methods_of(system, noise)[name].together is not None
]


@pytest.mark.parametrize(("system", "name", "noise"), VARIANTS)
def test_points_together_have_the_bits_of_each_alone(system, name, noise):
    method, one = methods_of(system, noise)[name], SYSTEMS[system]
    systems = [one.model_copy(update={"tau": tau}) for tau in (0.03, 0.06, 0.3)]
    trials = [(s, seed) for seed in (5, 0, 7) for s in systems]
    found = method.run_all(trials, TIMES, 30)
    for (s, seed), result in zip(trials, found, strict=True):
        alone = method.run(s, TIMES, 30, seed, NOTHING)
        assert result.diverged == alone.diverged
        for output in method.outputs:
            assert result.values[output.name].tobytes() == alone.values[output.name].tobytes()


@pytest.mark.parametrize("system", list(SYSTEMS))
def test_a_functional_of_its_own_constants_is_kept_for_each_point_that_shares_noise(system):
    method = methods_of(system, "shared")["vector"]
    save = Save((), (), (), {"scaled": "a*x**2"})
    systems = [SYSTEMS[system].model_copy(update={"constants": {"a": a}}) for a in (1.0, 3.0)]
    found = method.run_all([(s, 1) for s in systems], TIMES, 30, save)
    one, three = (result.values["scaled"] for result in found)
    assert one == pytest.approx([1.0] * 3)
    assert three == pytest.approx([3.0] * 3)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"noise": "Shared"}, r"noise = 'Shared' is not allowed \('own' or 'shared'\)"),
        (
            {"noise": "shared", "method": "particles"},
            r"noise = 'shared' is not allowed \('own' for method 'particles'\)",
        ),
    ],
)
def test_noise_that_a_method_does_not_have_is_refused(options, sentence):
    with pytest.raises(HdicaError, match=sentence):
        hdica.simulate(SYSTEMS["OnlineICA"], n=20, times=[0, 1], **options)
