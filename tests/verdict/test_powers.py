"""Exponents of swept parameters: their intervals, the prediction beside them, what is left out."""

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.powers.exponents import findings, panels
from hdica.errors import HdicaError
from hdica.show.finding import Form, verdict_of
from hdica.show.panel import Line, Points
from hdica.status import DIVERGED
from hdica.study.study import study_from
from hdica.systems.system import systems
from hdica.verdict.powers import moderated, power_law
from hdica.verdict.resample import resampled
from tests.analysis import powers, toy
from tests.report.shown import of
from tests.sweep import toy as cheap

exponents = toy.computed("exponents")
WITH_THEORY = {**powers.POWERS, "theory": "bounds"}


def of_form(data, form):
    return [one for one in findings(data) if one.form is form]


def about(data, quantity):
    """Findings whose quantity has these words."""
    return [one for one in findings(data) if quantity in one.quantity.plain]


def measured(data, asked=WITH_THEORY, theory=3.0):
    return exponents(toy.tree({"training": data, "bounds": powers.theory(theory)}, {}), asked)


@pytest.fixture(scope="module")
def found():
    return exponents(powers.store(), WITH_THEORY)


@pytest.mark.deep
@pytest.mark.parametrize(("statistic", "seeds"), [("median", 8), ("median", 24), ("mean", 24)])
def test_intervals_cover_the_exponents_and_not_others(statistic, seeds):
    rng = np.random.default_rng(11)
    cover, wrong, rejected = [], [], []
    for _ in range(40):
        data = measured(powers.training(rng, seeds), {**powers.POWERS, "statistic": statistic})
        low, high = (data[f"exponent_{end}"].values[0] for end in ("low", "high"))
        truth = np.array(powers.EXPONENTS)
        cover.append((low <= truth) & (truth <= high))
        wrong.append((low <= truth + 0.5) & (truth + 0.5 <= high))
        rejected.append(float(data["p_value"][0]) < 0.01)
    assert np.mean(cover) > 0.95 - 3 * (0.95 * 0.05 / 80) ** 0.5
    assert np.mean(wrong) < 0.05
    assert np.mean(rejected) < 0.08


@pytest.mark.deep
def test_intervals_of_ratios_cover_one_and_not_two():
    rng = np.random.default_rng(12)
    right, wrong = [], []
    for _ in range(25):
        data = powers.training(rng, 12)
        for factor, kept in ((3.0, right), (1.5, wrong)):
            one = measured(data, theory=factor)
            kept.append((one["ratio_low"] <= 1) & (one["ratio_high"] >= 1))
    assert 0.92 < np.mean(right) < 0.995  # of 300
    assert np.mean(wrong) < 0.1


def test_a_law_that_is_no_power_is_found_out_and_widens_the_intervals():
    rng = np.random.default_rng(13)
    bent = [measured(powers.training(rng, 24, sigma=0.2, bend=0.3)) for _ in range(10)]
    assert max(float(data["p_value"][0]) for data in bent) < 0.01
    assert min(float(data["widening"][0]) for data in bent) > 1.5
    straight = measured(powers.training(rng, 24, sigma=0.2))
    assert float(straight["widening"][0]) == 1
    width = [float((d["exponent_high"] - d["exponent_low"])[0, 0]) for d in (bent[0], straight)]
    assert width[0] > 2 * width[1]
    (widened,) = about(bent[0], "scatter about the power law")
    assert widened.value == float(bent[0]["widening"][0])
    assert not about(straight, "scatter about the power law")


def test_runs_without_noise_follow_a_law_exactly():
    exact = powers.training(np.random.default_rng(1), sigma=0.0)
    data = measured(exact)
    assert data["exponent"].values[0] == pytest.approx(powers.EXPONENTS)
    assert float(data["widening"][0]) == 1
    assert not about(data, "scatter about the power law")


def test_the_prediction_has_its_own_exponents_and_its_last_time_counts(found):
    assert found["predicted_exponent"].values[0] == pytest.approx(powers.EXPONENTS)
    assert found["predicted"].values[0] == pytest.approx(powers.law())
    ratio = found["value"].values[0] / powers.law()
    assert found["ratio"].values[0] == pytest.approx(ratio)
    value = np.median(powers.training(np.random.default_rng(3))["tan2"].values, axis=-1)
    assert found["value"].values[0] == pytest.approx(value)


def test_exponents_are_powers_with_errors_and_their_prediction(found):
    laws = of_form(found, Form.POWER)
    assert [one.form for one in findings(found)[:3]] == [Form.POWER, Form.POWER, Form.VALUE]
    assert [one.base.plain for one in laws] == ["d", "T"]
    for name, own in (("value", "exponent"), ("error", "exponent_error")):
        assert [getattr(one, name) for one in laws] == found[own].values[0].tolist()
    assert [one.predicted for one in laws] == pytest.approx(powers.EXPONENTS)
    values = about(found, "the ratio of measured")
    assert len(values) == 12
    cell = found.sel(simulation="training", **values[4].place)
    assert (values[4].value, values[4].error) == (float(cell["ratio"]), float(cell["ratio_error"]))


@pytest.mark.parametrize(
    ("factor", "verdict", "differ"),
    [(3.0, "agrees", 0), (6.0, "differs", 11), (3.6, "differs", 1), (3.2, "undecided", 0)],
)
def test_a_theory_off_by_a_factor_differs_and_so_do_the_values_that_show_it(
    factor, verdict, differ
):
    data = measured(powers.training(np.random.default_rng(3), 32), theory=factor)
    (mean,) = about(data, "the mean ratio")
    assert mean.verdict == verdict
    assert abs(mean.value - 3 / factor) < 4 * mean.error
    assert {one.verdict for one in of_form(data, Form.POWER)} == {"agrees"}
    verdicts = [one.verdict for one in about(data, "the ratio of measured")]
    assert verdicts.count("differs") == differ
    assert (set(verdicts) == {""}) == (differ == 0)


def test_few_seeds_reject_no_control_and_decide_nothing():
    data = measured(powers.training(np.random.default_rng(3), 3))
    judged = [one for one in findings(data) if one.verdict]
    assert {one.verdict for one in judged} == {"undecided"}
    assert all(one.seeds > 3 for one in judged)


def test_few_seeds_widen_students_interval_not_the_error():
    for seeds, least in ((3, 2.0), (32, 1.959)):
        one = measured(powers.training(np.random.default_rng(3), seeds))
        half = (one["exponent_high"] - one["exponent_low"]) / 2
        assert (half > least * one["exponent_error"]).all()


def test_without_theory_nothing_is_judged():
    data = measured(powers.training(np.random.default_rng(1)), powers.POWERS)
    assert "ratio" not in data
    assert not any(one.verdict or np.isfinite(one.predicted) for one in findings(data))
    assert [panel.key for panel in panels(data)] == ["exponents"]


def test_cells_without_two_seeds_or_a_positive_value_are_left_out_and_counted(found):
    data = powers.training(np.random.default_rng(3))
    data["tan2"].values[0, 0] = -1.0
    data["status"].values[1, 1, 1:] = DIVERGED
    data["tan2"].values[2, 2, :7] = np.nan
    data["tan2"].values[3, 0] = np.where(np.arange(16) % 2, 1.0, -0.9)  # nothing beyond its noise
    part = measured(data)
    used = part["used"].values[0]
    assert used.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]]
    assert int(part["cells"][0]) == 9
    assert int(part["left_out"][0]) == 3
    assert int(part["seeds"][0, 2, 2]) == 9
    assert int(part["diverged"].sum()) == 15
    assert np.isfinite(part["exponent"]).all()
    (left,) = about(part, "the fit leaves out")
    assert (left.value, "of 12" in left.quantity.plain) == (3, True)
    inner = part["fitted"].values[0][1:3, 2] / found["fitted"].values[0][1:3, 2]
    assert inner == pytest.approx(1, rel=0.2)


def test_a_dimension_n_and_other_parameters_have_a_fit_each(found):
    rng = np.random.default_rng(3)
    data = powers.with_n(powers.training(rng))
    again = measured(data)
    assert again["exponent"].isel(n=0).values == pytest.approx(found["exponent"].values)
    assert again["ratio"].isel(n=0).values == pytest.approx(found["ratio"].values)
    by_t = measured(data, {**WITH_THEORY, "over": "d"})
    assert by_t["exponent"].dims == ("simulation", "T", "n", "parameter")
    assert by_t["exponent"].values.ravel() == pytest.approx(np.full(3, 1.1), abs=0.4)
    assert [one.place for one in of_form(by_t, Form.POWER)] == [
        {"T": t, "n": 100} for t in powers.T
    ]
    assert len(panels(by_t)) == 6


def test_every_method_is_fitted_at_its_own_largest_n():
    rng = np.random.default_rng(5)
    small, large = (powers.training(rng) for _ in range(2))
    both = xr.concat([powers.with_n(small), powers.with_n(large, 400)], dim="n", join="outer")
    both = both.transpose("d", "T", "n", "seed").assign_attrs(small.attrs)
    groups = {"training": both, "observed": powers.with_n(small)}
    data = exponents(
        toy.tree(groups, {}), {**powers.POWERS, "simulation": ["training", "observed"]}
    )
    places = [one.place for one in of_form(data, Form.POWER)]
    assert places[::2] == [
        {"simulation": "training", "n": 400},
        {"simulation": "observed", "n": 100},
    ]


def test_several_methods_stand_on_one_page():
    rng = np.random.default_rng(5)
    groups = {"training": powers.training(rng), "observed": powers.training(rng)}
    tree = toy.tree(groups, {})
    data = exponents(tree, {**powers.POWERS, "simulation": ["training", "observed"]})
    assert [p.key for p in panels(data)] == ["exponents_1", "exponents_2"]
    assert [p.title.plain for p in panels(data)] == ["Power law · training", "Power law · observed"]
    places = [one.place["simulation"] for one in of_form(data, Form.POWER)]
    assert places == ["training", "training", "observed", "observed"]


@pytest.mark.deep
def test_shared_noise_is_resampled_by_whole_seeds():
    rng = np.random.default_rng(6)
    cover = []
    for _ in range(30):
        data = powers.training(rng, 16, sigma=0.0)
        by_seed = np.exp(0.5 * rng.standard_normal(16))
        data["tan2"] = data["tan2"] * by_seed
        data.attrs["noise"] = "shared"
        one = measured(data)
        # A factor common to all cells moves no exponent.
        assert one["exponent"].values[0] == pytest.approx(powers.EXPONENTS)
        assert float((one["exponent_high"] - one["exponent_low"]).max()) < 1e-6
        cover.append(bool((one["ratio_low"][0, 0, 0] <= 1) & (one["ratio_high"][0, 0, 0] >= 1)))
    assert np.mean(cover) > 0.95 - 3 * (0.95 * 0.05 / 30) ** 0.5


def test_noise_that_is_common_is_not_taken_for_many_cells():
    rng = np.random.default_rng(7)
    log_p = np.log(np.repeat(powers.D, 6).astype(float))[:, None]
    pairs = np.repeat(np.arange(4), 6)
    cover = {True: [], False: []}
    for _ in range(200):
        common = 0.3 * rng.standard_normal(4)[pairs]
        log_q = 1.1 * log_p[:, 0] + common + 0.01 * rng.standard_normal(24)
        whole = 0.09 * (pairs[:, None] == pairs) + 1e-4 * np.eye(24)
        for known in cover:
            found = power_law(log_p, log_q, whole if known else np.diag(np.diag(whole)))
            cover[known].append(found.low[0] <= 1.1 <= found.high[0])
    assert np.mean(cover[True]) > 0.9
    assert np.mean(cover[False]) < 0.8


def test_parameters_that_fix_no_power_have_none():
    data = powers.training(np.random.default_rng(8)).isel(T=[0])
    tree = toy.tree({"training": data}, {})
    found = exponents(tree, powers.POWERS)
    assert np.isnan(found["exponent"]).all()
    assert not of_form(found, Form.POWER)
    alone = exponents(tree, {**powers.POWERS, "over": ["d"]})
    assert np.isfinite(alone["exponent"]).all()


def test_runs_without_any_scatter_have_errors_of_the_fit_alone():
    exact = measured(powers.training(np.random.default_rng(9), sigma=0.0))
    assert exact["exponent"].values[0] == pytest.approx(powers.EXPONENTS)
    bent = measured(powers.training(np.random.default_rng(9), sigma=0.0, bend=0.3))
    assert float((bent["exponent_high"] - bent["exponent_low"])[0, 0]) > 0.05


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"over": ["d", "d"]}, "each once"),
        ({"over": ["seeds"]}, "'seeds' is not a swept parameter"),
        ({"over": ["word"]}, "'word' is not allowed .its values must be numbers"),
        ({"over": ["zero"]}, "'zero' is not allowed .values must be positive, 0 is not"),
        ({"over": []}, "analysis.exponents.over"),
        ({"statistic": "mode"}, "analysis.exponents.statistic"),
    ],
)
def test_what_cannot_be_fitted_is_refused(changed, message):
    data = powers.training(np.random.default_rng(1))
    data = data.expand_dims(word=["a", "b"], zero=[0.0, 1.0])
    data = data.transpose("d", "T", "word", "zero", "seed")
    with pytest.raises(HdicaError, match=message):
        measured(data, {**powers.POWERS, **changed})


def test_the_law_is_drawn_along_the_longest_parameter(found):
    law, ratio = panels(found)
    assert (law.key, ratio.key) == ("exponents", "ratios")
    assert law.x_label.plain == "d"
    assert law.log_x
    assert law.log_y
    marks = of(law, Points)
    assert [mark.label.plain for mark in marks] == ["T = 1000", "T = 10\u202f000", "T = 10⁵"]
    assert marks[0].low == pytest.approx(found["value_low"].values[0, :, 0])
    solid = next(line for line in of(law, Line) if line.dash == "solid")
    slope = np.diff(np.log(solid.y)) / np.diff(np.log(solid.x))
    assert slope == pytest.approx(np.full(3, float(found["exponent"][0, 0])))
    dashed = next(line for line in of(law, Line) if line.dash == "dash")
    assert dashed.y == pytest.approx(powers.law()[:, 0])
    assert of(ratio, Points)[1].y == pytest.approx(found["ratio"].values[0, :, 1])


def test_variances_of_alike_cells_become_one_and_of_different_ones_stay():
    rng = np.random.default_rng(10)
    dof = np.full(40, 9.0)
    alike, known = moderated(2.0 * rng.chisquare(dof) / dof, dof)
    assert np.ptp(np.log(alike)) < 0.5
    assert alike.mean() == pytest.approx(2.0, rel=0.2)
    assert known > 9
    truth = np.geomspace(1e-2, 1e2, 40)
    apart, known = moderated(truth * rng.chisquare(dof) / dof, dof)
    assert np.abs(np.log(apart / truth)).max() < 2.5
    assert 9 <= known < 12


def test_resamples_have_the_variance_of_the_statistic():
    rng = np.random.default_rng(14)
    x = np.exp(0.3 * rng.standard_normal((1, 400)))
    draws = resampled(x, np.nanmean, shared=False)
    assert draws.std() == pytest.approx(x.std(ddof=1) / 20 / x.mean(), rel=0.1)
    assert resampled(x, np.nanmean, shared=False).tobytes() == draws.tobytes()


def test_a_study_names_swept_parameters_only_and_each_method_by_its_kind(monkeypatch):
    monkeypatch.setitem(systems(), "Toy", cheap.record(cheap.make()))

    def study(**settings):
        given = {"simulation": "walk", "over": ["tau"], **settings}
        return study_from(cheap.study(analysis={"exponents": given}))

    asked = study(theory="line").analysis.model_dump()["exponents"]
    assert asked["variable"] == "Q"
    assert list(asked["over"]) == ["tau"]
    with pytest.raises(HdicaError, match=r"analysis\.exponents\.over = 'gain' is not swept"):
        study(over=["tau", "gain"])
    with pytest.raises(HdicaError, match=r"theory = 'walk' is not allowed .one without seeds"):
        study(theory="walk")
    with pytest.raises(HdicaError, match=r"simulation = 'line' is not allowed .a stochastic"):
        study(simulation="line")


def test_every_fit_is_judged_however_many_are_drawn():
    rng = np.random.default_rng(4)
    many = [powers.training(rng, 40, 0.1) for _ in range(5)]
    for k in (1, 3):
        many[k]["tan2"] = many[k]["tan2"] * 3
    data = xr.concat(many, xr.DataArray(np.arange(5.0), dims="p", name="p"))
    data = measured(data.transpose("p", "d", "T", "seed").assign_attrs(many[0].attrs))
    assert verdict_of(findings(data)) == "differs"
    assert len(panels(data)) == 6


def test_both_laws_are_of_the_same_cells_and_one_left_out_leaves_it_open(found):
    runs = powers.training(np.random.default_rng(3))
    theory = powers.theory()
    theory["tan2"].values[3, 2] = np.nan
    part = exponents(toy.tree({"training": runs, "bounds": theory}, {}), WITH_THEORY)
    assert int(part["cells"][0]) == 11
    assert part["predicted_exponent"].values[0] == pytest.approx(powers.EXPONENTS)
    (left,) = about(part, "the fit leaves out")
    assert (left.value, left.verdict) == (1, "")  # theory claims nothing there
    runs["tan2"].values[0, 0] = 0.0
    (left,) = about(measured(runs), "the fit leaves out")
    assert (left.value, left.verdict) == (1, "undecided")


def test_no_number_of_seeds_decides_where_scatter_about_a_law_widens_it():
    bent = measured(powers.training(np.random.default_rng(5), 400, 0.3, bend=1.0))
    laws = [one for one in of_form(bent, Form.POWER) if one.base.plain == "d"]
    assert [one.verdict for one in laws] == ["undecided"]
    assert np.isinf(laws[0].seeds)


def test_a_mean_ratio_of_cells_that_share_their_noise_has_the_error_of_one():
    data = powers.training(np.random.default_rng(6), 16, 0.0)
    data["tan2"] = data["tan2"] * np.exp(0.2 * np.random.default_rng(7).standard_normal(16))
    data.attrs["noise"] = "shared"
    part = measured(data)
    (total,) = about(part, "the mean ratio")
    assert total.error == pytest.approx(float(part["ratio_error"].mean()), rel=1e-3)
