"""A toy rule whose limit is known, and stores of it that follow the published schema.

One step of the rule is Q <- Q + D(Q)/n + sigma z/n with z normal, so that in time t = k/n
dQ/dt = D(Q), n var Q obeys S' = 2 D'(Q) S + sigma^2, and the bias is C(t)/n.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.integrate import solve_ivp

from hdica.analysis.reading import settings_of
from hdica.analysis.registry import analyses

TAU_C = 0.06
MIDDLE = 0.5
SLOPE = 4.0
SPEED = 4.0


def drift(q_signed: np.ndarray, tau: np.ndarray | float) -> np.ndarray:
    """Zero at Q = 0 and at Q^2 = 0.5 -+ sqrt(4 (0.06 - tau)): a fold at tau = 0.06."""
    q = q_signed**2
    return -SPEED * q_signed * ((q - MIDDLE) ** 2 - SLOPE * (TAU_C - tau))


def roots(tau: float) -> tuple[float, ...]:
    """Fixed points Q >= 0 of the toy rule."""
    inner = SLOPE * (TAU_C - tau)
    if inner < 0:
        return (0.0,)
    return (0.0, *(float(np.sqrt(MIDDLE + s * np.sqrt(inner))) for s in (-1, 1)))


def simulate(
    n: int,
    tau: float | np.ndarray,
    start: float | np.ndarray,
    times: Sequence[float],
    seeds: int,
    sigma: float,
    error: float = 0.0,
    stream: int = 0,
) -> np.ndarray:
    """Trajectories, shape (*broadcast of tau and start, seeds, times)."""
    shape = (*np.broadcast_shapes(np.shape(tau), np.shape(start)), seeds)
    tau, q = np.asarray(tau)[..., None], np.broadcast_to(np.asarray(start)[..., None], shape)
    q, out, k = q.astype(float), [], 0
    rng = np.random.default_rng([n, stream])
    for time in times:
        for _ in range(round(time * n) - k):
            q = q + ((1 + error) * drift(q, tau) + sigma * rng.standard_normal(shape)) / n
        k = round(time * n)
        out.append(q)
    return np.stack(out, axis=-1)


def limit(
    tau: float, start: float, times: Sequence[float], sigma: float, error: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Q(t) and sqrt(S(t)), each of shape (times,)."""

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        h = 1e-6
        slope = (drift(y[0] + h, tau) - drift(y[0] - h, tau)) / (2 * h) * (1 + error)
        return np.array([(1 + error) * drift(y[0], tau), 2 * slope * y[1] + sigma**2])

    found = solve_ivp(rate, (0, times[-1]), [start, 0.0], t_eval=times, rtol=1e-9, atol=1e-12)
    return found.y[0], np.sqrt(np.maximum(found.y[1], 0.0))


def _grouped(data: xr.Dataset, method: str, accuracy: str, stochastic: bool) -> xr.Dataset:
    """Add what every group of a published store carries."""
    dims = [d for d in data.dims if d not in ("time", "q", "fixed_point", "transition")]
    shape = tuple(data.sizes[d] for d in dims)
    data["status"] = (dims, np.ones(shape, np.uint8))
    data["status"].attrs = {
        "flag_values": [0, 1, 2, 3],
        "flag_meanings": "pending done diverged failed",
    }
    data["cpu_seconds"] = (dims, np.full(shape, 1e-3))
    data.attrs = {"method": method, "accuracy": accuracy, "equations": f"toy, {method}"}
    data.attrs |= {"kernel": "1", "stochastic": int(stochastic)}
    return data


def finite(
    method: str,
    taus: list[float],
    starts: list[float],
    ladder: list[int],
    seeds: int,
    times: list[float],
    sigma: float,
    error: float = 0.0,
) -> xr.Dataset:
    """Group of a stochastic method over (tau, Q0, n, seed, time)."""
    tau, start = np.meshgrid(taus, starts, indexing="ij")
    stream = sum(map(ord, method))
    q = [simulate(n, tau, start, times, seeds, sigma, error, stream) for n in ladder]
    coords = {"tau": taus, "Q0": starts, "n": ladder, "seed": np.arange(seeds), "time": times}
    data = xr.Dataset({"Q": (("tau", "Q0", "n", "seed", "time"), np.stack(q, axis=2))}, coords)
    steps = np.floor(np.outer(ladder, times) + 1e-9).astype(np.int64)
    data = data.assign_coords(step=(("n", "time"), steps))
    return _grouped(data, method, "exact in law", True)


def ode(taus: list[float], starts: list[float], times: list[float], sigma: float) -> xr.Dataset:
    """Group of the limit over (tau, Q0, time), with error, control and fluctuation."""
    dims = ("tau", "Q0", "time")
    right = np.array([[limit(t, s, times, sigma) for s in starts] for t in taus])
    wrong = np.array([[limit(t, s, times, sigma, 0.02)[0] for s in starts] for t in taus])
    data = xr.Dataset(
        {
            "Q": (dims, right[:, :, 0]),
            "Q_error": (dims, np.full_like(wrong, 1e-9)),
            "Q_control": (dims, wrong),
            "Q_sd": (dims, right[:, :, 1]),
        },
        {"tau": taus, "Q0": starts, "time": times},
    )
    return _grouped(data, "ode", "converged", False)


def flow_groups(taus: list[float]) -> dict[str, xr.Dataset]:
    """Groups drift, fixed_points and critical."""
    q = np.linspace(0, 1, 101)
    root = np.sqrt(q)
    g = np.array([2 * root * drift(root, t) / t for t in taus])
    padded = np.full((len(taus), 12), np.nan)
    stable = padded.copy()
    for i, t in enumerate(taus):
        found = roots(t)
        padded[i, : len(found)] = found
        stable[i, : len(found)] = (1.0, 0.0, 1.0)[: len(found)]
    nan = [np.nan] * 3
    one = {"value": TAU_C, "Q": MIDDLE**0.5, "error": 1e-12, "kind": 0.0}
    critical = xr.Dataset({k: ("transition", [v, *nan]) for k, v in one.items()})
    return {
        "drift": _grouped(
            xr.Dataset({"drift": (("tau", "q"), g)}, {"tau": taus, "q": q}), "drift", "exact", False
        ),
        "fixed_points": _grouped(
            xr.Dataset(
                {"Q": (("tau", "fixed_point"), padded), "stable": (("tau", "fixed_point"), stable)},
                {"tau": taus},
            ),
            "fixed_points",
            "converged",
            False,
        ),
        "critical": _grouped(critical, "critical", "converged", False),
    }


def tree(
    groups: dict[str, xr.Dataset],
    analysis: dict[str, Any],
    title: str = "Toy rule",
    description: str = "A rule with a known limit.",
) -> xr.DataTree:
    """A published store of a study named ``toy``; matrices belong to a system that has them."""
    system = "HebbianICA" if any("source" in g.dims for g in groups.values()) else "OnlineICA"
    study = {
        "study": "toy",
        "title": title,
        "description": description,
        "system": system,
        "parameters": {},
        "grid": {},
        "methods": {name: {} for name in groups},
        "analysis": analysis,
    }
    attrs = {
        "Conventions": "CF-1.11",
        "title": title,
        "description": description,
        "study": "toy",
        "study_yaml": json.dumps(study),
        "study_hash": "a" * 64,
        "full_hash": "b" * 64,
        "schema_version": "1",
        "kernel_version": "1",
        "hdica_version": "0.1",
        "git_commit": "",
        "package_versions": json.dumps({"numpy": np.__version__}),
        "created": "2026-01-01T00:00:00Z",
        "system": system,
        "references": "toy",
        "license": "BSD-3-Clause",
    }
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=attrs), **groups})


def computed(name: str) -> Callable[..., Any]:
    """``compute(tree, settings)`` of an analysis, from settings as a study has them."""

    def compute(store: xr.DataTree, settings: dict[str, Any]) -> xr.Dataset:
        given = {key: value for key, value in settings.items() if value is not None}
        found = analyses()[name].compute(store, settings_of(store, name, given))
        assert isinstance(found, xr.Dataset)
        return found

    return compute


CONVERGENCE = {"simulation": ["chain"], "limit": "ode", "variable": "Q", "level": 0.01}
PHASE = {"simulation": "chain", "x": "tau", "y": "Q0", "limit": "ode", "success": 0.5}
FLOW = {"method": "drift", "fixed_points": "fixed_points"}
TAUS, STARTS = [0.02, 0.07], [0.3, 0.7]
TIMES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0]
LADDER = [100, 200, 400, 800]


def store(error: float = 0.0, seeds: int = 24, sigma: float = 0.04, **words: str) -> xr.DataTree:
    """Two step sizes, one beyond the fold; two starts; every analysis."""
    chain = finite("chain", TAUS, STARTS, LADDER, seeds, TIMES, sigma, error)
    groups = {"chain": chain, "ode": ode(TAUS, STARTS, TIMES, sigma), **flow_groups(TAUS)}
    analysis = {"convergence": CONVERGENCE, "phase": PHASE, "flow": FLOW}
    return tree(groups, analysis, **words)
