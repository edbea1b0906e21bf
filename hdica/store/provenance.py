"""What made results: versions, commit, time, processors; and what to cite of them, as BibTeX.

Kernels of simulations give the same bits on every processor, see
:class:`hdica.systems.method.Bits`. All else depends in its last bits on the loops that NumPy picks
by the processor's instructions, on the kernels of BLAS, and on exp and tanh of the C library.

The ``equations`` of a method say by which published algorithm it computes; what they name is looked
up among the works of its system and those of ``hdica/systems/works.bib``.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from hdica.errors import HdicaError, path_of
from hdica.systems import system as registry
from hdica.systems.system import Paper, System, works
from hdica.version import __version__

if TYPE_CHECKING:
    import xarray as xr

    from hdica.study.study import Study

PACKAGES = ("numpy", "scipy", "numba", "sympy", "xarray", "zarr", "dask", "pydantic")


@cache
def git_commit() -> str:
    """Commit of the source tree that runs, empty outside a checkout."""
    here = Path(__file__).resolve()
    try:
        # Only a tree that tracks this very file: a checkout around a site-packages is not ours.
        for command in (["ls-files", "--error-unmatch", here.name], ["rev-parse", "HEAD"]):
            done = subprocess.run(
                ["git", "-C", str(here.parent), *command],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


@cache
def package_versions() -> str:
    """Versions of Python and of the packages that numbers depend on, as JSON."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return json.dumps({"python": platform.python_version(), **versions}, sort_keys=True)


def now() -> str:
    """Time now, ISO 8601, UTC, in seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def this_processor() -> str:
    """Processor as the compiler knows it, machine, C library, loops of NumPy, kernels of BLAS."""
    import numpy as np
    from llvmlite import binding
    from threadpoolctl import threadpool_info

    library = " ".join(part for part in platform.libc_ver() if part) or platform.system()
    simd = np.show_config(mode="dicts").get("SIMD Extensions", {})
    loops = (simd.get("found") or simd.get("baseline") or [""])[-1]
    kernels = sorted({one["architecture"] for one in threadpool_info() if "architecture" in one})
    details = [platform.machine(), library, f"NumPy {loops}"]
    details += [f"BLAS {'/'.join(kernels)}"] if kernels else []
    return f"{binding.get_host_cpu_name()} ({', '.join(details)})"


def several(names: str) -> str:
    """A note where several processors, "; " between them, computed; empty of a single kind."""
    kinds = names.split("; ")
    # Earlier versions noted nothing of NumPy and BLAS: such a note says no other kind.
    kinds = [one for one in kinds if not any(k.startswith(f"{one[:-1]}, ") for k in kinds)]
    if len(kinds) < 2:
        return ""
    return (
        f"{len(kinds)} kinds of processors have computed these results: but for methods with the "
        "same bits on every kind, points of one kind may differ from those of another in their "
        "last digits"
    )


KEPT = "bibtex"  # attribute of a published store with what there is to cite of it
ALLOWED = "a system, a study, results, or the path of a study or of results"
Cited = dict[Paper, str]  # what to cite, and of each what it is cited for


def cite(what: object) -> str:
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
    spec: Any = getattr(what, "spec", what)
    if hasattr(spec, "methods") and isinstance(getattr(spec, "system", None), str):
        return of_study(spec)
    if not isinstance(what, str | os.PathLike) or str(what) in registry.systems():
        return bibtex(cited(_record(what), {}))
    path = path_of(what, "what", "results/first.zarr")
    if path.suffix in (".yaml", ".yml"):
        from hdica.study.study import load_study

        return of_study(load_study(path))
    from hdica.store.results import open_results

    return of_results(open_results(path))


def of_study(study: Study) -> str:
    """Entries of what a study uses."""
    used = {name: method.about.equations for name, method in study.methods_used().items()}
    return bibtex(cited(registry.system_named(study.system), used))


def of_results(results: xr.DataTree | xr.Dataset) -> str:
    """Entries that results hold, or that follow from what they say of themselves."""
    attrs = results.attrs
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


def _record(what: object) -> System:
    """The record behind a system's record, name, class or problem."""
    if isinstance(what, System):
        return what
    systems = registry.systems()
    kind = what if isinstance(what, type) else type(what)
    name = what if isinstance(what, str) else kind.__name__
    if name in systems and (isinstance(what, str) or issubclass(kind, systems[name].parameters)):
        return systems[name]
    raise HdicaError(f"cite: a {name} is not allowed ({ALLOWED})")


def software(version: str = __version__) -> Paper:
    """Hdica itself, as CITATION.cff has it."""
    title = "hdica: high-dimensional dynamics of online learning"
    entry = f"""@software{{hdica,
  author = {{{{the hdica developers}}}},
  title = {{{{{title}}}}},
  version = {{{version}}}
}}"""
    return Paper("hdica", title, entry)


def cited(record: System, equations: Mapping[str, str], version: str = __version__) -> Cited:
    """What there is to cite: a system's papers, works that ``equations`` of methods name, hdica."""
    cited: Cited = dict.fromkeys(record.papers, f"system {record.name}")
    for paper in (*record.works, *works().values()):
        methods = [name for name, text in equations.items() if paper.named_in(text)]
        if methods and paper not in record.papers:
            cited[paper] = f"method{'s' * (len(methods) > 1)} {', '.join(methods)}"
    return cited | {software(version): "software"}


def bibtex(what: Cited) -> str:
    """Entries of BibTeX, each below a line that says what it is cited for."""
    entries: dict[str, str] = {}
    for paper, use in what.items():
        # A key that another paper has gets a letter.
        names = [f"{paper.key}{letter}" for letter in ("", *ascii_lowercase[1:])]
        key = next(name for name in names if name not in entries)
        entries[key] = f"% {use}\n{paper.bibtex.replace(paper.key, key, 1)}\n"
    return "\n".join(entries.values())
