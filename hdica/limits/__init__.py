"""The limit n -> infinity: averages, ordinary differential equations, fixed points."""

from hdica.process.compile_cache import set_cache_folder as _set_cache_folder

_set_cache_folder()
