"""Steady states of any rule and where they change: closed forms, papers, flows and symmetry."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from tests.systems.rules.rules import committee
from tests.systems.rules.test_limit import GOLDEN, written

RETRIEVAL = "tau*(v**2 - u**2)*u"
REGRESSION = {"update": "tau*(label - u)", "label": "v + s*z", "noise": {"z": "gaussian"}}


def rule(update: str, **fields):
    return hdica.OnlineRule(update=update, **{"constants": {"tau": 0.1}, **fields})


@pytest.mark.parametrize("name", GOLDEN["ino_pca"])
def test_ino_pca_has_the_states_of_its_paper(name: str) -> None:
    case = GOLDEN["ino_pca"][name]
    states = hdica.fixed_points(written("ino_pca", case["parameters"]))
    steady = case["steady"]
    first = states.isel(fixed_point=0)
    assert float(first.P) == pytest.approx(steady["norm"] ** 2, abs=1e-9)
    assert float(first.cosine) ** 2 == pytest.approx(steady["cos2"], abs=1e-9)
    assert bool(first.stable)
    tau = case["parameters"]["tau"]
    nothing = states.where(states.kind == "uninformative", drop=True)
    assert float(nothing.P[0]) == pytest.approx(((1 + np.sqrt(1 + 2 * tau)) / 2) ** 2, abs=1e-9)
    assert not states.error.values.max() > 1e-9


def test_two_estimates_that_become_one_stay_within_what_there_is() -> None:
    """Rounding leads beyond P_12 = 1, where the equations lead away exponentially."""
    pair = hdica.OnlineRule(
        update="-tau*u**3", normalise="norm", source=["uniform", "rademacher"],
        start={"overlap": [[-0.0146, -0.7417], [-0.003, -0.6517]]}, constants={"tau": 0.02},
    )  # fmt: skip
    path = hdica.limit(pair, times=[0, 2000])
    assert path.P.values[-1] == pytest.approx(np.ones((2, 2)), abs=1e-9)
    assert path.R_error.values.max() < 1e-9


def test_regression_has_one_state_until_its_norm_diverges() -> None:
    for tau, s in ((0.5, 0.3), (1.9, 1.0)):
        states = hdica.fixed_points(hdica.OnlineRule(**REGRESSION, constants={"tau": tau, "s": s}))
        assert states.Q.values == pytest.approx([1.0], abs=1e-12)
        assert states.P.values == pytest.approx([1 + tau * s * s / (2 - tau)], rel=1e-12)
        assert states.stable.all()


RELU = "tau*(relu(v) - relu(u))*(u > 0)"


def relu_states(tau: float):
    return hdica.fixed_points(hdica.OnlineRule(update=RELU, constants={"tau": tau}))


def test_a_relu_that_learns_a_relu_loses_stability_where_a_branch_leaves_the_edge() -> None:
    """At the perfect state rates have half powers of the distance, and no estimate is beyond it.

    Near it the distance falls at the rate tau - tau^2/2.
    """
    for tau in (1.9995, 2.0005):
        states = relu_states(tau)
        (rate,) = states.eigenvalue.values[abs(states.Q.values - 1) < 1e-9]
        assert rate == pytest.approx(tau * tau / 2 - tau, abs=1e-6)
    for tau, informative in ((1.9, 1), (2.1, 3)):
        states = relu_states(tau)
        assert states.cosine.values.max() <= 1 + 1e-12
        perfect = states.sel(fixed_point=abs(states.Q - 1) < 1e-9)
        assert perfect.P.values == pytest.approx([1.0], abs=1e-12)
        assert bool(perfect.stable[0]) == (tau < 2)
        assert int((states.Q > 1e-6).sum()) == informative


def test_a_state_that_ends_at_a_fold_is_not_another_that_newton_s_method_finds() -> None:
    rule = {"source": "rademacher", "normalise": "norm", "start": {"overlap": 0.7, "norm": 1.0}}
    found = hdica.critical(
        hdica.OnlineRule(update="tau*(u**3 - 0.2*u**5)", constants={"tau": 0.05}, **rule), "tau"
    )
    assert found.kind.values.tolist() == ["fold"]
    assert float(found.value[0]) == pytest.approx(0.0956769, abs=1e-6)


def test_an_estimate_that_is_nothing_has_no_direction() -> None:
    states = hdica.fixed_points(
        hdica.OnlineRule(
            update="tau*u*(1 - u**2)*(1 + v)", source="uniform", entrywise="-0.5*x",
            constants={"tau": 0.1},
        )
    )  # fmt: skip
    assert states.cosine.where(states.P < 1e-12, drop=True).values == pytest.approx(0.0, abs=0)


SPARSE = {"prior": {"sparse": 0.3}, "source": "uniform", "start": {"overlap": 0.7}}
SHRUNK = {"update": "-tau*u**3", "normalise": "norm", **SPARSE}


def test_states_of_densities_are_those_of_online_ica() -> None:
    """A psi that is not linear, in proportion to tau and by itself."""
    known = hdica.OnlineICA(tau=0.05, regularizer="0.1*sign(x)", **SPARSE)
    own = hdica.OnlineRule(**SHRUNK, entrywise="-tau*sign(x)/10", constants={"tau": 0.05})
    fixed = hdica.OnlineRule(**SHRUNK, entrywise="-b*sign(x)", constants={"tau": 0.05, "b": 0.005})
    one = hdica.fixed_points(known)
    assert one.stable.values.tolist() == [True, False, True, False, True]
    for same in (own, fixed):
        other = hdica.fixed_points(same)
        assert other.Q.values == pytest.approx(one.Q.values, abs=1e-9)
        assert np.array_equal(other.stable, one.stable)
        assert np.array_equal(other.kind, one.kind)
    twice = hdica.fixed_points(fixed.model_copy(update={"constants": {"tau": 0.05, "b": 0.01}}))
    assert np.abs(twice.Q.values - one.Q.values).max() > 1e-3


@pytest.mark.deep
def test_states_of_densities_change_where_those_of_online_ica_do() -> None:
    known = hdica.OnlineICA(tau=0.05, regularizer="0.1*sign(x)", **SPARSE)
    own = hdica.OnlineRule(**SHRUNK, entrywise="-tau*sign(x)/10", constants={"tau": 0.05})
    one, other = hdica.critical(known), hdica.critical(own)
    assert other.value.values == pytest.approx(one.value.values, rel=1e-9)
    assert np.array_equal(other.kind, one.kind)
    # At that tau the fold in b lies at the same ratio of both.
    tau = float(one.value[0])
    fixed = hdica.OnlineRule(**SHRUNK, entrywise="-b*sign(x)", constants={"tau": tau, "b": 0.001})
    fold = hdica.critical(fixed, "b", low=0.001, high=0.02)
    assert float(fold.value[0]) == pytest.approx(tau / 10, rel=1e-7)


def test_states_of_densities_need_the_norm() -> None:
    free = hdica.OnlineRule(
        update="tau*(v - u)", entrywise="-b*sign(x)", constants={"tau": 0.1, "b": 1.0}
    )
    with pytest.raises(HdicaError, match="do not close the limit .* keeps the norm"):
        hdica.fixed_points(free)


def test_phase_retrieval_has_the_roots_of_its_polynomials() -> None:
    for tau in (0.05, 0.3, 0.34, 0.5):
        states = hdica.fixed_points(rule(RETRIEVAL, constants={"tau": tau}))
        found = states.where(states.kind == "informative", drop=True)
        assert found.Q.values == pytest.approx([1.0, -1.0], abs=1e-10)
        # Errors across the feature grow from tau = 1/3 on.
        assert found.stable.values.astype(bool).tolist() == [tau < 1 / 3] * 2
        blind = np.roots([15 * tau, -6 - 6 * tau, 2 + 3 * tau, 0])
        real = np.sort(blind[np.abs(blind.imag) < 1e-12].real)
        nothing = np.sort(states.P.values[states.kind.values == "uninformative"])
        assert nothing == pytest.approx(real, abs=1e-9)


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_a_committee_has_its_plateau_and_its_teacher() -> None:
    """Saad and Solla 1995: R = 1/sqrt(K (2 K - 1)) and P = 1/(2 K - 1) on the plateau."""
    given = {"source": ["gaussian"] * 2, "start": {"overlap": [[0.1, 0.0], [0.0, 0.1]]}}
    states = hdica.fixed_points(
        hdica.OnlineRule(update=committee(2, 2), constants={"tau": 0.01}, **given)
    )
    stable = states.where(states.stable, drop=True)
    assert len(stable.fixed_point) == 2
    assert np.abs(stable.R.values).max(axis=2) == pytest.approx(1, abs=1e-9)
    flat = states.isel(fixed_point=-1)
    assert flat.R.values == pytest.approx(np.full((2, 2), 6**-0.5), abs=2e-3)
    assert flat.P.values == pytest.approx(np.full((2, 2), 1 / 3), abs=2e-3)


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_the_plateau_of_a_committee_lasts_nearly_in_proportion_to_its_units() -> None:
    times, sizes, left = np.linspace(0, 340, 171), (2, 3, 4), []
    for k in sizes:
        start = {"overlap": (0.1 + 1e-3 * np.eye(k)).tolist(), "norm": 0.5}
        units = rule(committee(k, k), source=["gaussian"] * k, start=start, constants={"tau": 0.5})
        overlap = hdica.limit(units, times=times, timeout=None).R.values
        ahead = overlap[:, 0, 0] - overlap[:, 0, 1]
        after = int(np.argmax(ahead > 0.1))
        left.append(float(np.interp(0.1, ahead[: after + 1], times[: after + 1])))
    assert left == pytest.approx([171, 240, 315], abs=1)
    assert np.polyfit(np.log(sizes), np.log(left), 1)[0] == pytest.approx(0.88, abs=0.01)


@pytest.mark.deep
@pytest.mark.timeout(300)
@pytest.mark.parametrize("normalise", ["symmetric", "gram-schmidt"])
def test_flows_of_two_estimates_end_at_listed_states(normalise: str) -> None:
    fields = {"normalise": normalise, "source": ["uniform", "rademacher"]}
    fields |= {"constants": {"tau": 0.02}}
    begin = {"overlap": [[0.5, 0.2], [0.3, 0.6]]}
    states = hdica.fixed_points(hdica.OnlineRule(update="-tau*u**3", start=begin, **fields))
    r, stable = states.R.values, states.stable.values
    assert np.abs(r).max() <= 1
    single = hdica.fixed_points(rule("-tau*u**3", normalise="norm", source="uniform",
                                     constants={"tau": 0.02}))  # fmt: skip
    assert np.abs(r[..., 0]).max() == pytest.approx(float(single.Q.max()), abs=1e-9)
    # Where either finds a feature of its own all signs are states.
    for signs in itertools.product((1, -1), repeat=2):
        own = np.diag(signs) * np.abs(r[0]).max(axis=1)[:, None]
        assert np.abs(r[stable] - own).max(axis=(1, 2)).min() < 1e-6
    rng = np.random.default_rng(1)
    rows = np.linalg.qr(rng.standard_normal((4, 4)))[0][:2]
    start = {"overlap": rows[:, :2].tolist()}
    path = hdica.limit(hdica.OnlineRule(update="-tau*u**3", start=start, **fields), times=[0, 4000])
    end = path.R.values[-1]
    assert np.abs(r[stable] - end).max(axis=(1, 2)).min() < 1e-5


CRITICAL = [
    pytest.param(
        rule("tau*u/norm", entrywise="-tau*x", spike=1), "tau", 4.0, "transcritical", id="INO-PCA"
    ),
    pytest.param(
        rule("tau*u/norm", entrywise="-tau*x", spike=0.1), "tau", 0.22, "transcritical",
        id="INO-PCA of a weak spike", marks=pytest.mark.deep,
    ),
    pytest.param(
        rule("tau*u/norm", entrywise="-tau*x", spike=1, constants={"tau": 0.5}),
        "spike", (2**0.5 - 1) / 2, "transcritical", id="INO-PCA by its spike",
    ),
    pytest.param(rule("tau*u", normalise="norm", spike=1), "tau", 2.0, "transcritical", id="Oja"),
    pytest.param(
        hdica.OnlineRule(**REGRESSION, constants={"tau": 0.1, "s": 1.0}),
        "tau", 2.0, "divergence", id="regression",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("system", "parameter", "value", "kind"), CRITICAL)
def test_states_change_where_closed_forms_say(system, parameter, value, kind) -> None:
    changes = hdica.critical(system, parameter, low=value / 3, high=2 * value)
    assert changes.kind.values.tolist() == [kind]
    assert changes.value.values == pytest.approx([value], rel=1e-8)
    assert abs(float(changes.value[0]) - value) <= float(changes.error[0])


def test_phase_retrieval_loses_its_signal_before_its_norm() -> None:
    """At 1/3 the signal turns unstable, and at (sqrt(10) - 1)/6 two blind states merge."""
    changes = hdica.critical(rule(RETRIEVAL), low=0.2, high=0.5)
    assert changes.kind.values.tolist() == ["fold", "transcritical"]
    assert changes.value.values == pytest.approx([(10**0.5 - 1) / 6, 1 / 3], rel=1e-8)
    assert changes.Q.values == pytest.approx([0.0, 1.0], abs=1e-6)


@pytest.mark.parametrize("s", [0.5, 1.0])
def test_a_noisy_signal_begins_to_oscillate_and_ends_on_an_unstable_state(s: float) -> None:
    """With noise of variance s^2 blind states obey 2 (1 - 3P) + tau (15 P^2 - 6 P + 3 + s^2) = 0.

    The signal meets one of them where 3 tau (1 - P) = 0, and the two merge at the largest tau.
    """
    noisy = hdica.OnlineRule(
        update="tau*(v**2 + s*z - u**2)*u", noise={"z": "gaussian"}, constants={"tau": 0.2, "s": s},
        start={"overlap": 0.1, "norm": 1.0},
    )  # fmt: skip
    changes = hdica.critical(noisy, low=0.25, high=0.4)
    assert changes.kind.values.tolist() == ["fold", "transcritical", "hopf"]
    p = np.linspace(0.5, 1.0, 100_001)
    merged = (2 * (3 * p - 1) / (15 * p * p - 6 * p + 3 + s * s)).max()
    assert changes.value.values[:2] == pytest.approx([merged, 4 / (12 + s * s)], rel=1e-8)
    assert changes.Q.values[:2] == pytest.approx([0.0, 0.0], abs=1e-6)
    hopf = float(changes.value[2])
    for factor, holds in ((0.999, True), (1.001, False)):
        near = noisy.model_copy(update={"constants": {"tau": factor * hopf, "s": s}})
        states = hdica.fixed_points(near)
        assert states.stable.values[states.Q.values > 0.1].tolist() == [holds]


@pytest.mark.parametrize(
    ("f", "source"), [("x**3", "uniform"), ("tanh(x)", "laplace"), ("-x**2", {"chi2": 4})]
)
def test_online_ica_has_the_states_and_the_folds_that_it_has_elsewhere(f, source) -> None:
    written_out = f"-tau*({f.replace('x', 'u')})"
    own = rule(written_out, normalise="norm", source=source, constants={"tau": 0.02})
    ica = hdica.OnlineICA(tau=0.02, nonlinearity=f, source=source)
    states, other = hdica.fixed_points(own), hdica.fixed_points(ica)
    order = np.argsort(states.Q.values)
    assert states.Q.values[order] == pytest.approx(other.Q.values, abs=1e-9)
    assert states.stable.values[order].tolist() == other.stable.values.tolist()
    ends = hdica.critical(ica)
    changes = hdica.critical(own, low=float(ends.value[0]) / 2, high=2 * float(ends.value[0]))
    assert changes.value.values == pytest.approx(ends.value.values, rel=1e-8)
    assert np.abs(changes.Q.values) == pytest.approx(np.abs(ends.Q.values), abs=1e-5)
    assert changes.kind.values.tolist() == ends.kind.values.tolist()


REFUSED = [
    (rule("0*tau*u"), "not a list"),
    (rule("tau*u/(1 + t)"), "depends on t"),
    (rule("-tau*u**3", entrywise="-sign(x)"), "R and P alone do not close the limit"),
    (
        rule(["-tau*u**3"] * 3, normalise="norm", source=["uniform"] * 3,
             start={"overlap": (0.5 * np.eye(3)).tolist()}),
        "3 x 3 overlaps are not allowed",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("system", "sentence"), REFUSED)
def test_what_has_no_list_of_states_is_refused(system, sentence) -> None:
    with pytest.raises(HdicaError, match=sentence):
        hdica.fixed_points(system)


def test_a_parameter_that_is_none_is_refused() -> None:
    with pytest.raises(HdicaError, match="did you mean 'eta'"):
        hdica.critical(rule("eta*(v - u)", constants={"eta": 0.1}), "eat")
