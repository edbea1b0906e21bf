"""Reference exponents and prefactors of the escape of online ICA at fixed tau.

``python -m tests.systems.online_ica.exponent_reference`` draws forty sources and step sizes, most
of them near the fold, and writes ``tests/golden/escape_exponent.json``. Nothing is shared with
hdica: integrals are over c and u at fixed places of u, derivatives over Q are steps into the
complex plane, the integral over Q is SciPy's adaptive Gauss-Kronrod rule. Every number is computed
twice, from different nodes of c and u, and stored where both agree.
"""

import json
import math
from functools import partial
from pathlib import Path

import numpy as np
from numpy.polynomial import hermite_e, legendre
from scipy.integrate import quad_vec
from scipy.optimize import brentq
from scipy.special import roots_jacobi

GOLDEN = Path(__file__).parents[2] / "golden" / "escape_exponent.json"
FUNCTIONS = {
    "x**3": lambda u: u**3,
    "-tanh(x)": lambda u: -np.tanh(u),
    "-clip(x, -1, 1)": lambda u: -np.clip(u, -1, 1),
    "-sign(x)": lambda u: -np.sign(u),
}
STEP = 1e-30


def half_of(source, order):
    """Half of a symmetric law: values of c whose negatives are as likely, and weights of sum 1."""
    if source == "rademacher":
        return np.ones(1), np.ones(1)
    if source == "uniform":
        x, w = legendre.leggauss(order)
        return math.sqrt(3) * x, w / 2
    if "discrete" in source:
        values, weights = (np.array(source["discrete"][k]) for k in ("values", "weights"))
        return values / math.sqrt(np.sum(weights * values**2)), weights
    if "scipy" in source:
        x, w = roots_jacobi(order, source["a"] - 1, source["a"] - 1)
        return x * math.sqrt(2 * source["a"] + 1), w / w.sum()
    (_, m), (_, sd) = source["mixture"]["means"], source["mixture"]["sds"]
    x, w = hermite_e.hermegauss(order)
    return (m + sd * x) / math.hypot(m, sd), w / w.sum()


class Chain:
    """Averages of one step over c (a column) and u."""

    def __init__(self, f, source, tau, order):
        x, w = legendre.leggauss(order)
        low = np.arange(-14.0, 14.0, 0.5)
        self.u = (low[:, None] + (x + 1) / 4).ravel()
        self.width = np.tile(w / 4, low.size)
        c, self.mass = half_of(source, order)
        self.c, self.mass = c[:, None], self.mass[:, None]
        self.g = tau * FUNCTIONS[f](self.u)

    def weights(self, q):
        rest = 1 - q * q
        density = np.exp(-((self.u - q * self.c) ** 2) / (2 * rest)) / np.sqrt(2 * np.pi * rest)
        return self.mass * self.width * density

    def move(self, q):
        return -self.g * self.c - q * (self.g**2 / 2 - self.g * self.u)

    def drift(self, q):
        return np.sum(self.weights(q) * self.move(q))

    def noise(self, q):
        return np.sum(self.weights(q) * self.move(q) ** 2) - self.drift(q) ** 2

    def slope(self, q):
        return self.drift(q + STEP * 1j).imag / STEP

    def generator(self, q, p):
        """H and its derivative over p, for complex Q too."""
        weights, move = self.weights(q), self.move(q)
        more = np.sum(weights * np.expm1(p * move))
        return np.log1p(more), np.sum(weights * np.exp(p * move) * move) / (1 + more)

    def integrands(self, q):
        """p*, -2 D/V and the derivative of ln C."""
        ratio = -2 * self.drift(q) / self.noise(q)
        low, high = ratio / 2, ratio
        while self.generator(q, low)[0] > 0:
            low /= 2
        while self.generator(q, high)[0] < 0:
            high *= 2
        p = brentq(lambda p: self.generator(q, p)[0], low, high, xtol=1e-16, rtol=1e-15)
        tilted = self.weights(q) * np.exp(p * self.move(q))
        tilted /= np.sum(tilted)
        move, g = self.move(q), self.g
        first, second = np.sum(tilted * move), np.sum(tilted * move**2)
        value, mixed = (part.imag / STEP for part in self.generator(q + STEP * 1j, p))
        e = (self.u - q * self.c) / math.sqrt(1 - q * q)
        e1, e2 = g**2 - 2 * g * self.u, g**2 * (self.c**2 + e**2 - 2)
        next_order = g * self.c * e1 / 2 - q * e2 / 2 + 3 * q * e1**2 / 8
        rest = np.sum(tilted * (p * next_order + (p * q) ** 2 * g**4 / 4))
        bend = -value / first
        return np.array([p, ratio, (mixed + (second - 2 * first**2) * bend / 2 - rest) / first])


def reference(f, source, tau, top, order):
    """Q_u (near ``top``), S, the S of a diffusion and C."""
    chain = Chain(f, source, tau, order)
    near = min(1e-4, (1 - top) / 2)
    while chain.drift(top - near) > 0 or chain.drift(top + near) < 0:
        near /= 2
    top = brentq(chain.drift, top - near, top + near, xtol=1e-16, rtol=1e-15)
    values, _ = quad_vec(chain.integrands, 0.0, top, epsabs=1e-9, epsrel=1e-9)
    lead = chain.noise(0.0) / chain.noise(top) / (-chain.slope(0.0) * chain.slope(top))
    return [top, *values[:2], math.pi * math.sqrt(lead) * math.exp(values[2])]


def drawn(rng):
    """A random f, source and step size below the critical one."""
    from hdica.ingredients.formula import parse_formula
    from hdica.ingredients.sources import make_source
    from hdica.limits.overlap.nonlinear import folds_of

    spread, share = round(rng.uniform(0.1, 0.5), 3), round(rng.uniform(0.02, 0.3), 3)
    sources = [
        "rademacher",
        "uniform",
        {"discrete": {"values": [-1, 0, 1], "weights": [(1 - share) / 2, share, (1 - share) / 2]}},
        {"scipy": "beta", "a": round(rng.uniform(0.3, 1.5), 3)},
        {"mixture": {"weights": [0.5, 0.5], "means": [-1, 1], "sds": [spread, spread]}},
    ]
    source = sources[rng.choice(5, p=[0.3, 0.15, 0.35, 0.1, 0.1])]
    if "scipy" in source:
        source["b"] = source["a"]
    f = list(FUNCTIONS)[rng.choice(4, p=[0.55, 0.15, 0.15, 0.15])]
    folds, _ = folds_of(parse_formula(f, "x"), make_source(source))
    top = float(folds.tau[folds.q > 0].max())
    return {"nonlinearity": f, "source": source, "tau": top * (1 - 10 ** -rng.uniform(0.05, 2.2))}


def main():
    import hdica

    rng, cases = np.random.default_rng(38), []
    while len(cases) < 40:
        case = drawn(rng)
        top = float(hdica.escape_exponent(hdica.OnlineICA(**case))["Q_unstable"])
        run = partial(reference, case["nonlinearity"], case["source"], case["tau"], top)
        fine, coarse = run(22), run(16)
        off = [abs(a - b) / abs(a) for a, b in zip(fine, coarse, strict=True)]
        print(len(cases), case, fine, [f"{x:.0e}" for x in off], flush=True)
        cases.append({**case, "values": fine, "off": off})
    GOLDEN.write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
