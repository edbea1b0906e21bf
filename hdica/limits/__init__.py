"""The limit n -> infinity: averages, ordinary differential equations, fixed points."""
