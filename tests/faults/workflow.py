"""The bench whose command is Snakemake's: the real workflow, a real study of a second or two."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.bench import Bench, Run, begin
from tests.workflow.conftest import Checkout, copy_workflow

STUDY = {
    "study": "long",
    "title": "A study of a second or two",
    "system": "OnlineICA",
    "parameters": {"source": "uniform", "nonlinearity": "x**3"},
    "grid": {"tau": [0.02, 0.05], "Q0": [0.5, 0.8]},
    "times": [0, 1, 2],
    "methods": {"chain": {"n": [50_000], "seeds": 100}, "ode": {}},
}
CONFIG = "studies: [long]\ncluster: {mode: local}\n"


@dataclass
class WorkflowBench(Bench):
    """A copy of the workflow with one study."""

    @classmethod
    def made(cls, folder: Path) -> WorkflowBench:
        """Make the copy in a folder."""
        checkout = copy_workflow(folder)
        (folder / "config/studies/long.yaml").write_text(json.dumps(STUDY))
        checkout.config(CONFIG)
        return cls(folder, STUDY)

    @property
    def out(self) -> Path:
        return self.folder / "results" / "long.zarr"

    def start(self, cluster: dict[str, Any] | None = None, *options: str) -> Run:
        checkout = Checkout(self.folder)
        command = checkout.command("--cores", "2", "results/long.manifest.json", *options)
        said = self.folder / f"said-{len(self.runs)}.txt"
        environment = checkout.environment()
        self.runs.append(Run(begin(command, said, environment, self.folder), said))
        return self.runs[-1]
