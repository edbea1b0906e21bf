"""Online sparse PCA against independent numbers and against its own simulation."""

import json
from pathlib import Path

import numpy as np
import pytest

import hdica
from hdica.limits.overlap.drift import solve
from hdica.systems.fields import schedule
from hdica.systems.sparse_pca.system import drift, oja_overlap

GOLDEN = Path(__file__).parents[2] / "golden"
STEADY = json.loads((GOLDEN / "steady_states.json").read_text())["oist_steady"]
START = {"normal": {"mean": 0.5**0.5, "var": 0.5}}


def oist(omega=1.0, **more):
    settings = {
        "tau": 0.5,
        "regularizer": "0.27*sign(x)",
        "prior": {"sparse": 0.05},
        "start": START,
    }
    return hdica.SparsePCA(omega=omega, **{**settings, **more})


def oja(tau=0.5, omega=1.0, q0=0.3, **more):
    return hdica.SparsePCA(tau=tau, omega=omega, start={"overlap": q0}, **more)


@pytest.mark.parametrize("variant", ["linearised", "proximal"])
def test_example_2_of_the_paper(variant):
    found = hdica.limit(oist(variant=variant), times=[0, 1, 5, 15])
    assert found.attrs["method"] == "pde"
    known = [0.15811388300841894, 0.21903733818901894, 0.6952652916008263, 0.8538467021024796]
    assert found["Q"].values == pytest.approx(known, abs=1e-7)
    assert np.all(np.abs(found["Q"].values - known) <= found["Q_error"].values + 1e-12)
    assert float(found["R"][-1]) == pytest.approx(0.1513847948519421, abs=1e-7)
    assert float(found["residual"].max()) < 1e-12


def test_density_is_labelled_by_snapshot_feature_and_x():
    found = hdica.limit(oist(), times=[0, 1, 5])
    assert found["density"].dims == ("snapshot", "feature", "x")
    assert found["snapshot"].values.tolist() == [0, 1, 5]
    assert found["feature"].values == pytest.approx([0, 0.05**-0.5])
    mass = found["density"].integrate("x").values
    assert mass == pytest.approx(np.ones((3, 2)), abs=3e-4)  # the trapezoids meet a kink
    at_peak = float(found["density"].sel(snapshot=1, feature=0, x=0.5))
    assert at_peak == pytest.approx(0.46821472542253795, abs=1e-6)


def test_closed_form_of_oja_against_its_differential_equation():
    times = np.array([0.0, 1, 3, 10, 40])
    for tau, omega in [(0.5, 1.0), (0.5, 0.25), (0.5, 0.1), (1.2, 3.0)]:
        system = oja(tau, omega)
        numeric = solve(drift(system), schedule(system), 0.3, 0.0, times)
        assert oja_overlap(0.3, tau, omega, times) == pytest.approx(numeric.q, abs=1e-10)
    assert oja_overlap(-0.3, 0.5, 1.0, times) == pytest.approx(-oja_overlap(0.3, 0.5, 1, times))


def test_oja_tends_to_its_steady_overlap_above_the_threshold_alone():
    late = np.array([2000.0])
    assert oja_overlap(0.1, 0.5, 1.0, late)[0] == pytest.approx(0.7745966692414834)
    assert oja_overlap(0.1, 0.5, 0.2, late)[0] == pytest.approx(0, abs=1e-12)
    states = hdica.fixed_points(oja())
    assert states["Q"].values == pytest.approx([-0.7745966692414834, 0, 0.7745966692414834])
    assert states["stable"].values.tolist() == [True, False, True]


def test_ode_and_pde_agree_for_oja():
    system, times = oja(prior={"sparse_sign": 0.2}), [0, 2, 6]
    ode = hdica.limit(system, times=times)
    pde = hdica.limit(system, times=times, method="pde")
    assert ode.attrs["method"] == "ode"
    assert pde["Q"].values == pytest.approx(ode["Q"].values, abs=1e-7)


@pytest.mark.parametrize("omega", ["1.0", "0.4", "0.25", "0.2"])
def test_steady_states_at_several_signals(omega):
    found = hdica.fixed_points(oist(float(omega)))
    informative = found.isel(fixed_point=found["stable"].values & (found["Q"].values > 0))
    assert float(informative["Q"][0]) == pytest.approx(STEADY["stable"][omega]["Q"], abs=1e-9)
    assert float(informative["h"][0]) == pytest.approx(STEADY["stable"][omega]["h"], abs=1e-9)
    kinds = dict(zip(found["Q"].values, found["kind"].values, strict=True))
    assert kinds[0.0] == "condensed"


def test_transitions_in_the_signal_to_noise_ratio():
    found = hdica.critical(oist(), "omega")
    pairs = zip(found["kind"].values, found["value"].values, strict=True)
    by_kind = {str(kind): float(value) for kind, value in pairs}
    assert by_kind["fold"] == pytest.approx(0.1966821711684483, abs=1e-8)
    assert by_kind["junction"] == pytest.approx(0.19685811322717145, abs=1e-8)
    leaving = [v for k, v in by_kind.items() if k in ("transcritical", "pitchfork")]
    assert leaving == pytest.approx([0.5832], abs=1e-8)
    assert np.all(np.diff(found["value"].values) <= 0)
    assert np.all(found["error"].values < 1e-8)


def test_the_uninformative_phase_is_named_and_never_called_converged():
    found = hdica.fixed_points(oist(0.1))
    assert found.sizes["fixed_point"] == 1
    assert str(found["kind"].values[0]) == "condensed"
    assert float(found["bulk"][0]) == pytest.approx(0.4286694101508916, abs=1e-9)
    path = hdica.limit(oist(0.1), times=[0, 20, 40])
    assert float(path["curvature"][-1]) < 0
    assert "not converging" in path.attrs["note"]
    plain = hdica.limit(oist(1.0), times=[0, 15])
    assert "note" not in plain.attrs


def test_simulation_agrees_with_the_limit_and_not_with_one_wrong_by_ten_percent():
    times, n = [0, 1, 2, 3], 1000
    runs = hdica.simulate(oist(), n=n, times=times, seeds=range(32))
    limit = hdica.limit(oist(), times=times)
    se = (runs["Q"].std("seed", ddof=1) / np.sqrt(32)).values
    gap = np.abs(runs["Q"].mean("seed").values - limit["Q"].values)
    assert np.all(gap[1:] < 4 * se[1:] + 10 / n)
    wrong = hdica.limit(oist(1.3), times=times)
    far = np.abs(runs["Q"].mean("seed").values - wrong["Q"].values)
    assert far[-1] > 4 * se[-1] + 10 / n


def test_histograms_and_support_recovery_agree_with_the_limit():
    x, theta, n, seeds = np.linspace(-4, 8, 61), [0.5, 1, 2], 2000, 8
    asked = {"snapshots": [1], "x": x, "thresholds": theta}
    runs = hdica.simulate(oist(), n=n, times=[0, 1], seeds=range(seeds), **asked)
    limit = hdica.limit(oist(), times=[0, 1], **asked)
    assert runs["density"].dims == ("seed", "snapshot", "feature", "x")
    pooled, law = runs["cdf"].mean("seed").values[0], limit["cdf"].values[0]
    for group, share in enumerate((0.95, 0.05)):
        size = n * share * seeds
        assert np.max(np.abs(pooled[group] - law[group])) < 2.5 / np.sqrt(size)
    known = [0.7053429678640245, 0.46575708478392497, 0.1176320669389539]
    assert limit["tpr"].values[0] == pytest.approx(known, abs=1e-6)
    se = runs["fpr"].std("seed", ddof=1).values[0] / np.sqrt(seeds)
    assert np.all(np.abs(runs["fpr"].mean("seed") - limit["fpr"]).values[0] < 5 * se + 2 / n)


def test_functionals_of_theory_and_simulation():
    means = {"error": "(x - xi)**2", "one": "x**2"}
    limit = hdica.limit(oist(), times=[0, 2], functionals=means)
    assert limit["one"].values == pytest.approx([1, 1], abs=1e-8)
    assert limit["error"].values == pytest.approx(2 - 2 * limit["Q"].values, abs=1e-6)
    gap = np.abs(limit["error"].values - (2 - 2 * limit["Q"].values))
    assert np.all(gap <= limit["error_error"].values + 2 * limit["Q_error"].values + 1e-12)
    wrong = 2 - 2 * limit["Q_control"].values
    assert limit["error_control"].values == pytest.approx(wrong, abs=1e-4)
    runs = hdica.simulate(oist(), n=300, times=[0, 2], seeds=range(2), functionals=means)
    assert runs["error"].values == pytest.approx(2 - 2 * runs["Q"].values, abs=1e-12)


@pytest.mark.parametrize("method", ["vector", "particles"])
def test_each_functional_has_its_own_values(method):
    means = {"one": "x**2", "overlap": "x*xi"}
    runs = hdica.simulate(oist(), n=200, times=[0, 1], functionals=means, method=method)
    assert runs["one"].values == pytest.approx(np.ones((1, 2)), abs=1e-9)
    assert runs["overlap"].values == pytest.approx(runs["Q"].values, abs=1e-12)


@pytest.mark.parametrize("method", ["vector", "particles", "pde"])
def test_functionals_may_use_the_constants_of_the_system(method):
    system = oist(regularizer="beta*sign(x)", constants={"beta": 0.27})
    asked = {"times": [0, 1], "functionals": {"energy": "beta*abs(x)"}, "method": method}
    if method == "pde":
        found = hdica.limit(system, **asked)
        assert found["energy"].values == pytest.approx(found["R"].values, abs=1e-8)
    else:
        found = hdica.simulate(system, n=200, **asked)
        assert found["energy"].values == pytest.approx(found["R"].values, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"omega": -1}, "omega = -1 is not allowed"),
        ({"omega": True}, "omega = True is not allowed"),
        ({"tau": 0}, "tau = 0"),
        ({"variant": "exact"}, "variant = 'exact'"),
        ({"variant": "proximal", "regularizer": "x**3"}, "'proximal' is not allowed"),
        ({"beta": 1}, "beta is not a known key"),
    ],
)
def test_refusals_name_the_field(change, said):
    with pytest.raises(hdica.HdicaError, match=said):
        hdica.SparsePCA(**{"tau": 0.5, **change})


def test_a_start_without_density_is_sent_to_the_particles():
    with pytest.raises(hdica.HdicaError, match="particles"):
        hdica.limit(oist(start={"overlap": 1}), times=[0, 1])


@pytest.mark.deep
def test_transitions_of_another_parameter():
    """The fold in beta at the omega of the fold in omega."""
    system = oist(0.1966821711684483, regularizer="beta*sign(x)", constants={"beta": 0.2})
    found = hdica.critical(system, "beta", low=0.26, high=0.28)
    folds = found["value"].values[found["kind"].values == "fold"]
    assert np.min(np.abs(folds - 0.27)) < 1e-6
    with pytest.raises(hdica.HdicaError, match="parameter = 'gamma' is not known"):
        hdica.critical(system, "gamma")


def test_batch_baseline_agrees_with_its_limit():
    system, times = hdica.SparsePCA(tau=0.5, omega=1.5), [1, 4]
    runs = hdica.simulate(system, n=200, times=times, seeds=range(40), method="sample_pca")
    limit = hdica.limit(system, times=times, method="sample_pca_limit")
    se = runs["Q"].std("seed", ddof=1).values / np.sqrt(40)
    assert np.all(np.abs(runs["Q"].mean("seed") - limit["Q"]).values < 4 * se + 2 / 200)
