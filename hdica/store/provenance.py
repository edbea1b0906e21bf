"""What made results: versions, commit, time, processors; and what to cite of them, as BibTeX.

The bits of most methods depend on the processor. Vectors and fused multiply-adds are written out in
the kernels of simulations, so that they give the same bits on every processor: see
:class:`hdica.systems.method.Bits`. NumPy picks its loops by the processor's instructions, BLAS its
kernels, and functions such as exp and tanh come from the C library: the last bits of all that uses
them are the same only where all three are.

The ``equations`` of a method say what it computes and by which published algorithm; what they name
is looked up among the works that its system brings and those of ``hdica/systems/works.bib``.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
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
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        versions[name] = importlib.metadata.version(name)
    return json.dumps(versions, sort_keys=True)


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
    """What it means that some processors computed, "; " between them; empty of a single kind."""
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
    methods = registry.methods_of(study.system, study.noise)
    used = {name: methods[name].about.equations for name in study.methods}
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
    """What there is to cite of some methods of a system: its papers, their works, the software.

    ``equations`` say what each method computes, by its name; ``version`` is that of hdica.
    """
    cited: Cited = dict.fromkeys(record.papers, f"system {record.name}")
    for paper in (*record.works, *works().values()):
        methods = [name for name, text in equations.items() if paper.named_in(text)]
        if methods and paper not in record.papers:
            cited[paper] = f"method{'s' * (len(methods) > 1)} {', '.join(methods)}"
    return cited | {software(version): "software"}


def bibtex(what: Cited) -> str:
    """Entries of BibTeX, each below a line that says what it is cited for."""
    keys = _distinct([paper.key for paper in what])
    entries = [
        f"% {use}\n{paper.bibtex.replace(paper.key, key, 1)}\n"
        for (paper, use), key in zip(what.items(), keys, strict=True)
    ]
    return "\n".join(entries)


def _distinct(keys: Iterable[str]) -> list[str]:
    """Keys of which no two are the same: a letter is added to the later ones."""
    distinct: list[str] = []
    for key in keys:
        names = [key, *(f"{key}{letter}" for letter in "bcdefghijklmnopqrstuvwxyz")]
        distinct.append(next(name for name in names if name not in distinct))
    return distinct
