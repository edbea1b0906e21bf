"""Noise that points share: what else they keep, and which methods have none."""

import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.systems.system import methods_of
from tests.systems.test_contract import TIMES

SYSTEMS = {
    "OnlineICA": hdica.OnlineICA(tau=0.05, start={"overlap": 0.7}),
    "SparsePCA": hdica.SparsePCA(tau=0.5, omega=1.5, start={"overlap": 0.7}),
}


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
        (
            {"noise": "Shared"},
            r"noise = 'Shared' is not allowed with .* \(did you mean 'shared'\? ",
        ),
        (
            {"noise": "shared", "method": "particles"},
            r"noise = 'shared' is not allowed with method 'particles' \(allowed: own\)",
        ),
    ],
)
def test_noise_that_a_method_does_not_have_is_refused(options, sentence):
    with pytest.raises(HdicaError, match=sentence):
        hdica.simulate(SYSTEMS["OnlineICA"], n=20, times=[0, 1], **options)
