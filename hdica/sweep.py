"""Studies in Python: planned, run and reported as on the command line."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from hdica.errors import HdicaError, extras, path_of
from hdica.ingredients.plain import plain
from hdica.inputs.plain_yaml import written_yaml
from hdica.study.study import Study as Spec
from hdica.study.study import as_html, as_text, load_study, point_count, study_from

if TYPE_CHECKING:
    import xarray as xr

    from hdica.run.plan import Plan


def _store(out: object) -> Path:
    """Path of a published store, or a sentence why it is none."""
    from hdica.store.paths import results_path

    return results_path(path_of(out, "out", "results/first.zarr"))


def _read(results: object) -> tuple[Path | xr.DataTree, Path | None]:
    """Results to report, and the store that they come from, if any."""
    import xarray as xr

    if isinstance(results, xr.DataTree):
        source = results.encoding.get("source")
        return results, None if source is None else Path(source)
    if not isinstance(results, str | os.PathLike):
        kind = type(results).__name__
        raise HdicaError(f"results: a {kind} is not allowed (what run gave, or a path)")
    path = path_of(results, "results", "results/first.zarr")
    if path.name in ("", ".."):
        raise HdicaError(f"results = {results!r} is not allowed (a path such as results/a.zarr)")
    return path, path


class Content(TypedDict, total=False):
    """The keys of a study file."""

    study: str
    title: str
    description: str
    question: str | Mapping[str, str]
    system: str
    parameters: Mapping[str, Any]
    grid: Mapping[str, Any]
    cases: Any
    sample: Mapping[str, Any] | None
    where: str
    refine: Mapping[str, Any] | None
    times: Any
    methods: Mapping[str, Any]
    save: Mapping[str, Any] | None
    noise: str
    analysis: Mapping[str, Any]
    max_points: int


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Study:
    """One sweep of one system: a grid of parameters, methods, and what its report shows.

    Parameters
    ----------
    study
        Its name: lower case letters, digits and ``_``.
    system
        The problem, for example ``"OnlineICA"``.
    times
        Output times: a list, or ``{"stop": 40, "num": 41}``.
    methods
        What to compute: ``{"chain": {"n": [100, 200], "seeds": 3}, "ode": {}}``.
    parameters
        Parameters of the system that stay fixed.
    grid
        Swept parameters in the order of the result's dimensions, each with a list or
        ``{"start", "stop", "num", "spacing"}``.
    cases, sample, where, refine
        Parameters that go together, points spread over ranges, a condition on which points to
        compute, and where to add more, as in a study file.
    title, description
        For the report; the title is the name unless it is given.
    question
        What it asks, for the head of the report: a text, or ``{"text": ..., "analysis": ...}`` with
        the analysis whose answer is the headline.
    save, noise, analysis, max_points
        As in a study file; see the manual of the configuration.

    Raises
    ------
    HdicaError
        If something is missing or not allowed: one sentence with field, value and what is allowed.

    Examples
    --------
    >>> import hdica
    >>> probe = hdica.Study(
    ...     study="probe",
    ...     system="OnlineICA",
    ...     grid={"tau": [0.02, 0.04]},
    ...     times={"stop": 4, "num": 5},
    ...     methods={"ode": {}},
    ... )
    >>> probe.run()["ode"]["Q"].sizes["tau"]
    2
    """

    spec: Spec

    def __init__(self, **content: Unpack[Content]) -> None:
        object.__setattr__(self, "spec", study_from(plain(content)))

    @classmethod
    def _of(cls, spec: Spec) -> Self:
        study = cls.__new__(cls)
        object.__setattr__(study, "spec", spec)
        return study

    @classmethod
    def from_mapping(cls, content: object) -> Self:
        """A study from plain data, the keys of a study file; refused as by the class."""
        if not isinstance(content, Mapping):
            kind = type(content).__name__
            raise HdicaError(f"study: a {kind} is not allowed (a mapping with study, system, ...)")
        return cls._of(study_from(plain(content)))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A study from a file ``<study>.yaml``, which has to exist; refused as by the class."""
        return cls._of(load_study(path))

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.study

    @property
    def title(self) -> str:
        """Its title; the name if none was given."""
        return self.spec.title

    def __repr__(self) -> str:
        methods = ", ".join(self.spec.methods)
        dims = [axis.dim for axis in self.spec.space.axes]
        swept = f" over {', '.join(dims)}" if dims else ""
        count = f"at most {point_count(self.spec)} points"
        return f"<hdica.Study {self.name}: {methods} of {self.spec.system}{swept}, {count}>"

    def __str__(self) -> str:
        return as_text(self.spec)

    def _repr_html_(self) -> str:
        return as_html(self.spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Study):
            return NotImplemented
        return self.spec.full_hash() == other.spec.full_hash()

    def __hash__(self) -> int:
        return hash(self.spec.full_hash())

    def to_mapping(self) -> dict[str, Any]:
        """Plain data from which :meth:`from_mapping` makes the same study, without defaults."""
        return dict(self.spec.model_dump(mode="json", exclude_defaults=True))

    def to_yaml(self) -> str:
        """Text of a study file; :meth:`load` wants it in a file with the name of the study."""
        return written_yaml(self.to_mapping())

    @extras()
    def plan(self, out: str | Path | None = None) -> Plan:
        """What it asks for, before anything runs; nothing is written.

        ``out`` is the path of the published store, if some of it may be computed already; if it
        cannot be read, that is an ``HdicaError``. The plan has ``points``, ``pending``, ``seconds``
        (of the pending ones, on one core) and ``bytes`` (of all, uncompressed), and the same of
        each method and n in ``segments``; ``wait(workers)`` are the seconds that a run takes in all
        once functions are compiled. It prints as a table.
        """
        from hdica.run.plan import plan

        return plan(self.spec, None if out is None else _store(out))

    @extras()
    def run(
        self,
        out: str | Path | None = None,
        workers: int = 1,
        *,
        cluster: Mapping[str, Any] | str | None = None,
        retry_failed: bool = False,
        replace: bool = False,
        progress: bool = False,
    ) -> xr.DataTree:
        """Compute what is pending, publish it and open the results.

        The next call goes on where one was stopped; the bits do not depend on ``workers``.

        Parameters
        ----------
        out
            Path of the published store, ``results/<study>.zarr``; None for results in memory,
            of which nothing is left when they are no longer needed.
        workers
            Processes. A script that asks for several does so below ``if __name__ ==
            "__main__":``, since each of them loads it.
        cluster
            Where Dask runs, as in the section ``cluster`` of the configuration.
        retry_failed, replace
            Compute failed points again; put it in the place of another study's results.
        progress
            Whether to show a bar on a terminal, and sparse lines elsewhere.

        Returns
        -------
        xarray.DataTree
            One group a method, as :func:`hdica.open_results` gives it.

        Warns
        -----
        UserWarning
            If points diverged, failed or are still pending; ``status`` and ``reason`` say which
            and why.

        Raises
        ------
        HdicaError
            If a setting is not allowed, or the results of another study are there.
        """
        from hdica.run.compute import compute
        from hdica.run.console import heeding
        from hdica.run.settings import cluster_settings
        from hdica.store.results import loaded, open_results, passing_folder

        given = dict(cluster) if isinstance(cluster, Mapping) else cluster
        settings = cluster_settings(given, workers)
        with heeding(), ExitStack() as passing:
            folder = None if out is not None else passing.enter_context(passing_folder())
            target = _store(out if folder is None else folder / f"{self.name}.zarr")
            done = compute(
                self.spec,
                target,
                settings,
                progress=None if progress else False,
                retry_failed=retry_failed,
                replace=replace,
                tell=warnings.warn,
            )
            tree = open_results(target) if folder is None else loaded(target)
        where = "the results" if folder is not None else str(target)
        diverged = "" if done.published is None else done.published.diverged
        for sentence in (diverged, done.missing(where, "retry_failed=True")):
            if sentence:
                warnings.warn(sentence, stacklevel=2)
        return tree

    @extras()
    def report(
        self,
        results: str | Path | xr.DataTree,
        out: str | Path | None = None,
        *,
        one_file: bool = False,
        animate: bool = False,
    ) -> Path:
        """Write the page of its results, with figures for print and the aggregated data; its path.

        It shows what this study's analysis asks for, of the points that are computed; nothing is
        computed here. Beside it, in ``index.html``, is the gallery of all reports.

        Parameters
        ----------
        results
            What :meth:`run` gave, or the path of a store.
        out
            Folder for ``report.html``, ``aggregate.nc`` and ``figures/``; by default beside the
            store, and ``results/<study>`` for results in memory.
        one_file, animate
            Whether the page is written once more with everything in it, as ``report-alone.html``,
            and densities over time as animations among the figures.

        Raises
        ------
        HdicaError
            If the results are not those of this study.
        """
        from hdica.report.write import folder_of, write

        store, source = _read(results)
        named = Path("results") / f"{self.name}.zarr" if source is None else source
        folder = folder_of(named) if out is None else path_of(out, "out", "results/first")
        beside = named if out is None else source
        options = {"one_file": one_file, "animate": animate}
        return write(store, folder, self.spec, **options, store=beside)[0]
