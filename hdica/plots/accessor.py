"""``ds.hdica`` and ``tree.hdica``: questions to results, and their figures."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import xarray as xr

from hdica.analysis.aggregate import analysed, frame
from hdica.analysis.convergence.compute import limits_of
from hdica.analysis.laws.densities import over_bins
from hdica.errors import HdicaError, suggestion
from hdica.plots.figures import Plots, film_of
from hdica.plots.result import DISTANCE, bands, crossings, distance, matching, means, read
from hdica.show.panel import Panel
from hdica.show.terms import speaking_of
from hdica.systems.method import HISTOGRAM

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from hdica.report.animated import Animation

__all__ = ["Hdica", "HdicaTree"]


class Hdica:
    """What hdica knows to ask of its results: ``ds.hdica`` of a Dataset.

    ``mean``, ``distance``, ``bands``, ``histogram`` and ``crossings`` give data; ``plot`` draws,
    ``animate`` draws over time. A run that diverged, failed or is not computed counts nowhere,
    with none of its times. A ``variable`` is by default the first order parameter.
    """

    def __init__(self, data: xr.Dataset) -> None:
        self._data, self._result = data, read(data)

    def __repr__(self) -> str:
        figures = ", ".join(self.plot.kinds) or "none"
        return f"<hdica: mean, distance, bands, histogram, crossings, animate; plot ({figures})>"

    def __dir__(self) -> list[str]:
        return ["animate", "bands", "crossings", "distance", "histogram", "mean", "plot"]

    def mean(self, variable: str | None = None) -> xr.Dataset:
        """Means over seeds with their errors, of one variable or of every number that has seeds.

        Returns
        -------
        xarray.Dataset
            For each variable ``Q``: ``Q`` (mean), ``Q_se`` (its standard error), ``Q_sd`` (standard
            deviation over seeds, NaN for one) and ``Q_runs`` (how many are done).

        Raises
        ------
        HdicaError
            If nothing has seeds, or a mean would mislead: times of runs that ended before.
        """
        return means(self._result, variable)

    def distance(self, limit: xr.Dataset, variable: str | None = None) -> xr.Dataset:
        """How far the mean over seeds is from the limit at the times and parameters of the runs.

        Returns
        -------
        xarray.Dataset
            Over time ``difference`` (mean minus limit), ``difference_error`` (standard error of the
            mean and the limit's own error, together), ``z``, ``mean``, ``se`` and ``limit``; over
            the rest ``sup_error`` (the largest size of the difference), ``sup_error_se``,
            ``sup_time`` and ``runs``. ``sup_error`` of few runs is mostly noise:
            compare it with its error.

        Raises
        ------
        HdicaError
            If the limit is not there at every time or parameter of the runs.
        """
        name, theory = self._result.variable(variable), matching(limit, "limit")
        assert theory is not None
        curves = limits_of(theory.data, theory.variable(name))
        out = distance(self._result.values(name, "seed", "time"), curves)
        for key, text in DISTANCE.items():
            out[key].attrs = {"long_name": text.format(v=name)}
        return out.assign_attrs(self._result.about, variable=name)

    def histogram(self) -> xr.DataArray:
        """The density of the entries as its mean over the bin around each ``x``.

        ``density`` of runs is that already, ``density`` of a limit is its value at ``x``: to
        compare them, take this of both. NaN where a run diverged or is not computed.

        Raises
        ------
        HdicaError
            If the result keeps no densities.
        """
        result = self._result
        if not result.has_densities and "cdf" not in result.data:
            raise HdicaError(f"histogram: this result has no densities ({result.content})")
        density = over_bins(result.data).reset_coords(drop=True).rename("density")
        units = result.data["density"].attrs.get("units", "1")
        return density.assign_attrs(long_name=HISTOGRAM.long_name, units=units)

    def bands(
        self, level: float = 0.9, of: Literal["runs", "mean"] = "runs", variable: str | None = None
    ) -> xr.Dataset:
        """A band over seeds: ``low``, ``middle``, ``high`` and the number of ``runs``.

        Parameters
        ----------
        level
            Share, between 0 and 1.
        of
            ``"runs"``: median, and quantiles between which this share of the runs lies: of fewer
            than 2/(1 - level) runs their range;
            ``"mean"``: mean, and its interval of this level by Student's t.

        Raises
        ------
        HdicaError
            If the variable has no seeds, or an argument is not allowed.
        """
        name = self._result.variable(variable)
        out = bands(self._result.values(name, "seed"), level, of)
        about = (
            f"median and the central {level:g} of {name} over runs"
            if of == "runs"
            else f"mean of {name} with its {level:g} interval by Student's t"
        )
        attrs = {"variable": name, "level": level, "of": of, "long_name": about}
        return out.assign_attrs(self._result.about, **attrs)

    def crossings(
        self, variable: str | None, level: float, *, rising: bool | None = None
    ) -> xr.Dataset:
        """When curves first cross a level.

        Between two output times a curve is taken as straight, a falling one of positive numbers as
        straight in its logarithm. A run that crosses and comes back between them is not seen.

        If they rise to it (``rising``) or fall is chosen by where most begin, unless it is given.

        Returns
        -------
        xarray.Dataset
            ``passage``, the time of each run or curve: infinite if it never crosses, NaN where it
            is not done. With seeds also ``median`` with its exact 95 % interval ``median_low``,
            ``median_high`` and ``median_se``; ``mean`` with ``mean_se``, infinite if a run never
            crosses; ``reached`` and ``never``, numbers of runs.

        Raises
        ------
        HdicaError
            If the variable has no time.
        """
        name = self._result.variable(variable)
        out = crossings(self._result.values(name, "time"), float(level), rising)
        attrs = out["passage"].attrs
        attrs["long_name"] = f"time at which {name} {attrs['long_name']}"
        return out.assign_attrs(self._result.about, variable=name)

    @property
    def plot(self) -> Plots:
        """The figures; call it for the one that suits, or name one."""
        return Plots(self._data)

    def animate(
        self,
        limit: xr.Dataset | None = None,
        *,
        ax: Axes | None = None,
        legend: bool = True,
        **point: object,
    ) -> Animation:
        """Densities of the entries over time: histograms, with two standard errors, and limit.

        Parameters
        ----------
        limit
            What :func:`hdica.limit` gives at the same snapshots.
        ax, legend
            Axes to draw on (by default those of a new figure), and whether they get a legend.
        point
            Values of parameters, as ``tau=0.05``, where there are several; by default the largest
            n.

        Returns
        -------
        matplotlib.animation.FuncAnimation
            A frame for each of at most 60 snapshots. ``save("name.gif")`` writes a GIF,
            ``save("name.mp4")`` needs the program ffmpeg.

        Raises
        ------
        HdicaError
            If there are no densities at two snapshots, or several points are left.
        """
        from hdica.plots.canvas import animated_on

        with speaking_of(self._result.system):
            film = film_of(self._result, matching(limit, "limit"), point)
        return animated_on(film, ax, legend)


class HdicaTree:
    """Questions to the results of a study: ``tree.hdica``, ``tree.hdica["chain"]`` of a method."""

    def __init__(self, tree: xr.DataTree) -> None:
        self._tree = tree

    def __repr__(self) -> str:
        return (
            f"<hdica: {', '.join(self.methods)}; mean, distance, findings, figures, plot, animate>"
        )

    def __dir__(self) -> list[str]:
        return ["animate", "distance", "figures", "findings", "mean", "methods", "plot"]

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods."""
        return tuple(k for k, node in self._tree.children.items() if "status" in node)

    def dataset(self, method: str) -> xr.Dataset:
        """Everything that a method left, with the system in its attributes."""
        if method not in self.methods:
            near = suggestion(method, self.methods, what="there")
            raise HdicaError(f"method = {method!r} is not there ({near})")
        data = self._tree[method].to_dataset()
        return data.assign_attrs(system=self._tree.attrs.get("system", ""), method=method)

    def __getitem__(self, method: str) -> Hdica:
        return Hdica(self.dataset(method))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.methods)

    def mean(self) -> xr.DataTree:
        """Means over seeds with their errors, of every method that has seeds: see ``ds.hdica``."""
        seeded = [name for name in self.methods if "seed" in self._tree[name].dims]
        return xr.DataTree.from_dict({name: self[name].mean() for name in seeded})

    def distance(self, simulation: str, limit: str, variable: str | None = None) -> xr.Dataset:
        """How far a simulation's mean is from a limit, both named: see ``ds.hdica.distance``."""
        return self[simulation].distance(self.dataset(limit), variable)

    def findings(self) -> pd.DataFrame:
        """What the analyses of the study find, with predictions and verdicts.

        Returns
        -------
        pandas.DataFrame
            A row for each finding, in the order of the report: ``analysis``, ``quantity``,
            ``place``, ``value`` with its standard ``error``, ``predicted`` with its numerical
            ``predicted_error``, ``verdict`` (``"agrees"``, ``"differs"``, ``"undecided"`` or empty
            for what is not judged) and ``evidence``; then a column for each coordinate of the
            places, such as ``tau``, ``n`` and ``t``.
        """
        return frame(self._aggregate)

    @cached_property
    def _aggregate(self) -> xr.DataTree:
        return analysed(self._tree)

    @cached_property
    def _panels(self) -> dict[str, Panel]:
        from hdica.report.page import panels

        every = panels(self._aggregate).values()
        return {one.key: one for some in every for one in some if not one.in_space}

    @property
    def figures(self) -> dict[str, str]:
        """Titles of the report's figures by name, in reading order."""
        return {key: panel.title.plain for key, panel in self._panels.items()}

    def plot(
        self, figure: str | None = None, *, ax: Axes | None = None, legend: bool = True
    ) -> Axes:
        """Draw one of :attr:`figures` of the report, by default the first.

        ``ax`` are the axes to draw on (by default those of a new figure), ``legend`` says whether
        they get a legend; a figure that is not there is an ``HdicaError``.
        """
        from hdica.plots.canvas import drawn

        name = next(iter(self._panels), None) if figure is None else figure
        if name not in self._panels:
            near = suggestion(figure, self._panels, what="there")
            raise HdicaError(f"figure = {figure!r} is not there ({near})")
        return drawn(self._panels[name], ax, legend)

    def animate(
        self,
        simulation: str | None = None,
        limit: str | None = None,
        *,
        ax: Axes | None = None,
        legend: bool = True,
        **point: Any,
    ) -> Animation:
        """Densities over time of two methods of the study, all else as of ``ds.hdica.animate``.

        By default they are the first with histograms and the first with densities.
        """
        dense = [name for name in self.methods if read(self.dataset(name)).has_densities]
        runs = [name for name in dense if "seed" in self._tree[name].dims]
        curves = [name for name in dense if name not in runs]
        names = [simulation or next(iter(runs), ""), limit or next(iter(curves), "")]
        given = [self.dataset(name) for name in names if name]
        if not given:
            there = ", ".join(self.methods) or "none"
            raise HdicaError(f"animate: no method keeps densities (there: {there})")
        return Hdica(given[0]).animate(*given[1:], ax=ax, legend=legend, **point)
