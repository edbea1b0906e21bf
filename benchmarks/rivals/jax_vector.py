"""Full-vector steps in JAX: ``lax.scan`` over the steps, compiled, float64, on one thread.

The generator is threefry, the default: on a processor no other of JAX is faster here."""

from __future__ import annotations

import os
from typing import Any

# Read when JAX starts: one thread, as every other contestant.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

Array = NDArray[np.float64]
GENERATOR = "threefry2x32"


@jax.jit
def _ica(x: Any, xi: Any, source: Any, key: Any, tau: float, beta: float) -> Any:
    n = x.size
    root = jnp.sqrt(float(n))

    def step(state: Any, c: Any) -> Any:
        x, key = state
        key, drawn = jax.random.split(key)
        z = jax.random.normal(drawn, x.shape, x.dtype)
        y = z + (c / root - jnp.dot(xi, z) / n) * xi
        x = x * (1 - tau * beta / n) - tau / root * (jnp.dot(x, y) / root) ** 3 * y
        return (x * jnp.sqrt(n / jnp.dot(x, x)), key), None

    return jax.lax.scan(step, (x, key), source)[0][0]


@jax.jit
def _oist(x: Any, xi: Any, source: Any, key: Any, tau: float, omega: float, beta: float) -> Any:
    n = x.size
    root = jnp.sqrt(omega / n)

    def step(state: Any, c: Any) -> Any:
        x, key = state
        key, drawn = jax.random.split(key)
        y = jax.random.normal(drawn, x.shape, x.dtype) + root * c * xi
        x = x + tau / n * jnp.dot(x, y) * y
        x = x - beta / n * jnp.sign(x)
        return (x * jnp.sqrt(n / jnp.dot(x, x)), key), None

    return jax.lax.scan(step, (x, key), source)[0][0]


def _key(rng: np.random.Generator) -> Any:
    return jax.random.key(int(rng.integers(2**31)), impl=GENERATOR)


def ica(
    x: Array, xi: Array, source: Array, *, tau: float, beta: float, rng: np.random.Generator
) -> Array:
    """Steps of online ICA with f = x**3 and phi = beta x; ``rng`` gives the key."""
    return np.asarray(_ica(x, xi, source, _key(rng), tau, beta))


def oist(
    x: Array,
    xi: Array,
    source: Array,
    *,
    tau: float,
    omega: float,
    beta: float,
    rng: np.random.Generator,
) -> Array:
    """Steps of online sparse PCA with phi = beta sign(x); ``rng`` gives the key."""
    return np.asarray(_oist(x, xi, source, _key(rng), tau, omega, beta))
