"""``ds.hdica``: questions to a result, and its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from hdica.plots.figures import Plots
    from hdica.plots.result import Result
    from hdica.report.animated import Animation

__all__ = ["Hdica"]


class Hdica:
    """What hdica knows to ask of its results: ``ds.hdica`` of a Dataset.

    ``mean``, ``distance``, ``bands``, ``histogram`` and ``crossings`` give data; ``plot`` draws,
    ``animate`` draws over time. A run that diverged, failed or is not computed counts nowhere,
    with none of its times.
    """

    def __init__(self, data: xr.Dataset) -> None:
        self._data = data

    @property
    def _result(self) -> Result:
        from hdica.plots.result import read

        return read(self._data)

    def __repr__(self) -> str:
        figures = ", ".join(self.plot.kinds) or "none"
        return f"<hdica: mean, distance, bands, histogram, crossings, animate; plot ({figures})>"

    def __dir__(self) -> list[str]:
        return ["animate", "bands", "crossings", "distance", "histogram", "mean", "plot"]

    def mean(self, variable: str | None = None) -> xr.Dataset:
        """Means over seeds with their errors.

        Parameters
        ----------
        variable
            One of the variables; by default every number that has seeds.

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
        from hdica.plots.result import means

        return means(self._result, variable)

    def distance(self, limit: xr.Dataset, variable: str | None = None) -> xr.Dataset:
        """How far the mean over seeds is from the limit.

        Parameters
        ----------
        limit
            What :func:`hdica.limit` gives at the times and parameters of the runs.
        variable
            By default the first order parameter.

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
        from hdica.analysis.convergence.compute import DISTANCE, distance, limits_of
        from hdica.plots.result import matching

        result, theory = self._result, matching(limit, "limit")
        assert theory is not None
        name = result.variable(variable)
        limits = limits_of(theory.data, theory.variable(name))
        out = distance(result.values(name, "seed", "time"), limits)
        for key, text in DISTANCE.items():
            out[key].attrs = {"long_name": text.format(v=name)}
        return out.assign_attrs(result.about, variable=name)

    def histogram(self) -> xr.DataArray:
        """The density of the entries as its mean over the bin around each ``x``.

        ``density`` of runs is that already, ``density`` of a limit is its value at ``x``: to
        compare them, take this of both.

        Returns
        -------
        xarray.DataArray
            As ``density``; NaN where a run diverged or is not computed.

        Raises
        ------
        HdicaError
            If the result keeps no densities.
        """
        from hdica.analysis.laws.densities import over_bins
        from hdica.errors import HdicaError
        from hdica.systems.method import HISTOGRAM

        result = self._result
        if not result.has_densities and "cdf" not in result.data:
            held = result.held
            raise HdicaError(f"histogram: this result has no densities (it holds {held})")
        density = over_bins(result.data).reset_coords(drop=True).rename("density")
        units = result.data["density"].attrs.get("units", "1")
        return density.assign_attrs(long_name=HISTOGRAM.long_name, units=units)

    def bands(
        self, level: float = 0.9, of: Literal["runs", "mean"] = "runs", variable: str | None = None
    ) -> xr.Dataset:
        """A band over seeds: of the runs, or of their mean.

        Parameters
        ----------
        level
            Share, between 0 and 1.
        of
            ``"runs"``: median, and quantiles between which this share of the runs lies: of fewer
            than 2/(1 - level) runs their range;
            ``"mean"``: mean, and its interval of this level by Student's t.
        variable
            By default the first order parameter.

        Returns
        -------
        xarray.Dataset
            ``low``, ``middle``, ``high`` and ``runs``; attributes say level and kind.

        Raises
        ------
        HdicaError
            If the variable has no seeds, or an argument is not allowed.
        """
        from hdica.analysis.ensemble.passages import bands

        result = self._result
        name = result.variable(variable)
        out = bands(result.values(name, "seed"), level, of)
        about = (
            f"median and the central {level:g} of {name} over runs"
            if of == "runs"
            else f"mean of {name} with its {level:g} interval by Student's t"
        )
        return out.assign_attrs(result.about, variable=name, level=level, of=of, long_name=about)

    def crossings(
        self, variable: str | None, level: float, *, rising: bool | None = None
    ) -> xr.Dataset:
        """When curves first cross a level.

        Between two output times a curve is taken as straight, a falling one of positive numbers as
        straight in its logarithm. A run that crosses and comes back between them is not seen.

        Parameters
        ----------
        variable
            Its name; None for the first order parameter.
        level
            The level.
        rising
            Whether curves rise to it or fall to it; None: rise if most of them begin below.

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
        from hdica.analysis.ensemble.passages import crossings

        result = self._result
        name = result.variable(variable)
        out = crossings(result.values(name, "time"), float(level), rising)
        text = f"time at which {name} {out['passage'].attrs['long_name']}"
        out["passage"].attrs["long_name"] = text
        return out.assign_attrs(result.about, variable=name)

    @property
    def plot(self) -> Plots:
        """Figures: call it for the one that suits, or name one."""
        from hdica.plots.figures import Plots

        return Plots(self._data)

    def animate(
        self,
        limit: xr.Dataset | None = None,
        *,
        ax: Axes | None = None,
        legend: bool = True,
        **point: Any,
    ) -> Animation:
        """Densities of the entries over time: histograms, with two standard errors, and limit.

        Parameters
        ----------
        limit
            What :func:`hdica.limit` gives at the same snapshots.
        ax, legend
            Axes to draw on (by default those of a new figure), and whether they get a legend.
        point
            Values of parameters, as ``tau=0.05``, where there are several; of several n the
            largest unless it is given.

        Returns
        -------
        matplotlib.animation.FuncAnimation
            A frame for every snapshot, of more than 60 for 60, evenly; all have the same axes.
            ``save("name.gif")`` writes a GIF, ``save("name.mp4")`` needs the program ffmpeg.

        Raises
        ------
        HdicaError
            If there are no densities at two snapshots, or several points are left.
        """
        from hdica.plots.canvas import animated_on
        from hdica.plots.figures import film_of
        from hdica.plots.result import matching
        from hdica.show.terms import speaking_of

        result = self._result
        with speaking_of(result.system):
            film = film_of(result, matching(limit, "limit"), point)
        return animated_on(film, ax, legend)
