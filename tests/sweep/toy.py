"""A small system with cheap methods, to test sweeps without any numerical code."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import Field

from hdica.ingredients.save import Save
from hdica.systems import system as registry
from hdica.systems.method import (
    About,
    Cost,
    Limit,
    Method,
    Output,
    Outputs,
    PointResult,
    Role,
    Scope,
    Simulation,
    States,
)
from hdica.systems.parameters import Parameters
from hdica.systems.system import Dimension, OrderParameter, Paper, System


class Toy(Parameters):
    tau: float = Field(gt=0)
    gain: float = 1.0
    source: str = Field("uniform", pattern="^(uniform|laplace)$")
    formula: str = "x"
    prior: str | dict[str, float] = "dense"
    start: dict[str, float] = Field({"overlap": 0.5})
    constants: dict[str, float] = Field({})

    formulas: ClassVar[dict[str, str]] = {"formula": "x"}
    sized_by: ClassVar[dict[str, str]] = {"feature": "prior"}

    aliases: ClassVar[dict[str, tuple[str, ...]]] = {
        "Q0": ("start", "overlap"),
        "rho": ("prior", "sparse"),
    }

    def dims(self) -> dict[str, tuple[float, ...]]:
        """One group for a dense feature; 0 and 1/sqrt(rho), or -1 and 1, for the others."""
        if isinstance(self.prior, dict):
            return {"feature": (0.0, 1 / self.prior["sparse"] ** 0.5)}
        return {"feature": (1.0,) if self.prior == "dense" else (-1.0, 1.0)}

    def refuses_n(self, n: int) -> str:
        """It has any dimension."""
        return ""

    def refuses_until(self, last: float) -> str:
        """And any time."""
        return ""


def content(system: Toy) -> dict[str, Any]:
    return system.model_dump(mode="json", exclude_defaults=True)


def note_call(name: str, system: Toy, n: int | None, seed: int | None) -> None:
    """Leave a line for every point computed, in whichever process."""
    path = os.environ.get("TOY_CALLS")
    if path:
        with Path(path).open("a") as file:
            file.write(f"{name} {json.dumps(content(system), sort_keys=True)} {n} {seed}\n")


def kept(
    system: Toy, times: np.ndarray, q: np.ndarray, save: Save, shift: float = 0.0
) -> dict[str, np.ndarray]:
    """What a normal estimate of mean Q xi gives, moved by ``shift``."""
    found = {name: np.cos(len(formula) * q) for name, formula in save.functionals.items()}
    at = q[np.searchsorted(times, save.snapshots)][:, None, None]
    xi = np.array(system.dims()["feature"])
    mean = at * xi[:, None] + shift
    if save.x:
        found |= {"xi": xi, "weight": np.full(xi.size, 1 / xi.size)}
        found["density"] = np.exp(-((np.array(save.x) - mean) ** 2) / 2)
        found["cdf"] = np.tanh(save.edges - mean)
    if save.thresholds:
        high = np.exp(-np.array(save.thresholds)) * (1 + at[:, 0] / 10)
        found |= {"tpr": high, "fpr": high**2, "misclassified": high / 3}
    return found


class Mute(Exception):
    """An exception whose text cannot be read."""

    def __str__(self) -> str:
        raise ValueError("no text")


TROUBLES = (SystemExit(3), KeyboardInterrupt(), ValueError("no letter: \udcff"), Mute())
"""What a point may raise that nobody expects: the first with the constant ``trouble`` 1."""
CLOSES = len(TROUBLES) + 1
"""The trouble of a point that closes all files of its process and goes on."""


def _trouble(number: int) -> None:
    if number == CLOSES:
        os.closerange(3, 256)
        time.sleep(3600)
    raise TROUBLES[number - 1]


def walk(
    system: Toy, times: np.ndarray, n: int | None, seed: int | None, save: Save
) -> PointResult:
    note_call("walk", system, n, seed)
    time.sleep(system.constants.get("sleep", 0.0))
    if system.tau == 0.19:
        os.kill(os.getpid(), signal.SIGKILL)
    if size := int(system.constants.get("megabytes", 0.0)) * (system.tau == 0.1):
        _hoard = bytearray(size * 2**20)
        time.sleep(2.5)  # until somebody has looked
    if trouble := system.constants.get("trouble", 0.0) * (system.tau == 0.1):
        _trouble(int(trouble))
    if system.tau == 0.13:
        raise ZeroDivisionError("step size 0.13\nis unlucky")
    text = json.dumps([content(system), n, seed], sort_keys=True)
    stream = np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]))
    path = np.cumsum(stream.standard_normal(times.size))
    diverged = "diverged at step 7, time 0.5" if system.tau == 0.17 else ""
    if diverged:
        path[-1] = np.nan
    shift = float(stream.standard_normal()) if save.anything else 0.0
    return PointResult({"Q": path, **kept(system, times, path, save, shift)}, diverged)


def line(
    system: Toy, times: np.ndarray, n: int | None, seed: int | None, save: Save
) -> PointResult:
    note_call("line", system, n, seed)
    q = system.start["overlap"] + system.gain * system.tau * times
    return PointResult({"Q": q, "twice": 2 * q})


def profile(
    system: Toy, times: np.ndarray, n: int | None, seed: int | None, save: Save
) -> PointResult:
    note_call("profile", system, n, seed)
    q = np.exp(-system.tau * times)
    found = kept(system, times, q, save)
    if save.x:
        found["potential"] = found["density"] ** 2
    return PointResult({"Q": q, **found})


def branches(
    system: Toy, times: np.ndarray, n: int | None, seed: int | None, save: Save
) -> PointResult:
    return PointResult({name: np.arange(5) / 4 for name in ("value", "Q")})


def steady(
    system: Toy, times: np.ndarray, n: int | None, seed: int | None, save: Save
) -> PointResult:
    note_call("steady", system, n, seed)
    return PointResult({"root": np.array([system.gain, np.nan])})


def refuses(system: Toy) -> str:
    return "the gain 99 is too large for line" if system.gain == 99 else ""


def seconds(system: Toy, n: int | None, last: float) -> float:
    return 1e-5


def make(kernel: str = "7") -> dict[str, Method]:
    q = Output("Q", ("time",), "overlap")
    branch = tuple(Output(name, ("branch_point",), name) for name in ("value", "Q"))
    about = About(accuracy="exact", version=kernel)
    converged, cost = About(accuracy="converged", version=kernel), Cost(seconds=seconds)
    found = (
        Simulation(
            name="walk", role=Role.SIMULATION, rank=1, run=walk,
            about=About(accuracy="exact", equations="nobody 1900 (1)", version=kernel),
            outputs=Outputs((q,), keeps=frozenset({"densities", "support", "functionals"})),
            cost=Cost(seconds=lambda s, n, last: 1e-5 + s.constants.get("sleep", 0.0)),
        ),
        Limit(
            name="profile", role=Role.LIMIT, about=converged, cost=cost, run=profile,
            outputs=Outputs((q,), keeps=frozenset({"densities", "potential"})),
        ),
        States(
            name="branches", role=Role.BRANCHES, about=converged, cost=cost, run=branches,
            outputs=Outputs(branch, coords=lambda times: {"branch_point": np.arange(5)}),
            scope=Scope(ignores=frozenset({"tau"})),
        ),
        Limit(
            name="line", role=Role.LIMIT, rank=1, about=about, cost=cost, run=line,
            scope=Scope(refuses=refuses),
            outputs=Outputs((q, Output("twice", ("time",), "2Q"))),
        ),
        States(
            name="steady", role=Role.STEADY_STATES, about=about, cost=cost, run=steady,
            outputs=Outputs(
                (Output("root", ("fixed_point",), "root"),),
                coords=lambda times: {"fixed_point": np.arange(2)},
            ),
            scope=Scope(ignores=frozenset({"tau", "start", "prior"})),
        ),
    )  # fmt: skip
    return {method.name: method for method in found}


def record(methods: Mapping[str, Method], parameters: Any = Toy) -> System:
    return System(
        parameters=parameters,
        title="A toy",
        papers=(Paper("nobody 1900", "Nothing"),),
        order_parameters=(
            OrderParameter("Q", "overlap"),
            OrderParameter("R", "overlap of projection and source", ("projection", "source")),
        ),
        dimensions=(
            Dimension("feature", "value of xi"),
            *(Dimension(k, k, entries=True) for k in ("projection", "source", "other")),
            Dimension("r", "r"),
        ),
        methods=tuple(methods.values()),
        examples=({"tau": 0.1},),
    )


def register(kernel: str = "7") -> None:
    registry.register(record(make(kernel)))


def forget() -> None:
    registry.systems().pop("Toy", None)


def put(*methods: Method) -> None:
    """Replace methods of the toy, or add them."""
    known = registry.methods_of("Toy")
    registry.register(record(known | {method.name: method for method in methods}))


def lend(monkeypatch: pytest.MonkeyPatch, *methods: Method) -> None:
    """The same until the end of a test."""
    known = registry.methods_of("Toy") | {method.name: method for method in methods}
    monkeypatch.setitem(registry.systems(), "Toy", record(known))


def study(**changes: Any) -> dict[str, Any]:
    """A study of 79 points, as plain data."""
    return {
        "study": "toy",
        "title": "A toy",
        "system": "Toy",
        "parameters": {"source": "laplace"},
        "grid": {"tau": [0.1, 0.3, 0.2], "Q0": [0.25, 0.5]},
        "times": [0, 0.5, 2],
        "methods": {"walk": {"n": [10, 30], "seeds": 6}, "line": {}, "steady": {}},
        **changes,
    }
