"""High-dimensional online learning: exact simulations, their limits, and the distance between.

>>> import hdica
>>> ica = hdica.OnlineICA(tau=0.05, source="uniform", start={"overlap": 0.7})
>>> float(hdica.critical(ica, "tau")["value"][0].round(6))
0.05913
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hdica.process.cache_folders import close_caches as _close_caches
from hdica.process.compile_cache import drop_stale as _drop_stale

if TYPE_CHECKING:
    from hdica.api.simulate import limit, simulate
    from hdica.api.steady import (
        critical,
        critical_curve,
        effective_potential,
        fixed_points,
    )
    from hdica.errors import HdicaError, OutOfTime
    from hdica.sweep.outcome.results import open_results, version_path
    from hdica.systems.hebbian_ica.api import (
        asymptotics,
        conflict_region,
        escape_signs,
        escape_time,
    )
    from hdica.systems.hebbian_ica.convert import convert
    from hdica.systems.hebbian_ica.system import HebbianICA
    from hdica.systems.online_ica.system import OnlineICA
    from hdica.systems.sparse_pca.system import SparsePCA

__version__ = "0.1.0"
__all__ = [
    "HdicaError",
    "HebbianICA",
    "OnlineICA",
    "OutOfTime",
    "SparsePCA",
    "__version__",
    "asymptotics",
    "conflict_region",
    "convert",
    "critical",
    "critical_curve",
    "effective_potential",
    "escape_signs",
    "escape_time",
    "fixed_points",
    "limit",
    "open_results",
    "simulate",
    "version_path",
]

_close_caches()
_drop_stale()

# Names are imported when first used: the command line must not pay for numba to say --help.
_HOME = {
    "HdicaError": "hdica.errors",
    "HebbianICA": "hdica.systems.hebbian_ica.system",
    "OnlineICA": "hdica.systems.online_ica.system",
    "OutOfTime": "hdica.errors",
    "SparsePCA": "hdica.systems.sparse_pca.system",
    "asymptotics": "hdica.systems.hebbian_ica.api",
    "conflict_region": "hdica.systems.hebbian_ica.api",
    "convert": "hdica.systems.hebbian_ica.convert",
    "critical": "hdica.api.steady",
    "critical_curve": "hdica.api.steady",
    "effective_potential": "hdica.api.steady",
    "escape_signs": "hdica.systems.hebbian_ica.api",
    "escape_time": "hdica.systems.hebbian_ica.api",
    "fixed_points": "hdica.api.steady",
    "limit": "hdica.api.simulate",
    "open_results": "hdica.sweep.outcome.results",
    "simulate": "hdica.api.simulate",
    "version_path": "hdica.sweep.outcome.results",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hdica' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
