"""The bar of a critical step size against folds found in forty digits from closed averages."""

from functools import partial

import mpmath as mp
import numpy as np
import pytest

import hdica


def law_of(source):
    """E h(c) of a source in 40 digits, for powers h = c**k, or of any h of a discrete one."""
    if source == "uniform":
        return lambda k: mp.mpf(3) ** (k // 2) / (k + 1) if k % 2 == 0 else mp.mpf(0)
    if source == "laplace":
        return lambda k: mp.factorial(k) / mp.mpf(2) ** (k // 2) if k % 2 == 0 else mp.mpf(0)
    if source == "rademacher":
        source = {"discrete": {"values": [-1, 1], "weights": [0.5, 0.5]}}
    c, w = (list(map(mp.mpf, source["discrete"][name])) for name in ("values", "weights"))
    w = [one / mp.fsum(w) for one in w]
    mean = mp.fdot(w, c)
    c = [one - mean for one in c]
    size = mp.sqrt(mp.fdot(w, [one**2 for one in c]))
    c = [one / size for one in c]
    return lambda h: mp.fdot(w, [one**h if isinstance(h, int) else h(one) for one in c])


def polynomial_rates(coefficients, law, q):
    """<c f> - Q <f'> and <f**2> of f = sum a_k u**k, from moments of c and of a normal e."""

    def mean(series, extra):
        total = mp.mpf(0)
        for k, a in enumerate(series):
            for j in range(k, -1, -2):
                normal = mp.fac2(k - j - 1) if k > j else 1
                terms = mp.binomial(k, j) * normal * law(j + extra)
                total += a * terms * q**j * (1 - q * q) ** ((k - j) // 2)
        return total

    slope = [k * a for k, a in enumerate(coefficients)][1:]
    square = [mp.mpf(0)] * (2 * len(coefficients) - 1)
    for i, a in enumerate(coefficients):
        for j, b in enumerate(coefficients):
            square[i + j] += a * b
    return mean(coefficients, 1) - q * mean(slope, 0), mean(square, 0)


def sine_rates(a, law, q):
    """The same of f = sign sin(a u), whose average over e is in closed form; a carries the sign."""
    fade, twice = mp.exp(-a * a * (1 - q * q) / 2), mp.exp(-2 * a * a * (1 - q * q))
    pull = law(lambda c: c * mp.sin(a * c * q)) - q * a * law(lambda c: mp.cos(a * c * q))
    return fade * pull, (1 - twice * law(lambda c: mp.cos(2 * a * c * q))) / 2


def random_folds(kind):
    """Text of f, source and its averages in 40 digits, drawn at random."""
    rng = np.random.default_rng(11)
    for k in range(14 if kind == "polynomial" else 8):
        p = round(float(rng.uniform(0.1, 0.9)), 3)
        drawn = {"discrete": {"values": [-1.0, round(float(rng.uniform(0.3, 3)), 3)]}}
        drawn["discrete"]["weights"] = [p, round(1 - p, 3)]
        named = ("uniform", "laplace", "rademacher") if kind == "polynomial" else ("rademacher",)
        source = named[k % len(named)] if k % 2 else drawn
        if kind == "polynomial":
            a3, a5 = round(float(rng.uniform(0.2, 2)), 3), round(float(rng.uniform(0, 0.1)), 3)
            series = [mp.mpf(0), mp.mpf(0), mp.mpf(0), mp.mpf(a3), mp.mpf(0), mp.mpf(a5)]
            text, rates = f"{a3}*x**3 + {a5}*x**5", partial(polynomial_rates, series)
        else:
            a = round(float(rng.uniform(0.5, 2.5)), 3)
            text, rates = f"sin({a}*x)", partial(sine_rates, mp.mpf(a))
        with mp.workdps(40):
            law = law_of(source)
        yield text, source, partial(rates, law)


@pytest.mark.deep
@pytest.mark.parametrize(("kind", "folds"), [("polynomial", 12), ("sine", 8)])
def test_the_bar_of_a_fold_holds_its_distance_to_forty_digits(kind, folds):
    off, bar, size = [], [], []
    for text, source, rates in random_folds(kind):
        sign = -1 if rates(mp.mpf(0.5))[0] > 0 else 1

        def step_size(q, sign=sign, rates=rates):
            gain, power = rates(q)
            return -2 * sign * (1 - q * q) * gain / (q * power)

        system = hdica.OnlineICA(tau=0.1, source=source, nonlinearity=f"{sign}*({text})")
        found = hdica.critical(system, "tau")
        known = (found[name].values for name in ("value", "Q", "error"))
        for tau, q, error in zip(*known, strict=True):
            with mp.workdps(40):
                at = mp.findroot(partial(mp.diff, step_size), mp.mpf(float(q)))
                off.append(float(abs(step_size(at) - mp.mpf(float(tau)))))
            assert abs(at - q) < 1e-5
            bar.append(error)
            size.append(tau)
    assert len(off) >= folds
    assert np.all(np.array(off) <= bar)
    assert np.all(np.array(bar) < 1e-9 * np.array(size))
