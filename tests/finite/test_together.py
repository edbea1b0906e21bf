"""Points computed together: the bits of each alone, its law, and what a stop does to the others."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from hdica.finite.projected.chain import run_together
from hdica.finite.projected.vector import run_shared
from hdica.finite.random.streams import point_stream
from hdica.finite.record import OVERLAP
from hdica.ingredients.save import Save
from hdica.ingredients.schedules import make_schedule
from hdica.systems.projected.family import named
from tests.finite.runs import run_chain, run_vector
from tests.finite.test_kernels import KS_LEVEL, make_rule
from tests.systems.sparse_pca.test_rule import make_pca

TIMES = np.array([0.0, 0.7, 3.0])


def stream_of(seed, n=50):
    return lambda part: point_stream({"test": "together"}, "any", n, seed, part)


def same(one, other):
    assert one[1] == other[1]
    assert one[0].keys() == other[0].keys()
    for name, values in one[0].items():
        assert values.tobytes() == other[0][name].tobytes(), name


CHAINS = [
    make_rule(),
    make_rule(f="x - 2*x**5/9", source="laplace", tau=0.3),
    make_rule(f="x**2", phi="3*x", start={"overlap": -0.4}),
    make_pca(),
    make_rule(tau="0.2/(1 + t)", start={"normal": {"mean": 0.5, "var": 1.0}}),
    make_pca("0.7*x", variant="proximal", tau="0.5/(1 + t/3)", prior={"sparse": 0.4}),
    make_rule(f="x**7", source="laplace", tau=1e200),  # diverges
    make_pca("50*x"),  # vanishes at n = 50
]


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_a_chain_does_not_depend_on_the_chains_beside_it(count):
    rules = [rule.chain for rule in CHAINS]
    alone = [run_together([r], TIMES, 50, [stream_of(k)])[0] for k, r in enumerate(rules)]
    ends = [values[1] for values in alone]
    assert "not finite" in ends[6]
    assert ends[7] == "eta sent every entry to zero at step 0 (t = 0)"
    assert not any(ends[:6])
    for first in range(0, 8, count):
        chosen = range(first, min(first + count, 8))
        found = run_together([rules[k] for k in chosen], TIMES, 50, [stream_of(k) for k in chosen])
        for k, one in zip(chosen, found, strict=True):
            same(one, alone[k])


def test_functions_that_are_no_polynomials_run_side_by_side_too():
    rules = [make_rule(f="tanh(x)", tau=tau) for tau in (0.1, 0.2, 0.3)]
    streams = [stream_of(k) for k in range(3)]
    found = run_together([rule.chain for rule in rules], TIMES, 50, streams)
    for rule, stream, one in zip(rules, streams, found, strict=True):
        same(named(one), run_chain(rule, TIMES, 50, stream))


KINDS = {
    "plain": [make_rule(tau=tau) for tau in (0.05, 0.1, 0.2)],
    "starts and sources": [
        make_rule(start={"overlap": 0.1}),
        make_rule(start={"overlap": 0.8}, source="laplace"),
    ],
    "linear and sign": [make_rule(phi=phi) for phi in ("0.4*x", "0.3*sign(x)", "sign(x) + x")],
    "function": [make_rule(phi="tanh(3*x) + 1", tau=tau) for tau in (0.1, 0.3)],
    "f": [make_rule(f="tanh(x)", tau=tau) for tau in (0.1, 0.3)],
    "pca": [
        make_pca(),
        make_pca("sign(x)", omega=2.0),
        make_pca("sign(x) + x", variant="proximal"),
    ],
    "pca function": [make_pca("tanh(3*x) + 1", tau=tau) for tau in (0.1, 0.3)],
}


@pytest.mark.parametrize("n", [3, 16, 50, 1100])
@pytest.mark.parametrize("name", KINDS)
def test_shared_noise_gives_each_point_the_bits_it_has_alone(name, n):
    times = np.array([0.0, 20 / n, 300 / n])
    save = Save((300 / n,), (-2.0, 0.0, 2.0), (0.5,), {"fourth": "x**4"})
    rules = [rule.vector for rule in KINDS[name]]
    found = run_shared(rules, times, n, stream_of(1, n), [save] * len(rules))
    for rule, one in zip(rules, found, strict=True):
        same(one, run_shared([rule], times, n, stream_of(1, n), [save])[0])
    pair = run_shared(rules[1::-1], times, n, stream_of(1, n), [save] * 2)
    same(pair[0], found[1])
    same(pair[1], found[0])


def test_a_point_that_stops_leaves_the_others_alone():
    wild = replace(make_rule(f="x**3"), schedule=make_schedule(1e200))
    rules = [make_rule(tau=0.1), wild, make_rule(tau=0.2)]
    found = run_shared([rule.vector for rule in rules], TIMES, 50, stream_of(2))
    assert "not finite at step" in found[1][1]
    assert np.isnan(found[1][0][OVERLAP][-1])
    for rule, one in zip(rules, found, strict=True):
        same(named(one), run_vector(rule, TIMES, 50, stream_of(2)))
    alone = run_shared([wild.vector, wild.vector], TIMES, 50, stream_of(2))
    same(alone[0], alone[1])
    same(alone[0], found[1])


@pytest.mark.deep
def test_shared_noise_keeps_the_law_and_sharpens_differences():
    rules, n, count = [make_rule(tau=tau).vector for tau in (0.2, 0.21)], 60, 1500
    times = np.array([3.0])

    def last(found):
        return [values[OVERLAP][0] for values, _ in found]

    shared = np.array([last(run_shared(rules, times, n, stream_of(s, n))) for s in range(count)])
    own = np.array(
        [
            [
                last(run_shared([r], times, n, stream_of(10**6 * (k + 1) + s, n)))[0]
                for s in range(count)
            ]
            for k, r in enumerate(rules)
        ]
    ).T
    for k in range(2):
        assert stats.ks_2samp(shared[:, k], own[:, k]).pvalue > KS_LEVEL
    assert np.corrcoef(shared.T)[0, 1] > 0.95
    assert abs(np.corrcoef(own.T)[0, 1]) < 0.15
    assert np.diff(shared).std() < 0.3 * np.diff(own).std()
