"""Figures of a result: the analysis of each, computed on it, and its panel on Matplotlib axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, TypedDict, Unpack, cast

import numpy as np
import xarray as xr

from hdica.analysis.convergence.compute import limits_of
from hdica.analysis.convergence.figure import together as trajectories_of
from hdica.analysis.escape import MEANS
from hdica.analysis.landscapes.landscapes import panel_of
from hdica.analysis.laws.densities import GROUPS, WHAT, over_time
from hdica.analysis.laws.densities import together as densities_at
from hdica.analysis.reading import at_end
from hdica.analysis.registry import at_hand
from hdica.analysis.steady.transition import OF, OVERLAP
from hdica.errors import HdicaError, suggestion
from hdica.plots.result import Result, at, bands, check, matching, read
from hdica.show.choose import MOST, Point, evenly, spread
from hdica.show.marks import map_of, wide_range
from hdica.show.panel import FRAMES, Film, Panel, film
from hdica.show.terms import speaking_of, starts
from hdica.show.words import EMPTY, method_name, place, size, titled, words
from hdica.systems.method import TRANSITION_KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plots"]

LEAST = 3  # values of each parameter from which on a map says more than curves do
MAPS = ("overlap", "success", "decaying")
ALONE = "point"  # a parameter of one value, for escape times that are not swept
ASYMPTOTIC = ("kramers", "printed")  # formulas for n -> infinity

P = ParamSpec("P")
KINDS: dict[str, Callable[[Result], bool]] = {}
"""Whether a result has what a figure shows, by the name of its method, in the order of trying."""


class Look(TypedDict, total=False):
    """What every figure takes: axes to draw on, and whether they get a legend (default: yes)."""

    ax: Axes | None
    legend: bool


def figure(
    suits: Callable[[Result], bool],
) -> Callable[[Callable[Concatenate[Plots, P], Panel]], Callable[Concatenate[Plots, P], Axes]]:
    """A method that describes a figure as one that draws it on ``ax``."""

    def drawing(
        panel: Callable[Concatenate[Plots, P], Panel],
    ) -> Callable[Concatenate[Plots, P], Axes]:
        name = panel.__name__
        KINDS[name] = suits

        @wraps(panel)
        def draw(plots: Plots, *args: P.args, **options: P.kwargs) -> Axes:
            from hdica.plots.canvas import drawn

            if name not in plots.kinds:
                able = ", ".join(plots.kinds) or "none"
                raise HdicaError(f"plot.{name}: this result has nothing of it (it has: {able})")
            look = cast(Look, {key: options.pop(key) for key in ("ax", "legend") if key in options})
            with speaking_of(plots.result.system):
                shown = panel(plots, *args, **options)
            return drawn(shown, look.get("ax"), look.get("legend", True))

        own = signature(panel)
        parameters = [p for p in own.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        for key, default in (("ax", None), ("legend", True)):
            parameters.append(Parameter(key, Parameter.KEYWORD_ONLY, default=default))
        whole = own.replace(parameters=parameters, return_annotation="Axes")
        draw.__signature__ = whole  # type: ignore[attr-defined]
        return draw

    return drawing


def in_time(result: Result) -> bool:
    """Whether the first order parameter of a result is over time."""
    return bool(result.overlap) and "time" in result.data[result.overlap].dims


class Plots:
    """Figures of a result, each on Matplotlib axes.

    Called, it draws what suits: steady states as branches, critical values as lines, escape times,
    densities, potentials, a phase diagram of two swept parameters, curves in time, or last values
    over a parameter. Each is the panel of the analysis of the report that asks the same. Every
    figure takes ``ax``, the axes to draw on (by default those of a new figure of one column, in
    :func:`hdica.plots.style`), and ``legend``, and returns the axes. A ``variable`` is by default
    the first order parameter, a parameter on an axis the first that was swept.
    """

    def __init__(self, data: xr.Dataset) -> None:
        self.result = read(data).squeezed()

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the figures that this result has, the one that is meant first."""
        return tuple(name for name, suits in KINDS.items() if suits(self.result))

    def __repr__(self) -> str:
        return f"<figures: {', '.join(self.kinds) or 'none'}>"

    def __dir__(self) -> list[str]:
        return ["kinds", *KINDS]

    def __call__(self, **options: object) -> Axes:
        """Draw the figure that suits, with the options of that figure."""
        name = next(iter(self.kinds), None)
        if name is None:
            raise HdicaError(f"plot: no figure suits this result ({self.result.content})")
        draw = getattr(self, name)
        allowed = signature(draw).parameters.keys()
        for key in options:
            if key not in allowed:
                near = suggestion(key, sorted(allowed - {"ax", "legend"}))
                raise HdicaError(f"plot: {key} is no option of {name} ({near})")
        axes: Axes = draw(**options)
        return axes

    @figure(
        lambda r: (
            "branch_point" in r.data.dims or ("fixed_point" in r.data.dims and "stable" in r.data)
        )
    )
    def branches(
        self,
        x: str | None = None,
        *,
        critical: xr.Dataset | None = None,
        runs: xr.Dataset | None = None,
        variable: str | None = None,
        **look: Unpack[Look],
    ) -> Panel:
        """Steady states over a parameter: stable ones solid, unstable ones dashed.

        With ``critical``, of :func:`hdica.critical`, branches end where they do; with ``runs``, of
        :func:`hdica.simulate` over the same parameter, it is shown where they end.
        """
        result, curves = self.result, "branch_point" in self.result.data.dims
        name, across = result.variable(variable), x or result.varies or result.axis
        if not across:
            problem = "states at one point are no branch"
            raise HdicaError(f'branches: {problem} (give over={{"...": [...]}})')
        groups = {"states": result.of_one(name)}
        settings: Point = {"x": across, "variable": name}
        settings["branches" if curves else "limits"] = "states"
        if (folds := matching(critical, "critical")) is not None:
            if not {name, "value"} <= set(folds.data):
                raise HdicaError("critical: it has no critical values (hdica.critical gives them)")
            groups["critical"], settings["critical"] = folds.of_one(name), "critical"
        if (ends := matching(runs, "runs")) is not None:
            groups[ends.method], settings["simulation"] = ends.of_one(name), ends.method
        return panel_from("steady", groups, settings, "", True)

    @figure(lambda r: "value" in r.data and ("transition" in r.data.dims or bool(r.varies)))
    def critical(self, x: str | None = None, **look: Unpack[Look]) -> Panel:
        """Critical values over another parameter, a line for each kind."""
        result, data = self.result, self.result.data
        across, overlap = x or result.axis, result.overlap or OVERLAP
        if not across:
            raise HdicaError('critical: one value is no line (give over={"...": [...]})')
        if "transition" not in data.dims:  # one that was followed
            code = TRANSITION_KINDS.index(data.attrs.get("kind", TRANSITION_KINDS[0]))
            data = data.expand_dims("transition", axis=-1)
            data = data.assign(kind=data["value"] * 0.0 + code)
        data = data if overlap in data else data.assign({overlap: data["value"] * np.nan})
        data["value"].attrs["long_name"] = OF + result.varies
        groups = {"critical": replace(result, data=data)}
        return panel_from("transition", groups, {"x": across, "critical": "critical"})

    @figure(lambda r: r.has_times or {MEANS["first"], "survival"} <= set(r.data))
    def escapes(
        self,
        limit: xr.Dataset | None = None,
        *,
        x: str | None = None,
        event: Literal["first", "last"] = "first",
        show: Literal["auto", "mean", "survival"] = "auto",
        **look: Unpack[Look],
    ) -> Panel:
        """Mean escape time over a parameter, or without one the share that has not escaped.

        ``limit`` is what ``escape_time`` gives, ``event`` the escape of the first entry or of the
        last, and ``show`` is ``"mean"``, ``"survival"``, or what suits.
        """
        kinds = {"mean": "escape_mean", "survival": "escape_survival"}
        check("event", event, MEANS)
        check("show", show, ["auto", *kinds])
        across, groups = x or self.result.axis or ALONE, {}
        for one in filter(None, (self.result, matching(limit, "limit"))):
            data = one.of_one(event).data
            data = data.expand_dims({across: [0.0]}) if across == ALONE else data
            data = data.drop_vars(ASYMPTOTIC if "n" in data.dims else (), errors="ignore")
            groups[one.method] = replace(one, data=data)
        runs = [k for k, one in groups.items() if one.has_times]
        settings = {"x": across, "event": event, "simulation": runs}
        settings["limits"] = [k for k in groups if k not in runs]
        suiting = kinds["survival" if across == ALONE else "mean"]
        panel = panel_from("escape", groups, settings, kinds.get(show, suiting))
        return replace(panel, key="escapes", title=EMPTY if across == ALONE else panel.title)

    @figure(lambda r: r.has_densities)
    def densities(
        self,
        limit: xr.Dataset | None = None,
        *,
        snapshot: float | None = None,
        **look: Unpack[Look],
    ) -> Panel:
        """Densities of the entries: histograms, with two standard errors, and limit.

        All are at one ``snapshot``, by default the last.
        """
        when = chosen_time(self.result.data, snapshot)
        data = of_groups(self.result, matching(limit, "limit"), [when])
        return densities_at(data.isel(snapshot=0), {"snapshot": when})

    @figure(lambda r: "potential" in r.data)
    def potentials(self, *, snapshot: float | None = None, **look: Unpack[Look]) -> Panel:
        """The effective potential at one time, the last by default; dots are minima."""
        result, data = self.result, self.result.data
        result.only("potential")
        if "snapshot" not in data["potential"].dims:
            data = data[["potential", "status"]].rename(time="snapshot")
        when = chosen_time(data, snapshot)
        here = computed("potential", {"limit": replace(result, data=data)}, {"limit": "limit"})
        groups = spread(here.sizes["feature"], GROUPS)
        return panel_of(here.sel(snapshot=when), {"snapshot": when}, groups, 1)

    @figure(
        lambda r: (
            in_time(r)
            and sum(r.data.sizes[d] >= LEAST for d in r.numeric) > 1
            and not r.entries & set(r.data[r.overlap].dims)
        )
    )
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
        **look: Unpack[Look],
    ) -> Panel:
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
        n
            By default the largest of the result.
        """
        check("show", show, MAPS)
        result = self.result
        if n is not None:
            check("n", n, result.data["n"].values.tolist() if "n" in result.data.dims else [])
            result = result.at_point({"n": n})
        free = sorted((d for d in result.numeric if d not in (x, y)), key=lambda d: d in starts())
        across = x or next(iter(free), "")
        up = y or next((d for d in free if d != across), "")
        if not {across, up} <= set(result.numeric) or across == up:
            raise HdicaError("phase: two swept parameters with numbers are needed")
        result.only("phase", across, up)
        name = result.variable(variable)
        if "seed" not in result.data[name].dims:
            check("show", show, MAPS[:1])
            label = size(name) + ", " + method_name(result.method)
            time = place({"snapshot": float(result.data["time"].values[-1])})
            end = abs(at_end(result.data, name)).transpose(up, across)
            return map_of(end, "phase", (time, label), "")
        settings: Point = {"simulation": result.method, "x": across, "y": up, "variable": name}
        groups, settings["success"] = {result.method: result}, success
        if (theory := matching(limit, "limit")) is not None:
            groups[theory.method], settings["limit"] = theory, theory.method
        for key, data in (("states", states), ("critical", critical)):
            if (other := matching(data, key, result.data, [across])) is not None:
                groups[key] = other
        return panel_from("phase", groups, settings, f"phase_{show}")

    @figure(in_time)
    def trajectories(
        self,
        limit: xr.Dataset | None = None,
        *,
        variable: str | None = None,
        band: Literal["runs", "mean"] = "runs",
        level: float = 0.9,
        points: int = MOST,
        **look: Unpack[Look],
    ) -> Panel:
        """Curves in time with bands over seeds, and theory with the band that it predicts.

        Parameters
        ----------
        limit
            What :func:`hdica.limit` gives; where it has ``<variable>_sd``, the predicted band of
            runs of that n, or of their mean, is drawn in grey.
        band, level
            As of :meth:`hdica.plots.accessor.Hdica.bands`.
        points
            At most so many grid points, chosen evenly.
        """
        result = self.result
        name = result.variable(variable)
        values = result.values(name, "time")
        seeds = "seed" in values.dims
        data = bands(values, level, band) if seeds else xr.Dataset({"middle": values})
        data = data.reset_coords(drop=True)
        if "n" in result.data.coords:
            data = data.assign_coords(n=result.data["n"])
        data["time"].attrs = values["time"].attrs
        about = {"variable": name, "method": result.method, "of": band, "level": level}
        grid = [str(d) for d in data["middle"].dims if d != "time"]
        theory, limits = matching(limit, "limit", data, grid), None
        if theory is not None:
            curves = limits_of(theory.data, theory.variable(name))
            limits = curves.rename({k: f"limit_{k}" for k in curves if k != "limit"})
            limits.attrs["limit_method"] = theory.method
        return trajectories_of(data.assign_attrs(about), limits, points)

    @figure(lambda r: bool(r.over(r.overlap)))
    def dependence(
        self,
        x: str | None = None,
        *,
        limit: xr.Dataset | None = None,
        variable: str | None = None,
        **look: Unpack[Look],
    ) -> Panel:
        """Last values over a parameter ``x`` or ``"n"``: means with 95 % intervals, and limit."""
        result, theory = self.result, matching(limit, "limit")
        name = result.variable(variable)
        able = result.over(name)
        if not able:
            raise HdicaError(f"dependence: {name} has one point only")
        across = x or able[0]
        check("x", across, able)
        wide = wide_range(result.data[across].values.astype(float))
        settings = {"over": across, "variable": name, "log": "x" if wide else "none"}
        groups = {result.method: result}
        if theory is not None:
            groups["limit"], both = theory, (name, f"predicted_{name}")
            predicted = next((k for k in both if k in theory.data), name)
            settings |= {"theory": "limit", "predicted": predicted}
        return panel_from("dependence", groups, {"simulation": result.method, **settings})


def computed(analysis: str, groups: Mapping[str, Result], settings: Point) -> xr.Dataset:
    """What an analysis gives for results as the groups of a store."""
    record = at_hand()[analysis]
    assert record.settings is not None
    name = next((one.system for one in groups.values() if one.system), "")
    data = {"/": xr.Dataset(attrs={"system": name})} | {k: one.data for k, one in groups.items()}
    out: xr.Dataset | None = record.compute(
        xr.DataTree.from_dict(data), record.settings(**settings)
    )
    if out is None:
        raise HdicaError(f"{analysis}: there is nothing to draw")
    return out


def panel_from(
    analysis: str, groups: Mapping[str, Result], settings: Point, key: str = "", *look: bool
) -> Panel:
    """The first panel of an analysis of results whose key begins so."""
    data = computed(analysis, groups, settings)
    every: Iterable[Panel] = at_hand()[analysis].sections[0].draw(data, *look)
    panel = next((one for one in every if one.key.startswith(key)), None)
    if panel is None:
        raise HdicaError(f"{key.replace('_', ' ')}: there is nothing to draw")
    return panel


def film_of(result: Result, limit: Result | None, point: Point) -> Film:
    """Densities over time at a point of the grid."""
    if not result.has_densities:
        raise HdicaError(f"animate: this result has no densities ({result.content})")
    own = result.at_point(point).squeezed()
    if limit is not None:
        limit = limit.at_point({k: v for k, v in point.items() if k in limit.grid})
    times = evenly(own.data["snapshot"].values.astype(float).tolist(), FRAMES)
    if len(times) < 2:
        raise HdicaError("animate: 1 snapshot is no animation (two or more are needed)")
    frames = over_time(of_groups(own, limit, times), point)
    return film("densities", titled(words(WHAT), point), frames)


def of_groups(result: Result, limit: Result | None, times: list[float]) -> xr.Dataset:
    """Densities of all groups at one grid point: of runs at the largest n, and of the limit."""
    runs = "seed" in result.data["density"].dims
    result.only("density")
    own = result.of_one("density").data
    groups = {"own": replace(result, data=at(own, {"snapshot": times}))}
    if runs and limit is not None:
        limit = limit.squeezed()
        limit.only("limit")
        data = at(limit.data, {"snapshot": times}, "limit: ")
        if data.sizes["feature"] != own.sizes["feature"]:
            raise HdicaError("limit: its groups of entries are not those of the runs")
        groups["limit"] = replace(limit, data=data.assign_coords(feature=own["feature"]))
    settings = {"simulation": "own", "limit": "limit" if "limit" in groups else ""}
    data = computed("densities", groups, settings if runs else {"limit": "own"})
    curves = limit if runs and limit is not None else result
    return data.assign_attrs(limit_method=curves.method, simulation_method=result.method)


def chosen_time(data: xr.Dataset, wanted: float | None) -> float:
    """A snapshot of a result: the last, or the one that is asked for."""
    times = data if wanted is None else at(data, {"snapshot": wanted})
    return float(times["snapshot"].values[-1])
