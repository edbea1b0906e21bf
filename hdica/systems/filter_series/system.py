"""First-layer filters of a network over its training, and the images that it was trained on.

"Reduce and Conquer: Independent Component Analysis at linear sample complexity" (2025), Section 5.
Nothing is trained here unless it is asked for: filters are data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from hdica.errors import HdicaError
from hdica.inputs.data_input import DATA, DataInput
from hdica.systems.arguments import check_memory
from hdica.systems.filter_series.fields import FILTERS, FilterInput, Share, series, shape
from hdica.systems.parameters import Parameters

COMPONENTS = 64
"""Principal components that are shown, as in Figure A.1."""


class FilterSeries(Parameters):
    """First-layer filters at snapshots of a training, beside the principal components of patches.

    Filters w are vectors of d = pixels times channels entries; U holds the k leading principal
    components of patches x drawn from images. What is followed is how much of w lies in their span
    (A.1) and how far from normal w.x is (A.2). Time is the training step; between two snapshots
    everything is as at the earlier one.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    filters: FilterInput = Field(description=FILTERS)
    images: DataInput = Field("bundled", validate_default=True, description=f"images: {DATA}")
    colour: Literal["grey", "rgb"] = Field("grey", description="`grey` or `rgb`")
    patches: int = Field(20000, ge=2, le=10**7, description="patches that a seed draws")
    k: Share = Field(
        0.4,
        description="dimension of the principal subspace: below 1 a share of d, else the number",
    )
    layer: str = Field(
        "", description="name of the weights in checkpoints (default: the first convolution)"
    )
    training: int = Field(
        0, ge=0, le=10**6, description="number of the training in a folder that has several"
    )

    sized_by: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("component", "row", "column"), "filters"),
        "channel": "colour",
    }

    @model_validator(mode="after")
    def _consistent(self) -> FilterSeries:
        if "path" not in self.filters:
            for name, usual in (("layer", ""), ("training", 0)):
                if getattr(self, name) != usual:
                    raise HdicaError(
                        f"{name} = {getattr(self, name)!r} is not allowed here (filters that "
                        "are not read from files)",
                        [name],
                    )
        return self

    @property
    def steps(self) -> list[float]:
        """Steps of the snapshots; a network that is to be trained is trained for them."""
        return [float(step) for step in series(self).steps]

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: of pictures of filters and principal components."""
        count, channels, side = shape(self)
        pixels = tuple(range(side))
        components = max(count, min(COMPONENTS, side * side * channels))
        return {
            "component": tuple(range(components)),
            "row": pixels,
            "column": pixels,
            "channel": tuple(range(channels)),
        }


def check_patches(system: FilterSeries, d: int) -> None:
    """Refuse more patches than memory holds: twice, with their copy that is centred."""
    check_memory(16.0 * system.patches * d, f"patches = {system.patches}", "fewer patches")
