"""The limit n -> infinity: averages, ordinary differential equations, fixed points."""

from hdica.process.cache_folders import settle as _settle

_settle()
