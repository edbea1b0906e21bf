"""Which systems there are, and how each can be computed. A new system is one line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hdica.errors import HdicaError
from hdica.limits.mean_field.family import MeanField
from hdica.systems.hebbian_ica.methods import trajectories as hebbian_ica_methods
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.kernel import KERNEL_VERSION
from hdica.systems.method import Method
from hdica.systems.online_ica import methods as online_ica_methods
from hdica.systems.online_ica import system as online_ica
from hdica.systems.online_ica.system import OnlineICA
from hdica.systems.sparse_pca import methods as sparse_pca_methods
from hdica.systems.sparse_pca import system as sparse_pca
from hdica.systems.sparse_pca.system import SparsePCA

__all__ = ["KERNEL_VERSION", "METHODS", "SYSTEMS", "methods_of", "system_class"]

SYSTEMS: dict[str, Any] = {
    "OnlineICA": OnlineICA,
    "SparsePCA": SparsePCA,
    "HebbianICA": HebbianICA,
}
METHODS: dict[str, dict[str, Method]] = {
    "OnlineICA": online_ica_methods.METHODS,
    "SparsePCA": sparse_pca_methods.METHODS,
    "HebbianICA": hebbian_ica_methods.METHODS,
}

MEAN_FIELDS: dict[str, Callable[[Any], MeanField]] = {
    "OnlineICA": online_ica.mean_field,
    "SparsePCA": sparse_pca.mean_field,
}


def system_class(name: str) -> Any:
    """The class of a system.

    Raises
    ------
    HdicaError
        If there is no such system.
    """
    if name not in SYSTEMS:
        raise HdicaError(f"system = {name!r} is not known (allowed: {', '.join(SYSTEMS)})")
    return SYSTEMS[name]


def name_of(system: Any) -> str:
    """The name of the class of a system.

    Raises
    ------
    HdicaError
        If it is no system.
    """
    name = type(system).__name__
    if not isinstance(system, SYSTEMS.get(name, ())):
        raise HdicaError(f"system: a {name} is not allowed (allowed: {', '.join(SYSTEMS)})")
    return name


def methods_of(name: str, noise: str = "own") -> dict[str, Method]:
    """The methods of a system, by name.

    Parameters
    ----------
    name
        The system.
    noise
        ``"shared"`` for methods whose points of equal n and seed share their noise, where a
        method can: see :attr:`hdica.systems.method.Method.shared`.

    Raises
    ------
    HdicaError
        If there is no such system.
    """
    system_class(name)
    if noise == "own":
        return METHODS[name]
    return {key: method.shared or method for key, method in METHODS[name].items()}


def mean_field_of(name: str) -> Callable[[Any], MeanField]:
    """How a system gives its limit, for the systems of the mean-field family.

    Raises
    ------
    HdicaError
        If the system is not of that family.
    """
    system_class(name)
    if name not in MEAN_FIELDS:
        raise HdicaError(f"system {name} has no density limit (allowed: {', '.join(MEAN_FIELDS)})")
    return MEAN_FIELDS[name]
