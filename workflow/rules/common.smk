# Names that the rules share. Each study is read once, here, so that a mistake in it stops Snakemake with one sentence
# before anything runs.
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

from hdica.errors import HdicaError
from hdica.process.machine import in_bytes
from hdica.run.settings import cluster_settings, in_full
from hdica.study.study import load_study

RESULTS = config["results"].rstrip("/")
LOGS = "logs"
SHARDS = config["shards"]
INDEX = f"{RESULTS}/index.html"


@cache
def read_study(name):
    try:
        return load_study(Path(config["study_folder"]) / f"{name}.yaml")
    except (HdicaError, OSError) as exc:
        raise WorkflowError(str(exc)) from None


def listed(names):
    return [names] if isinstance(names, str) else list(names)


def targets(names):
    """Everything that building these studies leaves; each is read first, so that mistakes show at once."""
    for name in names:
        read_study(name)
    return [
        # The shards' records too: a repair withdraws them, and then its points are computed again.
        *expand(
            f"{RESULTS}/{{study}}.shards/{{shard}}-of-{SHARDS}.json",
            study=names,
            shard=range(SHARDS),
        ),
        *expand(f"{RESULTS}/{{study}}.manifest.json", study=names),
        *expand(f"{RESULTS}/{{study}}/report.html", study=names),
    ]


STUDIES = listed(config["studies"])
FIGURES = listed(config["figures"])

# Up to four shards at a time: while one compiles or starts, which takes one core, the others compute.
CORES = workflow.resource_settings.cores or 64
THREADS = config.get("threads") or -(-CORES // min(4, SHARDS * max(1, len(STUDIES))))


def shard_resources():
    """What a shard's job asks for where Snakemake submits it, if cluster.slurm says; after a failure more."""
    try:
        section = in_full(config["cluster"])
        asked = section.get("slurm") or {}
        first = cluster_settings({"mode": "slurm", "slurm": asked}).slurm
    except HdicaError as exc:
        raise WorkflowError(str(exc)) from None
    if section.get("mode") == "slurm":  # then it computes nothing itself
        return {}

    def job(attempt):
        last = first
        for _ in range(attempt - 1):
            last = last.larger(memory=True, walltime=True) or last
        return last

    def memory(wildcards, threads, attempt):
        return -(-in_bytes(job(attempt).memory) // (threads * 2**20))

    def walltime(wildcards, attempt):
        return job(attempt).seconds // 60

    names = {"memory": ("mem_mb_per_cpu", memory), "walltime": ("runtime", walltime)}
    return dict(names[key] for key in names if key in asked)


def study_file(wildcards):
    return f"{config['study_folder']}/{wildcards.study}.yaml"


def store(wildcards):
    return f"{RESULTS}/{wildcards.study}.zarr"


def system(wildcards):
    """What Snakemake's report files a study under."""
    return read_study(wildcards.study).system


def figure_labels(wildcards):
    """What Snakemake's report lists of a figure; asked when that report is made."""
    from hdica.report.drawn import CAPTIONS, titles  # what draws is imported only for this

    written = Path(RESULTS, wildcards.study, "figures", CAPTIONS).read_text()
    heading, title = titles(written)[wildcards.figure]
    # Braces would be wildcards.
    return {
        name: text.translate({ord("{"): "(", ord("}"): ")"})
        for name, text in (("figure", title), ("topic", heading))
    }


def content_hash(wildcards):
    """Changes when a number of the study can change: its grid, its methods, their kernels."""
    return read_study(wildcards.study).content_hash()


def full_hash(wildcards):
    """Changes with anything in the study file, its title included."""
    return read_study(wildcards.study).full_hash()
