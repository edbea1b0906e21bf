"""Where learning stops: steady overlap and success over two swept parameters, with the limit."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis import reading
from hdica.analysis.phase import Phase, refined
from hdica.analysis.settings import Suiting
from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING
from hdica.show.terms import entries, starts
from hdica.status import DIVERGED, DONE
from hdica.systems.method import FOLD, ZERO, Limit, Method, Role, varied
from hdica.systems.space import Space
from hdica.systems.system import System
from hdica.verdict.cells import Array
from hdica.verdict.odds import wilson
from hdica.verdict.resample import interval, jackknife_error, resampled_shares, shares_noise
from hdica.verdict.trend import falling

LONG_NAMES = {
    "overlap": "mean of |{v}| over seeds at the last time",
    "successes": "seeds that go to an informative state",
    "decaying": "seeds with |{v}| above the threshold at the last time that do not",
    "by_limit": "1 where the limit's steady states tell where runs go, 0 where their trend does",
    "trials": "seeds that are done",
    "diverged": "seeds that diverged",
    "separated": "seeds that have come close to the state to which they go",
    "time_needed": "time at which most seeds would have, at their present pace",
    "probability": "share of seeds that succeed, where most have separated",
    "probability_low": "lower end of the 95 % Wilson interval",
    "probability_high": "upper end of the 95 % Wilson interval",
    "limit": "limit of |{v}| at the last time",
    "limit_success": "1 where the limit goes to an informative state",
    "agreement": "1 where the majority of seeds goes where the limit goes",
    "agreement_share": "share of cells whose majority goes where the limit goes",
    "agreement_share_low": "lower end of its 95 % interval over seeds, which the cells share",
    "agreement_share_high": "upper end of its 95 % interval over seeds, which the cells share",
    "boundary": "smallest unstable informative fixed point",
    "threshold": "start with even odds (Spearman-Karber)",
    "threshold_se": "standard error of the start with even odds",
    "threshold_spacing": "part of that error which the spacing of the starts leaves",
    "critical_value": "critical value",
    "critical_overlap": "overlap at the critical value",
    "odds": "predicted probability that a run succeeds",
    "odds_p": "p-value of the share of runs beside the predicted probability",
    "excess": "share of successes less its prediction, over all cells in which noise decides",
    "excess_se": "standard error of the excess, over seeds where cells share their noise",
    "rise": "excess where success is likely less that where it is not",
    "rise_se": "standard error of the rise",
    "odds_chance": "chance that this p-value is below 0.05 if the prediction is right",
    "nearest": "number, along x and then y, of the nearest cell that is computed",
}

CELL_LEVEL = 0.05
"""Of the share of runs in one cell beside its predicted probability."""
_ALIKE = 1e-7
SURE = 0.05
"""Below this probability, or as near to 1, noise does not decide."""


def phase(tree: xr.DataTree, settings: Phase) -> xr.Dataset:
    """Phase diagram of a study over two of its parameters.

    A run succeeds if it goes to an informative state, as :func:`fate` says; being large at the last
    time is not enough.

    Over ``x``, ``y``, further swept parameters and ``n``: overlap at the last time, success counts
    and shares with 95 % Wilson intervals, how many runs are still decaying, the limit's end and
    whether the majority of seeds goes where it goes; over ``x``: the boundary, and the start with
    even odds. Where points share their noise, errors of what is put together from several cells are
    over whole seeds.
    """
    x, y, variable = settings.x, settings.y, settings.variable
    threshold, limit = settings.success, settings.limit
    data = reading.group(tree, settings.simulation)
    for axis in (x, y):
        reading.check_swept(data, axis, "analysis.phase")
    tree = with_theory(tree, x, settings.simulation)
    states = states_of(tree, variable, limit)
    values = reading.finished(data, variable)
    fates = fate(values, threshold, states)
    final = values.isel(time=-1, drop=True)
    last = float(data["time"].values[-1])
    out = _outcomes(final, data["status"], fates, last)
    shared = fates.assign(finished=final.notnull()) if shares_noise(data) else None
    absent, known = refined.left_out(data), out["probability"]
    if (nearest := refined.nearest(tree, data, x, y)) is not None:
        out["nearest"] = nearest
        known = known.where(~absent, refined.plateaus(out, x, y))
    out = out.merge(_threshold(out, known, absent, y, shared))
    if limit:
        curve = reading.finished(reading.group(tree, limit), variable)
        out = out.merge(_against_limit(out, curve, fate(curve, threshold, states), shared))
    out = out.merge(theory(tree, variable, x))
    if settings.odds:
        predicted = odds(reading.group(tree, settings.odds), out)
        out = out.merge(predicted).merge(_excess(predicted["odds"], out, shared))
    out.attrs = {"variable": variable, "x": x, "y": y, "success": threshold}
    out.attrs |= {"noise": reading.noise_of([data]), "time": last}
    # Where a density and not the overlap alone evolves, an unstable state divides no starts.
    out.attrs["divides"] = int(states is None or states.attrs["divides"])
    own = [d for d in ("n", "transition") if d in out.dims]
    return reading.described(out.transpose(x, y, ..., *own), LONG_NAMES, variable)


def sides(tree: xr.DataTree, settings: Phase) -> xr.DataArray:
    """Whether few, half and nearly all runs succeed in each cell."""
    data = reading.group(tree, settings.simulation)
    tree = with_theory(tree, settings.x, settings.simulation)
    states = states_of(tree, settings.variable, settings.limit)
    fates = fate(reading.finished(data, settings.variable), settings.success, states)
    return refined.contours(fates["success"], data["status"] == DONE, data["status"])


def _outcomes(
    final: xr.DataArray, status: xr.DataArray, fates: xr.Dataset, last: float
) -> xr.Dataset:
    trials = final.notnull().sum("seed")
    successes = fates["success"].sum("seed")
    separated = (fates["separated"] & final.notnull()).sum("seed")
    counts = (2 * separated >= trials) & (trials > 0)
    left = fates["left"].where(final.notnull()).median("seed").clip(max=1.0)
    pace = -np.log(left.where(~counts & (left < 1)))
    out = {"overlap": abs(final).mean("seed"), "successes": successes}
    out |= {"decaying": fates["decaying"].sum("seed"), "by_limit": fates["by_limit"]}
    lost = (status == DIVERGED).sum("seed")
    out |= {"trials": trials, "diverged": lost, "separated": separated}
    out["time_needed"] = last * np.log(2) / pace
    return xr.Dataset(out).assign(shares(successes, trials, counts))


def shares(
    successes: xr.DataArray, trials: xr.DataArray, counts: xr.DataArray
) -> dict[str, xr.DataArray]:
    """The share of successes where it counts, with its 95 % Wilson interval."""
    low, high = xr.apply_ufunc(wilson, successes, trials, output_core_dims=[[], []], vectorize=True)
    each = {"": (successes / trials), "_low": low, "_high": high}
    return {f"probability{end}": values.where(counts) for end, values in each.items()}


def _threshold(
    out: xr.Dataset, known: xr.DataArray, absent: xr.DataArray, y: str, runs: xr.Dataset | None
) -> xr.Dataset:
    """Start with even odds along ``y``, by Spearman and Karber.

    The success share, read as a distribution function of a random threshold, has this mean; the
    estimate needs no model of the share's shape. NaN where the share does not go from 0 to 1, or
    where ``y`` is not a number. Its error comes from the shares of independent cells, or from
    whole seeds where cells share them: ``runs`` are ``success`` and ``finished`` of these.
    ``known`` are the shares, those of cells that are ``absent`` by their neighbours.
    """
    known = known.sortby(y)
    if known.sizes[y] < 3 or known[y].dtype.kind not in "fiu":
        nothing = known.isel({y: 0}, drop=True) * np.nan
        names = ("threshold", "threshold_se", "threshold_spacing")
        return xr.Dataset(dict.fromkeys(names, nothing))
    # Where runs have not separated a share is somewhere between those of both neighbours.
    share = known.interpolate_na(y, use_coordinate=True)
    at = share[y].astype(float)
    # Where within its cell a rise lies is unknown, evenly over the cell's width.
    cell = xr.apply_ufunc(_widths, known, at, input_core_dims=[[y], [y]], vectorize=True)
    if runs is None:
        # d mean / d share_i = (y_{i-1} - y_{i+1}) / 2 at every inner i.
        lever = xr.apply_ufunc(
            _levers, known, at, input_core_dims=[[y], [y]], output_core_dims=[[y]], vectorize=True
        )
        trials = out["trials"].sortby(y)
        variance = (share * (1 - share) / (trials - 1).clip(min=1) * lever**2).sum(y)
        # A single run does not tell how much runs scatter.
        variance = variance.where(~((trials == 1) & (lever > 0)).any(y))
    else:
        without = _spearman_karber(_shares_without_one(runs, known, absent, y), y)
        seeds = runs["finished"].any(y).sum("seed")
        variance = (jackknife_error(without, seeds) ** 2).where(seeds > 1)
    crosses = (
        (share.isel({y: 0}) <= refined.EDGE)
        & (share.isel({y: -1}) >= 1 - refined.EDGE)
        & share.notnull().all(y)
    )
    crosses &= ((out["trials"] > 0) | absent).all(y)
    result = {"threshold": _spearman_karber(share, y), "threshold_se": (variance + cell) ** 0.5}
    result["threshold_spacing"] = cell**0.5
    return xr.Dataset({name: values.where(crosses) for name, values in result.items()})


def _shares_without_one(
    runs: xr.Dataset, known: xr.DataArray, absent: xr.DataArray, y: str
) -> xr.DataArray:
    """Share of successes of all seeds but one, over ``seed`` and sorted along ``y``."""
    done = runs["finished"]
    success, trials = runs["success"] & done, done.sum("seed") - done
    share = ((success.sum("seed") - success) / trials).where(trials > 0).sortby(y)
    share = share.where(~absent, known)
    between = share.where(known.notnull()).interpolate_na(y, use_coordinate=True)
    return share.where(known.notnull(), between).transpose(*done.dims)


def _levers(share: np.ndarray, at: np.ndarray) -> np.ndarray:
    """By how much a threshold moves with each known share."""
    known, lever = np.flatnonzero(np.isfinite(share)), np.zeros(share.size)
    lever[known[1:-1]] = (at[known[2:]] - at[known[:-2]]) / 2
    return lever


def _widths(share: np.ndarray, at: np.ndarray) -> float:
    """Variance of a threshold that lies anywhere within its cell, of known shares alone."""
    known = np.isfinite(share)
    return float(((np.diff(share[known]) * np.diff(at[known])) ** 2).sum() / 12)


def _spearman_karber(share: xr.DataArray, y: str) -> xr.DataArray:
    """Mean of the distribution function that a share sorted along ``y`` is."""
    at = share[y].astype(float)
    parts = (share.shift({y: -1}) - share) * (at + at.shift({y: -1})) / 2
    return parts.isel({y: slice(-1)}).sum(y, skipna=False)


def _against_limit(
    out: xr.Dataset, curve: xr.DataArray, goes: xr.Dataset, runs: xr.Dataset | None
) -> xr.Dataset:
    """The limit's end, and whether most seeds go where it goes; an even split is half right."""
    end = abs(curve.isel(time=-1, drop=True))
    known = end.notnull() & out["probability"].notnull() & goes["separated"]
    side = goes["success"].astype(float)
    agreement = _majority(out["probability"], side).where(known)
    cells = [d for d in agreement.dims if d != "n"]
    result = {
        "limit": end,
        "limit_success": side.where(end.notnull()),
        "agreement": agreement,
        "agreement_share": agreement.mean(cells),
    }
    if runs is not None:
        drawn = [
            _majority(share, side).where(share.notnull() & known).mean(cells).values
            for share in resampled_shares(runs["success"], runs["finished"])
        ]
        ends = zip(("low", "high"), interval(np.concatenate(drawn)), strict=True)
        result |= {
            f"agreement_share_{k}": result["agreement_share"].copy(data=value) for k, value in ends
        }
    return xr.Dataset(result)


def _majority(share: xr.DataArray, side: xr.DataArray) -> xr.DataArray:
    """1 where more than half of the seeds are on the limit's side, 0.5 where just half are."""
    right = xr.where(side > 0, share, 1 - share)
    return xr.where(right > 0.5, 1.0, xr.where(right == 0.5, 0.5, 0.0))


def odds(theory: xr.Dataset, out: xr.Dataset) -> xr.Dataset:
    """The prediction in the cells of a diagram, and how the shares of runs lie beside it."""
    share = out["probability"]
    known = reading.finished(theory, "predicted").reindex_like(share)
    known = known.broadcast_like(share).transpose(*share.dims)
    p, chance = np.full(share.shape, np.nan), np.full(share.shape, np.nan)
    trials = out["trials"].transpose(*share.dims).values
    hits = out["successes"].transpose(*share.dims).values
    for many in np.unique(trials[trials > 0]):
        cells = (trials == many) & np.isfinite(known.values) & np.isfinite(share.values)
        p[cells], chance[cells] = _exact_p(hits[cells], int(many), known.values[cells])
    result = {"odds_p": share.copy(data=p), "odds_chance": share.copy(data=chance)}
    return xr.Dataset({"odds": known, **result})


def _excess(p0: xr.DataArray, out: xr.Dataset, runs: xr.Dataset | None) -> xr.Dataset:
    """Successes beyond their prediction, in all cells together, and where they are likely.

    Over ``n`` if there is one. Errors are binomial, or over whole seeds where cells share them:
    ``runs`` are ``success`` and ``finished`` of these.
    """
    p0 = p0.where((p0 > SURE) & (p0 < 1 - SURE) & out["probability"].notnull())
    cells = [d for d in p0.dims if d != "n"]
    known = out["trials"].where(p0.notnull(), 0)
    result: dict[str, xr.DataArray] = {}
    sides = [known.where(p0 > 0.5, 0), known.where(p0 <= 0.5, 0)]
    shares = [side / side.sum(cells).clip(min=1) for side in sides]  # of all runs on a side
    both = known.sum(cells).clip(min=1)
    weights = {
        "excess": known / both,
        "rise": (shares[0] - shares[1]).where(
            (sides[0].sum(cells) > 0) & (sides[1].sum(cells) > 0)
        ),
    }
    gone = out["successes"] - out["trials"] * p0
    for name, weight in weights.items():
        each = weight / out["trials"].clip(min=1)
        result[name] = (each * gone).sum(cells).where(weight.notnull().any(cells))
        if runs is None:
            variance = (each**2 * out["trials"] * p0 * (1 - p0)).sum(cells)
        else:
            seeds = (each * (runs["success"] - p0).where(runs["finished"], 0.0)).sum(cells)
            count = seeds.sizes["seed"]
            variance = count * seeds.var("seed", ddof=1) if count > 1 else result[name] * np.nan
        result[f"{name}_se"] = (variance**0.5).where(variance > 0)
    return xr.Dataset(result)


def _exact_p(hits: Array, many: int, p0: Array) -> tuple[Array, Array]:
    """Exact two-sided p-values of shares, and the chance that such a one is below the level."""
    mass = stats.binom.pmf(np.arange(many + 1), many, p0[:, None])
    # As improbable or more: the sum of all that are, for each number of successes.
    less = mass[:, None, :] <= mass[:, :, None] * (1 + _ALIKE)
    every = np.minimum(np.sum(np.where(less, mass[:, None, :], 0.0), axis=2), 1.0)
    chance = np.sum(np.where(every < CELL_LEVEL, mass, 0.0), axis=1)
    return every[np.arange(hits.size), hits.astype(int)], chance


def suits(tree: xr.DataTree) -> Suiting:
    """A control parameter against the start, or another parameter, where both are swept."""
    simulation = reading.offered(tree, Role.SIMULATION, "time")
    if not simulation:
        return None
    swept = reading.numeric(tree, simulation)
    x = reading.control(tree, swept)
    others = sorted((d for d in swept if d != x), key=lambda d: d not in starts())
    if not x or not others:
        return None
    limit = reading.offered(tree, Role.LIMIT, "time")
    return {"simulation": simulation, "x": x, "y": others[0], "limit": limit}


MOST_VALUES = 64
"""Values of x at which steady states are found here."""
SECONDS = 30.0
"""What a method may take by its own model of cost, over all values of x, to be run here."""
AT = "fixed_point"


def with_theory(tree: xr.DataTree, x: str, simulation: str) -> xr.DataTree:
    """The store with transitions along x and steady states over x, computed here if it lacks them.

    They depend on x alone: nothing else that is swept may change them. What cannot be computed
    stays away, and so does what would take more than :data:`SECONDS` or is wanted at more than
    :data:`MOST` values of x: a study that names the method has it at any cost. Nothing is added to
    results that name no study, whose fixed parameters are unknown.
    """
    out, record = tree.copy(), reading.system_of(tree)
    if not tree.attrs.get("study_yaml") or record is None:
        return out
    if x not in [one.name for one in record.controls]:
        return out
    refine = reading.written(tree).get("refine")
    few = tree[simulation].sizes[x] <= MOST_VALUES * 2 ** (refine["levels"] if refine else 0)
    lacking = [Role.TRANSITIONS] if reading.transitions_in(tree, x) is None else []
    lacking += [Role.STEADY_STATES] if reading.steady_states(tree) is None and few else []
    if not lacking:
        return out
    try:
        points = reading.space(tree, record)
    except HdicaError:  # the diagram is drawn all the same
        return out
    others = {name for axis in points.axes if axis.dim != x for name in axis.fields}
    for role in lacking:
        along = x if role is Role.STEADY_STATES else ""
        for method in record.with_role(role):
            if (
                method.name not in out
                and (along or varied(method) == x)
                and others <= method.scope.ignores
            ):
                with suppress(HdicaError):  # here, too
                    out[method.name] = xr.DataTree(_computed(record, points, method, along))
                break
    return out


def _computed(record: System, points: Space, method: Method, x: str) -> xr.Dataset:
    """What a method gives at every value of x, or once without x, as a store has it."""
    from hdica.systems.labelled import dataset

    never = np.empty(0)
    axes = [axis for axis in points.axes if axis.dim == x]
    chosen = [{axis.path: value} for axis in axes for value in axis.values] or [{}]
    needed = sum(method.cost.seconds(points.at(one), None, 0.0) for one in chosen)
    if needed > SECONDS:
        raise HdicaError(f"{method.name} would take about {needed:.0f} s (name it in the study)")
    results = [method.run(points.at(one), never, None, None, NOTHING) for one in chosen]
    lead = x if axes else ""
    data = dataset(record, method, never, NOTHING, points.at().dims(), results, lead)
    data = data.assign_coords({axis.dim: list(axis.values) for axis in axes})
    status = np.full([axis.size for axis in axes], DONE, dtype=np.uint8)
    return data.assign(status=([x] * len(axes), status))


def theory(tree: xr.DataTree, variable: str, x: str) -> xr.Dataset:
    """Boundary from the unstable fixed points, and the critical values of ``x``."""
    out: dict[str, xr.DataArray] = {}
    states, transitions = reading.steady_states(tree), reading.transitions_in(tree, x)
    if states is not None and x in tree[states].dims:
        fixed = reading.group(tree, states)
        at = fixed[variable]
        unstable = (fixed["status"] == DONE) & (at > ZERO) & (fixed["stable"] == 0)
        out["boundary"] = at.where(unstable).min("fixed_point")
    if transitions is not None:
        folds = reading.group(tree, transitions)
        folds = folds.where(folds["kind"] == FOLD)  # where informative states appear or vanish
        pairs = {"critical_value": "value", "critical_overlap": variable}
        out |= {name: folds[own] for name, own in pairs.items() if own in folds}
    return xr.Dataset(out)


def states_of(tree: xr.DataTree, variable: str, limit: str | None) -> xr.Dataset | None:
    """Steady states of the limit in a store, None without any of this variable.

    Over ``fixed_point`` and the swept parameters on which they depend: ``at``, the variable there,
    NaN where there are fewer; ``stable``; ``informative``: stable and away from 0; and without
    ``fixed_point`` ``known``: the point is done. The attribute ``divides`` says whether the
    variable alone evolves, so that its unstable states divide the runs: if the limit that the study
    names is a closed equation, and without a name unless the states differ in more than the
    variable.
    """
    name = reading.steady_states(tree)
    if name is None:
        return None
    data = reading.group(tree, name)
    if variable not in data or AT not in data[variable].dims:
        return None
    at = reading.finished(data, variable)
    stable = data["stable"].where(data["status"] == DONE)
    paired = any(d in at.dims for d in entries())
    method = reading.method_of(tree, limit)
    closed = isinstance(method, Limit) and method.closed
    others = [data[k] for k in reading.overlaps(tree) if k in data and k != variable]
    # Where the overlap closes the limit, all states agree in the other parameters.
    spreads = ((other.max(AT) - other.min(AT)).fillna(0.0) for other in others)
    alone = limit is None and all(bool((spread < ZERO).all()) for spread in spreads)
    size = abs(at)
    away = size.max([d for d in size.dims if d in entries()]) > ZERO
    states = {"at": at, "stable": stable, "informative": (stable == 1) & away}
    divides = not paired and (closed or alone)
    return xr.Dataset(states | {"known": stable.notnull().any(AT)}, attrs={"divides": divides})


def fate(values: xr.DataArray, threshold: float, states: xr.Dataset | None) -> xr.Dataset:
    """Where finished runs over ``time``, and ``seed`` if there are several, go.

    A run succeeds if its last value lies in the basin of a stable informative state of the limit:
    on the same side of every unstable state. Where no such state exists nothing succeeds, however
    large a run still is. Where states exist that do not divide the runs, because more than this
    variable evolves, and where no state is known, it succeeds if its size is above the threshold
    and not falling (:func:`hdica.verdict.trend.falling`). A run within a distance of
    order n^-1/2 of an unstable state may still cross it; as many do either way, so that even odds
    stay there.

    ``success``, False where a run is not finished; ``decaying``: it is above the threshold and does
    not succeed; ``separated``: it has come close to the state of its basin, so that its last value
    tells more than its start does; ``left``: the share of the way that remains; and over the cells
    ``by_limit``: 1 where the limit's steady states decide, 0 where the trend does.
    """
    final = values.isel(time=-1, drop=True)
    above = abs(final) > threshold
    success = above & ~falling(values, above, threshold)
    by_limit = xr.zeros_like(above.any("seed") if "seed" in above.dims else above, dtype=float)
    if states is not None:
        possible = states["informative"].any(AT)
        reached, decided = success & possible, states["known"] & ~possible
        if states.attrs["divides"]:  # between the same unstable states as a stable informative one
            basin = _same_side(_sizes(final, states), states)
            reached, decided = (basin & states["informative"]).any(AT), states["known"]
        success = xr.where(states["known"], reached, success).transpose(*above.dims)
        by_limit = (by_limit + decided).transpose(*by_limit.dims)
    success = success & final.notnull()
    out = {"success": success, "decaying": above & ~success, "by_limit": by_limit}
    out |= {"separated": xr.ones_like(above), "left": xr.zeros_like(final)}
    if states is not None and not any(d in states["at"].dims for d in entries()):
        out["separated"], out["left"] = _separated(values, final, states, threshold)
    return xr.Dataset(out)


def _separated(
    values: xr.DataArray, final: xr.DataArray, states: xr.Dataset, threshold: float
) -> tuple[xr.DataArray, xr.DataArray]:
    """Which runs are close to the stable state of their basin, and how much of the way is left.

    A run that has not moved lies on one side of an unstable state because it began there, which no
    theory can fail. It counts once it has gone half of the way from its first value to the state,
    or is closer to it than a quarter of the distance to the next state.
    """
    at, begin = states["at"], _sizes(values.isel(time=0, drop=True), states)
    final, possible = _sizes(final, states), states["stable"] == 1
    if states.attrs["divides"]:
        possible = possible & _same_side(final, states)
    distance = abs(final - at).where(possible)
    closest = distance.min(AT)
    goal = at.where(distance == closest).max(AT)
    steps = abs(at - goal)
    next_one = steps.where(steps > ZERO).min(AT).fillna(threshold)
    way = abs(begin - goal)
    separated = (closest <= way / 2) | (closest <= next_one / 4)
    left = (closest / way).where(way > 0).where(states["known"])
    separated = xr.where(states["known"], separated, True)
    return separated.transpose(*final.dims), left.transpose(*final.dims)


def _sizes(values: xr.DataArray, states: xr.Dataset) -> xr.DataArray:
    """Values beside the states: sizes where a store has one of each pair of mirror images."""
    return values if bool((states["at"] < 0).any()) else abs(values)


def _same_side(values: xr.DataArray, states: xr.Dataset) -> xr.DataArray:
    """Which states lie above as many unstable ones as values do."""
    edges = states["at"].where(states["stable"] == 0).rename({AT: "edge"})
    return (edges < values).sum("edge") == (edges < states["at"]).sum("edge")
