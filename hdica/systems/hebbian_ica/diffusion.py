"""Hebbian ICA where R is of order n^-1/2: paths and densities of the diffusion (24)-(25).

The entries of r = sqrt(n) R are independent there. Time is t = k/n as in every method; the
diffusion's own clock is s = t/n^2.
"""

from __future__ import annotations

import math

import numpy as np

from hdica.finite.random.streams import Stream
from hdica.finite.record import Values
from hdica.ingredients.save import Save
from hdica.limits.diffusion.densities import density, paths, survival
from hdica.limits.diffusion.escape import scaled
from hdica.systems.hebbian_ica.escapes import (
    HOME,
    PAIR,
    PAPER,
    POSITIONS,
    constant_nu,
    trap_refusal,
    traps,
)
from hdica.systems.hebbian_ica.fields import signs, start_overlap
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.method import (
    AVERAGES,
    COMMON,
    DIFFUSIONS,
    NUMERICS,
    About,
    Cost,
    Limit,
    Outputs,
    Role,
    Scope,
    Simulation,
    Size,
)
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.trials import seeded

_STEP = 0.02
"""Step of the paths relative to the shortest time of the drift."""
_CUT = 6.0
"""Beyond so many distances of the barrier the drift carries r away in no time."""


def depths(system: HebbianICA, nu: float) -> Array:
    """G = sigma kappa_4 <phi'''>/(6 P nu) of every entry, shape (K, M); below 0 it confines."""
    columns = traps(system)
    return np.array(
        [[sign * t.product / (6 * t.power * nu) for t in columns] for sign in signs(system)]
    )


def _starts(system: HebbianICA, n: int, rng: np.random.Generator) -> Array:
    """R at t = 0, shape (K, M)."""
    r0 = start_overlap(system)
    if r0 is None:
        return rng.standard_normal((system.projections, len(system.sources)))
    return np.asarray(r0 * math.sqrt(n))


def _edge(depth: Array, high: float) -> float:
    """Where paths are taken to have arrived: at the threshold, or far beyond every barrier."""
    steepest = depth[depth > 0]
    if not steepest.size:
        return high
    return min(high, max(_CUT / math.sqrt(2 * float(steepest.min())), _CUT))


def _paths(system: HebbianICA, times: Array, n: int, stream: Stream, save: Save) -> Values:
    """R by the stochastic differential equation, at rest from the threshold on."""
    nu, high = constant_nu(system, n), system.threshold * math.sqrt(n)
    g, rate = depths(system, nu), traps(system)[0].power * nu**2
    edge = _edge(g, high)
    steepest = 3 * float(np.abs(g).max())

    def step(r: Array) -> float:
        return _STEP / (0.5 + steepest * float(np.abs(r).max()) ** 2)

    begin = _starts(system, n, stream("start"))
    r = paths(scaled(g), begin, rate * times / float(n) ** 2, step, stream("noise"), bound=edge)
    arrived = np.where(np.abs(r) >= edge, np.sign(r) * high, r)
    return {"R": arrived / math.sqrt(n)}, ""


def _path_seconds(system: HebbianICA, n: int | None, last: float) -> float:
    dimension = n or 1
    nu = constant_nu(system, dimension)
    g, rate = depths(system, nu), traps(system)[0].power * nu**2
    # The longest steps are those of |r| about 2, where a path is most of its time.
    steps = rate * last / float(dimension) ** 2 * (0.5 + 12 * float(np.abs(g).max()))
    return 1e-3 + 4e-5 * steps / _STEP


DIFFUSION = Simulation[HebbianICA](
    name="diffusion",
    role=Role.SIMULATION,
    about=About(
        text="paths of √n R by its stochastic differential equation",
        accuracy="approximate",
        equations=f"{PAPER}, (24)-(25), explicit scheme of weak order 2",
        engines=(*COMMON, "hdica.finite.random", AVERAGES, DIFFUSIONS, HOME),
    ),
    outputs=Outputs(
        (Output("R", ("time", *PAIR), "overlap R, at rest once it reaches the threshold"),)
    ),
    cost=Cost(seconds=_path_seconds),
    scope=Scope(refuses=lambda system: trap_refusal(system, n=True), ignores=frozenset({"alpha"})),
    run=seeded("diffusion", _paths, frozenset({"alpha"})),
)


def _normal(r: Array) -> Array:
    """Distribution function of abs(r) for a random start."""
    from scipy.special import erf

    return np.asarray(erf(r / math.sqrt(2)))


def _density(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    """Densities of r, one an entry; equal entries are computed once."""
    assert n is not None
    nu, high = constant_nu(system, n), system.threshold * math.sqrt(n)
    g, rate = depths(system, nu), traps(system)[0].power * nu**2
    r0 = start_overlap(system)
    inside = np.abs(POSITIONS) < high
    later = times > 0
    clock = rate * times[later] / float(n) ** 2
    heights = np.zeros((times.size, *g.shape, POSITIONS.size))
    alive = np.ones((times.size, *g.shape))
    # A start at given places has no density at t = 0.
    begun = np.exp(-(POSITIONS**2) / 2) / math.sqrt(2 * math.pi) * inside
    heights[~later] = begun if r0 is None else math.nan
    solved: dict[tuple[float, float | None], tuple[Array, Array]] = {}
    for i, j in np.ndindex(*g.shape):
        start = None if r0 is None else abs(float(r0[i, j])) * math.sqrt(n)
        key = (float(g[i, j]), start)
        if key not in solved:
            one, begin = scaled(key[0]), _normal if start is None else start
            scale = min(1 / math.sqrt(2 * abs(key[0])), high)
            p, _ = density(one, high, begin, clock, POSITIONS[inside], scale=scale)
            solved[key] = p, survival(one, high, begin, clock, scale=scale)[0]
        p, s = solved[key]
        heights[np.ix_(later, [i], [j], inside)] = p[:, None, None, :]
        alive[later, i, j] = s
    return PointResult({"density": heights, "alive": alive})


FOKKER_PLANCK = Limit[HebbianICA](
    name="fokker_planck",
    role=Role.OTHER,
    about=About(
        text="densities of √n R",
        accuracy="converged",
        equations=f"{PAPER}, Fokker-Planck equation of (24)-(25), absorbed at the threshold",
        engines=(*COMMON, AVERAGES, DIFFUSIONS, NUMERICS, HOME),
    ),
    outputs=Outputs(
        (
            Output(
                "density",
                ("time", *PAIR, "r"),
                "density of r = sqrt(n) R, of either sign, below the threshold",
            ),
            Output(
                "alive", ("time", *PAIR), "probability that abs(R) has not reached the threshold"
            ),
        ),
        coords=lambda times: {"time": times, "r": POSITIONS},
    ),
    cost=Cost(seconds=lambda system, n, last: 0.3),
    scope=Scope(
        refuses=lambda system: trap_refusal(system, n=True),
        ignores=frozenset({"alpha"}),
        n=Size.DIMENSION,
    ),
    run=_density,
)

METHODS = (DIFFUSION, FOKKER_PLANCK)
