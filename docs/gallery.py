"""Write the gallery from reports: ``python docs/gallery.py results`` after ``snakemake reproduce``.

Each study has an entry in ``gallery.json``, with the hash of the study that it is of, and its
picture in ``gallery/``; studies without a report in the folder keep theirs. A test holds every
entry to the study as it is now.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

from hdica.run.plan import duration
from hdica.store.results import status
from hdica.study.study import load_study
from hdica.systems.system import systems

ROOT = Path(__file__).parents[1]
HERE = ROOT / "docs"
ENTRIES, PICTURES, PAGE = HERE / "gallery.json", HERE / "gallery", HERE / "gallery.md"
HEAD = """\
# Gallery

Each study that comes with hdica has a report with an answer. Here are the answers, a figure of each
report, the study itself, and the processor time of all its points on one core of an AMD EPYC.
`snakemake --cores reproduce` builds those of the papers, with their reports, and `hdica run` any of
them.
"""
OTHERS = """\
## More studies

These have no report here; `hdica plan config/studies/NAME.yaml` says how long each takes.

| study | system | title |
|---|---|---|"""
WORDS = {
    "agrees": "✓ Everything that its report compares agrees.",
    "differs": "✗ Something that its report compares differs.",
    "undecided": "? Something that its report compares is undecided.",
}


def entry(folder: Path) -> dict[str, Any]:
    """The entry of one report, whose picture is written."""
    card = json.loads((folder / "card.json").read_text())
    name = str(card["study"])
    _, _, picture = card["thumbnail"].partition("base64,")
    (PICTURES / f"{name}.png").write_bytes(base64.b64decode(picture))
    counts = status(folder.with_suffix(".zarr"))
    kept = ("study", "title", "system", "headline", "verdict", "figure_title")
    return {
        **{key: card[key] for key in kept},
        "points": counts.total("points"),
        "seconds": float(f"{sum(row.cpu_seconds for row in counts.rows):.2g}"),
        "hash": load_study(ROOT / f"config/studies/{name}.yaml").content_hash(),
    }


def section(one: dict[str, Any]) -> str:
    """One study as Markdown."""
    name = one["study"]
    verdict = WORDS.get(one["verdict"], "")
    return f"""\
### {one["title"]}

{one["headline"]} {verdict}

```{{image}} gallery/{name}.png
:alt: "{one["figure_title"]}"
:width: 420px
```

`{name}`: {one["points"]} points, {duration(one["seconds"])}.

:::{{dropdown}} The study
```{{literalinclude}} ../config/studies/{name}.yaml
:language: yaml
```
:::
"""


def page(entries: dict[str, dict[str, Any]]) -> str:
    """The gallery, system by system in the order of the table of systems, and other studies."""
    parts = [HEAD]
    for record in systems():
        own = [one for one in entries.values() if one["system"] == record]
        if own:
            parts += [f"## {record}\n", *map(section, own)]
    files = sorted((ROOT / "config/studies").glob("*.yaml"))
    if others := [load_study(path) for path in files if path.stem not in entries]:
        rows = (f"| `{one.study}` | {one.system} | {one.title} |" for one in others)
        parts += [OTHERS, *rows, ""]
    return "\n".join(parts)


def main(results: Path) -> None:
    """Take over what is in a folder of results, and write the page anew."""
    PICTURES.mkdir(exist_ok=True)
    entries = json.loads(ENTRIES.read_text()) if ENTRIES.exists() else {}
    for card in sorted(results.glob("*/card.json")):
        entries[card.parent.name] = entry(card.parent)
    entries = dict(sorted(entries.items()))
    ENTRIES.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(entries))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
