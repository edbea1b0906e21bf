"""Parameters from measured overlaps: the law of the differences, coverage, and what is refused."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

import hdica
from hdica import OnlineICA, SparsePCA
from hdica.api.infer import Likelihood, _space
from hdica.errors import HdicaError
from hdica.limits.overlap.likelihood import Chain, chain
from hdica.systems import fields
from hdica.systems.online_ica.system import drift

ICA = OnlineICA(tau=0.04, source="uniform", start={"overlap": 0.62, "exact": True})
TIMES = np.arange(0.0, 81.0, 2.0)
N = 1000


def of(system: OnlineICA, times: np.ndarray) -> Chain:
    start, prior = fields.start(system), fields.prior(system)
    begin = start.overlap(prior), start.spread(prior)
    return chain(drift(system), fields.schedule(system), *begin, times)


@pytest.mark.parametrize(
    "system",
    [ICA, ICA.model_copy(update={"start": {"overlap": 0.62}, "tau": "0.05/(1 + t/20)"})],
    ids=["exact", "annealed"],
)
def test_the_chain_has_the_variance_and_the_flow_of_the_limit(system: OnlineICA) -> None:
    times = np.array([0.0, 3.0, 10.0, 40.0])
    found = of(system, times)
    limit = hdica.limit(system, times=times, bands=True)
    spread = [found.variance[0]]
    for kept, own in zip(found.kept[1:], found.variance[1:], strict=True):
        spread.append(own + kept**2 * spread[-1])
    assert found.q == pytest.approx(limit.Q.values, abs=1e-7)
    assert np.sqrt(spread) == pytest.approx(limit.Q_sd.values, rel=1e-6, abs=1e-9)
    # What is kept of a difference at t = 0, by limits that begin a little apart.
    ends = [
        hdica.limit(
            system.model_copy(update={"start": {"overlap": 0.62 + h, "exact": True}}), times=times
        ).Q.values
        for h in (1e-5, -1e-5)
    ]
    assert np.cumprod(found.kept[1:]) == pytest.approx((ends[0] - ends[1])[1:] / 2e-5, rel=1e-5)


def test_the_likelihood_is_that_of_the_normal_law_of_all_times() -> None:
    system = ICA.model_copy(update={"start": {"overlap": 0.62}})
    times = np.array([1.0, 4.0, 9.0, 30.0])
    found = of(system, times)
    spread = np.empty(4)
    for j in range(4):
        before = spread[j - 1] if j else 0.0
        spread[j] = found.variance[j] + found.kept[j] ** 2 * before
    carried = np.cumprod([1.0, *found.kept[1:]])
    covariance = np.minimum.outer(spread / carried**2, spread / carried**2)
    covariance *= np.outer(carried, carried) / N
    rng = np.random.default_rng(2)
    curves = found.q + rng.multivariate_normal(np.zeros(4), covariance, 3)
    whole = stats.multivariate_normal(found.q, covariance).logpdf(curves).sum()
    assert found.log_likelihood(curves, N) == pytest.approx(whole, rel=1e-12)


class Independent(NamedTuple):
    """The control: a likelihood that takes the differences at two times as independent."""

    right: Chain

    def log_likelihood(self, curves: np.ndarray, n: int) -> float:
        spread = [0.0]
        for kept, own in zip(self.right.kept, self.right.variance, strict=True):
            spread.append(own + kept**2 * spread[-1])
        wrong = Chain(self.right.q, np.zeros_like(self.right.q), np.array(spread[1:]))
        return wrong.log_likelihood(curves, n)


class Wrong(Likelihood):
    def chain(self, point):
        return Independent(super().chain(point))


def covered(free: dict, truth: tuple[float, ...], curves: np.ndarray, n: int) -> np.ndarray:
    """Whether the truth is in the region of 95 %, by the likelihood and by its control."""
    inside = stats.chi2.ppf(0.95, len(free))
    found = []
    for curve in curves:
        row = []
        for kind in (Likelihood, Wrong):
            likelihood = kind(_space(ICA, free), curve[None], TIMES, n)
            row.append(likelihood.deviance(likelihood.highest(), truth) < inside)
        found.append(row)
    return np.mean(found, axis=0)


def runs(n: int, count: int, first: int = 0) -> np.ndarray:
    seeds = range(first, first + count)
    found = hdica.simulate(ICA, n=n, times=TIMES, seeds=seeds, method="chain", timeout=None)
    return np.asarray(found.Q.values)


def test_the_interval_of_a_step_size_covers() -> None:
    right, wrong = covered({"tau": (0.01, 0.2)}, (0.04,), runs(N, 16), N)
    assert right >= 13 / 16
    assert wrong < 12 / 16


@pytest.mark.deep
def test_intervals_cover_as_often_as_they_say() -> None:
    right, wrong = covered({"tau": (0.01, 0.2)}, (0.04,), runs(4000, 40, 100)[:28], 4000)
    assert right >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 28)
    assert wrong < 0.75


@pytest.mark.deep
def test_step_size_and_source_are_known_together() -> None:
    """Far better than either: near the unstable overlap more kurtosis buys a larger step size."""
    runs_of_one = hdica.simulate(ICA, n=4000, times=TIMES, seeds=[5], method="chain")
    found = hdica.infer(runs_of_one.Q, ICA, free=["tau", "source"], timeout=None)
    assert found.low[0] < 0.04 < found.high[0]
    assert found.low[1] < 1 < found.high[1]
    assert found.kurtosis_low < -1.2 < found.kurtosis_high
    inside = found.deviance.values < float(found.threshold)
    assert 0 < inside.sum() < 0.35 * inside.size
    assert found.deviance.values.min() > -1e-6
    tau, a = (np.log(found[name].values) for name in ("tau", "source_beta"))
    where = np.argwhere(inside)
    assert np.corrcoef(tau[where[:, 0]], a[where[:, 1]])[0, 1] < -0.8
    assert 1e-3 < found.misfit < 1


def test_what_is_inferred_is_where_the_likelihood_is_largest_and_a_wrong_theory_misfits() -> None:
    oja = SparsePCA(tau=0.2, omega=1.0, start={"overlap": 0.3, "exact": True})
    curves = hdica.simulate(oja, n=N, times=range(0, 41, 2), seeds=4, method="chain").Q
    found = hdica.infer(curves, oja, {"omega": (0.5, 2.0)})
    assert found.low[0] < 1 < found.high[0]
    assert float(found.low[0]) < float(found.estimate[0]) < float(found.high[0])
    assert float(found.low[0]) > 0.85
    assert float(found.high[0]) < 1.2
    assert found.misfit > 1e-3
    other = oja.model_copy(update={"tau": 0.3})
    assert hdica.infer(curves, other, {"omega": (0.5, 2.0)}).misfit < 1e-6
    narrow = hdica.infer(curves, oja, {"omega": (0.5, 0.9)})
    assert "upper end of its range" in narrow.attrs["note"]
    assert math.isnan(narrow.high[0])


def test_of_several_maxima_the_interval_holds_all_and_few_numbers_have_a_note() -> None:
    """A rate that is quadratic in tau comes to one overlap at two step sizes."""
    free, inside, several = {"tau": (0.005, 0.2)}, stats.chi2.ppf(0.95, 1), 0
    curves = hdica.simulate(ICA, n=N, times=[0, 8], seeds=40, method="chain").Q
    for k in range(0, 40, 2):
        curve = curves.isel(seed=slice(k, k + 2))
        found = hdica.infer(curve, ICA, free)
        assert "from 2 numbers intervals may cover less often than 0.95" in found.attrs["note"]
        likelihood = Likelihood(_space(ICA, free), curve.values, np.array([0.0, 8.0]), N)
        top, line = likelihood.highest(), np.geomspace(0.005, 0.2, 60)
        kept = [x for x in line if likelihood.deviance(top, (float(x),)) < inside]
        low, high = (float(found[end][0]) for end in ("low", "high"))
        assert math.isnan(low) or low <= kept[0]
        assert math.isnan(high) or high >= kept[-1]
        several += "maxima that low to high holds" in found.attrs["note"]
    assert 0 < several < 20


CURVE = hdica.simulate(ICA, n=50, times=[0, 1, 2], seeds=2, method="chain").Q
REFUSED = [
    (lambda: hdica.infer(CURVE.values, ICA, ["tau"]), "curve: ndarray is not allowed"),
    (lambda: hdica.infer(CURVE.drop_vars("n"), ICA, ["tau"]), "n is needed"),
    (lambda: hdica.infer(CURVE, ICA, ["tau"], n=7), "the curve has n = 50"),
    (lambda: hdica.infer(CURVE * 3, ICA, ["tau"], n=50), "overlaps from -1 to 1"),
    (lambda: hdica.infer(CURVE[:, :1], ICA, ["tau"]), "at least two, increasing"),
    (lambda: hdica.infer(CURVE.drop_vars("time"), ICA, ["tau"]), "its times are missing"),
    (
        lambda: hdica.infer(CURVE.assign_coords(time=["a", "b", "c"]), ICA, ["tau"]),
        "its times are missing",
    ),
    (lambda: hdica.infer(CURVE, ICA, ["source", "source.beta"]), "is there twice"),
    (lambda: hdica.infer(CURVE, ICA, []), "one or two parameters"),
    (lambda: hdica.infer(CURVE, ICA, "tau"), "one or two parameters"),
    (lambda: hdica.infer(CURVE, ICA, {"tau": (0, 1)}), "0 < low"),
    (lambda: hdica.infer(CURVE, ICA, {"tau": [0.1, 0.2]}), "0 < low"),
    (lambda: hdica.infer(CURVE, ICA, ["start.overlap"]), "needs a range"),
    (lambda: hdica.infer(CURVE, ICA, {"eta": (1, 2)}), r"^(?!.*over).*free\.eta"),
    (lambda: hdica.infer(CURVE, ICA, ["omega"]), r"^(?!.*over).*free\.omega"),
    (lambda: hdica.infer(CURVE, ICA, ["tau"], level=1), "level = 1 is not allowed"),
    (
        lambda: hdica.infer(CURVE, hdica.HebbianICA(sources=["uniform"], mu=0.1), ["mu"]),
        "not allowed|needs a range",
    ),
    (
        lambda: hdica.infer(CURVE, ICA.model_copy(update={"source": {"student": 8}}), ["tau"]),
        "fluctuations of the overlap are infinite",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_what_is_no_measurement_is_refused(call, sentence) -> None:
    with pytest.raises(HdicaError, match=sentence):
        call()
