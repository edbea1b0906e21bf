"""Long names of the variables."""

LONG_NAMES = {
    "value": "critical value",
    "Q": "{v} at the transition",
    "error": "error of the critical value",
    "kind": "0 fold, 1 transcritical, 2 junction",
}
