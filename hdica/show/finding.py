"""A finding: one number with its place, what theory predicts for it, and the verdict on the two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby
from typing import TypedDict

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.show.choose import Point
from hdica.show.terms import entries
from hdica.show.words import EMPTY, Text, p_value, words
from hdica.verdict.cells import NEAR, together
from hdica.verdict.trajectory import STILL, WRONG_DRIFT

THEORY = words("theory")
METHODS = ("simulation", "method", "limit")
"""Keys of a place that name a method."""


class Form(Enum):
    """What a finding says of its number."""

    VALUE = "the quantity has this value at this place"
    LARGEST = "the quantity is largest at this place, where it has this value"
    SMALLEST = "the quantity is smallest at this place, where it has this value"
    POWER = "the quantity goes as a base to this power"


@dataclass(frozen=True)
class Finding:
    """One number that an analysis finds.

    Parameters
    ----------
    quantity
        What it is, a noun in the singular with its article: "the critical step size", "mean Q".
    place
        Where: values of swept parameters and of ``n``, the time as ``t``, methods as ``simulation``
        or ``limit``.
    value, error, unit
        Measured, or computed where nothing is measured, with its standard error; NaN if unknown.
    low, high
        A 95 % interval, of a value that has no symmetric error.
    predicted, predicted_error, theory
        What a theory ("the limit", "Wang & Lu 2017") has for it, with the bound on its numerical
        error; NaN without a prediction.
    verdict, evidence
        ``"agrees"``, ``"differs"`` or ``"undecided"``, empty for what is not judged, and what
        decides, in HTML: p-values, the control, or why it is undecided.
    seeds
        Seeds that would decide an undecided comparison; infinite if no number would.
    form, base, digits
        How the number is stated, the base of a power ("n"), and the digits of a value without an
        error.
    """

    quantity: Text
    place: Mapping[str, object] = field(default_factory=dict)
    value: float = np.nan
    error: float = np.nan
    low: float = np.nan
    high: float = np.nan
    predicted: float = np.nan
    predicted_error: float = np.nan
    verdict: str = ""
    evidence: str = ""
    seeds: float = np.nan
    theory: Text = THEORY
    unit: Text = EMPTY
    form: Form = Form.VALUE
    base: Text = EMPTY
    digits: int = 4

    @property
    def subject(self) -> tuple[str, Form, str]:
        """What it shares with findings that stand in one sentence with it."""
        return self.quantity.html, self.form, self.theory.html

    @property
    def name(self) -> Text:
        """The quantity and how it is stated, as a label."""
        ending = {Form.LARGEST: ", largest", Form.SMALLEST: ", smallest", Form.POWER: ", power of "}
        return self.quantity + words(ending.get(self.form, "")) + self.base

    @property
    def off(self) -> float:
        """Measured less predicted."""
        return float(self.value - self.predicted)


class Judged(TypedDict, total=False):
    """The fields of a finding that judge it."""

    verdict: str
    evidence: str
    seeds: float


Group = tuple[Finding, ...]
"""Neighbouring findings on one quantity, which one sentence states."""


def grouped(findings: Iterable[Finding]) -> list[Group]:
    """Findings with their neighbours on the same quantity."""
    return [tuple(some) for _, some in groupby(findings, key=lambda one: one.subject)]


def verdict_of(findings: Iterable[Finding]) -> str:
    """One verdict for several findings; those without one do not count."""
    return together([one.verdict for one in findings if one.verdict])


def judgement(data: xr.Dataset, point: Point) -> Judged:
    """Fields of a finding from the variables that :mod:`hdica.verdict` leaves in a dataset.

    What no drift moves, such as a law at the start, is not judged: a wrong limit predicts the same.
    """
    here = data.sel({k: v for k, v in point.items() if k in data["verdict"].dims})
    verdict, p = str(here["verdict"].item()), float(here["p_value"])
    evidence, seeds = str(escape(here["why"].item())), float(here["seeds_needed"])
    if evidence == NEAR:
        evidence = f"{p_value(p)} is too close to the level to decide"
    elif "control_p" in here and np.isfinite(p):
        control, share = float(here["control_p"]), 100 * data.attrs.get("control", WRONG_DRIFT)
        evidence = f"{p_value(p)}; {p_value(control)} for a drift wrong by {share:.3g} %"
        if str(here["why"].item()) == STILL:
            verdict, seeds, evidence = "", np.nan, f"{p_value(p)}; {STILL}"
    return {"verdict": verdict, "evidence": evidence, "seeds": seeds}


def named(data: xr.Dataset, point: Point) -> Point:
    """A point of the grid without the only method of its kind, or the only entry of a matrix."""
    own = (*METHODS, *entries())
    return {k: v for k, v in point.items() if k not in own or data.sizes.get(k, 2) > 1}
