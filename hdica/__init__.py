"""High-dimensional online learning: exact simulations, their limits, and the distance between.

>>> import hdica
>>> ica = hdica.OnlineICA(tau=0.05, source="uniform", start={"overlap": 0.7})
>>> float(hdica.critical(ica, "tau")["value"][0].round(6))
0.05913
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hdica.errors import closest as _closest
from hdica.errors import extras as _extras
from hdica.plots import register as _register
from hdica.process.compile_cache import close_caches as _close_caches
from hdica.version import __version__ as __version__

if TYPE_CHECKING:
    from hdica.analysis.record import Analysis as Analysis
    from hdica.api.best import best as best
    from hdica.api.escape_time import escape_time as escape_time
    from hdica.api.infer import infer as infer
    from hdica.api.limit import limit as limit
    from hdica.api.mean_field import critical_curve as critical_curve
    from hdica.api.mean_field import effective_potential as effective_potential
    from hdica.api.mean_field import sensitivity as sensitivity
    from hdica.api.samples import optimal_schedule as optimal_schedule
    from hdica.api.samples import samples_to_overlap as samples_to_overlap
    from hdica.api.simulate import simulate as simulate
    from hdica.api.steady import critical as critical
    from hdica.api.steady import fixed_points as fixed_points
    from hdica.api.whiten import whiten as whiten
    from hdica.errors import HdicaError as HdicaError
    from hdica.errors import OutOfTime as OutOfTime
    from hdica.plug_in import register as register
    from hdica.store.provenance import cite as cite
    from hdica.store.results import open_results as open_results
    from hdica.sweep import Study as Study
    from hdica.systems.built_in import *  # noqa: F403
    from hdica.systems.system import System as System


_close_caches()
_register()

# Names are imported when first used: the command line must not pay for numba to say --help.
_HOME = {
    "Analysis": "analysis.record",
    "HdicaError": "errors",
    "OutOfTime": "errors",
    "Study": "sweep",
    "System": "systems.system",
    "best": "api.best",
    "cite": "store.provenance",
    "critical": "api.steady",
    "critical_curve": "api.mean_field",
    "effective_potential": "api.mean_field",
    "escape_time": "api.escape_time",
    "fixed_points": "api.steady",
    "infer": "api.infer",
    "limit": "api.limit",
    "open_results": "store.results",
    "optimal_schedule": "api.samples",
    "register": "plug_in",
    "samples_to_overlap": "api.samples",
    "sensitivity": "api.mean_field",
    "simulate": "api.simulate",
    "whiten": "api.whiten",
}


def __getattr__(name: str) -> Any:
    if name == "plots":
        return import_module("hdica.plots")
    if name in _HOME:
        with _extras():
            return getattr(import_module(f"hdica.{_HOME[name]}"), name)
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        from hdica.systems.system import lookup, offered

        if (record := lookup(name)) is not None:  # which imports no other system
            return record.parameters
        if name in (known := offered()):
            return known[name]()
    close = "" if name.startswith("_") else _closest(name, __dir__())
    hint = f" (did you mean {close!r}?)" if close else ""
    raise AttributeError(f"module 'hdica' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    from hdica.systems.system import offered

    return sorted(["__version__", "plots", *_HOME, *offered()])
