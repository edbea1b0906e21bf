# `snakemake --cores` builds every study of config/config.yaml and its report; `snakemake -n` shows the plan.
# The target rule stands here, because a Snakefile that only includes others builds nothing, silently.
from snakemake.utils import min_version, validate

min_version("9.0")


configfile: "config/config.yaml"


validate(config, "workflow/schemas/config.schema.yaml")


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/sweep.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        # The shards' records too: a repair withdraws them, and then its points are computed again.
        collect(rules.shard.output, study=STUDIES, shard=range(SHARDS)),
        collect("{results}/{study}.manifest.json", results=RESULTS, study=STUDIES),
        collect("{results}/{study}/report.html", results=RESULTS, study=STUDIES),


onsuccess:
    for page in (Path(RESULTS) / study / "report.html" for study in STUDIES):
        if page.exists():
            print(f"report: {page}", file=sys.stderr)
