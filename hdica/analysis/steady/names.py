"""Long names of the variables."""


def _columns(prefix: str, where: str) -> dict[str, str]:
    return {
        f"{prefix}_Q": f"{{v}} {where}",
        f"{prefix}_h": f"h, half the curvature of the effective potential, {where}",
        f"{prefix}_bulk": f"E[x^2] of the bulk {where}",
        f"{prefix}_stable": f"1 if stable, 0 if unstable, {where}",
        f"{prefix}_kind": f"0 informative, 1 uninformative, 2 condensed, {where}",
    }


LONG_NAMES = {
    **_columns("fixed", "at the fixed point"),
    **_columns("branch", "along the branch"),
    "branch_value": "parameter along the branch",
    "branch_index": "index of the branch",
    "transition_value": "parameter at the transition",
    "transition_Q": "{v} at the transition",
    "transition_error": "error of the transition",
    "transition_kind": "0 fold, 1 transcritical, 2 junction",
    "limit_end": "limit of |{v}| at the last time",
    "overlap": "mean of |{v}| over seeds at the last time",
    "overlap_se": "standard error of the mean of |{v}|",
    "count": "seeds that are done",
    "largest": "share of |x|^2 on the largest entry at the last time, mean over seeds",
    "largest_se": "standard error of the share on the largest entry",
    "state": "|{v}| of a stable state",
    "state_kind": "kind of a stable state: 0 informative, 1 uninformative, 2 condensed",
    "nearest": "|{v}| of the stable state nearest to the simulation",
    "nearest_kind": "kind of the stable state nearest to the simulation",
    "on_branch": "1 where the simulation is within 3 standard errors and 3/sqrt(n) of it",
    "bistable_from": "lower end of a range with several stable states",
    "bistable_to": "upper end of a range with several stable states",
}

BRANCH = ("branch_value", "branch_Q", "branch_stable", "branch_kind", "branch_index")
"""Columns of a branch; the overlap is Q in what is returned, whatever its system calls it."""
