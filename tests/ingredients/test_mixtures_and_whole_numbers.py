import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.sources import make_source
from hdica.limits.averages.expectations import averaged
from hdica.systems.tensorial_ica.bounds import psi2_norm

MIXTURES = {
    "two humps": {"weights": [1, 3], "means": [2, -1], "sds": [0.5, 1.5]},
    "spike and slab": {"weights": [8, 1, 1], "means": [0, -2, 2], "sds": [0, 0.3, 0.3]},
    "narrow": {"weights": [0.5, 0.5], "means": [1, -1], "sds": [1e-3, 2]},
}
WHOLE = [
    {"scipy": "poisson", "mu": 3},
    {"scipy": "binom", "n": 10, "p": 0.5},
    {"scipy": "geom", "p": 0.1},
    {"scipy": "nbinom", "n": 3, "p": 0.4},
    {"scipy": "randint", "low": -2, "high": 4},
    {"scipy": "skellam", "mu1": 2, "mu2": 1, "loc": 7},
    {"scipy": "hypergeom", "M": 20, "n": 7, "N": 12},
]


def law_of(given):
    """Weights, means and widths of the standardised components."""
    w, m, s = (np.array(given[key], dtype=float) for key in ("weights", "means", "sds"))
    w = w / w.sum()
    mean = np.sum(w * m)
    return w, (m - mean) / (sd := np.sqrt(np.sum(w * (s**2 + (m - mean) ** 2)))), s / sd


def frozen(spec):
    shape = {key: value for key, value in spec.items() if key != "scipy"}
    return getattr(stats, spec["scipy"])(**shape)


def quad(w, m, s, h):
    """E h(c) by SciPy's adaptive quadrature, a component at a time."""
    total = 0.0
    for weight, mean, sd in zip(w, m, s, strict=True):
        if sd == 0:
            total += weight * h(mean)
            continue
        for low, high in pairwise([-12, -4, 0, 4, 12]):
            found, _ = integrate.quad(
                lambda z, mean=mean, sd=sd: h(mean + sd * z) * stats.norm.pdf(z),
                low,
                high,
                epsabs=1e-13,
                limit=200,
            )
            total += weight * found
    return total


@pytest.mark.parametrize("given", MIXTURES.values(), ids=list(MIXTURES))
def test_moments_of_a_mixture_are_exact(given):
    source, parts = make_source({"mixture": given}), law_of(given)
    for k in range(9):
        wanted = quad(*parts, lambda x, k=k: x**k)
        assert source.moment(k) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        assert float(source.nodes.mean(source.nodes.points**k)) == pytest.approx(
            source.moment(k), rel=1e-9, abs=1e-9
        )


@pytest.mark.parametrize("given", MIXTURES.values(), ids=list(MIXTURES))
def test_averages_over_a_mixture_are_those_of_scipy(given):
    source, (w, m, s) = make_source({"mixture": given}), law_of(given)
    tanh = parse_formula("tanh(2*x)")
    found = averaged(lambda c, e, u: (c * u + np.tanh(2 * c),), tanh, source, 1.0)
    wanted = quad(w, m, s, lambda x: x * x + math.tanh(2 * x))
    assert float(found.value[0]) == pytest.approx(wanted, abs=1e-8)
    noisy = np.sqrt((0.8 * s) ** 2 + 0.36)  # of u = 0.8 c + 0.6 e
    for text, f in [("tanh(2*x)", lambda x: math.tanh(2 * x)), ("x + x**4", lambda x: x + x**4)]:
        formula = parse_formula(text)
        found = averaged(lambda c, e, u, f=formula: (f.value(u),), formula, source, 0.8)
        assert float(found.value[0]) == pytest.approx(quad(w, 0.8 * m, noisy, f), abs=1e-8)
        # Negative control: the same with the means moved by a per mille is told.
        assert abs(float(found.value[0]) - quad(w, 0.8 * m + 1e-3, noisy, f)) > 1e-5


@pytest.mark.parametrize("given", MIXTURES.values(), ids=list(MIXTURES))
def test_a_mixture_is_sampled_as_numpy_would(given):
    draws = make_source({"mixture": given}).sample(np.random.default_rng(3), 20_000)
    w, m, s = law_of(given)
    rng = np.random.default_rng(4)
    which = rng.choice(w.size, size=20_000, p=w)
    plain = m[which] + s[which] * rng.standard_normal(20_000)
    assert stats.ks_2samp(draws, plain).pvalue > 1e-3
    normal = rng.standard_normal(20_000)
    assert stats.ks_2samp(draws, normal).pvalue < 1e-10  # negative control


def test_an_sd_of_zero_is_an_atom():
    source = make_source({"mixture": MIXTURES["spike and slab"]})
    draws = source.sample(np.random.default_rng(0), 10_000)
    share = np.mean(draws == 0.0)
    assert abs(share - 0.8) < 4.5 * math.sqrt(0.16 / 10_000)
    assert source.law.atoms.weights.tolist() == pytest.approx([0.8])
    assert source.symmetric
    assert not make_source({"mixture": MIXTURES["two humps"]}).symmetric


def test_symmetry_does_not_ask_how_components_are_listed():
    split = {"weights": [1, 1, 2], "means": [-1, -1, 1], "sds": [0.2, 0.2, 0.2]}
    assert make_source({"mixture": split}).symmetric
    split["sds"] = [0.2, 0.3, 0.2]
    assert not make_source({"mixture": split}).symmetric


@pytest.mark.parametrize("spec", WHOLE, ids=lambda spec: spec["scipy"])
def test_laws_on_whole_numbers_are_those_of_scipy(spec):
    source, law = make_source(spec), frozen(spec)
    k = np.arange(law.ppf(1e-14) - 40, law.isf(1e-14) + 400)
    z = (k - law.mean()) / law.std()
    for power in range(9):
        assert source.moment(power) == pytest.approx(
            float(np.sum(law.pmf(k) * z**power)), rel=1e-8, abs=1e-9
        )
    wanted = float(np.sum(law.pmf(k) * np.tanh(z)))
    found = averaged(lambda c, e, u: (np.tanh(u),), parse_formula("tanh(x)"), source, 1.0)
    assert float(found.value[0]) == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("spec", WHOLE, ids=lambda spec: spec["scipy"])
def test_whole_numbers_are_drawn_with_their_probabilities(spec):
    law = frozen(spec)
    raw = make_source(spec).sample(np.random.default_rng(5), 50_000) * law.std() + law.mean()
    assert np.allclose(raw, np.round(raw), atol=1e-9)
    k = np.arange(law.ppf(1e-3), law.isf(1e-3) + 1)
    seen = np.array([np.sum(np.round(raw) == one) for one in k])
    expected = 50_000 * law.pmf(k)

    def p_value(expected):
        rest, wanted = 50_000 - seen.sum(), 50_000 - expected.sum()
        terms = (seen - expected) ** 2 / expected
        more = (rest - wanted) ** 2 / wanted if wanted > 5 else 0.0
        return stats.chi2.sf(terms.sum() + more, k.size - 1)

    assert p_value(expected) > 1e-3
    assert p_value(expected * (1 + 0.1 * (-1) ** k)) < 1e-6  # negative control


def test_shapes_are_named_as_scipy_names_them_and_do_not_move_the_law():
    plain, moved = (make_source({"scipy": "poisson", "mu": 3, "loc": at}) for at in (0, 5))
    assert moved.moment(3) == pytest.approx(3**-0.5, rel=1e-12) == plain.moment(3)
    assert moved.label == "scipy poisson(loc=5, mu=3)"
    scaled = make_source({"scipy": "gamma", "a": 2, "loc": 1, "scale": 3})
    assert scaled.moment(4) == pytest.approx(make_source({"scipy": "gamma", "a": 2}).moment(4))


def test_a_moment_that_a_long_tail_carries_is_refused_and_not_cut_off():
    source = make_source({"scipy": "zipf", "a": 15})
    assert math.isfinite(source.moment(4))
    with pytest.raises(HdicaError, match="no moment of order 13 to rely on"):
        source.moment(13)


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        ({"scipy": "zipf", "a": 2.5}, "finite mean and a finite, positive variance"),
        ({"scipy": "zipf", "a": 5}, "more than 4096 values that matter"),
        ({"scipy": "randint", "low": 0, "high": 9999}, "a continuous law that is near"),
        ({"scipy": "poisson", "mu": 3, "scale": 2}, "unexpected keyword argument 'scale'"),
        ({"scipy": "binom", "n": 10.5, "p": 0.5}, "finite mean"),
        ({"scipy": "bernoulli", "p": 1}, "positive variance"),
        ({"mixture": [1, 2]}, "three lists: weights, means and sds"),
        ({"mixture": {"weights": [1], "means": [0]}}, "three lists"),
        ({"mixture": {"weights": [1, 1], "means": [0], "sds": [1]}}, "one of each a component"),
        ({"mixture": {"weights": [1, 0], "means": [0, 1], "sds": [1, 1]}}, "all above zero"),
        ({"mixture": {"weights": [1, 1], "means": [0, 1], "sds": [1, -1]}}, "all >= 0"),
        ({"mixture": {"weights": [1, 1], "means": [2, 2], "sds": [0, 0]}}, "positive variance"),
        ({"mixture": {"weights": ["a"], "means": [2], "sds": [1]}}, "finite numbers"),
        ({"mixture": {"weights": [1] * 65, "means": [1] * 65, "sds": [1] * 65}}, "at most 64"),
    ],
)
def test_what_is_no_such_law_is_refused_with_one_sentence(spec, part):
    with pytest.raises(HdicaError) as refused:
        make_source(spec)
    assert part in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("given", [MIXTURES["two humps"], MIXTURES["spike and slab"]])
def test_the_orlicz_norm_of_a_mixture_is_that_of_its_closed_form(given):
    source, (w, m, s) = make_source({"mixture": given}), law_of(given)
    norm = psi2_norm(source)
    room = norm**2 - 2 * s**2  # E exp(c^2/norm^2) of every component
    assert np.all(room > 0)
    mean = np.sum(w * norm / np.sqrt(room) * np.exp(m**2 / room))
    assert mean == pytest.approx(2, rel=1e-9)
    with pytest.raises(HdicaError, match="no finite psi_2 norm"):
        psi2_norm(make_source({"scipy": "poisson", "mu": 3}))
