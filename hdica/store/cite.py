"""What to cite of results, of a study or of a system, as BibTeX."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdica.errors import HdicaError, path_of
from hdica.systems import registry
from hdica.systems.system import System
from hdica.systems.works import bibtex, cited

if TYPE_CHECKING:
    import xarray as xr

    from hdica.study.study import Study

KEPT = "bibtex"
"""Attribute of a published store with what there is to cite of it."""
ALLOWED = "a system, a study, results, or the path of a study or of results"


def cite(what: Any) -> str:
    """Entries of BibTeX for what computed something: papers, methods and hdica itself.

    Parameters
    ----------
    what
        A system (its class, one of its problems, its record or its name), a study, results (of
        ``simulate`` and its like, or of ``open_results``), or the path of a study or of a
        published store.

    Returns
    -------
    str
        The entries in ASCII, each below a line that says what it is cited for. Of a method those
        works are cited that its ``equations`` name.

    Raises
    ------
    HdicaError
        If it is none of these, or its system is not known here.

    Examples
    --------
    >>> import hdica
    >>> print(hdica.cite("HebbianICA").splitlines()[1])
    @article{rattray2002stochastic,
    """
    import xarray as xr

    if isinstance(what, xr.DataTree | xr.Dataset):
        return of_results(what)
    spec = getattr(what, "spec", what)
    if hasattr(spec, "methods") and isinstance(getattr(spec, "system", None), str):
        return of_study(spec)
    if isinstance(what, str | os.PathLike) and str(what) not in registry.systems():
        return _of_path(path_of(what, "what", "results/first.zarr"))
    return bibtex(cited(_record(what), {}))


def of_study(study: Study) -> str:
    """Entries of what a study uses."""
    methods = registry.methods_of(study.system, study.noise)
    used = {name: methods[name].about.equations for name in study.methods}
    return bibtex(cited(registry.system_named(study.system), used))


def of_results(results: xr.DataTree | xr.Dataset) -> str:
    """Entries that results hold, or that follow from what they say of themselves."""
    attrs: Mapping[Any, Any] = results.attrs
    if isinstance(attrs.get(KEPT), str):
        return str(attrs[KEPT])
    if not isinstance(attrs.get("system"), str):
        raise HdicaError(
            "results without the attribute 'system' are not allowed (results of hdica)"
        )
    groups = getattr(results, "children", {})
    methods = {name: group.attrs for name, group in groups.items()} or {attrs.get("method"): attrs}
    used = {str(name): str(about.get("equations", "")) for name, about in methods.items()}
    version = {"version": str(attrs["hdica_version"])} if "hdica_version" in attrs else {}
    return bibtex(cited(registry.system_named(attrs["system"]), used, **version))


def _of_path(path: Path) -> str:
    if path.suffix in (".yaml", ".yml"):
        from hdica.study.study import load_study

        return of_study(load_study(path))
    from hdica.store.results import open_results

    return of_results(open_results(path))


def _record(what: Any) -> System:
    """The record behind a system's record, name, class or problem."""
    if isinstance(what, System):
        return what
    known = registry.systems()
    kind = what if isinstance(what, type) else type(what)
    name = what if isinstance(what, str) else kind.__name__
    if name in known and (isinstance(what, str) or issubclass(kind, known[name].parameters)):
        return known[name]
    raise HdicaError(f"cite: a {name} is not allowed ({ALLOWED})")
