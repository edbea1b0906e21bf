"""Run a study on a Dask cluster of Slurm jobs, for tests that kill some: STUDY OUT CLUSTER."""

import json
import sys

from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.study.study import load_study

if __name__ == "__main__":
    study_file, out, cluster = sys.argv[1:]
    study = load_study(study_file)
    summary = run(study, out, cluster=json.loads(cluster))
    publish(study, out)
    print(json.dumps({"pending": summary.pending, "lost": summary.lost}))
