"""The process that is recorded: FOLDER FILES does the phases in FILES, with results in FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.power import marks, system
from tests.power.phases import RESULTS, read
from tests.power.place import held
from tests.power.recorder import HOLDS
from tests.power.variants import summary

PHASES = "phases.json"


def main(folder: Path, files: Path) -> int:
    system.register()
    marks.told_of_blocks()
    marks.told_of_publications()
    from hdica.cli import call

    for phase in read((files / PHASES).read_text()):
        marks.say(begun=phase.name)
        with system.luck(phase.unlucky):
            code = call(phase.arguments(folder / RESULTS, files))
        # What the folder holds now has to be what the trace explains.
        marks.say(ended=phase.name, code=code, **{HOLDS: summary(held(folder))})
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), Path(sys.argv[2])))
