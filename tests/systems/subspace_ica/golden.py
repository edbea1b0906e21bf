"""Golden numbers of subspace ICA: where they are, and the laws and contrasts that they name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hdica.ingredients.contrasts import Contrast, make_contrast
from hdica.ingredients.sources import Source, make_source

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/subspace_ica.json").read_text())
_LAWS = {"chi2": int, "bg": float}
_KEYS = {"bg": "bernoulli_gaussian"}


def law(name: str) -> str | dict[str, Any]:
    """The law that a case names: rademacher, chi2_4, bg_0.1."""
    family, _, number = name.partition("_")
    return {_KEYS.get(family, family): _LAWS[family](number)} if number else name


def ingredients(case: dict[str, Any]) -> tuple[Contrast, Source]:
    """Contrast and source of a case."""
    return make_contrast(case["G"]), make_source(law(case["h"]))


def title(case: dict[str, Any]) -> str:
    """A case in a few words."""
    return "-".join(str(case[key]) for key in ("h", "G", "gamma", "alpha", "alpha0") if key in case)
