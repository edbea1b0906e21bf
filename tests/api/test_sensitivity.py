"""Derivatives by the adjoint, against closed forms and differences of limits."""

import math

import numpy as np
import pytest

import hdica
from hdica.systems.sparse_pca.system import oja_overlap

NORMAL = {"normal": {"mean": math.sqrt(0.5), "var": 0.5}}
OIST = hdica.SparsePCA(
    tau=0.5, omega=1.0, regularizer="beta*sign(x)", constants={"beta": 0.27},
    prior={"sparse": 0.05}, start=NORMAL,
)  # fmt: skip


def _difference(
    system: hdica.SparsePCA, name: str, value: float, variable: str, at: float
) -> float:
    """A central difference of limits, of order four in the step."""

    def one(step: float) -> float:
        sides = [value + step, value - step]
        fields = [{"constants": {"beta": v}} if name == "beta" else {name: v} for v in sides]
        up, down = (
            float(hdica.limit(system.model_copy(update=f), times=[at], method="pde")[variable][0])
            for f in fields
        )
        return (up - down) / (2 * step)

    coarse, fine = one(0.04 * value), one(0.02 * value)
    return fine + (fine - coarse) / 3


def test_ojas_method_by_its_closed_form() -> None:
    pca = hdica.SparsePCA(tau=0.4, omega=1.5, start={"overlap": 0.3}, prior={"sparse": 0.3})
    found = hdica.sensitivity(pca, of="Q", at=2.0, wrt=["tau", "omega"])
    step = 1e-4

    def q(tau: float, omega: float) -> float:
        return float(oja_overlap(0.3, tau, omega, np.array([2.0]))[0])

    wanted = [
        (q(0.4 + step, 1.5) - q(0.4 - step, 1.5)) / (2 * step),
        (q(0.4, 1.5 + step) - q(0.4, 1.5 - step)) / (2 * step),
    ]
    np.testing.assert_allclose(found.gradient, wanted, rtol=2e-6)
    assert float(found.value) == pytest.approx(q(0.4, 1.5), abs=1e-7)
    assert (np.abs(found.gradient - wanted) < 3 * found.error + 1e-6).all()


def test_soft_thresholding_by_differences_of_limits() -> None:
    found = hdica.sensitivity(OIST, of="Q", at=3.0, wrt=["tau", "beta"])
    # By an adjoint of a program of its own, at dx = .025: .27011 and -.0148, of second order.
    np.testing.assert_allclose(found.elasticity, [0.2703, -0.01496], rtol=2e-3)
    for name, value, one in zip(["tau", "beta"], [0.5, 0.27], found.gradient.values, strict=True):
        assert one == pytest.approx(_difference(OIST, name, value, "Q", 3.0), rel=2e-5)


def test_a_penalty_depends_on_its_own_strength() -> None:
    found = hdica.sensitivity(OIST, of="R", at=1.0, wrt=["beta"])
    wanted = _difference(OIST, "beta", 0.27, "R", 1.0)
    assert float(found.gradient[0]) == pytest.approx(wanted, rel=2e-5)
    alone = float(found.gradient[0] - found.value / 0.27)
    assert abs(alone - wanted) > 1e-3


def test_the_rate_sums_to_the_gradient_and_is_that_by_the_step_size() -> None:
    found = hdica.sensitivity(OIST, of="Q", at=3.0, wrt=["tau"])
    rate, middle = found.rate.values[:, 0], found.time.values
    # Between 1 and 2 the step size is larger by a little.
    steps = {"steps": {"times": [1, 2], "values": [0.5, 0.5, 0.5]}}
    changed = []
    for sign in (1, -1):
        steps["steps"]["values"] = [0.5, 0.5 + sign * 0.005, 0.5]
        one = hdica.limit(OIST.model_copy(update={"tau": steps}), times=[3.0], method="pde")
        changed.append(float(one.Q[0]))
    mean = float(np.interp(np.linspace(1, 2, 201), middle, rate).mean())
    assert mean == pytest.approx((changed[0] - changed[1]) / 0.01, rel=0.02)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"wrt": ["gamma"]}, "parameter = 'gamma' is not known"),
        ({"wrt": "tau"}, "wrt = 'tau' is not allowed"),
        ({"at": 0}, "at = 0 is not allowed"),
    ],
)
def test_mistakes_are_told(asked: dict, message: str) -> None:
    with pytest.raises(hdica.HdicaError, match=message):
        hdica.sensitivity(OIST, **{"of": "Q", "at": 1.0, "wrt": ["tau"], **asked})


def test_a_kink_that_moves_is_refused() -> None:
    capped = hdica.SparsePCA(
        tau=0.5, regularizer="where(abs(x) < c, sign(x), 0)", constants={"c": 2.0}, prior="gaussian"
    )
    with pytest.raises(hdica.HdicaError, match="moves a kink"):
        hdica.sensitivity(capped, at=1.0, wrt=["c"])
