"""Distance between the empirical law of the entries and the limit's: its record."""

from __future__ import annotations

from hdica.analysis.distances.settings import Distances
from hdica.analysis.record import Analysis, Section, Verdicts, lazy
from hdica.analysis.registry import register

DISTANCES = register(
    Analysis(
        name="distances",
        compute=lazy("hdica.analysis.distances.compute:distances"),
        settings=Distances,
        sections=(
            Section(
                "distances",
                "Distance of laws against n",
                lazy("hdica.analysis.distances.figure:distances"),
                12,
            ),
        ),
        say=lazy("hdica.analysis.distances.say:distances"),
        rank=9,
        verdicts=Verdicts("Law of the entries", lazy("hdica.analysis.distances.table:distances")),
    )
)
