"""Published rules and their control by plain NumPy, written out without the code under test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

import hdica

ROOT_2 = np.sqrt(2.0)


def committee(estimates: int, features: int, rate: str = "tau") -> list[str]:
    """The update of a committee of as many units as there are estimates, by a teacher."""
    teacher = " + ".join(f"erf(v{m}/sqrt(2))" for m in range(1, features + 1))
    student = " - ".join(f"erf(u{k}/sqrt(2))" for k in range(1, estimates + 1))
    return [f"{rate}*({teacher} - {student})*sqrt(2/pi)*exp(-u**2/2)"] * estimates


@dataclass(frozen=True)
class Published:
    """A rule as users write it, and F and psi as functions of arrays."""

    fields: dict[str, Any]
    push: Callable[..., np.ndarray]
    """``push(u, v, z, norm)``, of shapes (runs, K), (runs, M), (runs, J) and (runs, K)."""
    pull: Callable[[np.ndarray], np.ndarray] = np.zeros_like
    """psi."""


def _cube(tau):
    return lambda u, v, z, norm: -tau * u**3


def _committee(tau):
    def push(u, v, z, norm):
        error = scipy.special.erf(v / ROOT_2).sum(axis=1) - scipy.special.erf(u / ROOT_2).sum(
            axis=1
        )
        return tau * error[:, None] * np.sqrt(2 / np.pi) * np.exp(-(u**2) / 2)

    return push


def _orthonormal(mode: str, *rows: list[float]) -> Published:
    """Cubic updates of orthonormal estimates with these overlaps."""
    fields = {
        "update": "-tau*u**3",
        "normalise": mode,
        "source": ["uniform", "rademacher"],
        "start": {"overlap": [*rows]},
        "constants": {"tau": 0.04},
    }
    return Published(fields, _cube(0.04))


_TWO = [0.6, 0.3], [0.2, 0.5]
PUBLISHED = {
    "INO-PCA": Published(
        {
            "update": "tau*u/norm",
            "entrywise": "-tau*x",
            "spike": 1.0,
            "start": {"overlap": 0.3, "norm": 1.0},
            "constants": {"tau": 0.5},
        },
        lambda u, v, z, norm: 0.5 * u / norm,
        lambda x: -0.5 * x,
    ),
    "regression": Published(
        {
            "update": "tau*(label - u)",
            "label": "v + s*z",
            "noise": {"z": "gaussian"},
            "entrywise": "-0.2*x",
            "start": {"overlap": 0.1, "norm": 0.7},
            "constants": {"tau": 0.5, "s": 0.3},
        },
        lambda u, v, z, norm: 0.5 * (v + 0.3 * z - u),
        lambda x: -0.2 * x,
    ),
    "perceptron": Published(
        {"update": "tau*sign(v)*(u*v < 0)", "constants": {"tau": 1.0}},
        lambda u, v, z, norm: np.sign(v) * (u * v < 0),
    ),
    "phase retrieval": Published(
        {
            "update": "tau*(v**2 - u**2)*u",
            "start": {"overlap": 0.3, "norm": 0.7},
            "constants": {"tau": 0.1},
        },
        lambda u, v, z, norm: 0.1 * (v**2 - u**2) * u,
    ),
    "committee": Published(
        {
            "update": committee(2, 2),
            "source": ["gaussian", "gaussian"],
            "start": {
                "overlap": [[0.1, 0.0], [0.0, 0.15]],
                "products": [[0.3, 0.05], [0.05, 0.25]],
            },
            "constants": {"tau": 0.5},
        },
        _committee(0.5),
    ),
    "symmetric": _orthonormal("symmetric", *_TWO),
    "gram-schmidt": _orthonormal("gram-schmidt", *_TWO),
    "three by symmetric": _orthonormal("symmetric", *_TWO, [0.1, 0.1]),
    "weighted sum": Published(
        {
            "update": "-tau*u**3",
            "normalise": "norm",
            "source": {
                "sum": [{"law": "rademacher", "weight": 0.7}, {"law": "laplace", "weight": 0.3}]
            },
            "start": {"overlap": 0.5},
            "constants": {"tau": 0.1},
        },
        _cube(0.1),
    ),
}


def system(name: str) -> Any:
    """The rule of that name."""
    return hdica.OnlineRule(**PUBLISHED[name].fields)


def _sources(rng: np.random.Generator, spec: Any, runs: int) -> np.ndarray:
    """One source, drawn by NumPy's own generators."""
    if isinstance(spec, dict):
        parts = spec["sum"]
        total = sum(one["weight"] * _sources(rng, one["law"], runs) for one in parts)
        return total / np.sqrt(sum(one["weight"] ** 2 for one in parts))
    draws = {
        "gaussian": rng.standard_normal,
        "uniform": lambda size: rng.uniform(-np.sqrt(3), np.sqrt(3), size),
        "rademacher": lambda size: rng.choice([-1.0, 1.0], size),
        "laplace": lambda size: rng.laplace(0, np.sqrt(0.5), size),
    }
    return draws[spec](runs)


def plain(
    name: str, n: int, steps: list[int], runs: int, rng: np.random.Generator, cross: float = 1.0
):
    """R and P of plain runs, shapes (runs, steps, K, M) and (runs, steps, K, K).

    ``cross`` is a factor of the noise across the features: 1, or else a wrong one.
    """
    rule = PUBLISHED[name]
    one, start = rule.fields, rule.fields.get("start", {"overlap": 0.1, "norm": 1.0})
    r = np.atleast_2d(np.array(start["overlap"], dtype=float))
    k, m = r.shape
    mode = one.get("normalise", "none")
    p = r @ r.T if mode == "norm" else np.eye(k)
    np.fill_diagonal(p, float(start.get("norm", 1.0)) ** 2)
    p = np.array(start.get("products", p), dtype=float)
    specs = one.get("source", "gaussian")
    specs = specs if isinstance(specs, list) else [specs]
    # In the basis of the features first, which loses nothing: noise is isotropic.
    xi = np.sqrt(n) * np.eye(m, n)
    root = np.linalg.cholesky(p - r @ r.T + 1e-15 * np.eye(k))
    x = np.repeat(
        (np.sqrt(n) * np.concatenate([r, root, np.zeros((k, n - m - k))], axis=1))[None], runs, 0
    )
    seen_r, seen_p = [], []
    for step in range(max(steps) + 1):
        if step in steps:
            seen_r.append(x @ xi.T / n)
            seen_p.append(x @ x.transpose(0, 2, 1) / n)
        v = np.stack([_sources(rng, spec, runs) for spec in specs], axis=1)
        if "spike" in one:
            v = np.sqrt(one["spike"]) * v + rng.standard_normal(v.shape)
        z = rng.standard_normal((runs, 1))
        y = cross * rng.standard_normal((runs, n))
        y[:, :m] = v
        u = np.einsum("rkn,rn->rk", x, y) / np.sqrt(n)
        norm = np.sqrt(np.sum(x * x, axis=2) / n)
        if k == m == 1:
            push = rule.push(u[:, 0], v[:, 0], z[:, 0], norm[:, 0])[:, None]
        else:
            push = rule.push(u, v, z, norm)
        x = x + push[:, :, None] * y[:, None, :] / np.sqrt(n) + rule.pull(x) / n
        gram = x @ x.transpose(0, 2, 1) / n
        if mode == "norm":
            x = x / np.sqrt(np.diagonal(gram, axis1=1, axis2=2))[:, :, None]
        elif mode == "symmetric":
            values, vectors = np.linalg.eigh(gram)
            x = np.einsum("rij,rj,rkj,rkn->rin", vectors, values**-0.5, vectors, x)
        elif mode == "gram-schmidt":
            x = np.linalg.solve(np.linalg.cholesky(gram), x)
    return np.stack(seen_r, axis=1), np.stack(seen_p, axis=1)
