"""How a quantity depends on a swept parameter, measured and predicted."""
