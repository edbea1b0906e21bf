"""Distance between the empirical law of the entries and the limit's: its record."""

from __future__ import annotations

from hdica.analysis.distances.settings import Distances
from hdica.analysis.record import Analysis, Section, Verdicts, lazy
from hdica.analysis.registry import register

DISTANCES = register(
    Analysis(
        name="distances",
        compute=lazy(__name__, "compute:distances"),
        settings=Distances,
        sections=(
            Section(
                "distances", "Distance of laws against n", lazy(__name__, "figure:distances"), 12
            ),
        ),
        say=lazy(__name__, "say:distances"),
        rank=9,
        verdicts=Verdicts("Law of the entries", lazy(__name__, "table:distances")),
    )
)
