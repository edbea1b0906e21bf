"""Limits of subspace ICA as methods, and its functions: golden numbers, simulations, refusals."""

import math

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.systems.subspace_ica.methods import limits
from hdica.systems.subspace_ica.system import SubspaceICA
from tests.systems.subspace_ica.golden import GOLDEN, law, title

FLOWS, TABLE = GOLDEN["gradient_flow"], GOLDEN["population_loss_table"]
BASE = {"dimension": 512, "rank": 4, "beta": 1.0, "samples_per_dimension": 8}
STEPS = {"algorithm": "sgd", "eta": 0.25, "batch": 20, "start": {"overlap": 0.6}}


def value(method, times=(0.0,), **given):
    """What one of the limits has for a system."""
    system = SubspaceICA(**(BASE | given))
    assert not method.scope.refuses(system)
    save = Save(extra=tuple(output.name for output in method.outputs.extras))
    return method.run(system, np.array(times), None, None, save).values


def contrast_of(name):
    return "kurtosis" if name == "kurt" else name


@pytest.mark.parametrize("case", GOLDEN["predicted_overlaps"]["values"], ids=lambda one: one["h"])
def test_predictions(case):
    found = value(
        limits.PREDICTION,
        dimension=case["D"],
        rank=case["r"],
        beta=case["beta"],
        samples_per_dimension=case["ratio"],
        latent=law(case["h"]),
        contrast=case["G"],
    )
    tolerance = GOLDEN["predicted_overlaps"]["tol"]
    for name, key in (
        ("predicted_overlap", "ov"),
        ("predicted_correlation", "pc"),
        ("gamma", "gamma"),
        ("gamma_c", "gamma_c"),
        ("variance", "V"),
    ):
        assert float(found[name]) == pytest.approx(case[key], rel=tolerance)
    equal = float(found["pca_overlap"])
    assert found["phi"] == pytest.approx(equal, rel=1e-12)


@pytest.mark.parametrize(
    "case",
    [one for one in GOLDEN["subspace_experiment"]["values"] if "pred_ov" in one],
    ids=lambda one: f"{one['D']}-{one['ratio']}-{one['r']}-{one['beta']}-{one['law']}-{one['G']}",
)
def test_predictions_of_the_experiment(case):
    """The same predictions, and where every run succeeded, what FastICA measured."""
    found = value(
        limits.PREDICTION,
        dimension=case["D"],
        rank=case["r"],
        beta=case["beta"],
        samples_per_dimension=case["ratio"],
        latent=law(case["law"]),
        contrast=contrast_of(case["G"]),
    )
    pairs = (
        ("predicted_overlap", "pred_ov", "best"),
        ("predicted_correlation", "pred_pc", "best_pc"),
    )
    for name, key, measured in pairs:
        assert float(found[name]) == pytest.approx(case[key], rel=1e-6)
        mean, error = case[measured]
        if case["frac_ok"] == 1.0 and case["pred_ov"] > 0.85:
            assert abs(mean - float(found[name])) < 4 * error + 4 / case["D"]


def test_what_predictions_are_of_spaces():
    known = value(limits.PREDICTION, space="known")
    assert float(known["gamma_c"]) == float(known["gamma"]) == pytest.approx(0.5)
    assert float(known["pca_overlap"]) == 1.0
    assert float(known["predicted_overlap"]) > 0.99
    ambient = value(limits.PREDICTION, space="ambient")
    assert math.isnan(ambient["predicted_overlap"])
    many = value(limits.PREDICTION, space="ambient", samples_per_dimension=None)
    assert float(many["predicted_overlap"]) == 1.0
    wide = value(limits.PREDICTION, space={"principal": 32})
    narrow = value(limits.PREDICTION)
    m = [float(one["predicted_overlap"] / one["pca_overlap"]) for one in (wide, narrow)]
    v = float(narrow["variance"])
    assert m == pytest.approx([(1 + k * v / 4096) ** -0.5 for k in (31, 3)], rel=1e-12)


def test_fewer_components_than_spikes():
    one = {"rank": 3, "beta": [3.0, 2.0, 1.0], "space": {"principal": 2}}
    two = value(limits.PREDICTION, **one)
    every = value(limits.PREDICTION, **(one | {"space": "principal"}))
    assert float(two["gamma"]) == float(every["gamma"])
    # gamma_c lacks the share of the weakest spike, at c = 1/8.
    lost = (1 - 0.125) / 2 / 3
    assert float(every["gamma_c"] - two["gamma_c"]) == pytest.approx(lost, rel=1e-12)
    assert two["phi"][2] == 0.0
    tied = SubspaceICA(**(BASE | one | {"beta": [3.0, 2.0, 2.0]}))
    assert "up to the noise" in limits.PREDICTION.scope.refuses(tied)


@pytest.mark.parametrize("case", FLOWS["values"], ids=title)
def test_flows_and_times(case):
    beta = 1 / case["gamma"] - 1
    given = {
        "beta": beta,
        "samples_per_dimension": None,
        "algorithm": "flow",
        "latent": law(case["h"]),
        "contrast": contrast_of(case["G"]),
        "start": {"overlap": case["alpha0"]},
    }
    known = case["alpha_at_t"]
    times = [0.0, *(float(t) for t in known)]
    path = value(limits.FLOW, times, **given)
    expected = [case["alpha0"], *known.values()]
    assert path["overlap"] == pytest.approx(expected, abs=FLOWS["tol"])
    assert np.all(path["lower_bound"] <= path["overlap"] + 1e-12)
    assert np.all(path["overlap_control"][1:] >= path["overlap"][1:])
    took = value(limits.TIMES, **given)
    assert float(took["time_90"]) == pytest.approx(case["t_to_0.9"], rel=FLOWS["tol"])
    assert float(took["time_99"]) == pytest.approx(case["t_to_0.99"], rel=FLOWS["tol"])
    assert float(took["bound_90"]) == pytest.approx(case["f_bound_t_to_0.9"], rel=FLOWS["tol"])


def test_the_flow_runs_where_the_samples_lie():
    """On principal components of n samples with gamma_c, in a known space with gamma."""
    given = {"algorithm": "flow", "start": {"overlap": 0.4}}
    times = {
        space: float(value(limits.TIMES, space=space, **given)["time_50"])
        for space in ("principal", "known")
    }
    # L' ~ gamma^2 a^3 for small overlaps.
    assert times["principal"] / times["known"] == pytest.approx((0.5 / 0.4375) ** 2, rel=0.1)


def test_loss_at_the_start():
    found = value(limits.LOSS, space="known", start={"overlap": 0.6})
    golden = GOLDEN["lemma5_printed"]["values"][1]
    assert float(found["L"]) == pytest.approx(golden["L_correct_gamma_half"], abs=1e-12)
    assert float(found["exponent"]) == 4.0


def steps(rng, count, eta, batch, gamma, size, start):
    """Overlaps of mini-batch ascent (B.5) on the reduced model, G exponential, random signs."""
    w = np.zeros(size)
    w[:2] = start, math.sqrt(1 - start**2)
    path = np.empty(count)
    for k in range(count):
        y = rng.standard_normal((batch, size))
        y[:, 0] = math.sqrt(gamma) * rng.choice([-1, 1], batch) + math.sqrt(1 - gamma) * y[:, 0]
        s = y @ w
        gradient = (s * np.exp(-s * s / 2)) @ y / batch
        w = w + eta * (gradient - w * (w @ gradient))
        w /= np.linalg.norm(w)
        path[k] = w[0]
    return path


def test_the_level_of_stochastic_steps():
    given = {"space": "known", "samples_per_dimension": None, "beta": 0.25}
    found = value(limits.SGD_LEVEL, **(STEPS | given | {"eta": 0.1, "batch": 20}))
    rng = np.random.default_rng(3)
    ends = [steps(rng, 3000, 0.1, 20, 0.8, 4, 1.0)[500:] for _ in range(6)]
    means = np.array([np.mean(1 - one**2) for one in ends])
    error = means.std(ddof=1) / math.sqrt(means.size)
    expected = float(found["noise"])
    # To first order in eta: the level is small, and so is what is left out.
    assert abs(means.mean() - expected) < 4 * error + 2 * expected**2
    assert float(found["sampling"]) == 0.0


def test_the_flow_is_where_stochastic_steps_go():
    given = {"space": "known", "samples_per_dimension": None, "beta": 0.25}
    eta, end = 0.02, 7.0
    found = value(limits.FLOW, [end], **(STEPS | given | {"eta": eta, "batch": 400}))
    rng = np.random.default_rng(4)
    ends = [steps(rng, round(end / eta), eta, 400, 0.8, 4, 0.6)[-1] for _ in range(6)]
    error = np.std(ends, ddof=1) / math.sqrt(6)
    assert 0.75 < float(found["overlap"][0]) < 0.999
    assert abs(np.mean(ends) - float(found["overlap"][0])) < 4 * error + 2e-3


REFUSALS = [
    (limits.PREDICTION, STEPS, "algorithm = 'sgd'"),
    (limits.FLOW, {}, "algorithm = 'fastica'"),
    (limits.FLOW, {**STEPS, "start": "uniform"}, "start = 'uniform'"),
    (limits.FLOW, {**STEPS, "beta": 0.3}, "no spike stands out"),
    (limits.FLOW, {**STEPS, "latent": "gaussian"}, "does not depend on the overlap"),
    (limits.TIMES, {**STEPS, "start": {"overlap": 1.0}}, "start.overlap = 1"),
    (limits.SGD_LEVEL, {**STEPS, "batch": "all"}, "batch = 'all'"),
    (limits.PREDICTION, {"contrast": "kurtosis", "latent": {"student": 5}}, "too heavy"),
    (limits.LOSS, {}, "start = 'uniform'"),
    (limits.PREDICTION, {"batch": "fresh"}, "batch = 'fresh' is not allowed for this limit"),
]


@pytest.mark.parametrize(("method", "given", "words"), REFUSALS)
def test_refusals(method, given, words):
    why = method.scope.refuses(SubspaceICA(**(BASE | given)))
    assert words in why
    assert "\n" not in why


@pytest.mark.parametrize("case", TABLE["values"][::7], ids=title)
def test_population_losses(case):
    given = law(case["h"]), contrast_of(case["G"]), case["gamma"]
    found = hdica.population_loss(*given, alpha=[case["alpha"], 1.0])
    assert float(found["L"][0]) == pytest.approx(case["L"], abs=TABLE["tol"])
    assert float(found["dL"][0]) == pytest.approx(case["dL"], abs=TABLE["tol"])
    alone = hdica.population_loss(*given, alpha=case["alpha"])
    assert alone["L"].dims == ()
    assert float(alone["L"]) == float(found["L"][0])


def test_gradient_flows():
    case = FLOWS["values"][0]
    given = case["h"], case["G"], case["gamma"], case["alpha0"]
    found = hdica.gradient_flow(*given)
    assert float(found["time"][-1]) == pytest.approx(case["t_to_0.9"], rel=FLOWS["tol"])
    assert float(found["reached"]) == pytest.approx(float(found["time"][-1]), rel=1e-14)
    latest = float(found["reached_bound"])
    assert latest == pytest.approx(case["f_bound_t_to_0.9"], rel=FLOWS["tol"])
    assert found["alpha"].values == pytest.approx(np.linspace(case["alpha0"], 0.9, 101))
    assert float(found["alpha_error"].max()) < 1e-9
    same = hdica.gradient_flow(*given, times=found["time"].values[[0, 30, 100]])
    assert same["alpha"].values == pytest.approx(found["alpha"].values[[0, 30, 100]], abs=1e-9)
    assert found.attrs["direction"] == case["direction"]
    path = hdica.gradient_flow(*given, times=[0, 50, 200])
    assert float(path["alpha"][1]) == pytest.approx(case["alpha_at_t"]["50"], abs=1e-9)
    assert np.all(path["bound"] <= path["alpha"] + 1e-12)
    away = hdica.gradient_flow(*given, direction="descent")
    assert math.isinf(float(away["reached"]))
    assert away["alpha"].values.tolist() == [case["alpha0"]]
    assert np.isnan(away["bound"]).all()


def test_constants_of_contrasts():
    scaled = hdica.population_loss("laplace", "log(cosh(b*s))/b", 0.5, 0.6, constants={"b": 1.0})
    plain = hdica.population_loss("laplace", "logcosh", 0.5, 0.6)
    assert float(scaled["L"]) == pytest.approx(float(plain["L"]), abs=1e-13)


def test_reduced_models():
    case = GOLDEN["theorem2"]
    found = hdica.reduced_model(case["params"]["beta"], case["params"]["alpha_unnormalised"])
    assert found["vtilde"].values == pytest.approx(case["values"]["vtilde"], abs=case["tol"])
    assert float(found["gamma_c"]) == float(found["gamma"])
    assert np.allclose(found["phi"], 1.0)
    model = hdica.SubspaceModel(dimension=3, rank=3, beta=[4, 2, 1], alpha=[0.6, -0.64, 0.48])
    inverse = np.linalg.solve(model.covariance(), np.array([0.6, -0.64, 0.48]))
    assert found["filter"].values == pytest.approx(inverse / np.linalg.norm(inverse))
    few = hdica.reduced_model(2.0, [1.0, 1.0], samples_per_dimension=2)
    bbp = next(one for one in GOLDEN["bbp"]["values"] if (one["c"], one["beta"]) == (0.5, 2.0))
    assert float(few["gamma_c"]) == pytest.approx(bbp["gamma_c"], abs=1e-12)
    assert few["eigenvalue"].values == pytest.approx(bbp["lambda"], abs=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: hdica.population_loss("rademacher", "exp", 0.0, 0.5), "gamma = 0"),
        (lambda: hdica.population_loss("rademacher", "exp", 0.5, 1.5), "alpha = 1.5"),
        (lambda: hdica.population_loss("rademacher", "exp", 0.5, [0, -2]), "alpha = -2"),
        (lambda: hdica.population_loss("rademacher", "exp", 1 + 1e-9, 0), "gamma = 1.000000001"),
        (lambda: hdica.population_loss("rademacher", 3, 0.5, 0.5), "contrast = 3"),
        (lambda: hdica.gradient_flow("rademacher", "exp", 0.5, 0.0), "alpha0 = 0"),
        (lambda: hdica.gradient_flow("rademacher", "exp", 0.5, 0.5, until=0.4), "until = 0.4"),
        (lambda: hdica.gradient_flow("rademacher", "exp", 0.5, 0.5, direction="up"), "direction"),
        (lambda: hdica.gradient_flow("gaussian", "exp", 0.5, 0.5), "does not depend"),
        (lambda: hdica.reduced_model(2.0), "beta = 2.0"),
        (lambda: hdica.reduced_model([2.0], samples_per_dimension=0), "samples_per_dimension = 0"),
        (
            lambda: hdica.reduced_model([2.0], samples_per_dimension="eight"),
            "samples_per_dimension =",
        ),
    ],
)
def test_arguments_are_refused_in_one_sentence(call, words):
    with pytest.raises(HdicaError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"contrast": "s**3"}, "does not depend on the overlap"),
        ({"batch": "fresh"}, "batch = 'fresh' is not allowed for this limit"),
        (STEPS | {"start": "uniform"}, "start = 'uniform' is not allowed for this limit"),
    ],
)
def test_whoever_asks_for_any_limit_is_told_what_is_amiss(given, words):
    with pytest.raises(HdicaError, match=words):
        hdica.limit(SubspaceICA(**(BASE | given)), times=[0, 1])


@pytest.mark.deep
def test_new_samples_in_every_iteration_have_the_variance_without_whitening():
    """With the population's whitening E g^2/L'(1)^2, and five times what V is with the samples'."""
    given = {"space": "known", "rank": 4, "samples_per_dimension": None, "samples": 20000}
    given |= {"batch": "fresh", "whitening": "population", "start": {"overlap": 1.0}}
    system = SubspaceICA(**(BASE | given | {"iterations": 4, "restarts": 1}))
    found = hdica.simulate(system, seeds=range(60))["overlap"].values
    left = 1 / found**2 - 1
    expected = 1 / float(hdica.limit(system)["predicted_overlap"]) ** 2 - 1
    assert abs(left.mean() - expected) < 4 * left.std(ddof=1) / math.sqrt(left.size)
    whitened = value(limits.PREDICTION, **(given | {"batch": "all", "whitening": "sample"}))
    assert left.mean() > 2 * (1 / float(whitened["predicted_overlap"]) ** 2 - 1)
