"""Long names of the variables."""

OVERLAP = "Q"
"""Name of the overlap in what is returned, whatever its system calls it: files have it."""

LONG_NAMES = {
    "value": "critical value",
    OVERLAP: "{v} at the transition",
    "error": "error of the critical value",
    "kind": "0 fold, 1 transcritical, 2 junction",
}
