"""Exact dynamics at finite n: random streams, compiled kernels, reduced chains."""

from hdica.process.cache_folders import settle as _settle

_settle()

VERSION = 4
