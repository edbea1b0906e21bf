"""Exact dynamics at finite n: random streams, compiled kernels, reduced chains."""

from hdica.process.compile_cache import set_cache_folder as _set_cache_folder

_set_cache_folder()

VERSION = 4
