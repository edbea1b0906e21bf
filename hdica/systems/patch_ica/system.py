"""Independent component analysis of patches of natural images, of all pixels or after PCA.

"Reduce and Conquer" (2025), Section 3, Figure 1 and Appendix A.1. Its time is the iteration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.contrasts import Contrast, make_contrast
from hdica.ingredients.plain import is_number
from hdica.inputs.data_input import DATA, DataInput
from hdica.systems.fields import CONSTANTS
from hdica.systems.parameters import Parameters

USUAL_RANK = 32  # principal components that are kept where no number is given
USUAL_RATIO = 2.0  # samples per dimension where no number is given: n = 2D
MOST_WIDTH, MOST_SAMPLES = 256, 10**8
SPACES = "'ambient', 'principal' or {principal: d} with a whole number d >= 1"
CHANNELS = {"grey": 1, "rgb": 3}


def _whole(value: Any) -> Any:
    if isinstance(value, bool):
        raise HdicaError(f"{value} is not allowed (a whole number)")
    return value


def _space(value: Any) -> Any:
    if value == "ambient":
        return value
    if value == "principal":
        return {"principal": USUAL_RANK}
    if isinstance(value, Mapping) and list(value) == ["principal"]:
        d = value["principal"]
        if is_number(d) and float(d).is_integer() and 1 <= d <= 3 * MOST_WIDTH**2:
            return {"principal": int(d)}
    raise HdicaError(
        f"space = {value!r} is not allowed ({suggestion(value, ('ambient', 'principal'), SPACES)})"
    )


Whole = Annotated[int, BeforeValidator(_whole)]
Ratio = Annotated[float, BeforeValidator(_whole)]
Space = Annotated[str | dict[str, int], BeforeValidator(_space)]


class PatchICA(Parameters):
    """FastICA of square patches of natural images, in all pixels or in principal components.

    n patches of D = width^2 pixels (3 width^2 in colour) are drawn from the images, centred pixel
    by pixel and whitened by the eigenvectors of their covariance, all D of them or the leading d;
    FastICA looks for directions w of unit length with an extreme mean of G(w.y) over the whitened
    patches y. Every iteration uses the same n patches. What is found is judged on other patches.
    Time is the number of the iteration.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    images: DataInput = Field("bundled", description=f"where patches are drawn from: {DATA}")
    width: Whole = Field(ge=2, le=MOST_WIDTH, description="pixels of a patch's side")
    colour: Literal["grey", "rgb"] = Field("grey", description="`grey` or `rgb`")
    contrast: str = Field(
        "logcosh", description="`exp`, `logcosh`, `kurtosis`, `he4` or a formula in `s`"
    )
    samples_per_dimension: Ratio | None = Field(
        None, gt=0, description="n/D (2 if neither this nor `samples` is given)"
    )
    samples: Whole | None = Field(
        None, ge=3, le=MOST_SAMPLES, description="number of patches n, in place of n/D"
    )
    space: Space = Field(
        "ambient",
        description="`ambient` for all D dimensions, `principal` for the leading 32 principal "
        "components, or `{principal: d}`",
    )
    restarts: Whole = Field(
        1, ge=1, le=10_000, description="starts; the least Gaussian result that converged counts"
    )
    test: Whole = Field(10_000, ge=2, le=10**7, description="held-out patches")
    directions: Whole = Field(
        20, ge=1, le=100_000, description="random directions that are compared with"
    )
    iterations: Whole = Field(200, ge=1, le=10_000, description="iterations at most")
    tolerance: Ratio = Field(1e-7, gt=0, lt=1, description="1 − |w'·w| at which they end")
    kept: Whole = Field(
        32, ge=1, le=4096, description="filters that `filter_bank` lists, the least Gaussian first"
    )
    constants: dict[str, float] = Field({}, description=CONSTANTS)

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {"d": ("space", "principal")}
    formulas: ClassVar[Mapping[str, str]] = {"contrast": "s"}
    sized_by: ClassVar[Mapping[str, str]] = {
        "component": "kept", "row": "width", "column": "width", "channel": "colour",
    }  # fmt: skip

    @model_validator(mode="after")
    def _consistent(self) -> PatchICA:
        if self.samples is not None and self.samples_per_dimension is not None:
            raise HdicaError(
                "samples, samples_per_dimension: both are not allowed (at most one of them)",
                ["samples", "samples_per_dimension"],
            )
        contrast(self)
        d, pixels = rank(self), dimension(self)
        if d > pixels:
            raise HdicaError(
                f"space.principal = {d} with width = {self.width} is not allowed (at most the "
                f"{pixels} dimensions of a patch)",
                ["space", "width"],
            )
        if not d < count(self) <= MOST_SAMPLES:
            many = f"n = {count(self)}" if self.samples is None else f"= {self.samples}"
            raise HdicaError(
                f"samples {many} with d = {d} is not allowed (d < n <= {MOST_SAMPLES:.0e}, as "
                "fewer cannot be whitened)",
                ["samples", "samples_per_dimension", "space"],
            )
        return self

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: numbers of filters, rows, columns and channels."""
        return {
            "component": tuple(range(self.kept)),
            "row": tuple(range(self.width)),
            "column": tuple(range(self.width)),
            "channel": tuple(range(CHANNELS[self.colour])),
        }


def dimension(system: PatchICA) -> int:
    """D, the numbers in a patch."""
    return system.width**2 * CHANNELS[system.colour]


def rank(system: PatchICA) -> int:
    """Dimension d of the space in which FastICA runs."""
    return dimension(system) if isinstance(system.space, str) else system.space["principal"]


def count(system: PatchICA) -> int:
    """Number of patches n, whole: at least n/D times D."""
    if system.samples is not None:
        return system.samples
    ratio = system.samples_per_dimension
    return math.ceil((USUAL_RATIO if ratio is None else ratio) * dimension(system))


def contrast(system: PatchICA) -> Contrast:
    """G with its derivatives."""
    return make_contrast(system.contrast, system.constants)
