"""``ds.hdica``: questions to a result, and its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from hdica.plots.source import Source
    from hdica.report.animated import Animation
    from hdica.show.panel import Panel

__all__ = ["Hdica", "Plots"]


class Hdica:
    """What hdica knows to ask of its results: ``ds.hdica`` of a Dataset.

    ``mean``, ``distance``, ``bands``, ``histogram`` and ``crossings`` give data; ``plot`` draws,
    ``animate`` draws over time. A run that diverged, failed or is not computed counts nowhere,
    with none of its times.
    """

    def __init__(self, data: xr.Dataset) -> None:
        self._data = data

    @property
    def _source(self) -> Source:
        from hdica.plots.source import read

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
        from hdica.plots.numbers import mean

        return mean(self._source, variable)

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
        from hdica.plots.numbers import distance
        from hdica.plots.source import matching

        theory = matching(limit, "limit")
        assert theory is not None
        return distance(self._source, theory, variable)

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
        from hdica.plots.densities import histogram

        return histogram(self._source)

    def bands(
        self,
        level: float = 0.9,
        of: Literal["runs", "mean"] = "runs",
        variable: str | None = None,
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
        from hdica.plots.numbers import bands

        return bands(self._source, level, of, variable)

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
        from hdica.plots.numbers import crossings

        return crossings(self._source, variable, level, rising)

    @property
    def plot(self) -> Plots:
        """Figures: call it for the one that suits, or name one."""
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
        from hdica.plots.animation import animate

        return animate(self._source, limit, point, ax, legend)


class Plots:
    """Figures of a result, each on Matplotlib axes.

    Called, it draws what suits: steady states as branches, critical values as lines, escape times,
    densities, potentials, a phase diagram of two swept parameters, curves in time, or last values
    over a parameter. Every figure
    takes ``ax``, the axes to draw on (by default those of a new figure of one column, in
    :func:`hdica.plots.style`), and ``legend``, and returns the axes.
    """

    def __init__(self, data: xr.Dataset) -> None:
        self._data = data

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the figures that this result has, the one that is meant first."""
        from hdica.plots.kinds import kinds_of
        from hdica.plots.source import read

        return tuple(kind.name for kind in kinds_of(read(self._data)))

    def __repr__(self) -> str:
        return f"<figures: {', '.join(self.kinds) or 'none'}>"

    def __call__(self, *, ax: Axes | None = None, legend: bool = True, **asked: Any) -> Axes:
        """Draw the figure that suits, with the options of that figure."""
        return self._drawn("", ax, legend, asked)

    def _drawn(self, name: str, ax: Axes | None, legend: bool, asked: dict[str, Any]) -> Axes:
        from hdica.plots.canvas import drawn

        return drawn(self._panel(name, asked), ax, legend)

    def _panel(self, name: str, asked: dict[str, Any]) -> Panel:
        from hdica.plots.kinds import kind_of, named, panel_of
        from hdica.plots.source import read
        from hdica.show.terms import speaking_of

        source = read(self._data)
        with speaking_of(source.system):
            kind = named(source, name) if name else kind_of(source)
            return panel_of(kind, source, asked)

    def trajectories(
        self,
        limit: xr.Dataset | None = None,
        *,
        variable: str | None = None,
        band: Literal["runs", "mean"] = "runs",
        level: float = 0.9,
        points: int = 6,
        ax: Axes | None = None,
        legend: bool = True,
    ) -> Axes:
        """Curves in time with bands over seeds, and theory with the band that it predicts.

        Parameters
        ----------
        limit
            What :func:`hdica.limit` gives; where it has ``<variable>_sd``, the predicted band of
            runs of that n, or of their mean, is drawn in grey.
        variable
            By default the first order parameter.
        band, level
            As of :meth:`Hdica.bands`.
        points
            At most so many grid points, chosen evenly.
        ax, legend
            Axes to draw on, and whether they get a legend.
        """
        asked = {"limit": limit, "variable": variable, "band": band, "level": level}
        return self._drawn("trajectories", ax, legend, {**asked, "points": points})

    def densities(
        self,
        limit: xr.Dataset | None = None,
        *,
        snapshot: float | None = None,
        ax: Axes | None = None,
        legend: bool = True,
    ) -> Axes:
        """Densities of the entries at one time: histograms, with two standard errors, and limit.

        Parameters
        ----------
        limit
            What :func:`hdica.limit` gives at the same snapshot.
        snapshot
            Time; the last by default.
        ax, legend
            Axes to draw on, and whether they get a legend.
        """
        return self._drawn("densities", ax, legend, {"limit": limit, "snapshot": snapshot})

    def phase(
        self,
        x: str | None = None,
        y: str | None = None,
        *,
        limit: xr.Dataset | None = None,
        states: xr.Dataset | None = None,
        critical: xr.Dataset | None = None,
        show: Literal["overlap", "success", "decaying"] = "overlap",
        success: float = 0.5,
        variable: str | None = None,
        n: int | None = None,
        ax: Axes | None = None,
        legend: bool = True,
    ) -> Axes:
        """A map over two swept parameters at the last time.

        Parameters
        ----------
        x, y
            The parameters; by default the first two, a start upwards.
        limit, states, critical
            What :func:`hdica.limit`, :func:`hdica.fixed_points` and :func:`hdica.critical` give:
            states over ``x`` say where runs go, and their unstable ones and critical values are
            drawn on top.
        show
            ``"overlap"``: mean size over seeds; ``"success"``: share of runs that learn;
            ``"decaying"``: share still above ``success`` that do not.
        success
            Size above which a run may count as one that learns.
        variable
            By default the first order parameter.
        n
            By default the largest of the result.
        ax, legend
            Axes to draw on, and whether they get a legend.
        """
        asked = {"x": x, "y": y, "limit": limit, "states": states, "critical": critical}
        more = {"show": show, "success": success, "variable": variable, "n": n}
        return self._drawn("phase", ax, legend, {**asked, **more})

    def branches(
        self,
        x: str | None = None,
        *,
        critical: xr.Dataset | None = None,
        runs: xr.Dataset | None = None,
        variable: str | None = None,
        ax: Axes | None = None,
        legend: bool = True,
    ) -> Axes:
        """Steady states over a parameter: stable ones solid, unstable ones dashed.

        Parameters
        ----------
        x
            The parameter; by default the first that was swept.
        critical
            What :func:`hdica.critical` gives: branches then end where they do.
        runs
            What :func:`hdica.simulate` gives over the same parameter: where runs end.
        variable
            By default the first order parameter.
        ax, legend
            Axes to draw on, and whether they get a legend.
        """
        asked = {"x": x, "critical": critical, "runs": runs, "variable": variable}
        return self._drawn("branches", ax, legend, asked)

    def critical(
        self, x: str | None = None, *, ax: Axes | None = None, legend: bool = True
    ) -> Axes:
        """Critical values over another parameter, a line for each kind."""
        return self._drawn("critical", ax, legend, {"x": x})

    def potentials(
        self, *, snapshot: float | None = None, ax: Axes | None = None, legend: bool = True
    ) -> Axes:
        """The effective potential at one time, the last by default; dots are minima."""
        return self._drawn("potentials", ax, legend, {"snapshot": snapshot})

    def dependence(
        self,
        x: str | None = None,
        *,
        limit: xr.Dataset | None = None,
        variable: str | None = None,
        ax: Axes | None = None,
        legend: bool = True,
    ) -> Axes:
        """Last values over a parameter or n: means over seeds with two standard errors.

        Parameters
        ----------
        x
            The parameter, or ``"n"``; by default the first that was swept.
        limit
            What :func:`hdica.limit` gives over the same parameter.
        variable
            By default the first order parameter.
        ax, legend
            Axes to draw on, and whether they get a legend.
        """
        asked = {"x": x, "limit": limit, "variable": variable}
        return self._drawn("dependence", ax, legend, asked)

    def escapes(
        self,
        limit: xr.Dataset | None = None,
        *,
        x: str | None = None,
        event: Literal["first", "last"] = "first",
        show: Literal["auto", "mean", "survival"] = "auto",
        ax: Axes | None = None,
        legend: bool = True,
    ) -> Axes:
        """Mean escape time over a parameter, or without one the share that has not escaped.

        Parameters
        ----------
        limit
            Theory: what ``escape_time`` gives.
        x
            The parameter; by default the first that was swept.
        event
            The escape of the first entry or of the last.
        show
            ``"mean"``, ``"survival"``, or what suits.
        ax, legend
            Axes to draw on, and whether they get a legend.
        """
        asked = {"limit": limit, "x": x, "event": event, "show": show}
        return self._drawn("escapes", ax, legend, asked)
