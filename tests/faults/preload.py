"""Imported by Dask workers of these tests: they know the toy system and its troubles."""

from tests.faults import trouble

trouble.register()
