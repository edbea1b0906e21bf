"""Run a toy study in a process of its own, for tests that kill it: STUDY.json OUT CLUSTER."""

import json
import sys
from pathlib import Path

from hdica.sweep.publish import publish
from hdica.sweep.runner import run
from hdica.sweep.study import study_from
from tests.sweep import toy

if __name__ == "__main__":
    toy.register()
    study_file, out, cluster = sys.argv[1:]
    study = study_from(json.loads(Path(study_file).read_text()))
    summary = run(study, out, cluster=json.loads(cluster), progress=False, block=4)
    publish(study, out)
    print(json.dumps({"pending": summary.pending, "lost": summary.lost}))
