"""Fixed points, critical values and annealing of Hebbian ICA, and its map onto online ICA."""

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.systems.hebbian_ica import optimum as hebbian_asymptotic_methods
from hdica.systems.hebbian_ica.optimum import annealing


def heb(**more):
    given = {"sources": ["uniform"], "sigma": [-1], "mu": 0.05, **more}
    return hdica.HebbianICA(**given)


def test_all_states_of_one_projection_solve_the_cubic():
    """2 |k4| q (1 - q) = mu (15 + 15 k4 q^2 (1 - q) + (mu6 - 15) q^3) of the sheet, q = R^2."""
    found = hdica.fixed_points(heb())
    assert found["stable"].values.tolist() == [True, False, True]
    assert found["kind"].values.tolist() == ["informative", "informative", "uninformative"]
    q = found["R"].values[:2, 0, 0] ** 2
    k4, m6 = -1.2, 27 / 7
    left = 2 * abs(k4) * q * (1 - q)
    right = 0.05 * (15 + 15 * k4 * q**2 * (1 - q) + (m6 - 15) * q**3)
    assert left == pytest.approx(right, abs=1e-11)


def test_symmetric_states_are_saddles_of_two_projections():
    pair = heb(sources=["uniform"] * 2, projections=2, sigma=[-1, -1], mu=0.02)
    found = hdica.fixed_points(pair)
    r, stable = found["R"].values, found["stable"].values
    alike = np.isclose(r[:, 0], r[:, 1], atol=1e-9).all(axis=1) & (np.abs(r).max(axis=(1, 2)) > 0)
    # Both on one source, at its barrier and above: either source, and signs.
    assert found["multiplicity"].values[alike].tolist() == [8, 8]
    assert not stable[alike].any()
    # Each projection on a source of its own: two orders, and signs.
    assert found["multiplicity"].values[(np.abs(r) > 0.9).sum(axis=(1, 2)) == 2].tolist() == [8]
    assert int(found["certified"]) == 1
    assert found["hits"].values.sum() <= float(found["starts"])
    # A run that begins exactly at a saddle's symmetry keeps it in the limit.
    start = r[alike][0] * 0.9
    path = hdica.limit(
        pair.model_copy(update={"start": {"overlap": start.tolist()}}), times=[0, 300]
    )
    assert path["R"].values[1][0] == pytest.approx(path["R"].values[1][1], abs=1e-10)


@pytest.mark.parametrize(
    ("source", "phi", "sign", "mu"),
    [
        ({"chi2": 2}, "x**2", -1, 0.05),
        ({"chi2": 2}, "x**2", 1, 0.05),
        ({"chi2": 3}, "x**2", 1, 0.1),
        ({"chi2": 5}, "x**2", -1, 0.2),
        ({"chi2": 3}, "x**2 + 0.1*x**4", -1, 0.005),
        ({"chi2": 4}, "x**3 + 0.5*x**2", 1, 0.02),
        ("laplace", "x**3 + x**2", 1, 0.02),
    ],
    ids=str,
)
def test_states_are_those_of_online_ica_where_phi_is_not_odd(source, phi, sign, mu):
    """All roots of the drift of one overlap, which are known without a search."""
    own = heb(sources=[source], nonlinearity=phi, sigma=[sign], mu=mu)
    other = hdica.fixed_points(hdica.convert(own, to=hdica.OnlineICA))
    found = hdica.fixed_points(own)
    r, q = found["R"].values.ravel(), other["Q"].values
    if source == "laplace":
        # R and -R are images of each other there.
        r, q = np.unique(np.abs(r)), np.unique(np.round(np.abs(q), 12))
    order, by = np.argsort(r), np.argsort(q)
    assert r[order] == pytest.approx(q[by], abs=1e-9)
    assert len(r) > 1
    if source != "laplace":
        assert found["stable"].values[order].tolist() == other["stable"].values[by].tolist()
    assert int(found["certified"]) == 1


def test_a_skewed_source_is_found_with_the_sign_of_its_skewness():
    """The stable state at R < 0, where the limit and chains end."""
    found = hdica.fixed_points(heb(sources=[{"chi2": 2}], nonlinearity="x**2", mu=0.05))
    assert found["R"].values.ravel() == pytest.approx([-0.94695, -0.03755, 0.0], abs=5e-6)
    assert found["stable"].values.tolist() == [True, False, True]
    start = {"overlap": -0.2}
    run = heb(sources=[{"chi2": 2}], nonlinearity="x**2", mu=0.05, start=start)
    end = hdica.limit(run, times=[0, 400])["R"].values[-1, 0, 0]
    assert end == pytest.approx(found["R"].values[0, 0, 0], abs=1e-6)


def test_more_states_than_a_store_holds_are_refused_in_one_sentence(monkeypatch):
    monkeypatch.setattr(hebbian_asymptotic_methods, "MAX_STATES", 2)
    with pytest.raises(HdicaError, match="3 fixed points were found, more than the 2 a store"):
        hdica.fixed_points(heb())


@pytest.mark.parametrize(
    ("source", "sign", "value"),
    [("uniform", -1, 0.0591301670), ("rademacher", -1, 0.1621792606), ("laplace", 1, 0.0634792385)],
)
def test_critical_mu(source, sign, value):
    found = hdica.critical(heb(sources=[source], sigma=[sign]))
    assert found["value"].values == pytest.approx([value], abs=1e-10)
    below, above = (
        hdica.fixed_points(heb(sources=[source], sigma=[sign], mu=value * (1 + step)))
        for step in (-1e-4, 1e-4)
    )
    assert (below.sizes["fixed_point"], above.sizes["fixed_point"]) == (3, 1)


def test_transitions_are_of_mu_alone():
    with pytest.raises(HdicaError, match=r"parameter = 'alpha' .* \(allowed: mu, without low"):
        hdica.critical(heb(), "alpha")


def test_eigenvalues_and_critical_mu0_in_each_case_of_k_and_m():
    cases = {
        ("uniform",): ([-1], [[-2.4]], 1 / 2.4),
        ("uniform", "rademacher"): ([-1, -1], [[-2.4, -1.6], [-3.2, -4.0]], 1 / 1.6),
    }
    for laws, (signs, values, critical) in cases.items():
        found = hdica.asymptotics(heb(sources=list(laws), projections=len(signs), sigma=signs))
        assert found["eigenvalue"].values == pytest.approx(np.array(values), abs=1e-9)
        assert float(found["mu0_critical"]) == pytest.approx(critical, rel=1e-9)
    wide = hdica.asymptotics(heb(sources=["uniform", "rademacher"], sigma=[-1]))
    assert wide["eigenvalue"].values == pytest.approx(np.array([[-2.4, -1.2]]), abs=1e-9)
    tall = hdica.asymptotics(heb(projections=2, sigma=[-1, -1]))
    assert tall["eigenvalue"].values == pytest.approx(np.array([[-2.4], [-0.6]]), abs=1e-9)
    assert float(tall["mu0_critical"]) == pytest.approx(1 / 0.6, rel=1e-9)


def test_annealing_is_known_from_the_schedule_and_meets_the_limit():
    system = heb(mu="mu0/(t + 1000)", constants={"mu0": 2.0}, start={"overlap": 0.95})
    assert annealing(system) == pytest.approx((2.0, 1000.0))
    assert annealing(heb(mu="1/(1 + t**2)")) is None
    late = [1e5, 1e6]
    ode, formula = (hdica.limit(system, times=late, method=m)["R"] for m in ("ode", "annealed"))
    gap = np.abs(ode - formula).values.ravel()
    assert np.all(gap < 0.02 * (1 - ode.values.ravel()))
    decay = float(hdica.asymptotics(system)["decay"][0, 0])
    assert 1e6 * (float(ode[1, 0, 0]) - 1) == pytest.approx(decay, rel=2e-3)
    with pytest.raises(HdicaError, match=r"mu = 0.05 is not allowed for annealing \(mu0/"):
        hdica.limit(heb(start={"overlap": 0.9}), times=[1], method="annealed")


@pytest.mark.parametrize(
    ("phi", "source", "sign"),
    [("x**3", "uniform", -1), ("x**3", "laplace", 1), ("tanh(x)", "uniform", 1)],
)
def test_hebbian_ica_is_online_ica_in_the_limit(phi, source, sign):
    own = heb(nonlinearity=phi, sources=[source], sigma=[sign], mu=0.03, start={"overlap": 0.7})
    other = hdica.convert(own, to=hdica.OnlineICA)
    times = [0, 10, 20, 40]
    r = hdica.limit(own, times=times)["R"].values[:, 0, 0]
    q = hdica.limit(other, times=times, method="ode")["Q"].values
    assert r == pytest.approx(q, abs=1e-9)
    assert abs(r[-1] - r[0]) > 1e-3
    back = hdica.convert(other, to=hdica.HebbianICA)
    assert hdica.limit(back, times=times)["R"].values[:, 0, 0] == pytest.approx(q, abs=1e-9)
    assert float(hdica.critical(own)["value"][0]) == pytest.approx(
        float(hdica.critical(other)["value"][0]), rel=1e-9
    )


def test_the_two_rules_agree_at_finite_n():
    """Means of 64 chains at n = 1000, within 4 standard errors of each other and of a limit."""
    own = heb(mu=0.05, start={"overlap": 0.7})
    other = hdica.convert(own, to=hdica.OnlineICA)
    ends = [
        hdica.simulate(one, n=1000, times=[40], seeds=range(64), method="chain")
        for one in (own, other)
    ]
    r, q = ends[0]["R"].values.ravel(), ends[1]["Q"].values.ravel()
    error = np.hypot(r.std(ddof=1), q.std(ddof=1)) / 8
    assert abs(r.mean() - q.mean()) < 4 * error
    # Without the sign of the map the feature is forgotten.
    wrong = hdica.simulate(
        other.model_copy(update={"nonlinearity": "-x**3"}), n=1000, times=[40], seeds=range(16)
    )
    assert abs(wrong["Q"].values.mean() - r.mean()) > 20 * error


@pytest.mark.deep
def test_fluctuations_are_those_of_chains():
    """Standard deviations of 400 chains at n = 2000, within 4 of their standard errors."""
    pair = heb(
        sources=["uniform", "rademacher"],
        projections=2,
        sigma=[-1, -1],
        mu=0.03,
        start={"overlap": [[0.7, 0.2], [-0.1, 0.6]]},
    )
    found = hdica.limit(pair, times=[0, 20], method="clt")
    plain = hdica.limit(pair, times=[0, 20])
    assert found["R"].values.tolist() == plain["R"].values.tolist()
    assert np.all(found["R_sd"].values[0] == 0)
    runs = hdica.simulate(pair, n=2000, times=[20], seeds=range(400))["R"].values[:, 0]
    want = found["R_sd"].values[1] / np.sqrt(2000)
    assert np.abs(runs.std(axis=0, ddof=1) / want - 1).max() < 4 / np.sqrt(2 * 400)
    random = hdica.limit(heb(start="random"), times=[0], method="clt")
    assert random["R_sd"].values.tolist() == [[[1.0]]]
    with pytest.raises(HdicaError, match="are not available"):
        hdica.limit(heb(nonlinearity="abs(x)*x", sigma=[-1]), times=[1], method="clt")


@pytest.mark.parametrize(
    ("system", "to", "sentence"),
    [
        (heb(projections=2, sigma=[-1, -1]), hdica.OnlineICA, "projections = 2 with 1 sources"),
        (heb(mu=None, nu=1.0), hdica.OnlineICA, "nu is not allowed for OnlineICA"),
        (heb(), hdica.SparsePCA, "to = SparsePCA is not known for HebbianICA"),
        (hdica.OnlineICA(tau=0.1, regularizer="sign(x)"), hdica.HebbianICA, "regularizer ="),
    ],
)
def test_what_cannot_be_converted(system, to, sentence):
    with pytest.raises(HdicaError, match=sentence):
        hdica.convert(system, to=to)
