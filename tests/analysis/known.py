"""Ladders whose mean, bias and fluctuation are known exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdica.verdict.ladder import Ladder

TIMES = np.linspace(0.0, 20.0, 21)
LIMIT = 0.4 + 0.5 * (1.0 - np.exp(-TIMES / 5.0))
PROFILE = np.sin(np.pi * TIMES / 20.0) + TIMES / 40.0
NO_ERROR = np.zeros_like(TIMES)


@dataclass(frozen=True)
class Law:
    """mean = LIMIT + shift PROFILE + (c/n^b) PROFILE; sd = sigma n^-a, correlated in time."""

    c: float = 3.0
    b: float = 1.0
    sigma: float = 0.5
    a: float = 0.5
    shift: float = 0.0
    memory: float = 0.9

    def draw(self, rng: np.random.Generator, n: list[int], seeds: int) -> Ladder:
        """Independent trajectories at every n; the first time is deterministic."""
        runs = []
        for k in n:
            z = rng.standard_normal((seeds, len(TIMES)))
            x = np.zeros_like(z)
            for i in range(1, len(TIMES)):
                x[:, i] = self.memory * x[:, i - 1] + np.sqrt(1 - self.memory**2) * z[:, i]
            bias = (self.shift + self.c * float(k) ** -self.b) * PROFILE
            runs.append(LIMIT + bias + self.sigma * float(k) ** -self.a * x)
        return Ladder(np.array(n, dtype=float), tuple(runs))
