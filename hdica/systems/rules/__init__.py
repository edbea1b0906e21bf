"""Rules of finitely many projections, as their user writes them: fields and methods."""

VERSION = 5
