"""Write the tables that are made of the code into the manuals: ``python docs/tables.py``.

Each stands between two lines that say what it is made of; a test holds them to the code.
"""

from __future__ import annotations

import re
from pathlib import Path

from hdica.analysis.registry import analyses_table
from hdica.systems.manual import methods_table, parameters_tables, systems_table

ROOT = Path(__file__).parents[1]
TABLES = {
    "systems": ("README.md", systems_table),
    "systems and methods": ("docs/systems.md", methods_table),
    "parameters of systems": ("config/README.md", parameters_tables),
    "analyses": ("config/README.md", analyses_table),
}


def block(name: str) -> re.Pattern[str]:
    """A table with the lines around it."""
    return re.compile(rf"(<!-- made by docs/tables.py: {name} -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str, name: str, table: str) -> str:
    """The text of a manual with one of its tables."""
    found = block(name)
    if not found.search(text):
        raise SystemExit(f"no place for the table of {name}")
    return found.sub(lambda m: f"{m[1]}{table}\n{m[2]}", text)


if __name__ == "__main__":
    for name, (file, table) in TABLES.items():
        path = ROOT / file
        path.write_text(filled(path.read_text(), name, table()))
