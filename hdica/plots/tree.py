"""``tree.hdica``: the same questions to a whole store, and the figures of its report."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes

    from hdica.plots.accessor import Hdica
    from hdica.report.animated import Animation
    from hdica.show.panel import Panel

__all__ = ["HdicaTree"]


class HdicaTree:
    """What hdica knows to ask of the results of a study: ``tree.hdica`` of a DataTree.

    ``tree.hdica["chain"]`` is the accessor of one method's results; ``plot`` draws any figure of
    the report on Matplotlib axes.
    """

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
        from hdica.errors import HdicaError, suggestion

        if method not in self.methods:
            near = suggestion(method, self.methods, what="there")
            raise HdicaError(f"method = {method!r} is not there ({near})")
        data = self._tree[method].to_dataset()
        return data.assign_attrs(system=self._tree.attrs.get("system", ""), method=method)

    def __getitem__(self, method: str) -> Hdica:
        from hdica.plots.accessor import Hdica

        return Hdica(self.dataset(method))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.methods)

    def mean(self) -> xr.DataTree:
        """Means over seeds with their errors, of every method that has seeds: see ``ds.hdica``."""
        import xarray as xr

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
        from hdica.analysis.findings import frame

        return frame(self._aggregate)

    @cached_property
    def _aggregate(self) -> xr.DataTree:
        from hdica.analysis.aggregate import analysed

        return analysed(self._tree)

    @cached_property
    def _panels(self) -> dict[str, Panel]:
        from hdica.analysis.registry import analyses
        from hdica.show.terms import speaking_of

        with speaking_of(str(self._tree.attrs.get("system", ""))):
            aggregate = self._aggregate
            sections = [
                (section, aggregate[one.name].to_dataset())
                for one in analyses().values()
                if one.name in aggregate
                for section in one.sections
            ]
            ordered = sorted(sections, key=lambda pair: pair[0].rank)
            panels = [panel for section, data in ordered for panel in section.draw(data)]
        return {one.key: one for one in panels if not one.in_space}

    @property
    def figures(self) -> dict[str, str]:
        """Figures of the report in reading order: name, and title."""
        return {key: panel.title.plain for key, panel in self._panels.items()}

    def plot(
        self, figure: str | None = None, *, ax: Axes | None = None, legend: bool = True
    ) -> Axes:
        """Draw a figure of the report.

        Parameters
        ----------
        figure
            One of :attr:`figures`; by default the first, which answers the study's question.
        ax, legend
            Axes to draw on (by default those of a new figure), and whether they get a legend.

        Raises
        ------
        HdicaError
            If there is no such figure.
        """
        from hdica.errors import HdicaError, suggestion
        from hdica.plots.canvas import drawn

        known: dict[str, Any] = self._panels
        name = next(iter(known), None) if figure is None else figure
        if name is None or name not in known:
            near = suggestion(figure, known, what="there")
            raise HdicaError(f"figure = {figure!r} is not there ({near})")
        return drawn(known[name], ax, legend)

    def animate(
        self,
        simulation: str | None = None,
        limit: str | None = None,
        *,
        ax: Axes | None = None,
        legend: bool = True,
        **point: Any,
    ) -> Animation:
        """Densities over time, of a simulation and a limit that the study has: see ``ds.hdica``.

        Parameters
        ----------
        simulation, limit
            Names of methods; by default the first with histograms and the first with densities.
        ax, legend
            Axes to draw on (by default those of a new figure), and whether they get a legend.
        point
            Values of swept parameters, as ``tau=0.05``, and ``n``.

        Raises
        ------
        HdicaError
            If there are no densities at two snapshots, or several points are left.
        """
        from hdica.errors import HdicaError

        dense = [name for name in self.methods if "density" in self._tree[name]]
        able = [name for name in dense if "snapshot" in self._tree[name]["density"].dims]
        runs = [name for name in able if "seed" in self._tree[name].dims]
        curves = [name for name in able if name not in runs]
        chosen = [
            named or next(iter(known), "") for named, known in ((simulation, runs), (limit, curves))
        ]
        given = [self.dataset(name) for name in chosen if name]
        if not given:
            known = ", ".join(self.methods) or "none"
            raise HdicaError(f"animate: no method keeps densities (there: {known})")
        return given[0].hdica.animate(*given[1:], ax=ax, legend=legend, **point)
