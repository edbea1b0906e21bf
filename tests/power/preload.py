"""Imported by Dask workers of a recorded run: they know the system, and tell of their blocks."""

from tests.power import marks, system

system.register()
marks.told_of_blocks()
