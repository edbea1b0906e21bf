# Names that the rules share. Each study is read once, here, so that a mistake in it stops Snakemake with one sentence
# before anything runs.
from pathlib import Path

from snakemake.exceptions import WorkflowError

from hdica.errors import HdicaError
from hdica.sweep.study import load_study

RESULTS = config["results"].rstrip("/")
LOGS = "logs"
SHARDS = config["shards"]


def read_study(name):
    try:
        return load_study(Path(config["study_folder"]) / f"{name}.yaml")
    except (HdicaError, OSError) as exc:
        raise WorkflowError(str(exc)) from None


NAMES = config["studies"]
STUDIES = {name: read_study(name) for name in ([NAMES] if isinstance(NAMES, str) else NAMES)}


def study_file(wildcards):
    return f"{config['study_folder']}/{wildcards.study}.yaml"


def store(wildcards):
    return f"{RESULTS}/{wildcards.study}.zarr"


def content_hash(wildcards):
    """Changes when a number of the study can change: its grid, its methods, their kernels."""
    return STUDIES[wildcards.study].content_hash()


def full_hash(wildcards):
    """Changes with anything in the study file, its title included."""
    return STUDIES[wildcards.study].full_hash()
