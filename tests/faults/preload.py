"""Imported by Dask workers of these tests: they know the toy system and its troubles."""

from tests.faults import kernels, trouble

trouble.register()
assert kernels.spin.nopython_signatures  # compiled before a point needs them
